"""The search for a node: PreFilter, Filter, PreScore, Score for one pod over all rows at once.

Upstream: `schedule_one.go` (schedulePod, findNodesThatFitPod, prioritizeNodes), `framework/runtime/framework.go`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, TypeVar

import numpy as np

from skedge.framework.plugin import NodeNames, Nominator, PostFilterResult
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, Code, PluginError, Status
from skedge.profiles import post_filter, scoring
from skedge.profiles.diagnosis import NO_ROWS, Codes, Diagnosis
from skedge.profiles.diagnosis import CycleError as CycleError
from skedge.profiles.profile import Profile
from skedge.profiles.sampling import Sampler, nodes_to_find
from skedge.profiles.standing import Standing
from skedge.snapshot.arith import Bools, Ints, for_each
from skedge.snapshot.crowd import NOBODY, Crowd, Promised
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import DeltaView, Rows
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)
T = TypeVar("T")
_CHUNK: Final = 128
"""A search that may end early asks about at least so many rows at a time."""


class Search:
    """One pod's way through the filters of its profile, and then its scores.

    `run` finds `rows`, the feasible ones; `scores` their totals. Where `rows` is empty `diagnosis` says why.
    """

    def __init__(
        self, profile: Profile, pod: PodInfo, nominator: Nominator | None = None, within: Ints | None = None
    ) -> None:
        self.profile = profile
        self.within = within
        """Rows of the placement that the search is limited to; None: all nodes."""
        self.table: NodeTable = profile.table
        self.pod = pod
        self.nominator = nominator
        self.standing: Standing = profile.standing(pod)
        self.state = CycleState(parent=self.standing.state)
        total = self.table.count if within is None else len(within)
        self.diagnosis = Diagnosis(self.table, self.state, pod, total)
        self.diagnosis.every = profile.run_all_filters
        self.count = 0  # feasible rows
        self._rows: Ints | None = NO_ROWS  # None: those of the mask, not listed yet
        self.asked = profile.asked(pod)
        self.skip_filter = self.state.skip_filter = self.standing.state.skip_filter | self.asked.spared
        self.skip_score = self.state.skip_score = self.standing.state.skip_score | self.asked.spared
        self.nominated_fits = False
        self.nomination: PostFilterResult | None = None  # what PostFilter came to
        self._promised: Crowd | None = None
        self.kept_mask = False  # the feasible rows are exactly those of the standing
        self.as_kept = False  # and they are listed in the standing's order
        self.mask: Bools | None = None  # the feasible rows, where they were found among all
        self.among_kept = False  # the feasible rows are among those of the standing
        self.direct = False  # codes and scores were computed for a few rows only
        self.bare = False  # scores see nodes without pods and images
        self.visited: Ints | None = None
        """Rows that were looked at in this order, where the search ends early once it found enough."""
        self.others: list[Codes] = []
        """Codes of all rows by the plugins that are asked every cycle, as far as they were."""
        self.reached: list[tuple[Any, int]] = []
        """Those plugins, and how many rows came as far as them."""
        self.alive = 0  # rows that all of them left

    @property
    def rows(self) -> Ints:
        """The feasible rows."""
        if self._rows is None:
            assert self.mask is not None
            self._rows = self.mask.nonzero()[0]
        return self._rows

    @rows.setter
    def rows(self, rows: Ints) -> None:
        self._rows, self.count = rows, len(rows)

    # --- filters ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """PreFilter and Filter; the pod's nominated node is tried before all others. Raises CycleError."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[bool]:
        """`run`, with a stop where others may have a word about the feasible rows: they `keep` those they like.

        It stops with True where that is the nominated node alone, and for all other nodes with False.
        """
        sampler, measures = self.profile.sampler, self.profile.measures
        order = self.within if sampler is None else self._placed(sampler.rows())
        start = measures.now()
        try:
            names = self._pre_filter()
            start = measures.pre_filtered(self, start)
            if self.diagnosis.pre_filter is not None:
                return
            if self.pod.nominated_node_name and self._nominated_node_fits():
                measures.filtered(self, start)
                yield True
                if self.count:
                    self.nominated_fits = True
                    return
            start = measures.now()
            self.direct = False
            self.diagnosis.start_anew(keep=names is not None)
            if names is not None:
                self._filter_named(names, sampler)
            elif order is None:
                self._filter_all()
            else:
                self._filter_some(order)
                if sampler is not None:
                    sampler.move(self.evaluated_nodes)
            measures.filtered(self, start)
            if self.count:
                yield False
        except PluginError as error:
            raise CycleError(str(error)) from error

    def _placed(self, rows: Ints) -> Ints:
        """Those of the rows that are in the placement."""
        return rows if self.within is None else rows[np.isin(rows, self.within)]

    def _nominated_node_fits(self) -> bool:
        """Looks at the nominated node alone; where it fits it is the answer. An error there is nobody's concern."""
        row = self.table.row_of.get(self.pod.nominated_node_name)
        if row is None or not self.table.exists[row] or (self.within is not None and row not in self.within):
            return False
        try:
            self.look_at(np.array([row], np.int64))
        except PluginError as error:
            log.error(error, "Evaluation failed on nominated node", pod=self.pod.key, node=self.pod.nominated_node_name)
            self.rows = np.zeros(0, np.int64)
        return bool(self.count)

    def keep(self, rows: Ints, *, bare: bool = False) -> None:
        """Goes on with these of the feasible rows.

        `bare`: as nodes without pods and images, some of which may not even be nodes of the table (ghost rows).
        """
        self.rows = rows
        self.kept_mask = self.as_kept = False
        self.mask = None
        self.bare = bare

    def only(self, rows: Sequence[int]) -> None:
        """Takes these rows as the feasible ones (for tools and tests)."""
        self.rows = np.array(rows, np.int64)
        self.kept_mask = self.as_kept = self.among_kept = False
        self.mask = None

    def _pre_filter(self) -> NodeNames | None:
        """Runs PreFilter; returns the names the search is narrowed to, or None for all nodes."""
        standing = self.standing
        plugins = self.profile.pre_filter if standing.narrowed else self.asked.pre_filter
        if not plugins:
            return None
        state, pod, view = self.state, self.pod, Rows(self.table)
        names: NodeNames | None = None
        narrowing: list[str] = []
        rejected: Status | None = None
        for plugin in plugins:
            kept = standing.pre_filter.get(plugin.name) if standing.narrowed else None
            found, status = kept if kept is not None else plugin.pre_filter(state, pod, view)
            if status is SKIP or status.skip:
                self.skip_filter.add(plugin.name)
                continue
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                self.diagnosis.pre_filter = status.by(plugin.name)
                self._ended_at(plugin)
                return None
            if status.code is Code.UNSCHEDULABLE:
                rejected = status.by(plugin.name)
                continue
            if not status.ok:
                raise CycleError(f'running PreFilter plugin "{plugin.name}": {status.message}')
            if found is not None:
                narrowing.append(plugin.name)
                names = found if names is None else names & found
                if not names:
                    self._conflict(narrowing)
                    self._ended_at(plugin)
                    return None
        if rejected is not None:
            self.diagnosis.pre_filter = rejected
            return None
        self.diagnosis.narrowing = frozenset(narrowing)
        return names

    def _ended_at(self, plugin: Any) -> None:
        """PreFilter ended with this plugin: nobody came as far as those after it, so they were not spared either."""
        order = [each.name for each in self.profile.pre_filter]
        self.skip_filter -= self.asked.spared.intersection(order[order.index(plugin.name) + 1 :])

    def _conflict(self, narrowing: Sequence[str]) -> None:
        if len(narrowing) == 1:
            text = f"node(s) didn't satisfy plugin {narrowing[0]}"
        else:
            text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}] simultaneously"
        self.diagnosis.pre_filter = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, text)
        self.diagnosis.narrowing = frozenset(narrowing)

    def _filter_all(self) -> None:
        standing, table = self.standing, self.table
        standing.sync()
        mask = kept = standing.feasible[: table.size]
        others, reached = self.others, self.reached
        alive = standing.count
        for plugin in self.asked.filter:
            if plugin.name in self.skip_filter:
                continue
            try:
                codes = self._codes_of(plugin, mask)
            except PluginError:
                codes = self._codes_where_asked(plugin, others)
            others.append(Codes(plugin, codes))
            reached.append((plugin, alive))
            if codes is not table.all_fit:
                mask = mask & (codes == 0)
                alive = int(np.count_nonzero(mask))
        self.alive = alive
        crowded = self.crowded()
        if crowded:
            mask = mask.copy() if mask is kept else mask
            if self._check_crowded(crowded.rows, mask):
                alive = int(np.count_nonzero(mask))
        self.kept_mask = self.as_kept = alive == standing.count  # rows are only taken away
        self._rows, self.count = standing.rows if self.kept_mask else None, alive
        self.mask = mask
        self.among_kept = True
        if not alive:
            self._explain_all(others)

    def _codes_of(self, plugin: Any, mask: Bools) -> Ints:
        """A filter's codes of all rows; one in node form is asked about the rows of the mask alone."""
        table, state, pod = self.table, self.state, self.pod
        if self.profile.run_all_filters or not getattr(plugin, "by_node", False):
            answer = plugin.filter(state, pod, Rows(table))
            return table.all_fit if isinstance(answer, int) and not answer else for_each(answer, table.size)
        codes = np.zeros(table.size, np.int64)
        rows = np.flatnonzero(mask)
        codes[rows] = plugin.filter(state, pod, Rows(table, rows))
        return codes

    def _codes_where_asked(self, plugin: Any, others: list[Codes]) -> Ints:
        """Codes of a filter that has none for some row: it is asked about nodes that no filter before it rejects."""
        rows = np.flatnonzero(self.table.exists)
        before = itertools.takewhile(lambda other: other is not plugin, self.profile.filter)
        earlier = () if self.profile.run_all_filters else {each.name for each in before}
        passed = np.ones(len(rows), bool)
        for other, codes in self._in_order(others, rows):
            if other.name in earlier:
                passed &= codes == 0
        rows = rows[passed]
        found = np.zeros(self.table.size, np.int64)
        if len(rows):
            found[rows] = plugin.filter(self.state, self.pod, Rows(self.table, rows))
        return found

    def _explain_all(self, others: list[Codes]) -> None:
        """Puts the codes of all plugins, in Filter order, into the diagnosis."""
        diagnosis = self.diagnosis
        diagnosis.rows = np.flatnonzero(self.table.exists) if self.visited is None else self.visited
        if self.visited is not None and diagnosis.crowded is not None:
            rows, codes = diagnosis.crowded
            seen = np.isin(rows, self.visited)
            diagnosis.crowded = (rows[seen], [Codes(plugin, each[seen]) for plugin, each in codes])
        diagnosis.filters = self._in_order(others, diagnosis.rows)

    def _in_order(self, others: list[Codes], rows: Ints) -> list[Codes]:
        """These codes and the kept ones, of these rows, in Filter order."""
        by_name = {plugin.name: codes for plugin, codes in others}
        by_name |= {plugin.name: kept.answers for plugin, kept in self.standing.filters}
        return [Codes(plugin, by_name[plugin.name][rows]) for plugin in self.profile.filter if plugin.name in by_name]

    def evaluated_codes(self, rows: Ints | None = None) -> list[Codes]:
        """What the plugins answered, in Filter order: of all rows that were looked at, or of these of them."""
        if self.direct:
            codes = self.diagnosis.filters
            at = None if rows is None else np.isin(self.diagnosis.rows, rows)
            return codes if at is None else [Codes(plugin, each[at]) for plugin, each in codes]
        if rows is None:
            rows = np.flatnonzero(self.table.exists) if self.visited is None else self.visited
        return self._in_order(self.others, rows)

    def explain(self) -> Diagnosis:
        """The diagnosis with the codes of every node, feasible ones included (for tools and tests)."""
        if self.diagnosis.pre_filter is None and not self.diagnosis.filters and not self.direct:
            others: list[Codes] = []
            self.standing.sync()
            mask = self.standing.feasible[: self.table.size]
            for plugin in self.asked.filter:
                if plugin.name in self.skip_filter:
                    continue
                try:
                    codes = self._codes_of(plugin, mask)
                except PluginError:
                    codes = self._codes_where_asked(plugin, others)
                others.append(Codes(plugin, codes))
                mask = mask & (codes == 0)
            self._explain_all(others)
        return self.diagnosis

    def _filter_some(self, order: Ints) -> None:
        """Looks at rows in this order, and ends before the next feasible one after as many as are to be found."""
        standing = self.standing
        standing.sync()
        enough = self.to_find(len(order))
        mask = standing.feasible[: self.table.size]
        crowded = self.crowded()
        if crowded:
            mask = mask.copy()
            self._check_crowded(crowded.rows, mask)
        positions = np.flatnonzero(mask[order])
        plugins = [plugin for plugin in self.asked.filter if plugin.name not in self.skip_filter]
        found: list[Ints] = []
        count = at = 0
        while at < len(positions) and count <= enough:
            part = positions[at : at + max(enough + 1 - count, _CHUNK)]
            at += len(part)
            for plugin in plugins:
                self.reached.append((plugin, len(part)))
                codes = plugin.filter(self.state, self.pod, Rows(self.table, order[part]))
                part = part[np.broadcast_to(codes, part.shape) == 0]
            found.append(part)
            count += len(part)
        fits = np.concatenate(found) if found else positions
        self.visited = order if len(fits) <= enough else order[: fits[enough]]
        self.rows = order[fits[:enough]]
        self.among_kept = True
        self.kept_mask = len(self.rows) == standing.count
        if not len(self.rows):
            self.explain()

    def to_find(self, nodes: int) -> int:
        """How many feasible nodes of so many are enough."""
        profile = self.profile
        if profile.score or profile.extended:
            return nodes_to_find(nodes, profile.percentage_of_nodes_to_score)
        return min(nodes, 1)

    def _filter_named(self, names: NodeNames, sampler: Sampler | None) -> None:
        """Only the nodes of these names (those that exist) are looked at; all others are absent."""
        table = self.table
        found = [row for name in names if (row := table.row_of.get(name)) is not None and table.exists[row]]
        rows = self._placed(np.array(sorted(found), np.int64))
        if sampler is not None and len(rows):
            rows = np.roll(rows, -(sampler.start % len(rows)))
        self.look_at(rows)
        if sampler is not None:
            enough = self.to_find(len(rows))
            if len(self.rows) > enough:
                self.visited = rows[: np.flatnonzero(rows == self.rows[enough])[0]]
                self.rows = self.rows[:enough]
            sampler.move(self.evaluated_nodes)
        listed = " ".join(sorted(self.diagnosis.narrowing))
        self.diagnosis.absent = Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE, f"node(s) didn't satisfy plugin(s) [{listed}]"
        )

    def look_at(self, rows: Ints) -> None:
        """Filters these rows alone, keeping nothing."""
        self.direct = True
        diagnosis = self.diagnosis
        diagnosis.rows = rows
        diagnosis.filters = self.codes(Rows(self.table, rows))
        mask = np.ones(len(rows), bool)
        for _, codes in diagnosis.filters:
            mask &= codes == 0
        crowded = self.crowded()
        among = [row for row in rows.tolist() if row in crowded] if crowded else []
        if among:
            whole = np.zeros(self.table.size, bool)
            whole[rows] = mask
            self._check_crowded(np.array(among, np.int64), whole)
            mask = whole[rows]
        self.rows = rows[mask]

    def codes(self, view: Any) -> list[Codes]:
        """Every filter's codes for a view; no kept answer is used."""
        found: list[Codes] = []
        for plugin in self.profile.filter:
            if plugin.name in self.skip_filter:
                continue
            try:
                codes = np.asarray(plugin.filter(self.state, self.pod, view), np.int64)
            except PluginError:  # it is asked about rows that come as far alone
                asked = np.ones(view.size, bool)
                for each in () if self.profile.run_all_filters else found:
                    asked &= each.codes == 0
                codes = np.zeros(view.size, np.int64)
                if asked.any():
                    codes[asked] = plugin.filter(self.state, self.pod, view.only(asked))
            found.append(Codes(plugin, np.broadcast_to(codes, (view.size,))))
        return found

    # --- nominated pods -----------------------------------------------------------------------------------------------

    def crowded(self) -> Crowd:
        """Rows with nominated pods that count for this pod: priority at least its own, and not itself."""
        if self._promised is None:
            if self.nominator is None:
                self._promised = NOBODY
            else:
                self._promised = self.nominator.crowd(self.table, self.pod.priority, self.pod.uid)
        return self._promised

    def _check_crowded(self, rows: Ints, mask: Bools) -> bool:
        """A row must fit with its nominated pods as well as without them; says whether the mask changed."""
        crowded = self.crowded()
        codes = self.codes(DeltaView(self.table, rows, added=crowded, amounts=Promised(crowded, rows)))
        fits = np.ones(len(rows), bool)
        for _, each in codes:
            fits &= each == 0
        self.diagnosis.crowded = (rows, codes)
        changed = bool((mask[rows] & ~fits).any())
        mask[rows[~fits]] = False
        return changed

    # --- when nothing fits --------------------------------------------------------------------------------------------

    @property
    def evaluated_nodes(self) -> int:
        """Nodes that were looked at."""
        if self.visited is not None:
            return len(self.visited)
        return len(self.diagnosis.rows) if self.direct else self.table.count

    def post_filter(self) -> PostFilterResult | None:
        """Runs PostFilter; its words go into the diagnosis, its nomination is returned."""
        for _ in self.post_filter_steps():
            raise AssertionError
        return self.nomination

    def preempt(self) -> tuple[PostFilterResult | None, Any]:
        """`post_filter`, and what the plugin that evicts pods found, if there is one (for tools and tests)."""
        found = None
        for plugin, found in self.post_filter_steps(halves=True):
            plugin.choose(found)
        return self.nomination, found

    def post_filter_steps(self, *, halves: bool = False) -> Iterator[Any]:
        """`post_filter`, its result in `nomination`; with `halves` it stops before a plugin that evicts pods chooses.

        It stops with (plugin, what it found): others may have a word about the candidates.
        """
        return post_filter.steps(self, halves=halves)

    # --- scores -------------------------------------------------------------------------------------------------------

    def scores(self) -> Ints:
        """Total scores of `rows`, in their order. Raises CycleError."""
        return self._scored(scoring.totals)

    def best(self) -> Sequence[int] | Ints:
        """The rows with the highest total score, in order. Raises CycleError."""
        return self._scored(scoring.best)

    def pick(self, rng: Random) -> int:
        """One of the rows with the highest total score, each as likely. Raises CycleError."""
        return self._scored(scoring.pick, rng)

    def _scored(self, what: Callable[..., T], *more: Any) -> T:
        try:
            return what(self, *more)
        except PluginError as error:
            raise CycleError(f"running Score plugins: {error}") from error

    def scores_by_plugin(self) -> dict[str, Ints]:
        """Normalised score x weight of `rows`, by plugin (for tools and tests)."""
        parts: dict[str, Ints] = {}
        scoring.totals(self, parts)
        return parts
