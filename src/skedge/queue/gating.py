"""PreEnqueue: who keeps a pod out of the active queue.

Upstream: `pkg/scheduler/backend/queue/scheduling_queue.go` (runPreEnqueuePlugins).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from skedge.framework.events import ClusterEvent
from skedge.framework.plugin import PreEnqueuePlugin
from skedge.framework.status import SUCCESS, Code, Status
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

_MEASURE_EVERY: Final = 10
"""Of so many runs one is timed; the reference draws lots with the same odds."""


class Gate:
    """Runs the PreEnqueue plugins of a pod's profile and notes in the record who gates it.

    Args: `plugins` by scheduler name; `events_of` gives what a plugin registered.
    """

    def __init__(
        self,
        plugins: Mapping[str, tuple[PreEnqueuePlugin, ...]],
        events_of: Callable[[str], tuple[ClusterEvent, ...]],
        monotonic: Callable[[], float],
        hooks: SchedulerHooks,
    ) -> None:
        self._plugins = dict(plugins)
        self._events_of = events_of
        self._monotonic = monotonic
        self._hooks = hooks
        self._runs = 0

        self._seconds = {name: hooks.extension_point_child("PreEnqueue", "Success", name) for name in plugins}

    def passes(self, record: QueuedPodInfo) -> bool:
        """Ask the plugins, the one that gates the pod so far first; stop at the first that is not content."""
        began = self._monotonic()
        try:
            return self._passes(record)
        finally:
            seconds = self._seconds.get(record.pod.scheduler_name)
            if seconds is not None:  # the status is Success whatever the plugins said, in the reference too
                seconds.observe(self._monotonic() - began)

    def _passes(self, record: QueuedPodInfo) -> bool:
        plugins = self._plugins.get(record.pod.scheduler_name, ())
        self._runs += 1
        measured = self._runs % _MEASURE_EVERY == 0
        gating = record.gating_plugin
        if gating:
            plugins = tuple(sorted(plugins, key=lambda plugin: plugin.name != gating))
        for plugin in plugins:
            start = self._monotonic() if measured else 0.0
            try:
                status = plugin.pre_enqueue(record.pod)
            except Exception as error:
                status = Status.from_error(error)
            if measured:
                took = self._monotonic() - start
                self._hooks.plugin_execution(plugin.name, "PreEnqueue", status.code.word, took)
            if status is SUCCESS or status.ok:
                continue
            if status.code is Code.ERROR:
                log.error(
                    status.message, "Unexpected error running PreEnqueue plugin", plugin=plugin.name, pod=record.key
                )
            if plugin.name not in record.unschedulable_plugins:
                self._hooks.unschedulable_pods(plugin.name, record.pod.scheduler_name, 1)
            record.gate(plugin.name, self._events_of(plugin.name))
            return False
        if gating:
            record.gating_plugin = ""
            record.gating_events = ()
        return True
