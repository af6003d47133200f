"""Admission of quotas: a new object must fit into those of its namespace, and is charged to them.

`plugin/pkg/admission/resourcequota/controller.go`; what pods count for stands in usage.py.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import ApiError, forbidden
from skedge.controlplane.kinds import Resource
from skedge.controlplane.quantities import format_quantity
from skedge.controlplane.quantities import value as quantity
from skedge.controlplane.store import Stored
from skedge.controlplane.usage import COUNTED_BY_NAME, Amounts, counted_by, facts_of, in_scope, is_scoped, pod_usage

JSON = dict[str, Any]

_MUST_ASK = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
_ONE = Fraction(1)


def admit(cluster: Cluster, resource: Resource, namespace: str, obj: JSON, rehearsal: bool) -> None:
    """Refuse a new object that would exceed a quota of its namespace; else charge it."""
    quotas = cluster.collection("resourcequotas")
    if not quotas.objects:
        return
    is_pod = resource.storage == "pods"
    asked = {**(pod_usage(obj["spec"]) if is_pod else {}), **dict.fromkeys(count_names(resource), _ONE)}
    facts = facts_of(obj["spec"]) if is_pod else None

    def refused(quota: JSON, why: str) -> ApiError:
        name = quota["metadata"]["name"]
        return forbidden(resource.plural, resource.group, obj["metadata"].get("name", ""), why.format(name))

    charged: list[tuple[Stored, JSON]] = []
    for stored in [each for each in quotas.objects.values() if each.namespace == namespace]:
        quota = stored.load()
        hard: dict[str, str] = (quota.get("spec") or {}).get("hard") or {}
        if not (hard.keys() & asked.keys() or (is_pod and hard.keys() & set(_MUST_ASK))):
            continue
        if not in_scope(quota, facts) if facts is not None else is_scoped(quota):
            continue
        if is_pod and (missing := _missing(obj["spec"], hard)):
            raise refused(quota, f"failed quota: {{}}: must specify {missing}")
        used = _used(cluster, namespace, quota, hard, resource if not is_pod else None)
        over = sorted(
            name
            for name, limit in hard.items()
            if asked.get(name) and used.get(name, Fraction(0)) + asked[name] > quantity(limit)
        )
        if over:
            requested, present = _listed(over, asked), _listed(over, used)
            limited = ",".join(f"{name}={hard[name]}" for name in over)
            raise refused(quota, f"exceeded quota: {{}}, requested: {requested}, used: {present}, limited: {limited}")
        now = {
            name: used.get(name, Fraction(0)) + asked.get(name, Fraction(0)) for name in hard if counted_by(name) != ""
        }
        status = {"hard": hard, "used": {name: format_quantity(amount) for name, amount in now.items()}}
        if quota.get("status") != status:
            charged.append((stored, {**quota, "status": status}))
    if not rehearsal:
        for stored, quota in charged:
            quotas.replace(stored, quota)


def _used(cluster: Cluster, namespace: str, quota: JSON, hard: JSON, resource: Resource | None) -> Amounts:
    """What is used of a quota; the numbers of kinds other than the one at hand are taken from its status."""
    used = {name: quantity(text) for name, text in ((quota.get("status") or {}).get("used") or {}).items()}
    if resource is None:
        sums = cluster.pod_usage.of(namespace, quota)
        used |= {name: sums.get(name, Fraction(0)) for name in hard if counted_by(name) is None}
    else:
        objects = cluster.collection(resource.storage).objects.values()
        count = Fraction(sum(1 for each in objects if each.namespace == namespace))
        used |= dict.fromkeys(count_names(resource), count)
    return used


def count_names(resource: Resource) -> list[str]:
    """The names under which a quota counts objects of a resource."""
    names = [f"count/{resource.qualified}"]
    if not resource.group and resource.plural in COUNTED_BY_NAME:
        names.append(resource.plural)
    return names


def _listed(names: list[str], amounts: Amounts) -> str:
    return ",".join(f"{name}={format_quantity(amounts.get(name, Fraction(0)))}" for name in names)


def _missing(spec: JSON, hard: JSON) -> str:
    """What containers must ask for where a quota limits it, and which of them do not."""
    without: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        for name in _MUST_ASK:
            kind, _, plain = name.rpartition(".")
            if name in hard and plain not in (resources.get(kind or "requests") or {}):
                without.setdefault(name, set()).add(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(who))}" for name, who in sorted(without.items()))
