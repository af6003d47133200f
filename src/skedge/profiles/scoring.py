"""PreScore and Score for the feasible rows of a search: standing totals where they hold, and what is asked every cycle.

Upstream: `schedule_one.go` (prioritizeNodes), `framework/runtime/framework.go` (RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from skedge.framework.status import SKIP
from skedge.profiles.diagnosis import CycleError
from skedge.profiles.kept import Kept
from skedge.profiles.standing import Standing
from skedge.snapshot.arith import Bools, Ints, for_each
from skedge.snapshot.by_domain import ByDomain, Scattered, gathered
from skedge.snapshot.views import Bare, Later, Row, Rows

if TYPE_CHECKING:
    from skedge.profiles.search import Search

_DRAWS: Final = 12
"""So many of the standing's best rows are tried in the hope that one of them is the best of all."""
_MISSES: Final = 3
_ASK_AGAIN: Final = 16
"""Where the best rows of the standing were not the best of all (of those drawn: so often in turn), that is tried again
after so many pods."""
_SPAN: Final = 256
"""Raw scores that lie closer together are made scores of one by one, and looked up by rows."""


def totals(search: Search, parts: dict[str, Ints] | None = None) -> Ints:
    """Total scores of the search's rows, in their order; with `parts` also each plugin's, into it.

    Raises CycleError, and PluginError where a plugin cannot answer.
    """
    if not search.profile.score:
        return np.ones(search.count, np.int64)
    view, start = _pre_scored(search)
    return _totals(search, view, start, parts)


def best(search: Search) -> Sequence[int] | Ints:
    """The rows with the highest total, in order; the standing knows them where it alone decides."""
    if not search.profile.score:
        return search.rows
    view, start = _pre_scored(search)
    return _best(search, view, start)


def pick(search: Search, rng: Random) -> int:
    """One of the rows with the highest total, each as likely."""
    if not search.profile.score:
        return int(search.rows[rng.randrange(len(search.rows))])
    view, start = _pre_scored(search)
    row = _drawn(search, rng)
    if row is not None:
        search.profile.measures.scored(search, start)
        return row
    found = _best(search, view, start)
    return int(found[rng.randrange(len(found)) if len(found) > 1 else 0])


def _drawn(search: Search, rng: Random) -> int | None:
    """Draws among the standing's best rows until one is feasible and has the best raw score there can be from every
    plugin that is asked: all such rows are equally good, and none is better. None if a few draws find none."""
    standing, state, pod = search.standing, search.state, search.pod
    asked = [plugin for plugin, _ in search.asked.score if plugin.name not in search.skip_score]
    if search.bare or standing.invalid or (search.kept_mask and not asked):
        return None
    mask = search.mask
    if not search.kept_mask and (mask is None or not _same_bounds(search)):
        return None
    if standing.missed >= _MISSES:
        standing.missed += 1
        if standing.missed % _ASK_AGAIN:
            return None
    if not all(hasattr(plugin, "best_raw") for plugin in asked):
        return None
    best_raw = [(plugin.score, plugin.best_raw(state, pod)) for plugin in asked]
    among, random = standing.best(), rng.random
    number = len(among)
    for _ in range(_DRAWS):
        row = int(among[int(random() * number)])
        if mask is not None and not mask.item(row):
            continue
        view = Row(search.table, row)
        if all(score(state, pod, view) == top for score, top in best_raw):
            standing.missed = 0
            return row
    standing.missed += 1
    return None


def _best(search: Search, view: Any, start: float) -> Sequence[int] | Ints:
    profile, standing = search.profile, search.standing
    if search.kept_mask and not search.bare and not standing.invalid:
        parts = _parts(search, view)
        profile.measures.scored(search, start)
        if not parts:
            return standing.best()
        if len(parts) == 1 and isinstance(parts[0].raw, Scattered):
            scattered = _best_scattered(search, parts[0], parts[0].raw)
            if scattered is not None:
                return scattered
        standing.asked += 1
        if search.as_kept and (standing.unbeaten or not standing.asked % _ASK_AGAIN):
            found = _unbeaten(search, parts)
            standing.unbeaten = bool(len(found))
            if standing.unbeaten:
                return found
        total = standing.totals[: search.count] if _are_all(search) else standing.totals.take(search.rows)
        for part in parts:
            total = total + part.of_rows()
    else:
        total = _totals(search, view, start)
    highest: Ints = (total == total.max()).nonzero()[0]
    return highest if _are_all(search) else search.rows.take(highest)


def _are_all(search: Search) -> bool:
    """Whether the feasible rows are all rows of the table, in order, so that a row is its own place among them."""
    return search.as_kept and search.count == search.table.size


class _Part(NamedTuple):
    """What a plugin that is asked every cycle adds to the totals; not the same for every row."""

    normalizer: Any
    weight: int
    raw: Ints | ByDomain | Scattered
    bounds: Any

    def weighted(self, raw: Ints) -> Ints:
        """What raw scores come to in the totals."""
        scores: Ints = raw if self.normalizer is None else self.normalizer.apply(raw, self.bounds)
        return scores if self.weight == 1 else scores * self.weight

    def of_rows(self) -> Ints:
        """What the feasible rows get."""
        if isinstance(self.raw, ByDomain):
            return self.raw.map(self.weighted).rows()
        raw = gathered(self.raw)
        lowest, highest = self.normalizer.span(self.bounds) if hasattr(self.normalizer, "span") else (0, _SPAN)
        if highest - lowest >= _SPAN:
            return self.weighted(raw)
        found: Ints = self.weighted(np.arange(lowest, highest + 1)).take(raw - lowest)  # few raw scores there are
        return found

    def differs(self, occurring: Ints) -> bool:
        """Whether these raw scores, all there are, are not all the same."""
        if hasattr(self.normalizer, "span"):
            lowest, highest = self.normalizer.span(self.bounds)
            return bool(lowest != highest)
        return bool(occurring[0] != occurring[-1] or (occurring != occurring[0]).any())

    def at_top(self, raw: Ints) -> Bools:
        """Which of these raw scores become 100, the most there is."""
        if hasattr(self.normalizer, "top"):
            reached: Bools = raw == self.normalizer.top(self.bounds)
        else:
            reached = self.weighted(raw) == MAX_NODE_SCORE * self.weight
        return reached


def _parts(search: Search, view: Any) -> list[_Part]:
    found: list[_Part] = []
    for plugin, weight in search.asked.score:
        if plugin.name in search.skip_score:
            continue
        raw, normalizer = plugin.score(search.state, search.pod, view), plugin.normalizer
        if isinstance(raw, int) and hasattr(normalizer, "top"):
            continue  # the same for every row, and in range
        if isinstance(raw, Scattered):
            occurring = _occurring(search, raw)
        elif isinstance(raw, ByDomain):
            occurring = raw.present
        else:
            occurring = raw = for_each(raw, search.count)
        bounds = None if normalizer is None else normalizer.bounds(occurring)
        part = _Part(normalizer, weight, raw, bounds)
        if not hasattr(normalizer, "top"):
            _checked(plugin.name, part.weighted(occurring) // weight)
        if part.differs(occurring):
            found.append(part)
    return found


def _feasible(search: Search, rows: Ints) -> Ints:
    """Those of some rows of the table that are feasible."""
    if _are_all(search):
        return rows
    mask = search.standing.feasible if search.kept_mask else search.mask
    return rows[np.isin(rows, search.rows) if mask is None else mask.take(rows)]


def _occurring(search: Search, raw: Scattered) -> Ints:
    """The raw scores of the feasible rows; 0, where most have it, once."""
    rows = _feasible(search, raw.some)
    found = raw.at(rows)
    return np.append(found, 0) if len(rows) < search.count else found


def _best_scattered(search: Search, part: _Part, raw: Scattered) -> Ints | None:
    """The rows with the highest total, in order, where one plugin is asked and few rows have another raw score than 0:
    the standing knows about all the rest. None if it does not know enough."""
    standing = search.standing
    rows = np.sort(_feasible(search, raw.some))
    numbers = raw.at(rows)
    rows, numbers = rows[numbers != 0], numbers[numbers != 0]
    totals = standing.totals.take(rows)
    scores = totals + part.weighted(numbers)
    among = standing.best()
    highest = standing.totals.item(among[0])
    # None of the others has more. Some have it, unless all the standing's best rows are among these rows.
    of_others = highest + part.weighted(np.zeros(1, np.int64)).item()
    most = scores.max().item() if len(scores) else of_others - 1
    winners: Ints = rows[scores == most]
    if most > of_others:
        return winners
    if int(np.count_nonzero(totals == highest)) == len(among):
        return winners if most == of_others else None
    best = np.asarray(among, np.int64)
    best = best[raw.at(best) == 0]
    return best if most < of_others else np.sort(np.concatenate((best, winners)))


def _unbeaten(search: Search, parts: Sequence[_Part]) -> Sequence[int] | Ints:
    """Those of the standing's best rows that get the most there is from every part, too: no other row has as much.

    There may be none, which says nothing.
    """
    rows = search.standing.best_array()
    for part in parts:
        if isinstance(part.raw, Scattered):
            raw = part.raw.at(rows)
        else:
            raw = part.raw.take(rows if _are_all(search) else np.searchsorted(search.rows, rows))
        rows = rows.take(part.at_top(raw).nonzero()[0])
    return rows


def _pre_scored(search: Search) -> tuple[Any, float]:
    """Runs PreScore; the view that Score sees, and the time."""
    view: Any
    if not (search.direct or search.bare):
        search.standing.complete()
    if search.bare:
        view = Bare(search.table, search.rows)
    else:
        view = Rows(search.table) if _are_all(search) else Later(search.table, search.count, lambda: search.rows)
    measures = search.profile.measures
    start = measures.now()
    _pre_score(search, view)
    return view, measures.pre_scored(search, start)


def _totals(search: Search, view: Any, start: float, parts: dict[str, Ints] | None = None) -> Ints:
    profile, state, rows, standing = search.profile, search.state, search.rows, search.standing
    if parts is None and not search.bare and (search.kept_mask or _same_bounds(search)):
        if standing.invalid:
            _refuse_invalid(standing)
        total: Ints = standing.totals.take(rows)
    else:
        total = _kept_scores(search, view, parts)
    for plugin, weight in search.asked.score:
        if plugin.name in search.skip_score:
            continue
        raw = for_each(gathered(plugin.score(state, search.pod, view)), len(rows))
        part = _normalized(plugin.name, plugin.normalizer, raw) * weight
        total = total + part
        if parts is not None:
            parts[plugin.name] = part
    profile.measures.scored(search, start)
    return total


def _pre_score(search: Search, view: Any) -> None:
    profile, error = search.profile, search.standing.pre_score_error
    state, pod = search.state, search.pod
    for plugin in profile.pre_score if error is not None else search.asked.pre_score:
        if error is not None and plugin.name == error[0]:
            raise CycleError(f'running PreScore plugin "{plugin.name}": {error[1].message}')
        if plugin.name in profile.kept_names:
            continue
        status = plugin.pre_score(state, pod, view)
        if status is SKIP or status.skip:
            search.skip_score.add(plugin.name)
        elif not status.ok:
            raise CycleError(f'running PreScore plugin "{plugin.name}": {status.message}')


def _same_bounds(search: Search) -> bool:
    """Whether the standing's totals hold for these rows, though they are fewer: no normaliser sees a difference."""
    standing = search.standing
    if not search.among_kept or standing.invalid or not search.count:
        return False
    return all(
        weighted.normalizer is None
        or weighted.kept.clean
        or weighted.normalizer.bounds(weighted.kept.answers.take(search.rows)) == weighted.bounds
        for weighted in standing.scores
    )


def _answers(kept: Kept, rows: Ints) -> Ints:
    return kept.answers[: len(rows)] if kept.clean else kept.answers.take(rows)


def _kept_scores(search: Search, view: Any, parts: dict[str, Ints] | None) -> Ints:
    """Totals of the NODE plugins where the feasible rows are not those of the standing."""
    rows = search.rows
    total = np.zeros(len(rows), np.int64)
    for plugin, weight in search.profile.score:
        if plugin.name not in search.profile.kept_names or plugin.name in search.skip_score:
            continue
        if search.direct or search.bare:
            raw = np.broadcast_to(plugin.score(search.state, search.pod, view), (len(rows),))
        else:
            weighted = next(w for w in search.standing.scores if w.name == plugin.name)
            raw = _answers(weighted.kept, rows)
        part = _normalized(plugin.name, plugin.normalizer, raw) * weight
        total += part
        if parts is not None:
            parts[plugin.name] = part
    return total


def _normalized(name: str, normalizer: Any, raw: Ints) -> Ints:
    scores: Ints = raw if normalizer is None else normalizer.apply(raw, normalizer.bounds(raw))
    return scores if hasattr(normalizer, "top") else _checked(name, scores)


def _checked(name: str, scores: Ints) -> Ints:
    if len(scores) and (scores.min() < MIN_NODE_SCORE or scores.max() > MAX_NODE_SCORE):
        bad = (scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)
        raise CycleError(_invalid_score(name, int(scores[bad][0])))
    return scores


def _refuse_invalid(standing: Standing) -> None:
    for row in sorted(standing.invalid):
        if standing.feasible[row]:
            for weighted in standing.scores:
                score = weighted.normalized(weighted.kept.answers.item(row))
                if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                    raise CycleError(_invalid_score(weighted.name, int(score)))


def _invalid_score(name: str, score: int) -> str:
    return (
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {score}, '
        f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
