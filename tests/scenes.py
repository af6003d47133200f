"""Small clusters and what becomes of a pod in them, for tables of cases."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from skedge.profiles.search import Search
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from skedge.testing.cases import Cluster

_names = itertools.count()


class Scene:
    """Nodes, pods and objects; `says` what becomes of a pod on each node: "" fits, else its first reason."""

    def __init__(self, *nodes: NodeBuilder, pods: Sequence[PodBuilder] = (), **objects: Sequence[Any]) -> None:
        self.cluster = Cluster()
        for node in nodes:
            self.cluster.cache.add_node(node.obj())
        for pod in pods:
            self.cluster.add("pods", pod.json)
        for field, listed in objects.items():
            for obj in listed:
                self.cluster.add(field, obj)

    def search(self, pod: PodBuilder) -> Search:
        search = Search(self.cluster.profiles["default-scheduler"], PodInfo(pod.obj()), self.cluster.nominator)
        search.run()
        return search

    def says(self, pod: PodBuilder) -> dict[str, str]:
        search = self.search(pod)
        diagnosis = search.explain()
        if diagnosis.pre_filter is not None:
            return {"*": diagnosis.pre_filter.message}
        found = {search.table.names[row]: "" for row in search.rows}
        return found | {name: status.all_reasons()[0] for name, status in diagnosis.node_statuses().items()}

    def scores(self, pod: PodBuilder, plugin: str) -> list[int]:
        """Normalised, times the weight; by name of the node."""
        search = self.search(pod)
        parts = search.scores_by_plugin().get(plugin)
        if parts is None:
            return []
        by_name = {search.table.names[row]: int(part) for row, part in zip(search.rows, parts, strict=True)}
        return [by_name[name] for name in sorted(by_name)]


def node(name: str = "a", labels: Mapping[str, str] | None = None) -> NodeBuilder:
    made = make_node(name)
    made.json["metadata"]["labels"] = dict(labels or {})
    return made


def pod(labels: Mapping[str, str] | None = None, on: str = "", namespace: str = "default", **spec: Any) -> PodBuilder:
    made = make_pod(f"p{next(_names)}", namespace).labels(dict(labels or {}))
    made.json["spec"].update(spec)
    return made.node(on) if on else made


def required(*terms: Any) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, *names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]} for name in names]}
