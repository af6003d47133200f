"""JSON objects: labels, selectors, taints, node affinity; int64 arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


class CycleFailed(Exception):
    """An error ends the cycle."""


class Unclear(Exception):
    """The rules do not say, or the order of arrival would decide."""


def wrap(n: int) -> int:
    return (n + 2**63) % 2**64 - 2**63


def quo(a: int, b: int) -> int:
    """Division that truncates toward zero."""
    q = abs(a) // abs(b)
    return wrap(q if (a < 0) == (b < 0) else -q)


def round_half_away(x: float) -> int:
    return int(x + 0.5) if x >= 0 else -int(-x + 0.5)


def name(obj: Json) -> str:
    return obj["metadata"]["name"]  # type: ignore[no-any-return]


def namespace(obj: Json) -> str:
    return obj["metadata"].get("namespace", "")  # type: ignore[no-any-return]


def key(obj: Json) -> str:
    return f"{namespace(obj)}/{name(obj)}"


def uid(obj: Json) -> str:
    return obj["metadata"].get("uid", "")  # type: ignore[no-any-return]


def labels(obj: Json) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations(obj: Json) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def priority(pod: Json) -> int:
    return pod["spec"].get("priority") or 0


def terminating(pod: Json) -> bool:
    return pod["metadata"].get("deletionTimestamp") is not None


def controller(obj: Json) -> Json | None:
    return next((o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), None)


# --- label selectors --------------------------------------------------------------------------------------------------


def requirement_holds(operator: str, key: str, values: Sequence[str], own: Mapping[str, str]) -> bool:
    if operator == "In":
        return key in own and own[key] in values
    if operator == "NotIn":
        return key not in own or own[key] not in values
    if operator == "Exists":
        return key in own
    if operator == "DoesNotExist":
        return key not in own
    raise Unclear(operator)


def is_everything(selector: Json | None) -> bool:
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def selects(selector: Json | None, own: Mapping[str, str]) -> bool:
    """A label selector; none selects nothing, an empty one everything."""
    if selector is None:
        return False
    if any(own.get(k) != v for k, v in (selector.get("matchLabels") or {}).items()):
        return False
    return all(
        requirement_holds(e["operator"], e["key"], e.get("values") or [], own)
        for e in selector.get("matchExpressions") or ()
    )


# --- taints -----------------------------------------------------------------------------------------------------------


def tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect", ""):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and toleration.get("value", "") == taint.get("value", "")


def repelled(node: Json, pod: Json, effects: Iterable[str] = ("NoSchedule", "NoExecute")) -> bool:
    """Whether a taint with one of the effects is not tolerated."""
    tolerations = pod["spec"].get("tolerations") or ()
    return any(
        taint["effect"] in effects and not any(tolerates(t, taint) for t in tolerations)
        for taint in node["spec"].get("taints") or ()
    )


# --- node affinity ----------------------------------------------------------------------------------------------------


def node_affinity(pod: Json) -> Json:
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def has_bad_expression(term: Json) -> bool:
    for e in term.get("matchExpressions") or ():
        values = e.get("values") or []
        if e["operator"] in ("Gt", "Lt") and not _is_int64(values[0]):
            return True
        if any(len(v) > 63 or not _LABEL_VALUE.fullmatch(v) for v in values):
            return True
    return False


def _is_int64(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None and -(2**63) <= int(text) < 2**63


def node_term_matches(term: Json, node: Json) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if (not expressions and not fields) or has_bad_expression(term):
        return False
    own = labels(node)
    for e in expressions:
        values = e.get("values") or []
        if e["operator"] in ("Gt", "Lt"):
            if e["key"] not in own or not _is_int64(own[e["key"]]):
                return False
            there, wanted = int(own[e["key"]]), int(values[0])
            if not (there > wanted if e["operator"] == "Gt" else there < wanted):
                return False
        elif not requirement_holds(e["operator"], e["key"], values, own):
            return False
    return all((name(node) in f["values"]) == (f["operator"] == "In") for f in fields)


def node_selector_matches(selector: Json, node: Json) -> bool:
    """A NodeSelector: one of its terms has to match."""
    return any(node_term_matches(term, node) for term in selector.get("nodeSelectorTerms") or ())


def wants_node(pod: Json, node: Json) -> bool:
    """nodeSelector and required node affinity."""
    own = labels(node)
    if any(own.get(k) != v for k, v in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    required = node_affinity(pod).get(REQUIRED)
    return required is None or node_selector_matches(required, node)
