"""A cluster as plain lists of objects, what the twins look at."""

from __future__ import annotations

from collections.abc import Iterable

from skedge.api.core import Node, Pod


class World:
    """Nodes by name, pods by UID in order of arrival (those of nodes that are gone included), labels of namespaces."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, dict[str, str]] = {}

    def on(self, node: Node) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.node_name == node.metadata.name]

    def placed(self) -> Iterable[tuple[Node, Pod]]:
        """Each pod that is on a node that exists."""
        for pod in self.pods.values():
            node = self.nodes.get(pod.spec.node_name)
            if node is not None:
                yield node, pod


def labels(obj: Node | Pod) -> dict[str, str]:
    return obj.metadata.labels or {}
