"""The smallest changes that help: each is tried on the engine, and told only if a node fits then.

Order: a toleration, smaller requests (by the share given up), one constraint less, a node uncordoned, one pod fewer,
one node more. In a cluster of many kinds of nodes the most frequent ones are tried. Where no single change helps, pairs
of changes to the pod are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from skedge.api.core import Node, Pod
from skedge.framework.status import PluginError
from skedge.profiles.profile import Profile
from skedge.profiles.search import CycleError, Search
from skedge.simulate.changes import MANY, Change, amount_text, changes, plain, with_totals
from skedge.simulate.cluster import Cluster
from skedge.simulate.explanation import Hint
from skedge.snapshot.arith import Ints
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import DeltaView

HOSTNAME: Final = "kubernetes.io/hostname"
CORDON: Final = "node.kubernetes.io/unschedulable"
EXAMPLES: Final = 3
VICTIMS: Final = 3
"""Pods of which each alone could go, that are told."""


def find_hints(cluster: Cluster, profile: Profile, pod: PodInfo) -> list[Hint]:
    """Changes after which a pod that fits nowhere fits somewhere, smallest first."""
    return _Trial(cluster, profile, pod).hints()


class _Trial:
    """Tries changes of one pod or of the cluster; what is changed in the cluster is put back."""

    def __init__(self, cluster: Cluster, profile: Profile, pod: PodInfo) -> None:
        self._cluster = cluster
        self._profile = profile
        self._pod = pod
        self._table = cluster.cache.table

    def hints(self) -> list[Hint]:
        found = [*self._of_pod(self._changes()), *self._of_cluster()]
        return found or self._pairs()

    def _changes(self) -> list[Change]:
        comparison = self._cluster.gates.enabled("TaintTolerationComparisonOperators")
        return list(changes(self._pod.pod, self._table, comparison=comparison))

    def _of_pod(self, tried: Sequence[Change]) -> Iterator[Hint]:
        yield from self._helpful(change for change in tried if change.kind == "toleration")
        yield from self._smaller_requests()
        yield from self._helpful(change for change in tried if change.kind != "toleration")

    def _of_cluster(self) -> Iterator[Hint]:
        yield from self._uncordoned()
        yield from self._one_pod_fewer()
        yield from self._one_node_more()

    def _pairs(self) -> list[Hint]:
        """Two changes of the pod at once, where one is not enough."""
        found: dict[frozenset[str], Hint] = {}
        for first in self._changes()[:MANY]:
            changed = _Trial(self._cluster, self._profile, PodInfo(first.pod))
            for second in changed._of_pod(changed._changes()[:MANY]):
                key = frozenset((first.text, second.text))
                both = {"kind": "several", "text": f"{first.text} and {second.text}"}
                parts = {"changes": [first.change, second.change]}
                found.setdefault(key, replace(second, **both, change=parts))
        return sorted(found.values(), key=lambda hint: -hint.nodes)

    def _fitting(self, pod: Pod) -> list[str]:
        """Names of the nodes that a changed pod fits on."""
        return self._search(PodInfo(pod))

    def _search(self, pod: PodInfo) -> list[str]:
        search = Search(self._profile, pod, self._cluster.nominator)
        try:
            search.run()
        except (CycleError, PluginError):
            return []
        return sorted(self._table.names[row] for row in search.rows.tolist())

    def _helpful(self, tried: Iterator[Change]) -> Iterator[Hint]:
        for kind, text, change, pod in tried:
            fitting = self._fitting(pod)
            if fitting:
                yield _hint(kind, text, change, fitting)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _smaller_requests(self) -> Iterator[Hint]:
        """Less of one resource, as much as fits now; less of all of them where one is not enough."""
        asked = {name: amount for name, amount in self._pod.requests if amount > 0}
        found = [hint for name in asked if (hint := self._less(asked, (name,))) is not None]
        if not found and len(asked) > 1:
            all_less = self._less(asked, tuple(asked))
            found = [all_less] if all_less is not None else []
        yield from (hint for _, hint in sorted(found, key=lambda each: each[0]))

    def _less(self, asked: dict[str, int], resources: Sequence[str]) -> tuple[float, Hint] | None:
        """(share given up, hint)"""
        nothing = PodInfo(with_totals(self._pod.pod, dict.fromkeys(resources, 0)))
        search = Search(self._profile, nothing, self._cluster.nominator)
        try:
            search.run()
        except (CycleError, PluginError):
            return None
        if not len(search.rows):
            return None
        free = self._free(search, resources)
        capped = {name: np.minimum(free[name], asked[name]) for name in resources}
        given_up = np.max([1.0 - capped[name] / asked[name] for name in resources], axis=0)
        best = int(given_up.argmin())
        totals = {name: max(int(capped[name][best]), 0) for name in resources}
        reduced = {name: total for name, total in totals.items() if total < asked[name]}
        fitting = self._fitting(with_totals(self._pod.pod, reduced))
        if not reduced or not fitting:
            return None
        words = [_request_words(name, total, asked[name]) for name, total in reduced.items()]
        change = {"requests": {name: amount_text(name, total) for name, total in reduced.items()}}
        return float(given_up[best]), _hint("requests", f"ask for {' and '.join(words)}", change, fitting)

    def _free(self, search: Search, resources: Sequence[str]) -> dict[str, Ints]:
        """What is left of each resource on the rows of a search, nominated pods that count taken off."""
        rows = search.rows
        crowded = search.crowded()
        added = {row: crowded[row] for row in rows.tolist() if row in crowded}
        view = DeltaView(self._table, rows, added=added)
        return {name: view.allocatable(name) - view.requested(name) for name in resources}

    # --- the cluster --------------------------------------------------------------------------------------------------

    def _uncordoned(self) -> Iterator[Hint]:
        """A node that takes pods again."""
        cordoned = [node for node in self._table.nodes if node is not None and node.spec.unschedulable]
        helpful: list[str] = []
        for node in cordoned[:MANY]:
            taints = tuple(taint for taint in node.spec.taints or () if taint.key != CORDON)
            changed = replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))
            if self._with_node(changed, node):
                helpful.append(node.metadata.name)
        if helpful:
            first = helpful[0]
            change = {"replace": {f"nodes/{first}/spec.unschedulable": False}}
            others = f" (or {', '.join(helpful[1:EXAMPLES])})" if len(helpful) > 1 else ""
            yield _hint("uncordon", f"uncordon node {first}{others}", change, [first])

    def _one_node_more(self) -> Iterator[Hint]:
        """An empty node like one there is. Among kinds that help the one most nodes are of is told."""
        kinds: Counter[Any] = Counter()
        examples: dict[Any, Node] = {}
        for node in self._table.nodes:
            if node is not None:
                kind = _kind_of(node)
                kinds[kind] += 1
                examples.setdefault(kind, node)
        for kind, _ in kinds.most_common(MANY):
            node = _like(examples[kind], self._table.row_of)
            if self._with_node(node, None):
                name = examples[kind].metadata.name
                change = {"add": {"nodes": {"like": name, "labels": plain(node.metadata.labels or {})}}}
                yield _hint("addNode", f"add a node like {name}", change, [node.metadata.name])
                return

    def _with_node(self, node: Node, old: Node | None) -> bool:
        """Whether the pod fits somewhere while the node is so."""
        cache = self._cluster.cache
        cache.add_node(node)
        try:
            return bool(self._search(self._pod))
        finally:
            if old is not None:
                cache.add_node(old)
            else:
                cache.remove_node(node)

    def _one_pod_fewer(self) -> Iterator[Hint]:
        """Single pods without which their node fits, of lowest priority first."""
        for victim in sorted(self._victims(), key=lambda pod: (pod.priority, pod.key))[:VICTIMS]:
            cache = self._cluster.cache
            cache.remove_pod(victim)
            try:
                fitting = self._search(self._pod)
            finally:
                cache.add_pod(victim)
            if fitting:
                text = f"free the room of {victim.key} (priority {victim.priority}) on {victim.node_name}"
                yield _hint("evict", text, {"remove": {"pods": victim.key}}, fitting)

    def _victims(self) -> list[PlacedPod]:
        """Pods without which their node fits. The k-th pods of all rows go at once, each in a world of its own."""
        search = Search(self._profile, self._pod, self._cluster.nominator)
        try:
            search.run()
            diagnosis = search.explain()
            rows = diagnosis.potential()
            if diagnosis.pre_filter is not None or not len(rows):
                return []
            found: list[PlacedPod] = []
            pods = {row: sorted(self._table.pods[row].values(), key=lambda pod: pod.priority) for row in rows.tolist()}
            crowded = search.crowded()
            for k in range(max(map(len, pods.values()), default=0)):
                removed = {row: [of_row[k]] for row, of_row in pods.items() if k < len(of_row)}
                among = np.array(sorted(removed), np.int64)
                added = {row: crowded[row] for row in removed if row in crowded}
                fits = np.ones(len(among), bool)
                for _, codes in search.codes(DeltaView(self._table, among, added=added, removed=removed)):
                    fits &= codes == 0
                found += [removed[row][0] for row in among[fits].tolist()]
                if len(found) >= VICTIMS:
                    break  # of higher priority are those that come now
            return found
        except (CycleError, PluginError):
            return []


def _hint(kind: str, text: str, change: dict[str, Any], fitting: Sequence[str]) -> Hint:
    return Hint(kind=kind, text=text, change=change, nodes=len(fitting), examples=list(fitting[:EXAMPLES]))


def _request_words(resource: str, total: int, asked: int) -> str:
    if not total:
        return f"no {resource} instead of {amount_text(resource, asked)}"
    return f"{resource} {amount_text(resource, total)} instead of {amount_text(resource, asked)}"


def _kind_of(node: Node) -> Any:
    """What makes nodes alike: all but the name."""
    labels = {key: text for key, text in (node.metadata.labels or {}).items() if key != HOSTNAME}
    allocatable = tuple(sorted((name, str(amount)) for name, amount in (node.status.allocatable or {}).items()))
    return tuple(sorted(labels.items())), node.spec.taints, node.spec.unschedulable, allocatable


def _like(node: Node, taken: Any) -> Node:
    """An empty node like this one, of a name that is free."""
    name = next(name for i in range(1, len(taken) + 2) if (name := f"{node.metadata.name}-{i}") not in taken)
    labels = node.metadata.labels
    if labels and HOSTNAME in labels:
        labels = {**labels, HOSTNAME: name}
    return replace(node, metadata=replace(node.metadata, name=name, uid=f"uid-{name}", labels=labels))
