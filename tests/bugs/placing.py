"""Helpers of the reported bugs: small clusters, written in a line."""

from __future__ import annotations

from typing import Any

from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.harness import Harness

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def no_flush(**options: Any) -> Harness:
    """A harness in which only events wake pods."""
    return Harness(max_in_unschedulable=float("inf"), **options)


def message(h: Harness, name: str = "p") -> str:
    condition = h.condition(name)
    return "" if condition is None else str(condition["message"])


async def placed(h: Harness, *pods: PodBuilder) -> list[str]:
    """The nodes of pods that are added one after another."""
    for pod in pods:
        h.add_pod(pod)
        await h.settle()
    return [h.node_of(pod.json["metadata"]["name"], pod.json["metadata"]["namespace"]) for pod in pods]


async def fits(pod: PodBuilder, **capacity: str) -> bool:
    """Whether the pod fits on an empty node of this capacity."""
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(**capacity))
        return (await placed(h, pod)) == ["n"]


def app(name: str, label: str) -> PodBuilder:
    return make_pod(name).label(app=label)
