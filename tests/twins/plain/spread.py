"""PodTopologySpread."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

from twins.plain.objects import (
    HOSTNAME,
    ZONE,
    Json,
    controller,
    is_everything,
    labels,
    name,
    namespace,
    repelled,
    round_half_away,
    selects,
    terminating,
    wants_node,
)

MISSING = (
    "UnschedulableAndUnresolvable",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
SKEWED = ("Unschedulable", "node(s) didn't match pod topology spread constraints")


def default_selector(world: Json, pod: Json) -> list[Json]:
    """Selectors of services and of the owner, all of which have to match; empty where nothing selects the pod."""
    found = []
    for service in world.get("services", ()):
        selector = service["spec"].get("selector")
        if selector and namespace(service) == namespace(pod) and selects({"matchLabels": selector}, labels(pod)):
            found.append({"matchLabels": selector})
    owner = controller(pod)
    if owner is not None:
        kinds = {
            ("v1", "ReplicationController"): "replicationControllers",
            ("apps/v1", "ReplicaSet"): "replicaSets",
            ("apps/v1", "StatefulSet"): "statefulSets",
        }
        for obj in world.get(kinds.get((owner["apiVersion"], owner["kind"]), ""), ()):
            if namespace(obj) == namespace(pod) and name(obj) == owner["name"]:
                selector = obj["spec"].get("selector") or {}
                found.append({"matchLabels": selector} if owner["kind"] == "ReplicationController" else selector)
    return [each for each in found if not is_everything(each)]


class Constraint:
    def __init__(self, spec: Json, pod: Json, selectors: Sequence[Json | None]) -> None:
        self.key = spec["topologyKey"]
        self.max_skew = spec["maxSkew"]
        self.min_domains = spec.get("minDomains") or 1
        self.honors_affinity = spec.get("nodeAffinityPolicy", "Honor") == "Honor"
        self.honors_taints = spec.get("nodeTaintsPolicy", "Ignore") == "Honor"
        own = labels(pod)
        self.pinned = {k: own[k] for k in spec.get("matchLabelKeys") or () if k in own}
        self.selectors = selectors
        self.everything = all(map(is_everything, selectors)) and not self.pinned

    def selects(self, pod: Json) -> bool:
        own = labels(pod)
        return all(selects(s, own) for s in self.selectors) and all(own.get(k) == v for k, v in self.pinned.items())

    def lets_in(self, pod: Json, node: Json) -> bool:
        if self.honors_affinity and not wants_node(pod, node):
            return False
        return not (self.honors_taints and repelled(node, pod))

    def count(self, pod: Json, there: Sequence[Json]) -> int:
        if self.everything:
            return 0
        return sum(namespace(p) == namespace(pod) and not terminating(p) and self.selects(p) for p in there)


def constraints(world: Json, pod: Json, args: Json, action: str) -> list[Constraint]:
    given = pod["spec"].get("topologySpreadConstraints") or []
    if given:
        return [Constraint(c, pod, [c.get("labelSelector")]) for c in given if c["whenUnsatisfiable"] == action]
    if (args.get("defaultingType") or "System") == "List":
        defaults = args.get("defaultConstraints") or []
    else:
        defaults = [
            {"topologyKey": HOSTNAME, "maxSkew": 3, "whenUnsatisfiable": "ScheduleAnyway"},
            {"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": "ScheduleAnyway"},
        ]
    selectors = default_selector(world, pod)
    if not selectors:
        return []
    return [Constraint(c, pod, selectors) for c in defaults if c["whenUnsatisfiable"] == action]


class Hard:
    """PreFilter's state: pods in each domain, for each constraint."""

    def __init__(self, pod: Json, hard: Sequence[Constraint], nodes: Sequence[tuple[Json, Sequence[Json]]]) -> None:
        self.pod, self.hard = pod, hard
        self.counts: list[dict[str, int]] = [{} for _ in hard]
        for node, there in nodes:
            if self._has_all(node):
                for c, counts in zip(hard, self.counts, strict=True):
                    if c.lets_in(pod, node):
                        value = labels(node)[c.key]
                        counts[value] = counts.get(value, 0) + c.count(pod, there)

    def _has_all(self, node: Json) -> bool:
        return all(c.key in labels(node) for c in self.hard)

    def clone(self) -> Hard:
        other = copy.copy(self)
        other.counts = copy.deepcopy(self.counts)
        return other

    def update(self, node: Json, other: Json, sign: int) -> None:
        if namespace(other) != namespace(self.pod) or not self._has_all(node):
            return
        for c, counts in zip(self.hard, self.counts, strict=True):
            if c.selects(other) and c.lets_in(self.pod, node):
                value = labels(node)[c.key]
                counts[value] = counts.get(value, 0) + sign

    def filter(self, node: Json, there: Sequence[Json]) -> tuple[str, list[str]] | None:
        for c, counts in zip(self.hard, self.counts, strict=True):
            value = labels(node).get(c.key)
            if value is None:
                return MISSING[0], [MISSING[1]]
            least = 0 if len(counts) < c.min_domains else min(counts.values())
            if counts.get(value, 0) + int(c.selects(self.pod)) - least > c.max_skew:
                return SKEWED[0], [SKEWED[1]]
        return None


def scores(
    pod: Json,
    soft: Sequence[Constraint],
    require_all: bool,
    nodes: Sequence[tuple[Json, Sequence[Json]]],
    feasible: Sequence[tuple[Json, Sequence[Json]]],
) -> list[int]:
    """Normalised scores of the feasible nodes."""

    def complete(node: Json) -> bool:
        return not require_all or all(c.key in labels(node) for c in soft)

    counted = [node for node, _ in feasible if complete(node)]
    raw = [0.0] * len(feasible)
    for c in soft:
        domains = {labels(node).get(c.key, ""): 0 for node in counted}
        weight = math.log((len(counted) if c.key == HOSTNAME else len(domains)) + 2)
        for node, there in nodes:
            value = labels(node).get(c.key, "")
            if complete(node) and c.lets_in(pod, node) and value in domains:
                domains[value] += c.count(pod, there)
        for i, (node, there) in enumerate(feasible):
            if complete(node) and c.key in labels(node):
                n = c.count(pod, there) if c.key == HOSTNAME else domains[labels(node)[c.key]]
                raw[i] += float(n) * weight + float(c.max_skew - 1)
    rounded = [round_half_away(x) for x in raw]
    kept = [s for s, (node, _) in zip(rounded, feasible, strict=True) if complete(node)]
    found = []
    for s, (node, _) in zip(rounded, feasible, strict=True):
        if not complete(node):
            found.append(0)
        elif max(kept) == 0:
            found.append(100)
        else:
            found.append(100 * (max(kept) + min(kept) - s) // max(kept))
    return found
