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
from skedge.controlplane.usage import pod_total

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
        _limit(cluster, resource, namespace, obj)
        _prioritize(cluster, obj)
        _tolerate(obj["spec"])
        _label_topology(cluster, obj)
    elif resource.storage == "persistentvolumeclaims":
        _limit(cluster, resource, namespace, obj)


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


def _limit(cluster: Cluster, resource: Resource, namespace: str, obj: JSON) -> None:
    """Give a pod what limit ranges of its namespace have for it, and refuse a pod or claim that they do not allow."""
    is_pod = resource.storage == "pods"
    ranges = list(cluster.collection("limitranges").objects.values())  # maybe beside the loop, where others write
    items = [stored.load().get("spec", {}).get("limits") or [] for stored in ranges if stored.namespace == namespace]
    if is_pod:
        for limits in items:
            _fill_limits(obj, [item for item in limits if item.get("type") == "Container"])
    problems_of = _pod_problems if is_pod else _claim_problems
    problems = [problem for limits in items for item in limits for problem in problems_of(obj["spec"], item)]
    if problems:
        why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise forbidden(resource.plural, resource.group, obj["metadata"].get("name", ""), why)


def _fill_limits(obj: JSON, items: list[JSON]) -> None:
    """Give containers the defaults of a limit range, and leave word of it."""
    told: list[str] = []
    for key, called in (("containers", "container"), ("initContainers", "init container")):
        for container in obj["spec"].get(key) or ():
            resources = container.setdefault("resources", {})
            for kind, source, what in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
                given = {name: value for item in items for name, value in (item.get(source) or {}).items()}
                new = sorted(given.keys() - (resources.get(kind) or {}).keys())
                if new:
                    resources[kind] = {**(resources.get(kind) or {}), **{name: given[name] for name in new}}
                    told.append(f"{', '.join(new)} {what} for {called} {container.get('name', '')}")
    if told:
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations["kubernetes.io/limit-ranger"] = f"LimitRanger plugin set: {'; '.join(told)}"


def _pod_problems(spec: JSON, item: JSON) -> list[str]:
    """What an item of a limit range has against a pod."""
    if item.get("type") == "Container":
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        return [problem for each in containers for problem in _exceeded(each.get("resources") or {}, item)]
    if item.get("type") == "Pod":
        return _exceeded({kind: _total(spec, kind) for kind in ("requests", "limits")}, item)
    return []


def _total(spec: JSON, kind: str) -> dict[str, str]:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    written = {  # the first who asks says how a sum is written
        name: text
        for each in reversed(containers)
        for name, text in ((each.get("resources") or {}).get(kind) or {}).items()
    }
    return {name: format_quantity(amount, written.get(name, "")) for name, amount in pod_total(spec, kind).items()}


def _claim_problems(spec: JSON, item: JSON) -> list[str]:
    """What an item of a limit range has against a claim: its limits are no user's, so the most is asked of requests."""
    if item.get("type") != "PersistentVolumeClaim":
        return []
    requests = (spec.get("resources") or {}).get("requests") or {}
    problems = _exceeded({"requests": requests}, {"type": item["type"], "min": item.get("min")})
    for name, most in (item.get("max") or {}).items():
        usage = f"maximum {name} usage per PersistentVolumeClaim is {most}"
        if name not in requests:
            problems.append(f"{usage}.  No request is specified")
        elif quantity(requests[name]) > quantity(most):
            problems.append(f"{usage}, but request is {requests[name]}")
    return problems


def _exceeded(resources: JSON, item: JSON) -> list[str]:
    """Where requests and limits are outside of an item of a limit range."""
    problems: list[str] = []
    of = item["type"]
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, least in (item.get("min") or {}).items():
        usage, asked, limit = f"minimum {name} usage per {of} is {least}", requests.get(name), limits.get(name)
        if asked is None:
            problems.append(f"{usage}.  No request is specified")
        elif quantity(asked) < quantity(least):
            problems.append(f"{usage}, but request is {asked}")
        elif limit is not None and quantity(limit) < quantity(least):
            problems.append(f"{usage}, but limit is {limit}")
    for name, most in (item.get("max") or {}).items():
        usage, asked, limit = f"maximum {name} usage per {of} is {most}", requests.get(name), limits.get(name)
        if limit is None:
            problems.append(f"{usage}.  No limit is specified")
        elif quantity(limit) > quantity(most):
            problems.append(f"{usage}, but limit is {limit}")
        elif asked is not None and quantity(asked) > quantity(most):
            problems.append(f"{usage}, but request is {asked}")
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        usage = f"{name} max limit to request ratio per {of} is {ratio}"
        asked, limit = quantity(requests.get(name, "0")), quantity(limits.get(name, "0"))
        if not asked:
            problems.append(f"{usage}, but no request is specified or request is 0")
        elif not limit:
            problems.append(f"{usage}, but no limit is specified or limit is 0")
        elif limit / asked > quantity(ratio):
            problems.append(f"{usage}, but provided ratio is {float(limit / asked):.6f}")
    return problems
