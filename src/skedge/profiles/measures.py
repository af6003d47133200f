"""What a profile tells the metrics: how long each extension point took, and how often each plugin was evaluated.

The reference asks plugins node by node and counts each call; here an array call answers for many nodes and kept answers
for most of them. The counts are nevertheless those of the reference: for Filter the nodes that came as far as the
plugin, for Score the feasible ones. Upstream: `framework/runtime/instrumented_plugins.go`, `pkg/scheduler/metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from skedge.framework.status import Code
from skedge.telemetry.families import Counter, Histogram, Share
from skedge.telemetry.hooks import SchedulerHooks

if TYPE_CHECKING:
    from skedge.profiles.diagnosis import Codes
    from skedge.profiles.profile import Profile
    from skedge.profiles.search import Search
    from skedge.profiles.standing import Standing
    from skedge.snapshot.arith import Ints

PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
PRE_BIND_PREFLIGHT: Final = "PreBindPreFlight"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"
SUCCESS: Final = Code.SUCCESS.word
EVERY: Final = 10
"""Of so many cycles one has its plugins timed, one by one; the reference draws lots with the same odds."""

MANY_CYCLES: Final = 500
"""After so many cycles what was timed is counted."""


class Measures:
    """Measures nothing: for simulations and tests. Times are the clock's `monotonic()`."""

    def now(self) -> float:
        return 0.0

    def of_cycle(self, profile: Profile) -> Profile:
        """The profile to run the next cycle with: now and then one whose plugins are timed."""
        return profile

    def point(self, point: str, status: str, start: float) -> float:
        """All plugins of a point ran since `start`; the time now."""
        return 0.0

    def pre_filtered(self, search: Search, start: float) -> float:
        return 0.0

    def filtered(self, search: Search, start: float) -> float:
        return 0.0

    def tried(self, plugins: Sequence[Any], codes: Sequence[Codes]) -> None:
        """Hypothetical worlds were filtered by these plugins, all of which answered yes but for those with codes."""

    def tried_in_turn(self, plugins: Sequence[Any], judge: Any, worlds: int, fit: int) -> None:
        """The same where one plugin alone may have answered no."""

    def pre_scored(self, search: Search, start: float) -> float:
        return 0.0

    def scored(self, search: Search, start: float) -> float:
        return 0.0


NOTHING: Final = Measures()


class _Alike:
    """What the plugins with kept answers are counted by, for pods that are alike."""

    __slots__ = ("filter", "filters", "late", "pre_filter", "pre_score", "score")

    def __init__(
        self, late: list[int], pre_filter: list[Counter], filters: list[Counter], *others: list[Counter]
    ) -> None:
        self.late = late  # places of filters after those that are asked every cycle
        self.filters = filters
        self.pre_filter, self.filter, self.pre_score, self.score = (
            _shared(counters) for counters in (pre_filter, filters, *others)
        )


def _shared(counters: list[Counter]) -> Share:
    share = Share()
    for counter in counters:
        counter.include(share)
    return share


class CountedMeasures(Measures):
    """Measures one profile."""

    def __init__(self, profile: Profile, hooks: SchedulerHooks, monotonic: Callable[[], float]) -> None:
        self._profile = profile
        self._hooks = hooks
        self.now = self._monotonic = monotonic  # type: ignore[method-assign]
        self._succeeded: dict[str, list[float]] = {}  # their `late`
        self._histograms: list[Histogram] = []

        def counters(point: str, plugins: Iterable[Any]) -> dict[str, Counter]:
            return {p.name: hooks.plugin_evaluation_child(p.name, point, profile.name) for p in plugins}

        self._pre_filter = counters(PRE_FILTER, profile.pre_filter)
        self._filter = counters(FILTER, profile.filter)
        self._pre_score = counters(PRE_SCORE, profile.pre_score)
        self._score = counters(SCORE, (enabled.plugin for enabled in profile.score))
        kept = profile.kept_names
        order = [plugin.name in kept for plugin in profile.filter]
        late = len(order) if all(order) else order[::-1].index(False)
        early = order[: len(order) - late]
        self._kept_first = early == sorted(early, reverse=True)
        """Whether plugins with kept answers come before those that are asked every cycle, but for the `late` ones."""
        self._late = frozenset(plugin.name for plugin in profile.filter[len(early) :])
        self._by_skipped: dict[tuple[frozenset[str], frozenset[str]], _Alike] = {}
        self._cycles = 0
        self._timed: Profile | None = None

    def of_cycle(self, profile: Profile) -> Profile:
        self._cycles += 1
        if self._cycles % EVERY:
            return profile
        if not self._cycles % MANY_CYCLES:
            for histogram in self._histograms:
                histogram.settle()
        if self._timed is None:
            from skedge.profiles.timed import timed_profile  # which knows profiles, as these know measures

            self._timed = timed_profile(profile, self._hooks.plugin_execution, self._monotonic)
        return self._timed

    def point(self, point: str, status: str, start: float) -> float:
        now = self._monotonic()
        late = self._succeeded.get(point) if status == SUCCESS else None
        if late is None:
            histogram = self._hooks.extension_point_child(point, status, self._profile.name)
            if status != SUCCESS:
                histogram.observe(now - start)
                return now
            self._histograms.append(histogram)
            late = self._succeeded[point] = histogram.late
        late.append(now - start)
        return now

    # --- evaluations --------------------------------------------------------------------------------------------------

    def _alike(self, search: Search) -> _Alike:
        standing = search.standing
        found: _Alike | None = standing.measured
        if found is None:
            skipped = frozenset(standing.state.skip_filter), frozenset(standing.state.skip_score)
            found = self._by_skipped.get(skipped)
            if found is None:
                found = self._by_skipped[skipped] = self._counters_of(standing)
            standing.measured = found
        return found

    def _counters_of(self, standing: Standing) -> _Alike:
        profile, asked = self._profile, self._profile.kept_names - standing.state.skip_score
        return _Alike(
            [place for place, (plugin, _) in enumerate(standing.filters) if plugin.name in self._late],
            [self._pre_filter[name] for name, (_, status) in standing.pre_filter.items() if not status.skip],
            [self._filter[plugin.name] for plugin, _ in standing.filters],
            [self._pre_score[plugin.name] for plugin in profile.pre_score if plugin.name in asked],
            [self._score[enabled.plugin.name] for enabled in profile.score if enabled.plugin.name in asked],
        )

    def pre_filtered(self, search: Search, start: float) -> float:
        """Every plugin was asked once and is counted, unless it had nothing to do with the pod."""
        rejected = search.diagnosis.pre_filter
        if rejected is None:
            self._alike(search).pre_filter.value += 1
            skipped = search.skip_filter
            for plugin in search.asked.pre_filter:
                if plugin.name not in skipped:
                    self._pre_filter[plugin.name].value += 1
            return self.point(PRE_FILTER, SUCCESS, start)
        for plugin in self._profile.pre_filter:
            kept = search.standing.pre_filter.get(plugin.name)
            if plugin.name not in search.skip_filter and (kept is None or not kept[1].skip):
                self._pre_filter[plugin.name].inc()
            if plugin.name == rejected.plugin:
                break
        return self.point(PRE_FILTER, rejected.code.word, start)

    def filtered(self, search: Search, start: float) -> float:
        """Plugins are counted for every node that came as far as them."""
        now = self.point(FILTER, SUCCESS, start)
        every = self._profile.run_all_filters
        asked = every or search.direct or search.visited is not None or not self._in_turn(search)
        if asked:
            for name, count in _reached(search.evaluated_codes(), every=every):
                self._filter[name].inc(count)
        else:
            self._count_in_turn(search)
        if not every and (not asked or search.visited is not None):
            for plugin, count in search.reached:
                self._filter[plugin.name].inc(count)
        if search.diagnosis.crowded is not None:
            self._count_crowded(search, *search.diagnosis.crowded)
        return now

    def _count_in_turn(self, search: Search) -> None:
        standing, alike = search.standing, self._alike(search)
        alike.filter.value += standing.exists
        if search.reached:
            for place in alike.late:
                alike.filters[place].value += search.alive - standing.exists
        if not any(standing.stopped):
            return
        gone = 0
        for place, (counter, stopped) in enumerate(zip(alike.filters, standing.stopped, strict=True)):
            if not search.reached or place not in alike.late:
                counter.value -= gone
            gone += stopped

    def _in_turn(self, search: Search) -> bool:
        """Whether counts follow from how many rows each plugin stopped: kept answers first, and late ones idle."""
        if not search.reached:
            return True
        stopped = search.standing.stopped
        return self._kept_first and not any(stopped[place] for place in self._alike(search).late)

    def _count_crowded(self, search: Search, rows: Ints, codes: Sequence[Codes]) -> None:
        """Where pods are nominated all plugins run with them first, and a second time only where that went well."""
        for name, count in _reached(codes):
            self._filter[name].inc(count)
        failed = np.zeros(len(rows), bool)
        for _, each in codes:
            failed |= each != 0
        for name, count in _reached(search.evaluated_codes(rows[failed])):
            self._filter[name].inc(-count)

    def tried(self, plugins: Sequence[Any], codes: Sequence[Codes]) -> None:
        by_name = {plugin.name: each for plugin, each in codes}
        if not by_name:
            return
        alive: Any = np.ones(len(next(iter(by_name.values()))), bool)
        for plugin in plugins:
            self._filter[plugin.name].inc(int(np.count_nonzero(alive)))
            found = by_name.get(plugin.name)
            if found is not None:
                alive = alive & (found == 0)

    def tried_in_turn(self, plugins: Sequence[Any], judge: Any, worlds: int, fit: int) -> None:
        alive = worlds
        for plugin in plugins:
            self._filter[plugin.name].inc(alive)
            if plugin is judge:
                alive = fit

    def pre_scored(self, search: Search, start: float) -> float:
        self._alike(search).pre_score.value += 1
        skipped = search.skip_score
        for plugin in search.asked.pre_score:
            if plugin.name not in skipped:
                self._pre_score[plugin.name].value += 1
        return self.point(PRE_SCORE, SUCCESS, start)

    def scored(self, search: Search, start: float) -> float:
        nodes = search.count
        self._alike(search).score.value += nodes
        skipped = search.skip_score
        for enabled in search.asked.score:
            if enabled.plugin.name not in skipped:
                self._score[enabled.plugin.name].value += nodes
        return self.point(SCORE, SUCCESS, start)


def _reached(codes: Sequence[Codes], *, every: bool = False) -> Iterator[tuple[str, int]]:
    """Plugin -> how many rows came as far as it; `every`: a row goes on although it was rejected."""
    alive: Any = None
    for plugin, each in codes:
        yield plugin.name, len(each) if alive is None else int(np.count_nonzero(alive))
        passed: Any = np.asarray(each) == 0
        if not every:
            alive = passed if alive is None else alive & passed
