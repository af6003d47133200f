"""Admission: what other objects have to say about a new one.

Namespace lifecycle, protection of storage in use, priority, default tolerations, limit ranges, topology labels
(`plugin/pkg/admission/{priority,defaulttolerationseconds,limitranger,podtopologylabels}`,
`plugin/pkg/admission/storage/storageobjectinuseprotection`,
`staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`).
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane.binding import TOPOLOGY_LABELS
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import ApiError, forbidden, not_found
from skedge.controlplane.kinds import Resource
from skedge.controlplane.quantities import format_quantity
from skedge.controlplane.quantities import value as quantity

JSON = dict[str, Any]

_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_PROTECTED = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_create(cluster: Cluster, resource: Resource, namespace: str, obj: JSON) -> None:
    """Let the plugins change a new object, or refuse it."""
    if namespace:
        _namespace_open(cluster, resource, namespace, obj)
    _protect(resource, obj["metadata"])
    if resource.storage == "pods":
        _limit(cluster, namespace, obj)
        _prioritize(cluster, obj)
        _tolerate(obj["spec"])
        _label_topology(cluster, obj)


def _namespace_open(cluster: Cluster, resource: Resource, namespace: str, obj: JSON) -> None:
    stored = cluster.find("namespaces", namespace)
    if stored is None:
        raise not_found("namespaces", "", namespace)
    if stored.fields[0] != "Terminating":
        return
    name = obj["metadata"].get("name", "")
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(resource.plural, resource.group, name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    if error.details is not None:
        error.details["causes"] = [cause]
    raise error


def _protect(resource: Resource, meta: JSON) -> None:
    finalizer = _PROTECTED.get(resource.storage)
    if finalizer is not None and finalizer not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), finalizer]


def _pod_forbidden(obj: JSON, why: str) -> ApiError:
    return forbidden("pods", "", obj["metadata"].get("name", ""), why)


def _prioritize(cluster: Cluster, obj: JSON) -> None:
    spec = obj["spec"]
    name = spec.get("priorityClassName", "")
    value, policy = 0, "PreemptLowerPriority"
    if name:
        stored = cluster.find(_PRIORITY_CLASSES, name)
        if stored is None:
            raise _pod_forbidden(obj, f"no PriorityClass with name {name} was found")
        found = stored.load()
    else:
        found = _global_default(cluster)
        if found:
            spec["priorityClassName"] = found["metadata"]["name"]
    if found:
        value, policy = found.get("value", 0), found.get("preemptionPolicy", policy)
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        raise _pod_forbidden(
            obj, why + f"priority admission controller computed {value} from the given PriorityClass name"
        )
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        why = f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
        raise _pod_forbidden(
            obj, why + f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _global_default(cluster: Cluster) -> JSON:
    found: JSON = {}
    for stored in list(cluster.collection(_PRIORITY_CLASSES).objects.values()):
        if b'"globalDefault":true' in stored.raw:
            candidate = stored.load()
            if candidate.get("globalDefault") and (not found or candidate.get("value", 0) < found.get("value", 0)):
                found = candidate
    return found


def _tolerate(spec: JSON) -> None:
    tolerations = spec.get("tolerations") or []
    missing = [
        key
        for key in _TOLERATED
        if not any(t.get("key", "") in (key, "") and t.get("effect", "") in ("NoExecute", "") for t in tolerations)
    ]
    if missing:
        spec["tolerations"] = tolerations + [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in missing
        ]


def _label_topology(cluster: Cluster, obj: JSON) -> None:
    node = cluster.find("nodes", obj["spec"].get("nodeName") or "")
    if node is not None:
        for key in TOPOLOGY_LABELS:
            if key in node.labels:
                obj["metadata"].setdefault("labels", {})[key] = node.labels[key]


# --- limit ranges ---------------------------------------------------------------------------------------------------


def _limit(cluster: Cluster, namespace: str, obj: JSON) -> None:
    ranges = cluster.collection("limitranges").objects
    if not ranges:
        return
    items = [
        item
        for stored in list(ranges.values())  # this may run beside the loop, where others write
        if stored.namespace == namespace
        for item in stored.load().get("spec", {}).get("limits") or ()
    ]
    spec = obj["spec"]
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    for item in items:
        if item.get("type") == "Container":
            for container in containers:
                _fill_limits(container, item)
    problems: list[str] = []
    for item in items:
        if item.get("type") == "Container":
            for container in containers:
                problems += _exceeded(container.get("resources") or {}, item, "Container")
        elif item.get("type") == "Pod":
            problems += _exceeded(_totals(spec), item, "Pod")
    if problems:
        raise _pod_forbidden(obj, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _fill_limits(container: JSON, item: JSON) -> None:
    resources = container.setdefault("resources", {})
    for kind, source in (("limits", "default"), ("requests", "defaultRequest")):
        for name, value in (item.get(source) or {}).items():
            resources.setdefault(kind, {}).setdefault(name, value)


def _totals(spec: JSON) -> JSON:
    out: JSON = {"limits": {}, "requests": {}}
    for kind, sums in out.items():
        for container in spec.get("containers") or ():
            for name, text in ((container.get("resources") or {}).get(kind) or {}).items():
                sums[name] = format_quantity(quantity(sums.get(name, "0")) + quantity(text))
    return out


def _exceeded(resources: JSON, item: JSON, of: str) -> list[str]:
    problems: list[str] = []
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, least in (item.get("min") or {}).items():
        asked = requests.get(name)
        if asked is None:
            problems.append(f"minimum {name} usage per {of} is {least}.  No request is specified")
        elif quantity(asked) < quantity(least):
            problems.append(f"minimum {name} usage per {of} is {least}, but request is {asked}")
    for name, most in (item.get("max") or {}).items():
        limit = limits.get(name)
        if limit is None:
            problems.append(f"maximum {name} usage per {of} is {most}.  No limit is specified")
        elif quantity(limit) > quantity(most):
            problems.append(f"maximum {name} usage per {of} is {most}, but limit is {limit}")
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        asked, limit = requests.get(name), limits.get(name)
        if asked and limit and quantity(asked) and quantity(limit) / quantity(asked) > quantity(ratio):
            problems.append(f"{name} max limit to request ratio per {of} is {ratio}, but provided ratio is too high")
    return problems
