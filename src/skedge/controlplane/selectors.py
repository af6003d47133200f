"""Label and field selectors of list, watch and deletecollection requests.

Grammar and texts of `staging/src/k8s.io/apimachinery/pkg/labels/selector.go` and `pkg/fields/selector.go`; which fields
can be selected follows the conversion functions of each API group (`pkg/apis/*/v1/conversion.go`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skedge.controlplane.errors import bad_request
from skedge.controlplane.names import label_key_problems, label_value_problems

Labels = dict[str, str]
Requirement = tuple[str, str, frozenset[str]]  # key, operator, values

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SPECIAL = frozenset(["=", "==", "!=", "!", "(", ")", ",", "<", ">"])
_BINARY = "in, notin, =, ==, !=, gt, lt"


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = [m.group(1) for m in _TOKEN.finditer(text)]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            token = self.peek()
            if token == "":
                return requirements
            if token != "!" and token in _SPECIAL:
                raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
            requirements.append(self.requirement())
            token = self.take()
            if token == "":
                return requirements
            if token != ",":
                raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
            following = self.peek()
            if following == "" or (following != "!" and following in _SPECIAL):
                raise bad_request(f"found '{following}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        absent = self.peek() == "!"
        if absent:
            self.take()
        key = self.take()
        if key == "" or key in _SPECIAL:
            raise bad_request(f"found '{key}', expected: identifier")
        if problems := label_key_problems(key):
            raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {"; ".join(problems)}')
        if absent:
            return key, "!", frozenset()
        if self.peek() in ("", ","):
            return key, "exists", frozenset()
        operator = self.take()
        if operator in ("in", "notin"):
            return key, operator, self.checked(key, self.values())
        if operator in ("=", "=="):
            return key, "in", self.checked(key, [self.value()])
        if operator == "!=":
            return key, "notin", self.checked(key, [self.value()])
        if operator in ("<", ">"):
            bound = self.value()
            if not re.fullmatch(r"[+-]?\d+", bound):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise bad_request(f'unable to parse requirement: values[0][{key}]: Invalid value: "{bound}": {detail}')
            return key, operator, frozenset([bound])
        raise bad_request(f"found '{operator}', expected: {_BINARY}")

    def value(self) -> str:
        token = self.peek()
        if token in ("", ","):
            return ""
        if token in _SPECIAL:
            raise bad_request(f"found '{token}', expected: identifier")
        return self.take()

    def values(self) -> list[str]:
        token = self.take()
        if token != "(":
            raise bad_request(f"found '{token}' expected: '('")
        values: list[str] = []
        while True:
            token = self.take()
            if token == ")":
                return values or [""]
            if token == ",":
                values.append("")
                continue
            if token == "" or token in _SPECIAL:
                raise bad_request(f"found '{token}', expected: ',', ')' or identifier")
            values.append(token)
            token = self.take()
            if token == ")":
                return values
            if token != ",":
                raise bad_request(f"found '{token}', expected: ',' or ')'")

    def checked(self, key: str, values: list[str]) -> frozenset[str]:
        for i, value in enumerate(values):
            if problems := label_value_problems(value):
                text = "; ".join(problems)
                raise bad_request(f'unable to parse requirement: values[{i}][{key}]: Invalid value: "{value}": {text}')
        return frozenset(values)


def _holds(requirement: Requirement, labels: Labels) -> bool:
    key, operator, values = requirement
    value = labels.get(key)
    if operator == "in":
        return value is not None and value in values
    if operator == "notin":
        return value is None or value not in values
    if operator == "exists":
        return value is not None
    if operator == "!":
        return value is None
    if value is None or not re.fullmatch(r"[+-]?\d+", value):
        return False
    (bound,) = values
    return int(value) > int(bound) if operator == ">" else int(value) < int(bound)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A parsed label selector; all requirements must hold."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Labels) -> bool:
        return all(_holds(r, labels) for r in self.requirements)


def parse_labels(text: str) -> LabelSelector | None:
    """The selector of a `labelSelector` parameter, None when it selects everything. Raises 400 with upstream's text."""
    requirements = _Parser(text).parse()
    return LabelSelector(tuple(requirements)) if requirements else None


def labels_from_object(selector: dict[str, Any] | None) -> LabelSelector | None:
    """The selector of a `metav1.LabelSelector` field: None selects nothing, an empty one everything."""
    if selector is None:
        return None
    requirements: list[Requirement] = [
        (key, "in", frozenset([value])) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    for term in selector.get("matchExpressions") or []:
        values = frozenset(term.get("values") or [])
        requirements.append((term.get("key", ""), operators.get(term.get("operator", ""), "in"), values))
    return LabelSelector(tuple(requirements))


def selector_text(selector: dict[str, Any] | None) -> str:
    """A label selector (or a plain label map) in the one-line form of kubectl."""
    if not selector:
        return ""
    labels = selector.get("matchLabels") if "matchLabels" in selector or "matchExpressions" in selector else selector
    parts = [f"{key}={value}" for key, value in sorted((labels or {}).items())]
    for term in selector.get("matchExpressions") or ():
        key, values = term["key"], ",".join(sorted(term.get("values") or ()))
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }.get(term["operator"], key)
        )
    return ",".join(parts)


# --- fields ---------------------------------------------------------------------------------------------------------


def _path(*keys: str, default: str = "") -> Callable[[dict[str, Any]], str]:
    def read(obj: dict[str, Any]) -> str:
        value: Any = obj
        for key in keys:
            if not isinstance(value, dict):
                return default
            value = value.get(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read


def _event_source(obj: dict[str, Any]) -> str:
    return (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

# storage -> {field label: reader}; metadata.name and metadata.namespace are known to every kind
SELECTABLE: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "pods": {
        "spec.nodeName": _path("spec", "nodeName"),
        "status.phase": _path("status", "phase"),
        "spec.schedulerName": _path("spec", "schedulerName"),
        "spec.restartPolicy": _path("spec", "restartPolicy"),
        "spec.serviceAccountName": _path("spec", "serviceAccountName"),
        "spec.hostNetwork": _path("spec", "hostNetwork", default="false"),
        "status.podIP": _path("status", "podIP"),
        "status.nominatedNodeName": _path("status", "nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": _path("spec", "unschedulable", default="false")},
    "namespaces": {"status.phase": _path("status", "phase")},
    "events": {
        **{f"involvedObject.{key}": _path("involvedObject", key) for key in _INVOLVED},
        "reason": _path("reason"),
        "reportingComponent": _path("reportingComponent"),
        "source": _event_source,
        "type": _path("type"),
    },
    "replicationcontrollers": {"status.replicas": _path("status", "replicas", default="0")},
    "replicasets.apps": {"status.replicas": _path("status", "replicas", default="0")},
    "jobs.batch": {"status.successful": _path("status", "succeeded", default="0")},
    "secrets": {"type": _path("type")},
    "services": {"spec.clusterIP": _path("spec", "clusterIP"), "spec.type": _path("spec", "type")},
    "resourceslices.resource.k8s.io": {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.driver": _path("spec", "driver"),
    },
}

# field labels of events.k8s.io events, in terms of the stored core form
_EVENT_ALIASES = {
    **{f"regarding.{key}": f"involvedObject.{key}" for key in _INVOLVED},
    "reportingController": "reportingComponent",
}


def selectable_values(storage: str, obj: dict[str, Any]) -> tuple[str, ...]:
    """The values of an object's selectable fields, in the order of `SELECTABLE[storage]`."""
    readers = SELECTABLE.get(storage)
    return tuple(read(obj) for read in readers.values()) if readers else ()


FieldTerm = tuple[int, str, bool]  # position in the selectable values (-1 name, -2 namespace), value, equal


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A parsed field selector; `name` is set when it pins metadata.name, which makes a list a look-up."""

    terms: tuple[FieldTerm, ...]
    name: str | None

    def matches(self, name: str, namespace: str, values: tuple[str, ...]) -> bool:
        for position, wanted, equal in self.terms:
            value = values[position] if position >= 0 else (name if position == -1 else namespace)
            if (value == wanted) is not equal:
                return False
        return True


def _split_terms(text: str) -> list[str]:
    terms, current, escaped = [], "", False
    for char in text:
        if escaped:
            current += "\\" + char
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            terms.append(current)
            current = ""
        else:
            current += char
    terms.append(current)
    return terms


def _unescape(value: str) -> str:
    out, chars = "", iter(value)
    for char in chars:
        if char == "\\":
            following = next(chars, "")
            if following not in ("\\", ",", "="):
                raise bad_request(f"invalid field selector: invalid escape sequence \\{following}")
            out += following
        else:
            out += char
    return out


def parse_fields(text: str, storage: str) -> FieldSelector | None:
    """The selector of a `fieldSelector` parameter, None when it selects everything. Raises 400 with upstream's text."""
    known = list(SELECTABLE.get(storage, {}))
    terms: list[FieldTerm] = []
    name = None
    for part in _split_terms(text):
        if part == "":
            continue
        match = re.match(r"([^=!]*)(!=|==|=)(.*)", part, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        label, operator, value = match.group(1), match.group(2), _unescape(match.group(3))
        label = _EVENT_ALIASES.get(label, label) if storage == "events" else label
        if label == "metadata.name":
            position = -1
            name = value if operator != "!=" else name
        elif label == "metadata.namespace":
            position = -2
        elif label in known:
            position = known.index(label)
        elif known:
            raise bad_request(f"field label not supported: {label}")
        else:
            raise bad_request(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        terms.append((position, value, operator != "!="))
    return FieldSelector(tuple(terms), name) if terms else None
