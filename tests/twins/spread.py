"""The twin of PodTopologySpread."""

from __future__ import annotations

import math
from collections.abc import Sequence

from skedge.api.core import Node, Pod, TopologySpreadConstraint
from skedge.api.labels import Requirement, Selector, compile_selector
from skedge.api.node_selectors import required_matches
from skedge.api.taints import find_untolerated
from twins.world import World, labels

HOSTNAME = "kubernetes.io/hostname"
OK, MISSING, SKEWED = "", "missing", "skewed"


def selector_of(constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
    selector = compile_selector(constraint.label_selector)
    own = labels(pod)
    return selector.plus(Requirement(k, "In", (own[k],)) for k in constraint.match_label_keys or () if k in own)


def let_in(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """The inclusion policies."""
    if (constraint.node_affinity_policy or "Honor") == "Honor" and not required_matches(
        pod, node.metadata.name, node.metadata.labels
    ):
        return False
    if constraint.node_taints_policy == "Honor":
        return find_untolerated(node.spec.taints, pod.spec.tolerations) is None
    return True


def count(pods: Sequence[Pod], selector: Selector, namespace: str) -> int:
    if selector.empty:
        return 0
    return sum(
        pod.metadata.namespace == namespace
        and pod.metadata.deletion_timestamp is None
        and selector.matches(labels(pod))
        for pod in pods
    )


def of_action(pod: Pod, action: str) -> list[TopologySpreadConstraint]:
    return [c for c in pod.spec.topology_spread_constraints or () if c.when_unsatisfiable == action]


def verdict(world: World, pod: Pod, node: Node, added: Sequence[Pod] = (), removed: Sequence[Pod] = ()) -> str:
    """What Filter says of a node on which pods were added and removed."""
    constraints = of_action(pod, "DoNotSchedule")
    keys = [c.topology_key for c in constraints]
    namespace = pod.metadata.namespace
    for c in constraints:
        selector = selector_of(c, pod)
        counts: dict[str, int] = {}
        for each in world.nodes.values():
            if all(key in labels(each) for key in keys) and let_in(c, pod, each):
                value = labels(each)[c.topology_key]
                counts[value] = counts.get(value, 0) + count(world.on(each), selector, namespace)
        if all(key in labels(node) for key in keys) and let_in(c, pod, node):
            for sign, pods in ((1, added), (-1, removed)):
                for other in pods:
                    if other.metadata.namespace == namespace and selector.matches(labels(other)):
                        counts[labels(node)[c.topology_key]] += sign
        if c.topology_key not in labels(node):
            return MISSING
        domains = 1 if c.min_domains is None else c.min_domains
        minimum = 0 if len(counts) < domains else min(counts.values())
        itself = int(selector.matches(labels(pod)))
        if counts.get(labels(node)[c.topology_key], 0) + itself - minimum > c.max_skew:
            return SKEWED
    return OK


def scores(
    world: World,
    pod: Pod,
    constraints: Sequence[TopologySpreadConstraint],
    feasible: Sequence[Node],
    require_all: bool,
) -> list[int]:
    """Normalised scores of the feasible nodes."""
    keys = [c.topology_key for c in constraints]
    ignored = [require_all and any(key not in labels(node) for key in keys) for node in feasible]
    counted = [node for node, out in zip(feasible, ignored, strict=True) if not out]
    totals = [0.0] * len(feasible)
    for c in constraints:
        selector = selector_of(c, pod)
        registered = {labels(node).get(c.topology_key, ""): 0 for node in counted}
        size = len(counted) if c.topology_key == HOSTNAME else len(registered)
        weight = math.log(size + 2)
        if c.topology_key != HOSTNAME:
            for node in world.nodes.values():
                if require_all and any(key not in labels(node) for key in keys):
                    continue
                value = labels(node).get(c.topology_key, "")
                if let_in(c, pod, node) and value in registered:
                    registered[value] += count(world.on(node), selector, pod.metadata.namespace)
        for i, node in enumerate(feasible):
            if ignored[i] or c.topology_key not in labels(node):
                continue
            if c.topology_key == HOSTNAME:
                pods = count(world.on(node), selector, pod.metadata.namespace)
            else:
                pods = registered[labels(node)[c.topology_key]]
            totals[i] += pods * weight + float(c.max_skew - 1)
    raw = [math.floor(total + 0.5) for total in totals]
    kept = [s for s, out in zip(raw, ignored, strict=True) if not out]
    answer = []
    for s, out in zip(raw, ignored, strict=True):
        if out:
            answer.append(0)
        elif max(kept) == 0:
            answer.append(100)
        else:
            answer.append(100 * (max(kept) + min(kept) - s) // max(kept))
    return answer
