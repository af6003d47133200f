"""A plugin that does what a test says, and a harness that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from skedge.config.defaults import default_configuration
from skedge.config.types import Plugin
from skedge.framework.status import Code, Status
from skedge.testing.harness import Harness

NO = Status(Code.UNSCHEDULABLE, "no")
BAD = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "never")


def broken(text: str = "it broke") -> Status:
    return Status.from_error(RuntimeError(text))


def scripted(name: str, **methods: Any) -> Any:
    """A plugin with these methods; one that is no function is what it always returns. `calls` counts them."""
    calls: list[str] = []

    def method(point: str, does: Any) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            calls.append(point)
            return does(*args) if callable(does) else does

        return call

    made = {point: method(point, does) for point, does in methods.items() if point != "normalizer"}
    plugin = SimpleNamespace(name=name, calls=calls, normalizer=methods.get("normalizer"), **made)
    if "filter" in methods and "filter_status" not in methods:
        plugin.filter_status = lambda state, pod, code: NO
    return plugin


def by_name(reasons: Callable[[str], int]) -> Callable[..., Any]:
    """A filter: code by node name."""

    def filter_(state: Any, pod: Any, view: Any) -> Any:
        return np.array([reasons(view.table.names[row]) for row in view.rows], np.int64)

    return filter_


def world(*plugins: Any, alone: Sequence[str] = (), post_filter: bool = False, **options: Any) -> Harness:
    """A harness with these plugins besides the default ones; at points in `alone` they are the only ones.

    `post_filter`: whether the default ones preempt.
    """
    config = default_configuration()
    sets = config.profiles[0].plugins
    sets.multi_point.enabled.extend(Plugin(plugin.name, 1) for plugin in plugins)
    silent = [*alone] if post_filter else [*alone, "post_filter"]
    for point in silent:
        chosen = getattr(sets, point)
        chosen.disabled = [Plugin("*")]
        chosen.enabled = [Plugin(plugin.name, 1) for plugin in plugins if hasattr(plugin, point)]
    by = {plugin.name: plugin for plugin in plugins}
    return Harness(config, out_of_tree={name: lambda args, handle, p=p: p for name, p in by.items()}, **options)


def message(h: Harness, name: str = "p") -> str:
    """The message of the pod's PodScheduled condition."""
    condition = h.condition(name)
    assert condition is not None, f"{name} has no condition"
    return str(condition["message"])


def place(h: Harness, name: str = "p") -> str:
    """Where the queue has a pod, "" if nowhere."""
    return next((p.value for p, record in h.scheduler.queue.records() if record.pod.name == name), "")
