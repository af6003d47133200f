"""Validation of affinity rules and selectors.

`pkg/apis/core/validation/validation.go`, `apimachinery/pkg/apis/meta/v1/validation`.
"""

from __future__ import annotations

import re
from typing import Any

from skedge.controlplane import names
from skedge.controlplane.errors import FieldError, forbidden_field, invalid_value, required

JSON = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_affinity(affinity: JSON, path: str) -> list[FieldError]:
    """Findings about a pod's affinity."""
    errors: list[FieldError] = []
    node = affinity.get("nodeAffinity") or {}
    if node.get(_REQUIRED) is not None:
        errors.extend(validate_node_selector(node[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}"))
    for i, preferred in enumerate(node.get(_PREFERRED) or []):
        where = f"{path}.nodeAffinity.{_PREFERRED}[{i}]"
        errors.extend(_weight(preferred, where))
        errors.extend(_term(preferred.get("preference") or {}, f"{where}.preference"))
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for i, term in enumerate(rules.get(_REQUIRED) or []):
            errors.extend(_pod_term(term, f"{path}.{kind}.{_REQUIRED}[{i}]"))
        for i, preferred in enumerate(rules.get(_PREFERRED) or []):
            where = f"{path}.{kind}.{_PREFERRED}[{i}]"
            errors.extend(_weight(preferred, where))
            errors.extend(_pod_term(preferred.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm"))
    return errors


def _weight(preferred: JSON, path: str) -> list[FieldError]:
    weight = preferred.get("weight", 0)
    if 1 <= weight <= 100:
        return []
    return [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def validate_node_selector(selector: JSON, path: str) -> list[FieldError]:
    """Findings about a required node selector."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for i, term in enumerate(terms):
        errors.extend(_term(term, f"{path}.nodeSelectorTerms[{i}]"))
    return errors


def _term(term: JSON, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, expression in enumerate(term.get("matchExpressions") or []):
        errors.extend(_expression(expression, f"{path}.matchExpressions[{i}]"))
    for i, expression in enumerate(term.get("matchFields") or []):
        errors.extend(_field_expression(expression, f"{path}.matchFields[{i}]"))
    return errors


def _expression(expression: JSON, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden_field(f"{path}.values", text))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", text))
        elif not re.fullmatch(r"[+-]?\d+", values[0]):
            errors.append(invalid_value(f"{path}.values[0]", values[0], "must be an integer"))
    else:
        errors.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))
    key = expression.get("key", "")
    errors.extend(invalid_value(f"{path}.key", key, p) for p in names.label_key_problems(key))
    for i, value in enumerate(values):
        errors.extend(invalid_value(f"{path}.values[{i}]", value, p) for p in names.label_value_problems(value))
    return errors


def _field_expression(expression: JSON, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(required(f"{path}.values", text))
    else:
        errors.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))
    key = expression.get("key", "")
    if key != "metadata.name":
        errors.append(invalid_value(f"{path}.key", key, "not a valid field selector key"))
    else:
        for i, value in enumerate(values):
            errors.extend(invalid_value(f"{path}.values[{i}]", value, p) for p in names.subdomain_problems(value))
    return errors


def _pod_term(term: JSON, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        if term.get(field) is not None:
            errors.extend(validate_selector(term[field], f"{path}.{field}"))
    for name in term.get("namespaces") or []:
        errors.extend(invalid_value(f"{path}.namespace", name, p) for p in names.label_problems(name))
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    problems = names.label_key_problems(key)
    errors.extend(invalid_value(f"{path}.topologyKey", key, p) for p in problems)
    text = "must not be specified when labelSelector is not set"
    return errors + [
        forbidden_field(f"{path}.{keys}", text)
        for keys in ("matchLabelKeys", "mismatchLabelKeys")
        if term.get(keys) and term.get("labelSelector") is None
    ]


def validate_selector(selector: JSON, path: str) -> list[FieldError]:
    """Findings about a metav1.LabelSelector."""
    errors: list[FieldError] = []
    for key, value in (selector.get("matchLabels") or {}).items():
        errors.extend(invalid_value(f"{path}.matchLabels", key, p) for p in names.label_key_problems(key))
        errors.extend(invalid_value(f"{path}.matchLabels", value, p) for p in names.label_value_problems(value))
    for i, expression in enumerate(selector.get("matchExpressions") or []):
        where = f"{path}.matchExpressions[{i}]"
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden_field(f"{where}.values", text))
        else:
            errors.append(invalid_value(f"{where}.operator", operator, "not a valid selector operator"))
        key = expression.get("key", "")
        errors.extend(invalid_value(f"{where}.key", key, p) for p in names.label_key_problems(key))
        for j, value in enumerate(values):
            errors.extend(invalid_value(f"{where}.values[{j}]", value, p) for p in names.label_value_problems(value))
    return errors
