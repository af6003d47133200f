"""A profile: its plugins, listed per extension point once, and what they answered before.

Upstream: `pkg/scheduler/framework/runtime/framework.go` (NewFramework), `pkg/scheduler/profile`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from skedge import names
from skedge.framework.plugin import fragment_of
from skedge.framework.state import CycleState
from skedge.framework.status import Status
from skedge.profiles.kept import Prepared
from skedge.profiles.measures import NOTHING, Measures
from skedge.profiles.sampling import Sampler
from skedge.profiles.standing import Standing, Weighted
from skedge.snapshot.counters_recent import Recent
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo

METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    names.PRE_ENQUEUE: ("pre_enqueue",),
    names.QUEUE_SORT: ("sort_key",),
    names.PRE_FILTER: ("pre_filter",),
    names.FILTER: ("filter", "filter_node"),
    names.POST_FILTER: ("post_filter",),
    names.PRE_SCORE: ("pre_score",),
    names.SCORE: ("score", "score_node"),
    names.RESERVE: ("reserve",),
    names.PERMIT: ("permit",),
    names.PRE_BIND: ("pre_bind",),
    names.BIND: ("bind",),
    names.POST_BIND: ("post_bind",),
    names.PLACEMENT_GENERATE: ("placement_generate",),
    names.PLACEMENT_SCORE: ("placement_score",),
}
"""Extension point -> the methods of which a plugin has one when it takes part."""


def extends(plugin: Any, point: str) -> bool:
    """Whether a plugin (class or instance) takes part in an extension point."""
    return any(hasattr(plugin, method) for method in METHODS[point])


class Enabled(NamedTuple):
    """A plugin at an extension point; `weight` counts for score only."""

    plugin: Any
    weight: int = 1


class Asked(NamedTuple):
    """The plugins that are asked about a pod every cycle, by point, and the names of those that are spared."""

    pre_filter: tuple[Any, ...]
    filter: tuple[Any, ...]
    pre_score: tuple[Any, ...]
    score: tuple[Enabled, ...]
    reserve: tuple[Any, ...]
    pre_bind: tuple[Any, ...]
    spared: frozenset[str] = frozenset()

    def without(self, spared: frozenset[str]) -> Asked:
        """All but the plugins of these names."""
        plugins = (self.pre_filter, self.filter, self.pre_score, self.reserve, self.pre_bind)
        pre_filter, filter_, pre_score, reserve, pre_bind = (
            tuple(plugin for plugin in each if plugin.name not in spared) for each in plugins
        )
        score = tuple(enabled for enabled in self.score if enabled.plugin.name not in spared)
        return Asked(pre_filter, filter_, pre_score, score, reserve, pre_bind, spared)


class Profile:
    """The plugins of one scheduler name. `profiles.search` runs them for a pod."""

    def __init__(
        self,
        name: str,
        points: Mapping[str, Sequence[Enabled]],
        table: NodeTable,
        *,
        percentage_of_nodes_to_score: int = 100,
        sampler: Sampler | None = None,
        extended: bool = False,
        run_all_filters: bool = False,
        cache_bytes: int = 128 << 20,
    ) -> None:
        self.name = name
        self.table = table
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.sampler = sampler
        self.extended = extended
        """Whether extenders filter or score: then one feasible node is never enough."""
        self.run_all_filters = run_all_filters
        self.measures: Measures = NOTHING

        def at(point: str) -> tuple[Any, ...]:
            return tuple(enabled.plugin for enabled in points.get(point, ()))

        self.pre_enqueue = at(names.PRE_ENQUEUE)
        self.queue_sort = at(names.QUEUE_SORT)
        self.pre_filter = at(names.PRE_FILTER)
        self.filter = at(names.FILTER)
        self.post_filter = at(names.POST_FILTER)
        self.pre_score = at(names.PRE_SCORE)
        self.score = tuple(points.get(names.SCORE, ()))
        self.reserve = at(names.RESERVE)
        self.permit = at(names.PERMIT)
        self.pre_bind = at(names.PRE_BIND)
        self.bind = at(names.BIND)
        self.post_bind = at(names.POST_BIND)
        self.placement_generate = at(names.PLACEMENT_GENERATE)
        self.placement_score = tuple(points.get(names.PLACEMENT_SCORE, ()))

        every = {id(e.plugin): e.plugin for enabled in points.values() for e in enabled}
        self.plugins = tuple(every.values())
        kept = [p for p in self.plugins if fragment_of(p) is not None and not self._lacks_half(p)]
        self._fragments: tuple[Callable[[PodInfo], Hashable], ...] = tuple(
            fragment for p in kept if (fragment := fragment_of(p)) is not None
        )
        self._kept = tuple((p, p in self.pre_filter, p in self.pre_score) for p in kept)
        self.kept_names = frozenset(plugin.name for plugin in kept)
        self._kept_pre_filter = tuple(p for p in self.pre_filter if p.name in self.kept_names)
        self._kept_filter = tuple(p for p in self.filter if p.name in self.kept_names)
        self._kept_pre_score = tuple(p for p in self.pre_score if p.name in self.kept_names)
        self._kept_score = tuple(e for e in self.score if e.plugin.name in self.kept_names)
        by_cycle = (p for p in self.filter if p.name not in self.kept_names)
        self.cycle = Asked(
            tuple(p for p in self.pre_filter if p.name not in self.kept_names),
            tuple(sorted(by_cycle, key=lambda p: getattr(p, "by_node", False))),  # node by node: last
            tuple(p for p in self.pre_score if p.name not in self.kept_names),
            tuple(e for e in self.score if e.plugin.name not in self.kept_names),
            self.reserve,
            self.pre_bind,
        )
        """All that are asked every cycle."""
        wanted = {p.name: p.wants for p in self.plugins if hasattr(p, "wants") and self._is_whole(p)}
        self._wanted_by = {want: frozenset(n for n, w in wanted.items() if w == want) for want in wanted.values()}
        self._asked: dict[tuple[bool, ...], Asked] = {}
        self._key_name = f"standing-key/{name}"
        limit, trial = cache_bytes // 2, cache_bytes // 128
        self._standings: Recent[Standing] = Recent(limit, Standing.released, trial)
        self._prepared: Recent[Prepared] = Recent(limit, trial=0)

    def _lacks_half(self, plugin: Any) -> bool:
        """Whether a point that prepares one the plugin is at is left out: what it says then may be an error."""
        filters = plugin in self.filter and hasattr(plugin, "pre_filter") and plugin not in self.pre_filter
        scores = any(e.plugin is plugin for e in self.score) and hasattr(plugin, "pre_score")
        return filters or (scores and plugin not in self.pre_score)

    def _is_whole(self, plugin: Any) -> bool:
        """Whether a plugin that is asked every cycle takes part in all that prepares a point."""
        filters = not hasattr(plugin, "pre_filter") or plugin in self.pre_filter
        return filters and plugin.name not in self.kept_names and not self._lacks_half(plugin)

    def unmeasured(self) -> Profile:
        """This profile for questions that no attempt to place a pod asks: metrics do not hear of them."""
        profile = copy.copy(self)
        profile.measures = NOTHING
        return profile

    @property
    def cache_bytes(self) -> int:
        """Memory held by kept answers and standings."""
        return self._standings.nbytes + self._prepared.nbytes

    def asked(self, pod: PodInfo) -> Asked:
        """Those that are asked about this pod: not the ones that want something it lacks."""
        has = tuple([bool(getattr(pod, want)) for want in self._wanted_by])
        found = self._asked.get(has)
        if found is None:
            lacking = (names for there, names in zip(has, self._wanted_by.values(), strict=True) if not there)
            found = self._asked[has] = self.cycle.without(frozenset().union(*lacking))
        return found

    def standing(self, pod: PodInfo) -> Standing:
        """What is kept for pods like this one; not synced. Masks and totals are empty until `sync`."""
        key = pod.cached(self._key_name)
        if key is None:
            key = tuple([fragment(pod) for fragment in self._fragments])
            pod.cache(self._key_name, key)
        found: Standing | None = self._standings.get(key)
        if found is None:
            found = self._new_standing(pod, key)
            self._standings.put(key, found)
        return found

    def _new_standing(self, pod: PodInfo, fragments: Sequence[Hashable]) -> Standing:
        prepared: dict[str, Prepared] = {}
        state = CycleState()
        for (plugin, *points), fragment in zip(self._kept, fragments, strict=True):
            key = (plugin.name, fragment)
            found: Prepared | None = self._prepared.get(key)
            if found is None:
                found = Prepared(self.table, plugin, pod, *points)
                self._prepared.put(key, found)
            prepared[plugin.name] = found
            state.take_over(found.state)
        pre_filter = {plugin.name: prepared[plugin.name].pre_filter for plugin in self._kept_pre_filter}
        state.skip_filter = {name for name, (_, status) in pre_filter.items() if status.skip}
        error: tuple[str, Status] | None = None
        for plugin in self._kept_pre_score:
            status = prepared[plugin.name].pre_score
            if status.skip:
                state.skip_score.add(plugin.name)
            elif not status.ok and error is None:
                error = (plugin.name, status)
        filters = [
            (plugin, prepared[plugin.name].answers["filter"])
            for plugin in self._kept_filter
            if plugin.name not in state.skip_filter
        ]
        scores = [
            Weighted(plugin, weight, prepared[plugin.name].answers["score"])
            for plugin, weight in (self._kept_score if error is None else ())
            if plugin.name not in state.skip_score
        ]
        return Standing(self.table, state, pre_filter, error, filters, scores)
