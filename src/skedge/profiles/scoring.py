"""PreScore and Score for the feasible rows of a search: standing totals where they hold, and what is asked every cycle.

Upstream: `schedule_one.go` (prioritizeNodes), `framework/runtime/framework.go` (RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skedge.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from skedge.framework.status import SKIP
from skedge.profiles.diagnosis import CycleError
from skedge.profiles.standing import Standing
from skedge.snapshot.arith import Ints, for_each
from skedge.snapshot.views import Bare, Rows

if TYPE_CHECKING:
    from skedge.profiles.search import Search


def totals(search: Search, parts: dict[str, Ints] | None = None) -> Ints:
    """Total scores of the search's rows, in their order; with `parts` also each plugin's, into it.

    Raises CycleError, and PluginError where a plugin cannot answer.
    """
    if not search.profile.score:
        return np.ones(len(search.rows), np.int64)
    view, start = _pre_scored(search)
    return _totals(search, view, start, parts)


def best(search: Search) -> Sequence[int] | Ints:
    """The rows with the highest total, in order; the standing knows them where it alone decides."""
    profile, standing = search.profile, search.standing
    if not profile.score:
        return search.rows
    view, start = _pre_scored(search)
    if search.kept_mask and not search.bare and not standing.invalid:
        more = _differences(search, view)
        profile.measures.scored(search, start)
        if more is None:
            return standing.best()
        total = standing.totals[search.rows] + more
    else:
        total = _totals(search, view, start)
    highest: Ints = search.rows[total == total.max()]
    return highest


def _differences(search: Search, view: Any) -> Ints | None:
    """What plugins that are asked every cycle add to the totals; None where that is the same for every row."""
    found: Ints | None = None
    for plugin, weight in search.profile.cycle_score:
        if plugin.name in search.skip_score:
            continue
        raw = for_each(plugin.score(search.state, search.pod, view), len(search.rows))
        part = _normalized(plugin.name, plugin.normalizer, raw) * weight
        if part[0] != part[-1] or part.min() != part.max():
            found = part if found is None else found + part
    return found


def _pre_scored(search: Search) -> tuple[Any, float]:
    """Runs PreScore; the view that Score sees, and the time."""
    view: Any = (Bare if search.bare else Rows)(search.table, search.rows)
    measures = search.profile.measures
    start = measures.now()
    _pre_score(search, view)
    return view, measures.pre_scored(search, start)


def _totals(search: Search, view: Any, start: float, parts: dict[str, Ints] | None = None) -> Ints:
    profile, state, rows, standing = search.profile, search.state, search.rows, search.standing
    if parts is None and not search.bare and (search.kept_mask or _same_bounds(search)):
        if standing.invalid:
            _refuse_invalid(standing)
        total: Ints = standing.totals[rows]
    else:
        total = _kept_scores(search, view, parts)
    for plugin, weight in profile.cycle_score:
        if plugin.name in search.skip_score:
            continue
        raw = for_each(plugin.score(state, search.pod, view), len(rows))
        part = _normalized(plugin.name, plugin.normalizer, raw) * weight
        total = total + part
        if parts is not None:
            parts[plugin.name] = part
    profile.measures.scored(search, start)
    return total


def _pre_score(search: Search, view: Any) -> None:
    profile, error = search.profile, search.standing.pre_score_error
    state, pod = search.state, search.pod
    for plugin in profile.pre_score if error is not None else profile.cycle_pre_score:
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
    standing, rows = search.standing, search.rows
    if not search.among_kept or standing.invalid or not len(rows):
        return False
    return all(
        weighted.normalizer is None or weighted.normalizer.bounds(weighted.kept.answers[rows]) == weighted.bounds
        for weighted in standing.scores
    )


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
            raw = weighted.kept.answers[rows]
        part = _normalized(plugin.name, plugin.normalizer, raw) * weight
        total += part
        if parts is not None:
            parts[plugin.name] = part
    return total


def _normalized(name: str, normalizer: Any, raw: Ints) -> Ints:
    scores: Ints = raw if normalizer is None else normalizer.apply(raw, normalizer.bounds(raw))
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
