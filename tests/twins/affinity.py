"""The twin of InterPodAffinity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skedge.api.core import Node, Pod, PodAffinity, PodAffinityTerm
from skedge.api.labels import compile_selector
from twins.world import World, labels

OK, AFFINITY, ANTI_AFFINITY, EXISTING = "", "affinity", "anti-affinity", "existing"

Pairs = dict[tuple[str, str], int]


def _spec(pod: Pod, anti: bool) -> PodAffinity | None:
    affinity = pod.spec.affinity
    if affinity is None:
        return None
    return affinity.pod_anti_affinity if anti else affinity.pod_affinity


def required(pod: Pod, anti: bool) -> Sequence[PodAffinityTerm]:
    spec = _spec(pod, anti)
    return (spec.required_during_scheduling_ignored_during_execution or ()) if spec else ()


def preferred(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    found: list[tuple[int, PodAffinityTerm]] = []
    for sign, anti in ((1, False), (-1, True)):
        spec = _spec(pod, anti)
        terms = (spec.preferred_during_scheduling_ignored_during_execution or ()) if spec else ()
        found += [(sign * each.weight, each.pod_affinity_term) for each in terms]
    return found


def matches(
    term: PodAffinityTerm, owner: Pod, other: Pod, namespace_labels: dict[str, str], more: Iterable[str] = ()
) -> bool:
    names = set(term.namespaces or ())
    if not names and term.namespace_selector is None:
        names = {owner.metadata.namespace}
    names |= set(more)
    chosen = compile_selector(term.namespace_selector).matches(namespace_labels)
    if other.metadata.namespace not in names and not chosen:
        return False
    return compile_selector(term.label_selector).matches(labels(other))


def mine(world: World, pod: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    """Whether a term of the incoming pod matches: namespaces are unrolled, labels of other namespaces not looked at."""
    selector = compile_selector(term.namespace_selector)
    more = [] if selector.empty else [name for name, own in world.namespaces.items() if selector.matches(own)]
    return matches(term, pod, other, {}, more)


def theirs(world: World, other: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether a term of a pod that is there matches the incoming pod."""
    return matches(term, other, pod, world.namespaces.get(pod.metadata.namespace, {}))


class Maps:
    """The three maps of topology pairs."""

    def __init__(self, world: World, pod: Pod) -> None:
        self.world, self.pod = world, pod
        self.affine: Pairs = {}
        self.anti: Pairs = {}
        self.existing: Pairs = {}
        for node, other in world.placed():
            self.update(node, other, 1)

    def update(self, node: Node, other: Pod, sign: int) -> None:
        terms = required(self.pod, anti=False)
        if terms and all(mine(self.world, self.pod, term, other) for term in terms):
            for term in terms:
                _add(self.affine, node, term.topology_key, sign)
        for term in required(self.pod, anti=True):
            if mine(self.world, self.pod, term, other):
                _add(self.anti, node, term.topology_key, sign)
        for term in required(other, anti=True):
            if theirs(self.world, other, term, self.pod):
                _add(self.existing, node, term.topology_key, sign)

    @property
    def skip(self) -> bool:
        return not self.existing and not required(self.pod, anti=False) and not required(self.pod, anti=True)

    def verdict(self, node: Node) -> str:
        own = labels(node)
        terms = required(self.pod, anti=False)
        if any(term.topology_key not in own for term in terms):
            return AFFINITY
        if any(self.affine.get((term.topology_key, own[term.topology_key]), 0) <= 0 for term in terms):
            first = not self.affine and all(mine(self.world, self.pod, term, self.pod) for term in terms)
            if not first:
                return AFFINITY
        for term in required(self.pod, anti=True):
            if self.anti.get((term.topology_key, own.get(term.topology_key, "\0")), 0) > 0:
                return ANTI_AFFINITY
        if any(self.existing.get(pair, 0) > 0 for pair in own.items()):
            return EXISTING
        return OK


def _add(pairs: Pairs, node: Node, key: str, sign: int) -> None:
    if key in labels(node):
        pair = (key, labels(node)[key])
        pairs[pair] = pairs.get(pair, 0) + sign
        if not pairs[pair]:
            del pairs[pair]


def verdict(world: World, pod: Pod, node: Node, added: Sequence[Pod] = (), removed: Sequence[Pod] = ()) -> str:
    """What Filter says of a node on which pods were added and removed."""
    maps = Maps(world, pod)
    for other in added:
        maps.update(node, other, 1)
    for other in removed:
        maps.update(node, other, -1)
    return maps.verdict(node)


def scores(world: World, pod: Pod, feasible: Sequence[Node], hard_weight: int = 1) -> list[int]:
    """Normalised scores of the feasible nodes; all 0 where the plugin says Skip."""
    worth: Pairs = {}

    def add(node: Node, key: str, weight: int) -> None:
        if key in labels(node):
            pair = (key, labels(node)[key])
            worth[pair] = worth.get(pair, 0) + weight

    for node, other in world.placed():
        for weight, term in preferred(pod):
            if mine(world, pod, term, other):
                add(node, term.topology_key, weight)
        for term in required(other, anti=False):
            if theirs(world, other, term, pod):
                add(node, term.topology_key, hard_weight)
        for weight, term in preferred(other):
            if theirs(world, other, term, pod):
                add(node, term.topology_key, weight)
    raw = [sum(worth.get(pair, 0) for pair in labels(node).items()) for node in feasible]
    low, high = min(raw), max(raw)
    return [int(100.0 * ((s - low) / (high - low))) if high > low else 0 for s in raw]
