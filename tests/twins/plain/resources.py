"""What pods request, whether it fits, how nodes compare by it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from skedge.api import quantity
from twins.plain.objects import CycleFailed, Json, Unclear, quo, round_half_away, wrap

DEFAULTS = {"cpu": "100m", "memory": str(200 * 1024 * 1024)}
_NANO = 10**9
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
Amounts = dict[str, Fraction]


@lru_cache(maxsize=65536)
def amount(text: str) -> Fraction:
    """The exact value: nothing finer than a nano, and binary ones no larger than an int64."""
    number, suffix = re.fullmatch(r"([+-]?[0-9.]+)(.*)", str(text)).groups()  # type: ignore[union-attr]
    exact = Fraction(number if not number.endswith(".") else number + "0")
    if suffix in _BINARY:
        return min(Fraction(math.ceil(exact * _BINARY[suffix] * _NANO), _NANO), Fraction(2**63 - 1))
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return Fraction(math.ceil(exact * Fraction(10) ** power * _NANO), _NANO)


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return {k: amount(str(v)) for k, v in (quantities or {}).items()}


def plus(one: Amounts, two: Amounts) -> Amounts:
    return {k: one.get(k, Fraction(0)) + two.get(k, Fraction(0)) for k in {**one, **two}}


def most(*many: Amounts) -> Amounts:
    return {k: max(each[k] for each in many if k in each) for k in {k for each in many for k in each}}


def is_supported(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _infeasible(pod: Json) -> bool:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodResizePending":
            return condition.get("reason") == "Infeasible"
    return False


def _container(pod: Json, container: Json, statuses: str | None, defaults: Mapping[str, str]) -> Amounts:
    asked = amounts((container.get("resources") or {}).get("requests"))
    if statuses is not None:
        for status in (pod.get("status") or {}).get(statuses) or ():
            if status["name"] == container["name"] and status.get("resources") is not None:
                now = amounts(status["resources"].get("requests"))
                allocated = amounts(status.get("allocatedResources"))
                asked = most(now, allocated) if _infeasible(pod) else most(asked, now, allocated)
    for resource, text in defaults.items():
        asked.setdefault(resource, amount(text))
    return asked


def pod_level_requests(pod: Json) -> Amounts:
    spec = pod["spec"].get("resources") or {}
    return {k: v for k, v in amounts(spec.get("requests")).items() if is_supported(k)}


def requests(pod: Json, *, pod_level: bool, status: bool, defaults: Mapping[str, str] | None = None) -> Amounts:
    """A pod's request; `status`: what the kubelet reports counts too."""
    given = defaults or {}
    total: Amounts = {}
    for container in pod["spec"].get("containers") or ():
        total = plus(total, _container(pod, container, "containerStatuses" if status else None, given))
    sidecars: Amounts = {}
    peaks: list[Amounts] = []
    for container in pod["spec"].get("initContainers") or ():
        stays = container.get("restartPolicy") == "Always"
        asked = _container(pod, container, "initContainerStatuses" if status and stays else None, given)
        if stays:
            sidecars = plus(sidecars, asked)
            total = plus(total, asked)
            peaks.append(sidecars)
        else:
            peaks.append(plus(asked, sidecars))
    total = most(total, *peaks)
    level = pod_level_requests(pod)
    if pod_level and level:
        of_status = (pod.get("status") or {}).get("resources")
        if status and of_status is not None:
            now = amounts(of_status.get("requests"))
            allocated = amounts(pod["status"].get("allocatedResources"))
            level = most(now, allocated) if _infeasible(pod) else most(level, now, allocated)
        total = {**total, **{k: v for k, v in level.items() if is_supported(k)}}
    return plus(total, amounts(pod["spec"].get("overhead")))


def units(resource: str, exact: Fraction) -> int:
    """cpu in milli, all else whole, rounded up."""
    n = math.ceil(exact * (1000 if resource == "cpu" else 1))
    if abs(n) >= 2**63:
        raise Unclear(resource)
    return n


# --- names ------------------------------------------------------------------------------------------------------------


def is_native(resource: str) -> bool:
    return "/" not in resource or "kubernetes.io/" in resource


def is_extended(resource: str) -> bool:
    if is_native(resource) or resource.startswith("requests."):
        return False
    prefix, _, rest = resource.partition("/")
    label = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    return (
        re.fullmatch(rf"{label}(\.{label})*", "requests." + prefix) is not None
        and re.fullmatch(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", rest) is not None
        and len(rest) <= 63
    )


def is_scalar(resource: str) -> bool:
    prefixed = "/" in resource and "kubernetes.io/" in resource
    return is_extended(resource) or prefixed or resource.startswith(("hugepages-", "attachable-volumes-"))


def is_tracked(resource: str) -> bool:
    return resource in ("cpu", "memory", "ephemeral-storage") or is_scalar(resource)


def tracked(found: Amounts) -> dict[str, int]:
    return {k: units(k, v) for k, v in found.items() if is_tracked(k)}


def allocatable(node: Json) -> dict[str, int]:
    given = (node.get("status") or {}).get("allocatable") or {}
    return {
        k: quantity.milli_value(v) if k == "cpu" else quantity.value(v)
        for k, v in given.items()
        if is_tracked(k) or k == "pods"
    }


def used(pods: Iterable[Json]) -> dict[str, int]:
    total: dict[str, int] = {}
    for pod in pods:
        for k, v in tracked(requests(pod, pod_level=True, status=True)).items():
            total[k] = wrap(total.get(k, 0) + v)
    return total


def nonzero_used(pods: Iterable[Json]) -> dict[str, int]:
    """cpu and memory, as if every container asked for some."""
    total = {"cpu": 0, "memory": 0}
    for pod in pods:
        plain = requests(pod, pod_level=True, status=True)
        missing = {k: v for k, v in DEFAULTS.items() if not pod_level_requests(pod) or k not in plain}
        found = requests(pod, pod_level=True, status=True, defaults=missing)
        for k in total:
            total[k] = wrap(total[k] + units(k, found.get(k, Fraction(0))))
    return total


# --- NodeResourcesFit -------------------------------------------------------------------------------------------------


def fit(pod: Json, node: Json, there: Sequence[Json], args: Json) -> tuple[str, list[str]] | None:
    """(code, reasons), or None where it fits."""
    offered, taken = allocatable(node), used(there)
    wanted = tracked(requests(pod, pod_level=True, status=False))
    reasons, hopeless = [], False
    if len(there) + 1 > offered.get("pods", 0):
        reasons.append("Too many pods")
    plain = ("cpu", "memory", "ephemeral-storage")
    for resource in (*plain, *(k for k in wanted if k not in plain)):
        n = wanted.get(resource, 0)
        if n == 0 or (resource in plain and n < 0):
            continue
        if is_extended(resource) and (
            resource in (args.get("ignoredResources") or ())
            or resource.split("/")[0] in (args.get("ignoredResourceGroups") or ())
        ):
            continue
        if n > wrap(offered.get(resource, 0) - taken.get(resource, 0)):
            reasons.append(f"Insufficient {resource}")
            hopeless = hopeless or n > offered.get(resource, 0)
    if not reasons:
        return None
    return "UnschedulableAndUnresolvable" if hopeless else "Unschedulable", reasons


def broken_line(shape: Sequence[tuple[int, int]], at: int) -> int:
    for i, (x, y) in enumerate(shape):
        if at <= x:
            if i == 0:
                return y
            x0, y0 = shape[i - 1]
            return y0 + quo((y - y0) * (at - x0), x - x0)
    return shape[-1][1]


def fit_score(pod: Json, node: Json, there: Sequence[Json], args: Json) -> int:
    strategy = args.get("scoringStrategy") or {}
    kind = strategy.get("type") or "LeastAllocated"
    listed = strategy.get("resources") or [{"name": "cpu"}, {"name": "memory"}]
    wanted = requests(pod, pod_level=False, status=False, defaults=DEFAULTS)
    offered, taken, nonzero = allocatable(node), used(there), nonzero_used(there)
    total = weights = 0
    for each in listed:
        resource, weight = each["name"], each.get("weight") or 1
        n = units(resource, wanted.get(resource, Fraction(0)))
        if n == 0 and is_scalar(resource):
            continue
        room = offered.get(resource, 0) if is_tracked(resource) else 0
        if room == 0:
            continue
        asked = wrap(nonzero.get(resource, taken.get(resource, 0)) + n)
        if kind == "LeastAllocated":
            score = 0 if asked > room else quo(wrap(wrap(room - asked) * 100), room)
        elif kind == "MostAllocated":
            score = quo(wrap(min(asked, room) * 100), room)
        else:
            shape = [
                (p.get("utilization", 0), p.get("score", 0) * 10) for p in strategy["requestedToCapacityRatio"]["shape"]
            ]
            score = broken_line(shape, 100 if asked > room else quo(wrap(asked * 100), room))
            if score <= 0:
                continue
        total = wrap(total + wrap(score * weight))
        weights += weight
    if weights == 0:
        return 0
    return round_half_away(total / weights) if kind == "RequestedToCapacityRatio" else quo(total, weights)


# --- NodeResourcesBalancedAllocation ----------------------------------------------------------------------------------


def _balanced_wish(pod: Json, args: Json) -> list[tuple[str, int]]:
    listed = [each["name"] for each in args.get("resources") or [{"name": "cpu"}, {"name": "memory"}]]
    found = requests(pod, pod_level=True, status=True)
    return [(resource, units(resource, found.get(resource, Fraction(0)))) for resource in listed]


def balanced_skips(pod: Json, args: Json) -> bool:
    return all(n == 0 for _, n in _balanced_wish(pod, args))


def _evenness(fractions: Sequence[float]) -> int:
    std = 0.0
    if len(fractions) == 2:
        std = abs(fractions[0] - fractions[1]) / 2
    elif len(fractions) > 2:
        total = 0.0
        for f in fractions:
            total += f
        mean = total / len(fractions)
        squares = 0.0
        for f in fractions:
            squares += (f - mean) * (f - mean)
        std = math.sqrt(squares / len(fractions))
    return int((1 - std) * 100.0)


def balanced_score(pod: Json, node: Json, there: Sequence[Json], args: Json) -> int:
    offered, taken = allocatable(node), used(there)
    before, after = [], []
    for resource, n in _balanced_wish(pod, args):
        room = offered.get(resource, 0) if is_tracked(resource) else 0
        if (n == 0 and is_scalar(resource)) or room == 0:
            continue
        before.append(min(float(taken.get(resource, 0)) / float(room), 1.0))
        after.append(min(float(wrap(taken.get(resource, 0) + n)) / float(room), 1.0))
    return 50 + quo(50 + _evenness(after) - _evenness(before), 2)


def checked(plugin: str, score: int) -> int:
    if not 0 <= score <= 100:
        raise CycleFailed(f"plugin {plugin} returns an invalid score {score}")
    return score
