"""One cycle in ten is looked at closely: its profile's plugins are stood in for by ones that are timed.

A call answers for many nodes at once, so what is observed for Filter and Score is one call a pod, not one a node; what
kept answers spare is not observed. Upstream: `framework/runtime/metrics_recorder.go`, `pluginMetricsSamplePercent`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from skedge.framework.status import Code, Status
from skedge.profiles.profile import Asked, Enabled, Profile

Record = Callable[[str, str, str, float], None]
"""(plugin, extension point, status, seconds)"""

_POINTS: Final = {
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "pre_score": "PreScore",
    "score": "Score",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind_preflight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
_AWAITED: Final = frozenset({"pre_bind", "bind"})
_LISTS: Final = (
    "pre_filter",
    "filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
)


class TimedPlugin:
    """Stands in for a plugin: all its attributes, its extension points timed."""

    def __init__(self, plugin: Any, record: Record, monotonic: Callable[[], float]) -> None:
        self._plugin = plugin
        self.name: str = plugin.name
        for method, point in _POINTS.items():
            call = getattr(plugin, method, None)
            if call is not None:
                wrap = _timed_await if method in _AWAITED else _timed
                setattr(self, method, wrap(call, plugin.name, point, record, monotonic))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin, name)


def _timed(call: Any, plugin: str, point: str, record: Record, monotonic: Callable[[], float]) -> Any:
    def timed(*args: Any) -> Any:
        start = monotonic()
        answer = call(*args)
        record(plugin, point, _word(answer, point), monotonic() - start)
        return answer

    return timed


def _timed_await(call: Any, plugin: str, point: str, record: Record, monotonic: Callable[[], float]) -> Any:
    async def timed(*args: Any) -> Any:
        start = monotonic()
        answer = await call(*args)
        record(plugin, point, _word(answer, point), monotonic() - start)
        return answer

    return timed


def _word(answer: Any, point: str) -> str:
    """The status that an answer of any of the points amounts to; of codes for many nodes Success if any passes."""
    if isinstance(answer, Status):
        return answer.code.word
    if isinstance(answer, tuple):
        for part in answer:
            if isinstance(part, Status):
                return part.code.word
    if point == "Filter" and (answer.all() if isinstance(answer, np.ndarray) else answer):
        return Code.UNSCHEDULABLE.word
    return Code.SUCCESS.word


def timed_profile(profile: Profile, record: Record, monotonic: Callable[[], float]) -> Profile:
    """A profile that shares everything with this one, but for its plugins."""
    stand_ins = {id(each): TimedPlugin(each, record, monotonic) for each in profile.plugins}

    def stand_in(each: Any) -> Any:
        if isinstance(each, Enabled):
            return Enabled(stand_ins[id(each.plugin)], each.weight)
        return stand_ins[id(each)]

    timed = copy.copy(profile)
    for name in _LISTS:
        setattr(timed, name, tuple(map(stand_in, getattr(profile, name))))
    every = Asked(*[tuple(map(stand_in, plugins)) for plugins in profile.cycle[:-1]])  # type: ignore[arg-type]
    timed.cycle = every
    timed.asked = lambda pod: every  # type: ignore[method-assign]  # that one has nothing to do is observed, too
    # What is kept is kept by the plugins themselves.
    timed.standing = profile.standing  # type: ignore[method-assign]
    return timed
