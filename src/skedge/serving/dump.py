"""Texts of the SIGUSR2 dump, and the comparison of cache and informer stores: pure functions over plain data.

Upstream: `pkg/scheduler/backend/cache/debugger`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple


class PodLine(NamedTuple):
    """A pod, as a dump names it."""

    name: str
    namespace: str
    uid: str
    phase: str = ""
    nominated_node: str = ""

    def __str__(self) -> str:
        head = f"name: {self.name}, namespace: {self.namespace}, uid: {self.uid}"
        return f"{head}, phase: {self.phase}, nominatedNode: {self.nominated_node}"


@dataclass(frozen=True)
class NodeDump:
    """A node of the cache. `deleted`: its object is gone, pods are left. Amounts in base units (cpu: thousandths)."""

    name: str
    deleted: bool
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]
    pods: Sequence[PodLine]
    nominated: Sequence[PodLine] = ()


class Mismatch(NamedTuple):
    """What one side has and the other has not, sorted: `missed` by the cache, `redundant` in it."""

    missed: tuple[str, ...]
    redundant: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.missed or self.redundant)


def dump_nodes(nodes: Iterable[NodeDump]) -> str:
    """The value of the line `Dump of cached NodeInfo`."""
    return "\n".join(map(_node_text, nodes))


def _node_text(node: NodeDump) -> str:
    lines = [
        f"Node name: {node.name}",
        f"Deleted: {'true' if node.deleted else 'false'}",
        f"Requested Resources: {_amounts(node.requested)}",
        f"Allocatable Resources: {_amounts(node.allocatable)}",
        f"Scheduled Pods(number: {len(node.pods)}):",
        *map(str, node.pods),
        f"Nominated Pods(number: {len(node.nominated)}):",
        *map(str, node.nominated),
    ]
    return "".join(f"{line}\n" for line in lines)


def _amounts(amounts: Mapping[str, int]) -> str:
    return "{" + " ".join(f"{name}:{amount}" for name, amount in amounts.items()) + "}"


def dump_queue(summary: str, pods: Iterable[PodLine]) -> str:
    """The value of the line `Dump of scheduling queue`; `summary`: how many pods each part of the queue has."""
    return "".join(f"{line}\n" for line in (summary, *pods))


def compare_nodes(actual: Iterable[str], cached: Iterable[str]) -> Mismatch:
    """Names of nodes: those the informer's store has, and those of the cache."""
    return _compare(set(actual), set(cached))


def compare_pods(actual: Iterable[str], cached: Iterable[str], queued: Iterable[str]) -> Mismatch:
    """UIDs of pods: those the informer's store has, and those of cache and queue (nominated ones included)."""
    return _compare(set(actual), {*cached, *queued})


def _compare(actual: Set[str], cached: Set[str]) -> Mismatch:
    return Mismatch(tuple(sorted(actual - cached)), tuple(sorted(cached - actual)))
