"""Replays recorded sequences: many pods placed one after another in one living engine, with changes in between.

After each pod was compared the recorded choice is taken, so that the next one is compared in the same state.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from skedge import names
from skedge.api.core import Node, Pod
from skedge.profiles.search import CycleError, Search
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.cases import FINISHED, STORES, Cluster, Compare, Difference


class Replay:
    """A cluster that recorded operations are done to. Pods that have a node are kept as JSON, to be changed again."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.cluster = Cluster(case.get("config"))
        self.cluster.fill(case)
        self._pods: dict[str, dict[str, Any]] = {}
        for pod in case.get("pods", ()):
            self._keep(pod)

    def _keep(self, pod: Mapping[str, Any]) -> None:
        if pod.get("status", {}).get("phase") not in FINISHED and pod["spec"].get("nodeName"):
            self._pods[_key(pod)] = copy.deepcopy(dict(pod))

    def do(self, operation: str, obj: Mapping[str, Any]) -> None:
        """One operation of a case's `ops`."""
        match operation:
            case "addPod":
                self.cluster.add("pods", obj)
                self._keep(obj)
            case "deletePod":
                pod = self._pods.pop(_key(obj), None)
                if pod is not None:
                    self.cluster.cache.remove_pod(_placed(pod))
            case "terminatePod" | "relabelPod":
                self._change(obj)
            case "addNode" | "updateNode":
                self.cluster.add("nodes", obj)
            case "deleteNode":
                node = self.cluster.cache.table.node(obj["metadata"]["name"])
                self.cluster.cache.remove_node(node if node is not None else msgspec.convert(obj, Node))
            case "updateNamespace":
                self.cluster.add("namespaces", obj)
            case "addService":
                self.cluster.add("services", obj)
            case "deleteService":
                self.cluster.listers.services.delete(msgspec.convert(obj, STORES["services"][1]))
            case _:
                raise ValueError(f"unknown operation in a case: {operation}")

    def _change(self, obj: Mapping[str, Any]) -> None:
        """Puts what the operation says of a pod's metadata over what is there."""
        pod = self._pods.get(_key(obj))
        if pod is not None:
            pod["metadata"] = {**pod["metadata"], **obj["metadata"]}
            self.cluster.cache.update_pod(_placed(pod))

    def bind(self, info: PodInfo, pod: Mapping[str, Any], node: str) -> None:
        """What scheduling leaves behind: an assumed pod, confirmed by the watch."""
        bound = copy.deepcopy(dict(pod))
        bound["spec"]["nodeName"] = node
        self._pods[_key(pod)] = bound
        self.cluster.cache.assume_pod(info, node)
        self.cluster.cache.add_pod(_placed(bound))

    @property
    def placements(self) -> dict[str, str]:
        """`namespace/name` -> node of all pods that have one."""
        return {pod.key: pod.node_name for pod in self.cluster.cache.pods()}


def compare_sequence(line: Mapping[str, Any], plugins: frozenset[str] | None = None) -> list[Difference]:
    """The differences of one case of the family `sequence`; `plugins` limits it to rejections by these."""
    case, expected = line["case"], line["expected"]
    replay = Replay(case)
    found: list[Difference] = []
    ops = list(case.get("ops", ()))
    for i, pod in enumerate(case["pending"]):
        while ops and ops[0]["before"] <= i:
            operation = ops.pop(0)
            replay.do(operation["op"], operation["object"])
        step = expected["steps"][i]

        def compare(node: str, field: str, want: Any, got: Any, at: str = f"step {i} {step['pod']}") -> None:
            if want != got:
                found.append(Difference(case["id"], node, f"{at} {field}", want, got))

        info = PodInfo(msgspec.convert(pod, Pod))
        _compare_step(replay.cluster, info, step, plugins, compare)
        if "chosen" in step:
            replay.bind(info, pod, step["chosen"])
    for operation in ops:
        replay.do(operation["op"], operation["object"])
    if plugins is None and replay.placements != expected["finalPods"]:
        found.append(Difference(case["id"], "", "finalPods", expected["finalPods"], replay.placements))
    replay.cluster.cache.validate()
    return found


def _compare_step(
    cluster: Cluster, info: PodInfo, step: Mapping[str, Any], plugins: frozenset[str] | None, compare: Compare
) -> None:
    search = Search(cluster.profiles[info.scheduler_name or names.DEFAULT_SCHEDULER_NAME], info, cluster.nominator)
    try:
        search.run()
        compare_search(search, step, plugins, compare)
        if not len(search.rows) and plugins is None and "error" not in step:
            search.post_filter()
            compare("", "fitErrorMessage", step.get("fitErrorMessage"), search.diagnosis.message())
    except CycleError as error:
        if "error" not in step:
            compare("", "error", None, str(error))


def compare_search(search: Search, step: Mapping[str, Any], plugins: frozenset[str] | None, compare: Compare) -> None:
    """Compares what a search found with a recorded step, its message aside. Raises CycleError."""
    rejected = count_rejected(search)
    if plugins is not None:
        for plugin in sorted(plugins):
            compare("", f"rejected.{plugin}", step.get("rejected", {}).get(plugin, 0), rejected[plugin])
        return
    compare("", "rejected", step.get("rejected", {}), dict(rejected))
    if "error" in step:
        search.scores()
        compare("", "error", step["error"], None)
        return
    table = search.table
    order = sorted(range(len(search.rows)), key=lambda i: table.names[search.rows[i]])
    feasible = [table.names[search.rows[i]] for i in order]
    compare("", "feasible", step.get("feasible", []), feasible)
    if feasible and feasible == step.get("feasible"):
        _compare_scores(search, order, feasible, step, compare)


def _compare_scores(
    search: Search, order: list[int], feasible: list[str], step: Mapping[str, Any], compare: Compare
) -> None:
    if len(feasible) == 1:
        compare("", "best", step["best"], feasible)
        return
    scores = search.scores()
    totals = [int(scores[i]) for i in order]
    wanted = {**step, **step.get("freshImageCounts", {})}
    compare("", "totals", wanted["totals"], totals)
    compare("", "total", wanted["total"], max(totals))
    best = [node for node, total in zip(feasible, totals, strict=True) if total == max(totals)]
    compare("", "best", wanted["best"], best)
    if "freshImageCounts" not in step:
        parts = search.scores_by_plugin()
        position = order[feasible.index(step["best"][0])]
        for plugin, score in step["bestScores"].items():
            if plugin != "total":
                compare(step["best"][0], plugin, score, int(parts[plugin][position]) if plugin in parts else 0)


def count_rejected(search: Search) -> Counter[str]:
    """Number of nodes by the plugin that rejected them."""
    counts: Counter[str] = Counter()
    for group in search.explain().groups():
        counts[group.status.plugin] += len(group.rows)
    return counts


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _placed(pod: Mapping[str, Any]) -> PlacedPod:
    info = PodInfo(msgspec.convert(pod, Pod))
    return PlacedPod(info, info.node_name)
