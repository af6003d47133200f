"""Node selectors and a pod's node affinity, compiled for one node at a time.

The form that hints, controllers and tests use; the filter over all nodes works on columns.

Upstream: `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from skedge.api.core import Pod, PreferredSchedulingTerm
from skedge.api.labels import (
    IN,
    NODE_OPERATORS,
    NOT_IN,
    Requirement,
    Selector,
    SelectorError,
    checked_requirement,
    from_set,
    invalid,
    quote,
    quote_all,
)
from skedge.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

FIELD_OPERATORS: Final = (IN, NOT_IN)
NAME_FIELD: Final = "metadata.name"


class FieldRequirement(NamedTuple):
    """One condition on a field of a node. Only `metadata.name` is known; any other field reads as empty."""

    key: str
    equal: bool
    value: str

    def matches(self, node_name: str) -> bool:
        """Whether a node with this name satisfies the requirement."""
        return (self.value == (node_name if self.key == NAME_FIELD else "")) == self.equal


class NodeTerm:
    """One term: every label requirement and every field requirement holds, or `errors` says why it can't be used."""

    __slots__ = ("errors", "fields", "labels")

    def __init__(self, term: NodeSelectorTerm, path: str) -> None:
        errors: list[str] = []
        self.labels: Selector = Selector(_requirements(term.match_expressions or (), path, errors))
        self.fields: tuple[FieldRequirement, ...] = _field_requirements(term.match_fields or (), path, errors)
        self.errors: tuple[str, ...] = tuple(errors)

    def matches(self, node_name: str, labels: Mapping[str, str] | None) -> bool:
        """Whether the node matches; never with errors. A node without a name is not asked for its fields."""
        if self.errors or not self.labels.matches(labels):
            return False
        return not node_name or all(each.matches(node_name) for each in self.fields)


class NodeTerms:
    """A NodeSelector: any term matches. Terms with errors never do; without terms nothing matches."""

    __slots__ = ("terms",)

    def __init__(self, selector: NodeSelector, path: str = "nodeSelectorTerms") -> None:
        written = enumerate(selector.node_selector_terms or ())
        self.terms: tuple[NodeTerm, ...] = tuple(
            NodeTerm(term, f"{path}[{i}]") for i, term in written if not is_empty_term(term)
        )

    def matches(self, node_name: str, labels: Mapping[str, str] | None) -> bool:
        """Whether the node matches one of the terms."""
        return any(term.matches(node_name, labels) for term in self.terms)

    def check(self) -> None:
        """Raise SelectorError with the problems of all terms, if there are any."""
        errors = [error for term in self.terms for error in term.errors]
        if errors:
            raise SelectorError(*errors)


class PreferredTerms:
    """Weighted terms. Those of weight 0 and empty ones count for nothing. Raises SelectorError for a bad term."""

    __slots__ = ("terms",)

    def __init__(self, terms: Sequence[PreferredSchedulingTerm] | None, path: str = "") -> None:
        self.terms: tuple[tuple[int, NodeTerm], ...] = tuple(
            (each.weight, NodeTerm(each.preference, f"{path}[{i}]"))
            for i, each in enumerate(terms or ())
            if each.weight and not is_empty_term(each.preference)
        )
        errors = [error for _, term in self.terms for error in term.errors]
        if errors:
            raise SelectorError(*errors)

    def score(self, node_name: str, labels: Mapping[str, str] | None) -> int:
        """The sum of the weights of the terms that the node matches."""
        return sum(weight for weight, term in self.terms if term.matches(node_name, labels))


class RequiredNodeAffinity:
    """What a pod demands of its node: `spec.nodeSelector` and the required terms of its node affinity."""

    __slots__ = ("node_selector", "terms")

    def __init__(self, pod: Pod) -> None:
        spec = pod.spec
        self.node_selector: Selector = from_set(spec.node_selector)
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        self.terms: NodeTerms | None = None if required is None else NodeTerms(required)

    def matches(self, node_name: str, labels: Mapping[str, str] | None) -> bool:
        """Whether the node has what the pod demands. Terms with errors are passed over."""
        if not self.node_selector.matches(labels):
            return False
        return self.terms is None or self.terms.matches(node_name, labels)


def required_matches(pod: Pod, node_name: str, labels: Mapping[str, str] | None) -> bool:
    """Whether a node with this name and these labels has what the pod demands."""
    return RequiredNodeAffinity(pod).matches(node_name, labels)


def is_empty_term(term: NodeSelectorTerm) -> bool:
    """Whether the term has no condition at all; such a term matches nothing."""
    return not term.match_expressions and not term.match_fields


def _requirements(written: Sequence[NodeSelectorRequirement], path: str, errors: list[str]) -> list[Requirement]:
    found: list[Requirement] = []
    for i, each in enumerate(written):
        where = f"{path}.matchExpressions[{i}]"
        if each.operator not in NODE_OPERATORS:
            errors.append(_not_supported(where, each.operator, NODE_OPERATORS))
            continue
        try:
            found.append(checked_requirement(each.key, each.operator, each.values or (), where))
        except SelectorError as err:
            errors += err.errors
    return found


def _field_requirements(
    written: Sequence[NodeSelectorRequirement], path: str, errors: list[str]
) -> tuple[FieldRequirement, ...]:
    found: list[FieldRequirement] = []
    for i, each in enumerate(written):
        where = f"{path}.matchFields[{i}]"
        values = each.values or ()
        if each.operator not in FIELD_OPERATORS:
            errors.append(_not_supported(where, each.operator, FIELD_OPERATORS))
        elif len(values) != 1:
            errors.append(invalid(f"{where}.values", quote_all(values), "must have one element"))
        else:
            found.append(FieldRequirement(each.key, each.operator == IN, values[0]))
    return tuple(found)


def _not_supported(path: str, operator: str, supported: Sequence[str]) -> str:
    return (
        f"{path}.operator: Unsupported value: {quote(operator)}: supported values: {', '.join(map(quote, supported))}"
    )
