"""Label and field selectors of list, watch and deletecollection requests.

Grammar and texts of `staging/src/k8s.io/apimachinery/pkg/labels/selector.go` and `pkg/fields/selector.go`; which fields
can be selected follows the conversion functions of each API group (`pkg/apis/*/v1/conversion.go`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skedge.api.labels import IN, Requirement, Selector, SelectorError
from skedge.api.selector_text import parse_selector
from skedge.controlplane.errors import bad_request

_OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist"}


def parse_labels(text: str) -> Selector | None:
    """The selector of a `labelSelector` parameter, None when it selects everything. Raises 400 with upstream's text."""
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return None if selector.empty else selector


def labels_from_object(selector: dict[str, Any] | None) -> Selector | None:
    """The selector of a `metav1.LabelSelector` field: None selects nothing, an empty one everything.

    Nothing is checked: what is stored was checked before.
    """
    if selector is None:
        return None
    requirements = [Requirement(key, IN, (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or []:
        operator = term.get("operator", "")
        known = operator if operator in _OPERATORS else IN
        requirements.append(Requirement(term.get("key", ""), known, term.get("values") or ()))
    return Selector(requirements)


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
