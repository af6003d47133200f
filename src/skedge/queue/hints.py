"""Which plugin listens to which event, and whether an event is a reason to try a pod again.

Upstream: `pkg/scheduler/scheduler.go` (buildQueueingHintMap), `framework/runtime/framework.go` (default registration),
`backend/queue/scheduling_queue.go` (isPodWorthRequeuing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from skedge.framework.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM,
    STORAGE_CLASS,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    QueueingHintFn,
)
from skedge.framework.plugin import PreEnqueuePlugin
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

EXTENDER: Final = "Extender"
"""The pseudo plugin that stands for all extenders among a pod's rejectors."""

_PARTICIPATING: Final = ("pre_enqueue", "pre_filter", "filter", "filter_node", "reserve", "permit")
_DEFAULT_RESOURCES: Final = (
    POD,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS,
    RESOURCE_CLAIM,
    DEVICE_CLASS,
)
_NODE_TAINT: Final = ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT)
_PLANS_LIMIT: Final = 20_000


class Registration(NamedTuple):
    event: ClusterEvent
    plugin: str
    hint: QueueingHintFn | None
    """None: always Queue."""


HintMap = tuple[Registration, ...]


class ProfileQueueing(NamedTuple):
    """What the queue needs of one profile."""

    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    hints: HintMap = ()


def default_events(generic_workload: bool = False) -> tuple[ClusterEventWithHint, ...]:
    """What a plugin listens to that does not say: everything, of the kinds that commonly matter."""
    resources = (*_DEFAULT_RESOURCES, POD_GROUP) if generic_workload else _DEFAULT_RESOURCES
    return tuple(ClusterEventWithHint(ClusterEvent(resource, ActionType.ALL)) for resource in resources)


def hint_map(plugins: Iterable[Any], *, extenders: bool = False, generic_workload: bool = False) -> HintMap:
    """Registrations of a profile's plugins, in their order; `extenders`: whether any extender is configured.

    Only plugins that can turn a pod down take part. One that asks for Node Add but not for UpdateNodeTaint is woken by
    taint changes as well, without a hint.
    """
    found: list[Registration] = []
    for plugin in plugins:
        if any(hasattr(plugin, point) for point in _PARTICIPATING):
            ask = getattr(plugin, "events_to_register", None)
            found += _registrations(plugin.name, default_events(generic_workload) if ask is None else ask())
    if extenders:
        found += _registrations(EXTENDER, default_events(generic_workload))
    return tuple(found)


def _registrations(plugin: str, events: Iterable[ClusterEventWithHint]) -> list[Registration]:
    found = [Registration(registered.event, plugin, registered.hint) for registered in events]
    actions = ActionType.NONE
    for registration in found:
        if registration.event.resource == NODE:
            actions |= registration.event.action
    if actions & ActionType.ADD and not actions & ActionType.UPDATE_NODE_TAINT:
        found.append(Registration(_NODE_TAINT, plugin, None))
    return found


def registered_actions(maps: Iterable[HintMap]) -> dict[str, ActionType]:
    """resource → union of the actions anybody listens to: which requeue handlers have a purpose."""
    found: dict[str, ActionType] = {}
    for registrations in maps:
        for event, _, _ in registrations:
            found[event.resource] = found.get(event.resource, ActionType.NONE) | event.action
    return found


class Strategy(Enum):
    """What to do with a waiting pod because of an event."""

    SKIP = "QueueSkip"  # leave it
    AFTER_BACKOFF = "QueueAfterBackoff"
    IMMEDIATELY = "QueueImmediately"  # even if its pause is not over


class QueueingHints:
    """The registrations of all profiles, with what was once looked up in them remembered."""

    def __init__(
        self,
        maps: Mapping[str, HintMap],
        monotonic: Callable[[], float],
        hooks: SchedulerHooks,
    ) -> None:
        self._maps = dict(maps)
        self._monotonic = monotonic
        self._hooks = hooks
        self._interest: dict[ClusterEvent, bool] = {}
        self._plans: dict[tuple[str, frozenset[str], ClusterEvent], HintMap] = {}
        self._events_of: dict[str, tuple[ClusterEvent, ...]] = {}
        for registrations in self._maps.values():
            for event, plugin, _ in registrations:
                known = self._events_of.get(plugin, ())
                if event not in known:
                    self._events_of[plugin] = (*known, event)

    def of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile listens to the event; everybody listens to a wildcard."""
        found = self._interest.get(event)
        if found is None:
            found = self._interest[event] = event.wildcard or any(
                registration.event.matches(event) for map_ in self._maps.values() for registration in map_
            )
        return found

    def resources(self) -> set[str]:
        """What plugins registered events of."""
        return set(registered_actions(self._maps.values()))

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """What a plugin registered in any profile."""
        return self._events_of.get(plugin, ())

    def _listeners(self, scheduler_name: str, rejectors: frozenset[str], event: ClusterEvent) -> HintMap:
        key = (scheduler_name, rejectors, event)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _PLANS_LIMIT:
                self._plans.clear()
            plan = self._plans[key] = tuple(
                registration
                for registration in self._maps[scheduler_name]
                if registration.plugin in rejectors and registration.event.matches(event)
            )
        return plan

    def can_matter(self, scheduler_name: str, rejectors: frozenset[str], event: ClusterEvent) -> bool:
        """False when `worth_requeuing` says SKIP for every pod of that profile with these rejectors."""
        if not rejectors or event.wildcard or scheduler_name not in self._maps:
            return True
        return bool(self._listeners(scheduler_name, rejectors, event))

    def worth_requeuing(self, record: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """What an event means for a pod that was turned down; `old` and `new` are what it happened to."""
        if not record.rejectors:
            return Strategy.AFTER_BACKOFF
        pod = record.pod
        if event.wildcard:
            meant = new is None or (isinstance(new, PodInfo | PlacedPod) and new.uid == pod.uid)
            return Strategy.AFTER_BACKOFF if meant else Strategy.SKIP
        if pod.scheduler_name not in self._maps:
            log.error(None, "No queueing hints for the profile of the pod", pod=pod.key, profile=pod.scheduler_name)
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for _, plugin, hint in self._listeners(pod.scheduler_name, record.rejectors, event):
            if self._ask(plugin, hint, pod, event, old, new) == QueueingHint.QUEUE_SKIP:
                continue
            if plugin in record.pending_plugins:
                return Strategy.IMMEDIATELY
            strategy = Strategy.AFTER_BACKOFF
            if not record.pending_plugins:
                break
        return strategy

    def _ask(
        self, plugin: str, hint: QueueingHintFn | None, pod: PodInfo, event: ClusterEvent, old: Any, new: Any
    ) -> QueueingHint:
        start = self._monotonic()
        answer, word = QueueingHint.QUEUE, "Queue"
        if hint is not None:
            try:
                answer = hint(pod, old, new)
                if answer == QueueingHint.QUEUE_SKIP:
                    word = "QueueSkip"
            except Exception as error:
                word = "Error"
                log.error(error, "Queueing hint failed, taken as Queue", plugin=plugin, event=event.label, pod=pod.key)
        self._hooks.hint(plugin, event.label, word, self._monotonic() - start)
        return answer
