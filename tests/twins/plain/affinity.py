"""InterPodAffinity."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from twins.plain.objects import PREFERRED, REQUIRED, Json, is_everything, labels, name, namespace, selects

AFFINITY = ("UnschedulableAndUnresolvable", "node(s) didn't match pod affinity rules")
ANTI = ("Unschedulable", "node(s) didn't match pod anti-affinity rules")
EXISTING = ("Unschedulable", "node(s) didn't satisfy existing pods anti-affinity rules")

Pairs = dict[tuple[str, str], int]
Nodes = Sequence[tuple[Json, Sequence[Json]]]


def _terms(pod: Json, kind: str, how: str) -> Sequence[Json]:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(how) or ()


def affinity_terms(pod: Json) -> Sequence[Json]:
    return _terms(pod, "podAffinity", REQUIRED)


def anti_terms(pod: Json) -> Sequence[Json]:
    return _terms(pod, "podAntiAffinity", REQUIRED)


def preferences(pod: Json) -> list[tuple[int, Json]]:
    found = [(t["weight"], t["podAffinityTerm"]) for t in _terms(pod, "podAffinity", PREFERRED)]
    return found + [(-t["weight"], t["podAffinityTerm"]) for t in _terms(pod, "podAntiAffinity", PREFERRED)]


def _matches(term: Json, owner: Json, other: Json, of_namespace: dict[str, str], more: Sequence[str] = ()) -> bool:
    names, selector = list(term.get("namespaces") or ()), term.get("namespaceSelector")
    if not names and selector is None:
        names = [namespace(owner)]
    if namespace(other) not in [*names, *more] and not selects(selector, of_namespace):
        return False
    return selects(term.get("labelSelector"), labels(other))


def _namespace_labels(world: Json, wanted: str) -> dict[str, str]:
    return next((labels(n) for n in world.get("namespaces", ()) if name(n) == wanted), {})


def mine(world: Json, pod: Json, term: Json, other: Json) -> bool:
    """A term of the incoming pod: a selector that is not empty is looked up once, labels are then not looked at."""
    selector = term.get("namespaceSelector")
    more: list[str] = []
    if selector is not None and not is_everything(selector):
        more = [name(n) for n in world.get("namespaces", ()) if selects(selector, labels(n))]
    return _matches(term, pod, other, {}, more)


def theirs(world: Json, other: Json, term: Json, pod: Json) -> bool:
    return _matches(term, other, pod, _namespace_labels(world, namespace(pod)))


def _add(pairs: Pairs, node: Json, key: str, n: int) -> None:
    if key in labels(node):
        pair = (key, labels(node)[key])
        pairs[pair] = pairs.get(pair, 0) + n
        if not pairs[pair]:
            del pairs[pair]


class Required:
    """PreFilter's state: three maps of topology pairs."""

    def __init__(self, world: Json, pod: Json, nodes: Nodes) -> None:
        self.world, self.pod = world, pod
        self.affine: Pairs = {}
        self.anti: Pairs = {}
        self.existing: Pairs = {}
        for node, there in nodes:
            for other in there:
                self.update(node, other, 1)

    @property
    def skips(self) -> bool:
        return not self.existing and not affinity_terms(self.pod) and not anti_terms(self.pod)

    def clone(self) -> Required:
        other = copy.copy(self)
        other.affine, other.anti, other.existing = dict(self.affine), dict(self.anti), dict(self.existing)
        return other

    def _all_match(self, other: Json) -> bool:
        terms = affinity_terms(self.pod)
        return bool(terms) and all(mine(self.world, self.pod, t, other) for t in terms)

    def update(self, node: Json, other: Json, sign: int) -> None:
        if self._all_match(other):
            for term in affinity_terms(self.pod):
                _add(self.affine, node, term["topologyKey"], sign)
        for term in anti_terms(self.pod):
            if mine(self.world, self.pod, term, other):
                _add(self.anti, node, term["topologyKey"], sign)
        for term in anti_terms(other):
            if theirs(self.world, other, term, self.pod):
                _add(self.existing, node, term["topologyKey"], sign)

    def filter(self, node: Json, there: Sequence[Json]) -> tuple[str, list[str]] | None:
        own = labels(node)
        keys = [t["topologyKey"] for t in affinity_terms(self.pod)]
        if any(key not in own for key in keys):
            return AFFINITY[0], [AFFINITY[1]]
        alone = not self.affine and self._all_match(self.pod)
        if any(self.affine.get((key, own[key]), 0) <= 0 for key in keys) and not alone:
            return AFFINITY[0], [AFFINITY[1]]
        for term in anti_terms(self.pod):
            key = term["topologyKey"]
            if key in own and self.anti.get((key, own[key]), 0) > 0:
                return ANTI[0], [ANTI[1]]
        if any(self.existing.get(pair, 0) > 0 for pair in own.items()):
            return EXISTING[0], [EXISTING[1]]
        return None


def raw_scores(world: Json, pod: Json, args: Json, nodes: Nodes, feasible: Nodes) -> list[int] | None:
    """Raw scores of the feasible nodes; None: the plugin skips."""
    mine_preferred = preferences(pod)
    if args.get("ignorePreferredTermsOfExistingPods") and not mine_preferred:
        return None
    hard = args.get("hardPodAffinityWeight")
    hard = 1 if hard is None else hard
    worth: Pairs = {}
    touched = False

    def add(node: Json, key: str, n: int) -> None:
        nonlocal touched
        if key in labels(node):
            touched = True
            pair = (key, labels(node)[key])
            worth[pair] = worth.get(pair, 0) + n

    for node, there in nodes:
        for other in there:
            for weight, term in mine_preferred:
                if mine(world, pod, term, other):
                    add(node, term["topologyKey"], weight)
            if hard > 0:
                for term in affinity_terms(other):
                    if theirs(world, other, term, pod):
                        add(node, term["topologyKey"], hard)
            for weight, term in preferences(other):
                if theirs(world, other, term, pod):
                    add(node, term["topologyKey"], weight)
    if not touched:
        return None
    return [sum(worth.get(pair, 0) for pair in labels(node).items()) for node, _ in feasible]


def normalized(raw: Sequence[int]) -> list[int]:
    low, high = min(raw), max(raw)
    return [int(100.0 * (float(s - low) / float(high - low))) if high > low else 0 for s in raw]
