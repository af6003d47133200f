"""Taints and tolerations. Upstream: `staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from skedge.api.core import Taint, Toleration
from skedge.api.labels import parse_int64

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

FILTER_EFFECTS: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""Effects that keep a pod off a node."""

SCORE_EFFECTS: Final = frozenset({PREFER_NO_SCHEDULE})
"""Effects that only lower a node's score."""

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What a pod must tolerate to go to a node whose `spec.unschedulable` is true."""


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool = False) -> bool:
    """Whether one toleration covers one taint.

    `comparison` (feature gate TaintTolerationComparisonOperators) lets the operators `Gt` and `Lt` work; without it
    they never tolerate. `tolerationSeconds` plays no part.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt" if comparison:
            wanted, found = _canonical_int64(toleration.value), _canonical_int64(taint.value)
            if wanted is None or found is None:
                return False
            return found > wanted if toleration.operator == "Gt" else found < wanted
        case _:
            return False


def tolerated(taint: Taint, tolerations: Iterable[Toleration] | None, *, comparison: bool = False) -> bool:
    """Whether any of the tolerations covers the taint."""
    return any(tolerates(each, taint, comparison=comparison) for each in tolerations or ())


def find_untolerated(
    taints: Iterable[Taint] | None,
    tolerations: Collection[Toleration] | None,
    effects: Collection[str] = FILTER_EFFECTS,
    *,
    comparison: bool = False,
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers, or None."""
    for taint in taints or ():
        if taint.effect in effects and not tolerated(taint, tolerations, comparison=comparison):
            return taint
    return None


def count_untolerated_soft(
    taints: Iterable[Taint] | None, tolerations: Iterable[Toleration] | None, *, comparison: bool = False
) -> int:
    """How many PreferNoSchedule taints no toleration covers: the raw score of TaintToleration."""
    soft = soft_tolerations(tolerations)
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, soft, comparison=comparison)
        for taint in taints or ()
    )


def soft_tolerations(tolerations: Iterable[Toleration] | None) -> tuple[Toleration, ...]:
    """The tolerations that can cover a PreferNoSchedule taint."""
    return tuple(each for each in tolerations or () if each.effect in ("", PREFER_NO_SCHEDULE))


def _canonical_int64(text: str) -> int | None:
    """The number if it is written the one canonical way: no plus sign, leading zeros, spaces or `-0`."""
    number = parse_int64(text)
    return number if number is not None and str(number) == text else None
