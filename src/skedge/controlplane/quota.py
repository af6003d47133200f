"""Admission of quotas: an object must fit into those of its namespace, and is charged to them.

`plugin/pkg/admission/resourcequota/controller.go`; what objects count for stands in usage.py.
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
from skedge.controlplane.usage import (
    CLAIM,
    COUNTED_BY_NAME,
    MEASURES,
    POD,
    SERVICE,
    Amounts,
    add,
    counted_by,
    in_scope,
    measured,
)

JSON = dict[str, Any]

_MUST_ASK = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
_CHARGED_FOR_CHANGES = (CLAIM, SERVICE)
_NONE = Fraction(0)


def admit(
    cluster: Cluster, resource: Resource, namespace: str, obj: JSON, rehearsal: bool, before: JSON | None = None
) -> None:
    """Refuse an object that would exceed a quota of its namespace, else charge what it has more than `before`."""
    quotas = cluster.collection("resourcequotas")
    if not quotas.objects or (before is not None and resource.storage not in _CHARGED_FOR_CHANGES):
        return
    facts, asked = _asked(resource, obj)
    if before is not None:
        add(asked, _asked(resource, before)[1], -1)
        asked = {name: amount for name, amount in asked.items() if amount > 0}
    is_pod = resource.storage == POD

    def refused(quota: JSON, why: str) -> ApiError:
        name = quota["metadata"]["name"]
        return forbidden(resource.plural, resource.group, obj["metadata"].get("name", ""), why.format(name))

    charged: list[tuple[Stored, JSON]] = []
    for stored in [each for each in quotas.objects.values() if each.namespace == namespace]:
        quota = stored.load()
        hard: dict[str, str] = (quota.get("spec") or {}).get("hard") or {}
        if not (hard.keys() & asked.keys() or (is_pod and hard.keys() & set(_MUST_ASK))) or not in_scope(quota, facts):
            continue
        if is_pod and (missing := _missing(obj["spec"], hard)):
            raise refused(quota, f"failed quota: {{}}: must specify {missing}")
        used = _used(cluster, namespace, quota, hard, resource)
        wanted = sorted(name for name in hard if asked.get(name))
        over = [name for name in wanted if used.get(name, _NONE) + asked[name] > quantity(hard[name])]
        if over:
            requested, present = _listed(over, asked, hard), _listed(over, used, hard)
            limited = ",".join(f"{name}={hard[name]}" for name in over)
            raise refused(quota, f"exceeded quota: {{}}, requested: {requested}, used: {present}, limited: {limited}")
        now = {name: used.get(name, _NONE) + asked.get(name, _NONE) for name in hard if counted_by(name)}
        status = {"hard": hard, "used": {name: format_quantity(amount, hard[name]) for name, amount in now.items()}}
        if quota.get("status") != status:
            charged.append((stored, {**quota, "status": status}))
    if not rehearsal:
        for stored, quota in charged:
            quotas.replace(stored, quota)


def _asked(resource: Resource, obj: JSON) -> tuple[Any, Amounts]:
    """What scopes ask of an object, and what it counts for."""
    if resource.storage in MEASURES:
        return measured(resource.storage, obj)
    return None, dict.fromkeys(count_names(resource), Fraction(1))


def _used(cluster: Cluster, namespace: str, quota: JSON, hard: JSON, resource: Resource) -> Amounts:
    """What is used of a quota; the numbers of kinds other than the one at hand are taken from its status."""
    used = {name: quantity(text) for name, text in ((quota.get("status") or {}).get("used") or {}).items()}
    if resource.storage in MEASURES:
        sums = cluster.usage[resource.storage].of(namespace, quota)
        return used | {name: sums.get(name, _NONE) for name in hard if counted_by(name) == resource.storage}
    objects = cluster.collection(resource.storage).objects.values()
    count = Fraction(sum(1 for each in objects if each.namespace == namespace))
    return used | dict.fromkeys(count_names(resource), count)


def count_names(resource: Resource) -> list[str]:
    """The names under which a quota counts objects of a resource."""
    names = [f"count/{resource.qualified}"]
    if not resource.group and resource.plural in COUNTED_BY_NAME:
        names.append(resource.plural)
    return names


def _listed(names: list[str], amounts: Amounts, hard: dict[str, str]) -> str:
    return ",".join(f"{name}={format_quantity(amounts.get(name, _NONE), hard[name])}" for name in names)


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
