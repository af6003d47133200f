"""Why a pod is not placed, or where it would go: asked of the engine itself, with nothing left out.

Upstream has no counterpart; the parts are those of `schedule_one.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from skedge.framework.status import PluginError, Status
from skedge.preemption.evaluator import Outcome
from skedge.profiles.diagnosis import Diagnosis
from skedge.profiles.profile import Profile
from skedge.profiles.search import CycleError, Search
from skedge.scheduler.scheduling_cycle import NO_NODES
from skedge.simulate.changes import with_spec
from skedge.simulate.cluster import Cluster
from skedge.simulate.explanation import (
    Candidate,
    Count,
    Explanation,
    Preemption,
    Rejected,
    Said,
    Scored,
)
from skedge.simulate.hints import find_hints
from skedge.snapshot.pods import PodInfo

GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"


def explain(cluster: Cluster, pod: PodInfo, *, hints: bool = True) -> Explanation:
    """Evaluates a pod in a cluster, which stays as it is. With `hints` also looks for what would help."""
    profile = cluster.profile_of(pod)
    found = Explanation(
        pod=pod.key,
        scheduler=pod.scheduler_name,
        verdict="Unschedulable",
        node=pod.node_name,
        nodes=cluster.cache.table.count,
        fits=0,
    )
    if profile is None:
        known = ", ".join(sorted(cluster.profiles))
        found.verdict, found.message = "Ignored", f"no profile has the scheduler name {pod.scheduler_name!r} ({known})"
        return found
    found.scheduler = profile.name
    if pod.terminating:
        found.verdict, found.message = "Terminating", "the pod is being deleted"
        return found
    if cluster.config.extenders:
        found.notes.append("extenders are not asked: they may reject or prefer other nodes")
    with _absent(cluster, pod), _all_nodes(profile):
        if pod.node_name:
            pod = PodInfo(with_spec(pod.pod, node_name=""))
        _pre_enqueue(profile, pod, found)
        try:
            _evaluate(cluster, profile, pod, found)
        except (CycleError, PluginError) as error:
            found.verdict, found.message = "Error", str(error)
        if hints and not found.fits and found.verdict in ("Unschedulable", "Gated"):
            found.hints = find_hints(cluster, profile, pod)
    return found


@contextmanager
def _absent(cluster: Cluster, pod: PodInfo) -> Iterator[None]:
    """The cluster without the pod, if it is on a node."""
    placed = cluster.cache.find_pod(pod.uid) if pod.uid else None
    if placed is not None:
        cluster.cache.remove_pod(placed)
    try:
        yield
    finally:
        if placed is not None:
            cluster.cache.add_pod(placed)


@contextmanager
def _all_nodes(profile: Profile) -> Iterator[None]:
    """Searches that look at every node, whatever share of them the profile would look for."""
    sampler, profile.sampler = profile.sampler, None
    evaluators = [plugin.evaluator for plugin in profile.post_filter if hasattr(plugin, "evaluator")]
    before = [evaluator.changed_at_once for evaluator in evaluators]
    for evaluator in evaluators:
        evaluator.changed_at_once = profile.table.capacity
    try:
        yield
    finally:
        profile.sampler = sampler
        for evaluator, at_once in zip(evaluators, before, strict=True):
            evaluator.changed_at_once = at_once


def _pre_enqueue(profile: Profile, pod: PodInfo, found: Explanation) -> None:
    for plugin in profile.pre_enqueue:
        status = plugin.pre_enqueue(pod)
        if not status.ok:
            found.pre_enqueue = _said(status.by(plugin.name))
            found.verdict = "Gated"
            found.message = GATED_MESSAGE if pod.gated else status.message
            found.notes.append("what follows holds for the moment the pod is let into the queue")
            return


def _evaluate(cluster: Cluster, profile: Profile, pod: PodInfo, found: Explanation) -> None:
    if not found.nodes:
        found.message = found.message or NO_NODES
        return
    search = Search(profile, pod, cluster.nominator)
    search.run()
    diagnosis = search.explain()
    found.fits = len(search.rows)
    enough = search.to_find(found.nodes)
    if found.fits > enough:
        found.notes.append(f"a scheduler with this configuration stops at the first {enough} nodes that fit")
    if diagnosis.pre_filter is not None:
        found.pre_filter = _said(diagnosis.pre_filter)
    if search.nominated_fits:
        found.notes.append(f"the pod fits on its nominated node {pod.nominated_node_name}, and no other is looked at")
    else:
        _rejections(search, diagnosis, found)
    if found.fits:
        _scores(search, found)
        if found.verdict != "Gated":
            found.verdict = "Schedulable"
        return
    if profile.post_filter:
        _, outcome = search.preempt()
        found.preemption = _preemption(outcome, diagnosis)
    if found.verdict != "Gated":
        found.message = diagnosis.message()


def _rejections(search: Search, diagnosis: Diagnosis, found: Explanation) -> None:
    table = search.table
    if diagnosis.narrowing:
        found.notes.append(f"only nodes named by {', '.join(sorted(diagnosis.narrowing))} are looked at")
    counts: Counter[str] = Counter()
    plugins: dict[str, dict[str, None]] = {}

    def count(status: Status, nodes: int, named: tuple[str, ...]) -> None:
        for reason in status.all_reasons():
            counts[reason] += nodes
            plugins.setdefault(reason, {}).update(dict.fromkeys(named))

    statuses: dict[int, tuple[Status, str]] = {}
    for group in diagnosis.groups():
        named = group.plugins or (group.status.plugin,)
        count(group.status, len(group.rows), named)
        statuses.update(dict.fromkeys(group.rows.tolist(), (group.status, ", ".join(named))))
    others = diagnosis.pre_filter or diagnosis.absent
    fits = set(search.rows.tolist())
    left = [row for row in np.flatnonzero(table.exists).tolist() if row not in statuses and row not in fits]
    if left:
        names = (others.plugin,) if others.plugin else tuple(sorted(diagnosis.narrowing))
        count(others, len(left), names)
        statuses.update(dict.fromkeys(left, (others, ", ".join(names))))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    found.reasons = [Count(nodes=nodes, reason=reason, plugins=list(plugins[reason])) for reason, nodes in ordered]
    found.rejected = [
        Rejected(node=table.names[row], plugin=named, code=status.code.word, reasons=list(status.all_reasons()))
        for row, (status, named) in sorted(statuses.items(), key=lambda item: table.names[item[0]])
    ]


def _scores(search: Search, found: Explanation) -> None:
    names = search.table.names
    rows = search.rows.tolist()
    if len(rows) == 1 or not search.profile.score:
        found.feasible = [Scored(node=name) for name in sorted(names[row] for row in rows)]
        found.best = [each.node for each in found.feasible]
        return
    totals = search.scores().tolist()
    parts = search.scores_by_plugin()
    found.weights = {enabled.plugin.name: enabled.weight for enabled in search.profile.score}
    scored = [
        Scored(
            node=names[row],
            total=int(totals[i]),
            scores={plugin: int(part[i]) for plugin, part in parts.items()},
        )
        for i, row in enumerate(rows)
    ]
    found.feasible = sorted(scored, key=lambda each: (-(each.total or 0), each.node))
    top = found.feasible[0].total
    found.best = [each.node for each in found.feasible if each.total == top]


def _preemption(outcome: Outcome | None, diagnosis: Diagnosis) -> Preemption | None:
    """What preemption found; None where the profile has none, or another plugin spoke the last word."""
    if outcome is None:
        return Preemption(message=diagnosis.post_filter_message) if diagnosis.post_filter_message else None
    candidates = sorted(outcome.candidates.values(), key=lambda each: (len(each.victims), each.node))
    return Preemption(
        chosen=outcome.nominated or "",
        message="" if outcome.status.ok else outcome.status.message,
        candidates=[
            Candidate(node=each.node, victims=[pod.key for pod in each.victims], pdb_violations=each.num_pdb_violations)
            for each in candidates
        ],
    )


def _said(status: Status) -> Said:
    return Said(plugin=status.plugin, code=status.code.word, reasons=list(status.all_reasons()))
