"""Pod affinity terms, compiled once and shared: `Scope` (which pods), `Term` (in which domain), `PodTerms` (of a pod).

Equal terms are one object however many pods carry them, so that they can be counted and found by what they are.
Upstream: `kube-scheduler/framework/types.go` (AffinityTerm), `pkg/scheduler/framework/types.go` (getAffinityTerms).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from skedge.api.core import Affinity, PodAffinityTerm, WeightedPodAffinityTerm
from skedge.api.labels import NOTHING, Selector, SelectorError, compile_selector

NO_LABELS: Final[Mapping[str, str]] = {}

_shared: dict[Any, Any] = {}
_SHARED_LIMIT: Final = 50_000
T = TypeVar("T")


def _share(value: T) -> T:
    found: T | None = _shared.get(value)
    if found is None:
        if len(_shared) >= _SHARED_LIMIT:
            _shared.clear()  # values still in use compare equal to new ones, they are only held twice
        _shared[value] = found = value
    return found


class Scope:
    """A set of pods: those of some namespaces (by name, or by labels of the namespace) whose labels are selected."""

    __slots__ = ("_hash", "namespace_selector", "namespaces", "selector")

    def __init__(self, namespaces: frozenset[str], namespace_selector: Selector, selector: Selector) -> None:
        self.namespaces = namespaces
        self.namespace_selector = namespace_selector
        self.selector = selector
        self._hash = hash((namespaces, namespace_selector, selector))

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels, in a namespace with those, belongs to the set."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Scope)
            and self._hash == other._hash
            and self.namespaces == other.namespaces
            and self.namespace_selector == other.namespace_selector
            and self.selector == other.selector
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Scope({sorted(self.namespaces)}, {self.namespace_selector!r}, {self.selector!r})"


def scope_in(namespace: str, selector: Selector) -> Scope:
    """The selected pods of one namespace."""
    return _share(Scope(frozenset((namespace,)), NOTHING, selector))


class Term:
    """Pods of a scope, looked for in the topology domain of a node."""

    __slots__ = ("_hash", "scope", "topology_key")

    def __init__(self, scope: Scope, topology_key: str) -> None:
        self.scope = scope
        self.topology_key = topology_key
        self._hash = hash((scope, topology_key))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Term) and self.topology_key == other.topology_key and self.scope == other.scope
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Term({self.topology_key!r}, {self.scope!r})"


class PodTerms:
    """A pod's pod affinity. `preferred` has weights, negative for anti-affinity. A list with a term that can't be read
    is empty, and `error` says what is wrong, as the reference says it."""

    __slots__ = ("_hash", "affinity", "anti", "error", "preferred")

    def __init__(
        self,
        affinity: tuple[Term, ...] = (),
        anti: tuple[Term, ...] = (),
        preferred: tuple[tuple[int, Term], ...] = (),
        error: str = "",
    ) -> None:
        self.affinity = affinity
        self.anti = anti
        self.preferred = preferred
        self.error = error
        self._hash = hash((affinity, anti, preferred, error))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PodTerms)
            and self.affinity == other.affinity
            and self.anti == other.anti
            and self.preferred == other.preferred
            and self.error == other.error
        )

    def __hash__(self) -> int:
        return self._hash


NO_TERMS: Final = PodTerms()


def pod_terms(affinity: Affinity | None, namespace: str) -> PodTerms:
    """The compiled terms of a pod in a namespace; NO_TERMS where there are none."""
    if affinity is None:
        return NO_TERMS
    own, other = affinity.pod_affinity, affinity.pod_anti_affinity
    if own is None and other is None:
        return NO_TERMS
    errors: list[str] = []
    lists: list[Any] = []
    for what, spec in (("Affinity", own), ("AntiAffinity", other)):
        required = (spec and spec.required_during_scheduling_ignored_during_execution) or ()
        lists.append(_compiled(required, namespace, f"required{what}Terms", errors))
    for what, spec in (("Affinity", own), ("AntiAffinity", other)):
        preferred = (spec and spec.preferred_during_scheduling_ignored_during_execution) or ()
        lists.append(_weighted(preferred, namespace, f"preferred{what}Terms", errors))
    affine, anti, attracting, repelling = lists
    text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""
    preferences = attracting + tuple((-weight, term) for weight, term in repelling)
    return _share(PodTerms(affine, anti, preferences, text))


def _compiled(terms: Iterable[PodAffinityTerm], namespace: str, what: str, errors: list[str]) -> tuple[Term, ...]:
    try:
        return tuple([_term(term, namespace) for term in terms])
    except SelectorError as error:
        errors.append(f"{what}: {error}")
        return ()


def _weighted(
    terms: Sequence[WeightedPodAffinityTerm], namespace: str, what: str, errors: list[str]
) -> tuple[tuple[int, Term], ...]:
    compiled = _compiled([each.pod_affinity_term for each in terms], namespace, what, errors)
    return tuple(zip([each.weight for each in terms], compiled, strict=False))


def _term(term: PodAffinityTerm, namespace: str) -> Term:
    selector = compile_selector(term.label_selector)
    namespaces = frozenset(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((namespace,))
    scope = _share(Scope(namespaces, compile_selector(term.namespace_selector), selector))
    return _share(Term(scope, term.topology_key))
