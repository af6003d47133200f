"""Structure and rules of a node affinity given as plain data.

Upstream: `component-helpers/scheduling/corev1/nodeaffinity`.
"""

import re
from typing import Any

import msgspec

from skedge.config.fields import FieldError, invalid, not_supported
from skedge.config.label_names import label_key_errors, label_value_errors
from skedge.config.strict import Int32, decode_struct

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)


class NodeSelectorRequirement(msgspec.Struct, rename="camel"):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(msgspec.Struct, rename="camel"):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(msgspec.Struct, rename="camel"):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(msgspec.Struct, rename="camel"):
    weight: Int32 = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(msgspec.Struct):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


def node_affinity_errors(affinity: dict[str, Any] | None, path: str) -> list[FieldError]:
    """Broken rules of a NodeAffinity; its structure has been checked before."""
    if affinity is None:
        return []
    decoded = decode_struct(affinity, NodeAffinity)
    errors: list[FieldError] = []
    if decoded.required is not None:
        for index, term in enumerate(decoded.required.node_selector_terms):
            here = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
            errors += _term_errors(term, here)
    for index, preferred in enumerate(decoded.preferred):
        if preferred.weight != 0:  # a term without weight says nothing
            here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            errors += _term_errors(preferred.preference, here)
    return errors


def _term_errors(term: NodeSelectorTerm, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, requirement in enumerate(term.match_expressions):
        errors += _expression_errors(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields):
        here = f"{path}.matchFields[{index}]"
        if requirement.operator not in ("In", "NotIn"):
            errors.append(not_supported(f"{here}.operator", requirement.operator, ("In", "NotIn")))
        elif len(requirement.values) != 1:
            errors.append(invalid(f"{here}.values", requirement.values, "must have one element"))
    return errors


def _expression_errors(requirement: NodeSelectorRequirement, path: str) -> list[FieldError]:
    operator, values = requirement.operator, requirement.values
    if operator not in _OPERATORS:
        return [not_supported(f"{path}.operator", operator, _OPERATORS)]
    errors = []
    if problems := label_key_errors(requirement.key):
        errors.append(invalid(f"{path}.key", requirement.key, "; ".join(problems)))
    if operator in ("In", "NotIn"):
        if not values:
            text = "for 'in', 'notin' operators, values set can't be empty"
            errors.append(invalid(f"{path}.values", values, text))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(invalid(f"{path}.values", values, "values set must be empty for exists and does not exist"))
    elif len(values) != 1:
        errors.append(invalid(f"{path}.values", values, "for 'Gt', 'Lt' operators, exactly one value is required"))
    elif not _INTEGER.fullmatch(values[0]):
        text = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors.append(invalid(f"{path}.values[0]", values[0], text))
    for index, value in enumerate(values):
        if problems := label_value_errors(value):
            errors.append(invalid(f"{path}.values[{index}]", value, "; ".join(problems)))
    return errors
