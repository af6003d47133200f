"""Pods and nodes as the API server sent them, all their fields: what extenders are told. Kept only if there are any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from skedge.api.core import Node, Pod
from skedge.client.extender_client import PodRef
from skedge.client.informer import Tombstone
from skedge.client.watch import Resource
from skedge.config.types import Extender

_encode = msgspec.json.Encoder().encode


class Bodies:
    """JSON of pending pods; of nodes, and of pods that may be victims, where an extender does not know them itself."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        ignorant = [each for each in extenders if not each.node_cache_capable]
        self._wanted = bool(extenders)
        self._victims = any(each.preempt_verb for each in ignorant)
        self._all_nodes = any(each.filter_verb or each.prioritize_verb for each in ignorant)
        self._pods: dict[str, bytes] = {}
        self._nodes: dict[str, bytes] = {}

    def pod(self, pod: PodRef) -> bytes:
        found = self._pods.get(pod.uid)
        if found is not None:
            return found
        return _encode({"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}})

    def node(self, name: str) -> bytes:
        found = self._nodes.get(name)
        return _encode({"metadata": {"name": name}}) if found is None else found

    # --- how they are filled ------------------------------------------------------------------------------------------

    def of_pods(self, resource: Resource[Any], keep: Callable[[Pod], Any]) -> Resource[Any]:
        """The resource of pods, watched so that bodies are kept."""

        def transform(raw: dict[str, Any]) -> Any:
            pod = msgspec.convert(raw, Pod)
            if self._victims or not pod.spec.node_name:
                self._pods[pod.metadata.uid] = _body(raw)
            else:
                self._pods.pop(pod.metadata.uid, None)
            return keep(pod)

        return Resource(resource.path, dict, resource.label_selector, resource.field_selector, transform)

    def of_nodes(self, resource: Resource[Node]) -> Resource[Node]:
        """The resource of nodes, likewise."""
        if not self._all_nodes:
            return resource

        def transform(raw: dict[str, Any]) -> Node:
            node = msgspec.convert(raw, Node)
            self._nodes[node.metadata.name] = _body(raw)
            return node

        return Resource(resource.path, dict, resource.label_selector, resource.field_selector, transform)

    def __bool__(self) -> bool:
        return self._wanted

    def forget_pod(self, pod: Any) -> None:
        """A pod is gone."""
        self._pods.pop((pod.obj if isinstance(pod, Tombstone) else pod).uid, None)

    def replaced(self, old: Any, new: Any) -> None:
        """A pod changed; it may be another one of the same name."""
        if old.uid != new.uid:
            self.forget_pod(old)

    def forget_node(self, node: Any) -> None:
        """A node is gone."""
        self._nodes.pop((node.obj if isinstance(node, Tombstone) else node).metadata.name, None)


def _body(raw: dict[str, Any]) -> bytes:
    """Without what a typed client of the API would not send on."""
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    rest = {key: value for key, value in raw.items() if key not in ("kind", "apiVersion", "metadata")}
    return _encode({"metadata": metadata, **rest})
