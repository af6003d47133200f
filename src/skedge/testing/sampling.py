"""Replays recorded searches that look at a part of the nodes: in which order, from where, how far, and the pick."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from skedge import names
from skedge.api.core import Pod
from skedge.profiles.sampling import Sampler, heap_root
from skedge.profiles.search import CycleError, Search
from skedge.snapshot.pods import PodInfo
from skedge.testing.cases import Compare, Difference
from skedge.testing.sequence import Replay, count_rejected

_LISTED: Final = 60
"""Of more best nodes than these only number and hash were recorded."""


def compare_sampling(line: Mapping[str, Any]) -> list[Difference]:
    """The differences of one case of the family `sampling`."""
    case = line["case"]
    found: list[Difference] = []
    replay = Replay(case)
    profiles = replay.cluster.profiles
    sampler = next(iter(profiles.values())).sampler or Sampler(replay.cluster.cache.table)
    for profile in profiles.values():
        profile.sampler = sampler  # also where all nodes are looked at: the order was recorded
    ops = list(case.get("ops", ()))
    for i, (pod, step) in enumerate(zip(case["pending"], line["expected"]["steps"], strict=True)):
        while ops and ops[0]["before"] <= i:
            operation = ops.pop(0)
            replay.do(operation["op"], operation["object"])

        def compare(node: str, field: str, want: Any, got: Any, i: int = i) -> None:
            if want != got:
                found.append(Difference(f"{case['id']}[{i}]", node, field, want, got))

        info = PodInfo(msgspec.convert(pod, Pod))
        search = Search(profiles[info.scheduler_name or names.DEFAULT_SCHEDULER_NAME], info, replay.cluster.nominator)
        _compare_step(search, sampler, step, compare)
        if "chosen" in step:
            replay.bind(info, pod, step["chosen"])
    replay.cluster.cache.validate()
    return found


def _compare_step(search: Search, sampler: Sampler, step: Mapping[str, Any], compare: Compare) -> None:
    compare("", "startBefore", step["startBefore"], sampler.start)
    try:
        search.run()
        table = search.table
        compare("", "rejected", step.get("rejected", {}), dict(count_rejected(search)))
        compare("", "startAfter", step["startAfter"], sampler.start)
        feasible = [table.names[row] for row in search.rows]
        if "order" in step:
            compare("", "order", step["order"], feasible)
            compare("", "evaluated", step["evaluated"], search.evaluated_nodes)
        elif "feasible" in step:
            compare("", "feasible", step["feasible"], sorted(feasible))
        if not feasible:
            search.post_filter()
            compare("", "fitErrorMessage", step.get("fitErrorMessage"), search.diagnosis.message())
            return
        compare("", "numAllNodes", step["numAllNodes"], table.count)
        looked_for = len(search.diagnosis.rows) if "preFilterNodeNames" in step else table.count
        compare("", "numFeasibleNodesToFind", step["numFeasibleNodesToFind"], search.to_find(looked_for))
        if len(feasible) > 1:
            _compare_scores(search, feasible, step, compare)
    except CycleError as error:
        compare("", "error", step.get("error", ""), str(error))


def _compare_scores(search: Search, feasible: list[str], step: Mapping[str, Any], compare: Compare) -> None:
    scores = search.scores()
    totals = dict(zip(feasible, scores.tolist(), strict=True))
    ordered = "order" in step
    wanted = {**step, **step.get("freshImageCounts", {})}
    compare("", "totals", wanted["totals"], [totals[node] for node in (feasible if ordered else sorted(feasible))])
    best = sorted(node for node, total in totals.items() if total == wanted["total"])
    if len(best) > _LISTED:
        digest = hashlib.sha256("\n".join(best).encode()).hexdigest()[:16]
        compare("", "best", [wanted.get("bestCount"), wanted.get("bestHash")], [len(best), digest])
    else:
        compare("", "best", wanted.get("best"), best)
    if ordered and "freshImageCounts" not in step:
        compare("", "chosen", step["chosen"], feasible[heap_root(scores)])
