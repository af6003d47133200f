"""What objects count for in quotas, and sums of it by namespace.

Pods are charged for their requests and limits, claims for storage, services for ports, resource claims for devices, and
everything by number. The sums are kept up to date from the history of writes, so that a new pod costs the same whether
it is the tenth or the ten thousandth.
`pkg/quota/v1/evaluator/core`, `staging/src/k8s.io/component-helpers/resource/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from skedge.controlplane.quantities import value as quantity
from skedge.controlplane.store import DELETED, Collection, Compacted, Stored
from skedge.controlplane.strategies.podspec import quality_of_service

JSON = dict[str, Any]
Amounts = dict[str, Fraction]

_SHORT = ("cpu", "memory", "ephemeral-storage")  # these stand for requests without a prefix, and for limits
_ONE = Fraction(1)
COUNTED_BY_NAME = (
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
)
"""Core resources that quotas count by their mere names."""
_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_ALL_DEVICES = 32  # the most that a request for all devices can be given
POD, CLAIM, SERVICE, RESOURCE_CLAIM = (
    "pods",
    "persistentvolumeclaims",
    "services",
    "resourceclaims.resource.k8s.io",
)


class Facts(NamedTuple):
    """What the scopes of a quota ask of a pod."""

    ends: bool  # has a deadline
    best_effort: bool
    priority_class: str
    crosses_namespaces: bool


class _Counted(NamedTuple):
    facts: Facts | None
    amounts: Amounts


# --- what a pod counts for ------------------------------------------------------------------------------------------


def facts_of(spec: JSON) -> Facts:
    """The facts of a pod by its spec."""
    return Facts(
        spec.get("activeDeadlineSeconds") is not None,
        quality_of_service(spec) == "BestEffort",
        spec.get("priorityClassName") or "",
        any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in _affinity_terms(spec)),
    )


def _affinity_terms(spec: JSON) -> Iterable[JSON]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def pod_usage(spec: JSON, phase: str = "") -> Amounts:
    """What a pod counts for, under the names quotas use."""
    usage: Amounts = {"count/pods": _ONE}
    if phase in ("Succeeded", "Failed"):
        return usage
    usage["pods"] = _ONE
    for name, amount in pod_total(spec, "requests").items():
        usage[f"requests.{name}"] = amount
        if name in _SHORT or name.startswith("hugepages-"):
            usage[name] = amount
    usage |= {f"limits.{name}": amount for name, amount in pod_total(spec, "limits").items() if name in _SHORT}
    return usage


def pod_total(spec: JSON, kind: str) -> Amounts:
    """Requests or limits of a pod: containers and sidecars together, or the largest step of the start-up."""
    totals: Amounts = {}
    for container in spec.get("containers") or ():
        add(totals, _asked(container, kind))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _asked(container, kind)
        if container.get("restartPolicy") == "Always":
            add(totals, asked)
            add(sidecars, asked)
            step = dict(sidecars)
        else:
            step = dict(sidecars)
            add(step, asked)
        for name, amount in step.items():
            largest[name] = max(largest.get(name, amount), amount)
    for name, amount in largest.items():
        totals[name] = max(totals.get(name, amount), amount)
    totals |= _asked(spec, kind)  # what is given for the whole pod
    for name, text in (spec.get("overhead") or {}).items():
        if kind == "requests" or name in totals:
            totals[name] = totals.get(name, Fraction(0)) + quantity(text)
    return totals


def _asked(holder: JSON, kind: str) -> Amounts:
    return {name: quantity(text) for name, text in ((holder.get("resources") or {}).get(kind) or {}).items()}


def add(totals: Amounts, amounts: Amounts, sign: int = 1) -> None:
    """Add amounts to totals."""
    for name, amount in amounts.items():
        totals[name] = totals.get(name, Fraction(0)) + sign * amount


def _of_pod(pod: JSON) -> Amounts:
    return pod_usage(pod["spec"], (pod.get("status") or {}).get("phase", ""))


def _of_claim(claim: JSON) -> Amounts:
    spec, allocated = claim["spec"], (claim.get("status") or {}).get("allocatedResources") or {}
    asked = {**((spec.get("resources") or {}).get("requests") or {})}
    storage = max(quantity(asked.get("storage", "0")), quantity(allocated.get("storage", "0")))
    amounts: Amounts = {"count/persistentvolumeclaims": _ONE, CLAIM: _ONE, "requests.storage": storage}
    name = spec.get("storageClassName")
    if name:
        amounts[f"{name}{_OF_STORAGE_CLASS}{CLAIM}"] = _ONE
        amounts[f"{name}{_OF_STORAGE_CLASS}requests.storage"] = storage
    return amounts


def _of_service(service: JSON) -> Amounts:
    spec = service["spec"]
    amounts: Amounts = {"count/services": _ONE, SERVICE: _ONE}
    kind, ports = spec.get("type"), Fraction(len(spec.get("ports") or ()))
    if kind == "LoadBalancer":
        amounts["services.loadbalancers"] = _ONE
    if kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False):
        amounts["services.nodeports"] = ports
    return amounts


def _of_resource_claim(claim: JSON) -> Amounts:
    amounts: Amounts = {f"count/{RESOURCE_CLAIM}": _ONE}
    for request in ((claim["spec"].get("devices") or {}).get("requests")) or ():
        largest: Amounts = {}
        for each in [request.get("exactly") or {}, *(request.get("firstAvailable") or ())]:
            if name := each.get("deviceClassName"):
                count = _ALL_DEVICES if each.get("allocationMode") == "All" else each.get("count", 1)
                largest[name] = max(largest.get(name, Fraction(0)), Fraction(count))
        add(amounts, {f"{name}{_OF_DEVICE_CLASS}": count for name, count in largest.items()})
    return amounts


MEASURES: dict[str, Callable[[JSON], Amounts]] = {
    POD: _of_pod,
    CLAIM: _of_claim,
    SERVICE: _of_service,
    RESOURCE_CLAIM: _of_resource_claim,
}
"""What an object counts for, under the names quotas use, where it is more than one of its kind."""


def counted_by(name: str) -> str:
    """The resource (`deployments.apps`) whose objects a name in a quota is about; "" where that is nothing known."""
    if name.startswith("count/"):
        return name.removeprefix("count/")
    if name in COUNTED_BY_NAME:
        return name
    if name == "requests.storage" or name.endswith((f"{_OF_STORAGE_CLASS}requests.storage", _OF_STORAGE_CLASS + CLAIM)):
        return CLAIM
    if name in ("services.loadbalancers", "services.nodeports"):
        return SERVICE
    if name.endswith(_OF_DEVICE_CLASS):
        return RESOURCE_CLAIM
    kind, _, plain = name.rpartition(".")
    if name == "pods" or name in _SHORT or name.startswith("hugepages-") or (kind == "limits" and plain in _SHORT):
        return POD
    return POD if name.startswith("requests.") else ""


# --- which pods a quota is about ------------------------------------------------------------------------------------


def is_scoped(quota: JSON) -> bool:
    """Whether a quota is about some pods only, and nothing else."""
    spec = quota.get("spec") or {}
    return bool(spec.get("scopes") or (spec.get("scopeSelector") or {}).get("matchExpressions"))


def in_scope(quota: JSON, facts: Facts | None) -> bool:
    """Whether a quota is about a pod of these facts, or about an object that has none."""
    if facts is None:
        return not is_scoped(quota)
    spec = quota.get("spec") or {}
    terms: list[tuple[str, str, list[str]]] = [(scope, "Exists", []) for scope in spec.get("scopes") or ()]
    terms += [
        (each.get("scopeName", ""), each.get("operator", ""), each.get("values") or [])
        for each in (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    ]
    return all(_satisfied(facts, *term) for term in terms)


def _satisfied(facts: Facts, scope: str, operator: str, values: list[str]) -> bool:
    if scope == "PriorityClass":
        found = facts.priority_class
        match operator:
            case "In":
                return found in values
            case "NotIn":
                return found not in values
            case "DoesNotExist":
                return not found
        return bool(found)
    return {
        "Terminating": facts.ends,
        "NotTerminating": not facts.ends,
        "BestEffort": facts.best_effort,
        "NotBestEffort": not facts.best_effort,
        "CrossNamespacePodAffinity": facts.crosses_namespaces,
    }.get(scope, False)


def measured(storage: str, obj: JSON) -> tuple[Facts | None, Amounts]:
    """What scopes ask of an object, if anything, and what it counts for."""
    return (facts_of(obj["spec"]) if storage == POD else None), MEASURES[storage](obj)


class Usage:
    """Sums over the objects of namespaces: at first from all of a kind, then by what was written since."""

    def __init__(self, objects: Collection) -> None:
        self._objects = objects
        self._revision = 0
        self._sums: dict[str, dict[Facts | None, Amounts]] = {}
        self._counted: dict[str, _Counted] = {}

    def of(self, namespace: str, quota: JSON) -> Amounts:
        """What the objects of a namespace that a quota is about count for together."""
        self._catch_up()
        if namespace not in self._sums:
            self._sums[namespace] = {}
            for stored in self._objects.objects.values():
                if stored.namespace == namespace:
                    self._count(stored)
        total: Amounts = {}
        for facts, amounts in self._sums[namespace].items():
            if in_scope(quota, facts):
                add(total, amounts)
        return total

    def _catch_up(self) -> None:
        try:
            changes = self._objects.since(self._revision) if self._sums else []
        except Compacted:
            changes = []
            self._sums.clear()
            self._counted.clear()
        for change in changes:
            if change.current.namespace in self._sums:
                self._discount(change.current.key)
                if change.type != DELETED:
                    self._count(change.current)
        self._revision = self._objects.revision

    def _count(self, stored: Stored) -> None:
        counted = _Counted(*measured(self._objects.storage, stored.load()))
        self._counted[stored.key] = counted
        add(self._sums[stored.namespace].setdefault(counted.facts, {}), counted.amounts)

    def _discount(self, key: str) -> None:
        counted = self._counted.pop(key, None)
        if counted is not None:
            add(self._sums[key.partition("/")[0]][counted.facts], counted.amounts, -1)
