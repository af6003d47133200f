"""Deletion: preconditions, grace, finalizers, collections, eviction.

`staging/src/k8s.io/apiserver/pkg/registry/{rest/delete.go,generic/registry/store.go}`,
`pkg/registry/core/pod/storage/eviction.go`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from skedge.controlplane.cluster import Cluster, shifted
from skedge.controlplane.errors import (
    ApiError,
    bad_request,
    conflict,
    invalid,
    not_found,
    success,
    too_many_requests,
    unsupported,
)
from skedge.controlplane.negotiate import read_object
from skedge.controlplane.normal import normal, normal_options
from skedge.controlplane.request import Target, dry_run, flag, integer
from skedge.controlplane.selectors import labels_from_object
from skedge.controlplane.store import Selection, Stored
from skedge.controlplane.strategies.base import Strategy
from skedge.controlplane.strategies.registry import strategy
from skedge.controlplane.writing import Body

JSON = dict[str, Any]

_AT_ONCE = 50  # objects deleted between two breaths of the loop


@dataclass(slots=True)
class Options:
    """DeleteOptions of a request."""

    grace: int | None
    policy: str
    uid: str
    version: str
    rehearsal: bool


def read_options(target: Target, body: Body) -> Options:
    """DeleteOptions from the body, or from the query where there is none."""
    given: JSON = {}
    if body.data.strip():
        given = normal_options(read_object(body.data, body.content_type, "DeleteOptions"))
    return options_of(target, given)


def options_of(target: Target, given: JSON) -> Options:
    """DeleteOptions of an object (an eviction carries them too), completed by the query."""
    grace = given.get("gracePeriodSeconds")
    if grace is None:
        grace = integer(target.query, "gracePeriodSeconds")
    policy = given.get("propagationPolicy") or target.query.get("propagationPolicy") or ""
    orphan = given.get("orphanDependents")
    if orphan is None and "orphanDependents" in target.query:
        orphan = flag(target, "orphanDependents")
    if orphan is not None and not policy:
        policy = "Orphan" if orphan else "Background"
    if policy not in ("", "Background", "Foreground", "Orphan"):
        errors = [unsupported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"])]
        raise invalid("DeleteOptions", "meta.k8s.io", "", errors)
    preconditions = given.get("preconditions") or {}
    rehearsal = dry_run(target) or bool(given.get("dryRun"))
    return Options(grace, policy, preconditions.get("uid") or "", preconditions.get("resourceVersion") or "", rehearsal)


def delete(cluster: Cluster, target: Target, options: Options) -> Stored | JSON:
    """Delete one object. Returns the object where it lives on or its kind says so, else a Status."""
    stored = cluster.collection(target.resource.storage).objects.get(target.key)
    if stored is None:
        raise not_found(target.plural, target.group, target.name)
    _check_namespace(target)
    _preconditions(target, options, stored)
    return remove(cluster, target, stored, options)


def _check_namespace(target: Target) -> None:
    if target.plural == "namespaces" and target.name in ("default", "kube-system", "kube-public"):
        raise ApiError(
            403,
            "Forbidden",
            f'namespaces "{target.name}" is forbidden: this namespace may not be deleted',
            {"name": target.name, "kind": "namespaces"},
        )


def _preconditions(target: Target, options: Options, stored: Stored) -> None:
    kind, group = target.resource.kind, target.group
    if options.uid and options.uid != stored.uid:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({stored.uid}). "
        why += "The object might have been deleted and then recreated"
        raise conflict(kind, group, target.name, why)
    if options.version and options.version != str(stored.revision):
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in record "
        )
        why += f"({stored.revision}). The object might have been modified"
        raise conflict(kind, group, target.name, why)


def remove(cluster: Cluster, target: Target, stored: Stored, options: Options) -> Stored | JSON:
    """Begin or finish the deletion of an object whose preconditions hold."""
    kind = strategy(target.resource.storage)
    collection = cluster.collection(target.resource.storage)
    obj = stored.load()
    meta = obj["metadata"]
    if target.plural == "namespaces":
        return _namespace(cluster, stored, obj, options)
    _propagation(meta, options)
    if kind.graceful:
        pending = _graceful(cluster, obj, kind, options)
        if pending is not None:
            if obj == stored.load():
                return stored
            return collection.build(obj, stored.revision) if options.rehearsal else collection.replace(stored, obj)
    if meta.get("finalizers"):
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = cluster.timestamp()
            meta["deletionGracePeriodSeconds"] = 0
            if meta.get("generation"):
                meta["generation"] += 1
        if obj == stored.load():
            return stored
        return collection.build(obj, stored.revision) if options.rehearsal else collection.replace(stored, obj)
    if options.rehearsal:
        final = collection.build(obj, stored.revision)
    elif kind.graceful and obj != stored.load():
        final = collection.replace(stored, obj)  # watchers see the mark before the end
        collection.remove(final)
    else:
        final = stored
        collection.remove(stored)
    if kind.returns_deleted:
        return final
    details: JSON = {"name": stored.name}
    if target.group:
        details["group"] = target.group
    details.update(kind=target.plural, uid=stored.uid)
    return success(details)


def _namespace(cluster: Cluster, stored: Stored, obj: JSON, options: Options) -> Stored | JSON:
    """A namespace is marked and left to its controller, which empties it and takes its finalizer away."""
    meta = obj["metadata"]
    collection = cluster.collection("namespaces")
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = cluster.timestamp()
    obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    if not obj["spec"].get("finalizers") and not meta.get("finalizers"):
        if not options.rehearsal:
            collection.remove(stored, obj)
        return success({"name": stored.name, "kind": "namespaces", "uid": stored.uid})
    if obj == stored.load():
        return stored
    return collection.build(obj, stored.revision) if options.rehearsal else collection.replace(stored, obj)


def _propagation(meta: JSON, options: Options) -> None:
    """Orphan and Foreground leave a finalizer for the garbage collector."""
    wanted = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}.get(options.policy)
    if not options.policy:
        return
    present = [f for f in meta.get("finalizers") or [] if f not in ("orphan", "foregroundDeletion")]
    if wanted:
        present.append(wanted)
    if present:
        meta["finalizers"] = present
    else:
        meta.pop("finalizers", None)


def _graceful(cluster: Cluster, obj: JSON, kind: Strategy, options: Options) -> bool | None:
    """Mark a pod as dying. None when it can go at once, else whether anything changed."""
    meta = obj["metadata"]
    if "deletionTimestamp" in meta:
        period = meta.get("deletionGracePeriodSeconds", 0)
        if not period:
            return None
        if options.grace is None or options.grace >= period:
            return False
        meta["deletionTimestamp"] = shifted(meta["deletionTimestamp"], options.grace - period)
        meta["deletionGracePeriodSeconds"] = options.grace
        return True if options.grace > 0 else None
    period = kind.grace(obj, options.grace)
    meta["deletionTimestamp"] = shifted(cluster.timestamp(), period)
    meta["deletionGracePeriodSeconds"] = period
    if meta.get("generation"):
        meta["generation"] += 1
    return True if period > 0 else None


async def delete_collection(cluster: Cluster, target: Target, options: Options, chosen: Selection) -> list[Stored]:
    """Delete every selected object, some at a time; returns them as they were."""
    collection = cluster.collection(target.resource.storage)
    found, _ = collection.page(chosen, "", 0, None)
    for i, stored in enumerate(found):
        if i % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)  # others may write
        present = collection.objects.get(stored.key)
        if present is not None and present.uid == stored.uid:
            single = Target("delete", target.resource, stored.namespace, stored.name, None, target.query)
            remove(cluster, single, present, options)
    return found


# --- eviction -------------------------------------------------------------------------------------------------------

_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_BUDGETS = "poddisruptionbudgets.policy"


def evict(cluster: Cluster, target: Target, body: Body) -> JSON:
    """pods/eviction: a deletion that asks the budgets first."""
    eviction = normal(read_object(body.data, body.content_type, "Eviction"), "policy/v1/Eviction", "Eviction", "v1")
    name = (eviction.get("metadata") or {}).get("name", "")
    if name and name != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = options_of(target, eviction.get("deleteOptions") or {})
    stored = cluster.find("pods", target.name, target.namespace)
    if stored is None:
        raise not_found("pods", "", target.name)
    _preconditions(target, options, stored)
    pod = stored.load()
    status, meta = pod["status"], pod["metadata"]
    exempt = status.get("phase") in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in meta
    if not exempt:
        _ask_budgets(cluster, stored, status, options.rehearsal)
    stored = cluster.find("pods", target.name, target.namespace) or stored
    if not options.rehearsal:
        stored = _mark_evicted(cluster, stored)
    remove(cluster, target, stored, options)
    return success(code=201)


def _mark_evicted(cluster: Cluster, stored: Stored) -> Stored:
    """Say why the pod goes away, unless it is going already."""
    pod = stored.load()
    if "deletionTimestamp" in pod["metadata"]:
        return stored
    conditions = [c for c in pod["status"].get("conditions") or [] if c.get("type") != "DisruptionTarget"]
    conditions.append(
        {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": cluster.timestamp(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
    )
    pod["status"]["conditions"] = conditions
    return cluster.collection("pods").replace(stored, pod)


def _ask_budgets(cluster: Cluster, pod: Stored, status: JSON, rehearsal: bool) -> None:
    budgets: list[tuple[Stored, JSON]] = []
    for stored in cluster.collection(_BUDGETS).objects.values():
        if stored.namespace == pod.namespace:
            budget = stored.load()
            selector = labels_from_object(budget["spec"].get("selector"))
            if selector is not None and selector.matches(pod.labels):
                budgets.append((stored, budget))
    if not budgets:
        return
    if len(budgets) > 1:
        raise ApiError(
            500,
            "InternalError",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )
    stored, budget = budgets[0]
    state = budget["status"]
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or [])
    if not ready:
        policy = budget["spec"].get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
        healthy = (
            state.get("currentHealthy", 0) >= state.get("desiredHealthy", 0) and state.get("desiredHealthy", 0) > 0
        )
        if policy == "AlwaysAllow" or healthy:
            return
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        text = f"The disruption budget {stored.name} is still being processed by the server."
        raise too_many_requests(_VIOLATES, 10, [{"reason": "DisruptionBudget", "message": text}])
    if state.get("disruptionsAllowed", 0) <= 0:
        text = f"The disruption budget {stored.name} needs {state.get('desiredHealthy', 0)} healthy pods and has "
        text += f"{state.get('currentHealthy', 0)} currently"
        raise too_many_requests(_VIOLATES, 0, [{"reason": "DisruptionBudget", "message": text}])
    if not rehearsal:
        state["disruptionsAllowed"] -= 1
        state.setdefault("disruptedPods", {})[pod.name] = cluster.timestamp()
        cluster.collection(_BUDGETS).replace(stored, budget)
