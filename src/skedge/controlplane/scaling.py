"""The scale subresource of workloads (`pkg/registry/apps/*/storage/storage.go`)."""

from __future__ import annotations

from typing import Any

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import MODIFIED, bad_request, conflict, invalid, invalid_value, not_found
from skedge.controlplane.negotiate import read_object
from skedge.controlplane.normal import normal
from skedge.controlplane.patching import apply_patch, read_patch
from skedge.controlplane.request import Target, dry_run, field_manager
from skedge.controlplane.selectors import selector_text
from skedge.controlplane.store import Stored
from skedge.controlplane.writing import Body, patch_kind, store_update, unknown_in_patched

JSON = dict[str, Any]

_GVK = "autoscaling/v1/Scale"


def scale_of(stored: Stored) -> JSON:
    """The Scale object of a workload."""
    obj = stored.load()
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec: JSON = {"replicas": obj["spec"]["replicas"]} if obj["spec"].get("replicas") else {}
    status: JSON = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
    text = selector_text(obj["spec"].get("selector"))
    if text:
        status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": spec,
        "status": status,
    }


def get_scale(cluster: Cluster, target: Target) -> JSON:
    return scale_of(_stored(cluster, target))


def _stored(cluster: Cluster, target: Target) -> Stored:
    stored = cluster.collection(target.resource.storage).objects.get(target.key)
    if stored is None:
        raise not_found(target.plural, target.group, target.name)
    return stored


def set_scale(cluster: Cluster, target: Target, body: Body) -> JSON:
    """PUT or PATCH of a scale: changes spec.replicas of the workload. Returns the new Scale."""
    stored = _stored(cluster, target)
    if target.verb == "patch":
        kind = patch_kind(body.content_type)
        wanted = apply_patch("merge" if kind == "apply" else kind, _GVK, scale_of(stored), read_patch(body.data))
        unknown_in_patched(target, wanted, lambda: "", _GVK)
    else:
        wanted = read_object(body.data, body.content_type, "Scale")
    wanted = normal(wanted, _GVK, "Scale", "v1")
    meta = wanted.get("metadata") or {}
    if meta.get("name") != target.name:
        raise bad_request(
            f"the name of the object ({meta.get('name', '')}) does not match the name on the URL ({target.name})"
        )
    if meta.get("resourceVersion") not in (None, "", str(stored.revision)):
        raise conflict(target.plural, target.group, target.name, MODIFIED)
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        errors = [invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")]
        raise invalid("Scale", "autoscaling", target.name, errors)
    obj = stored.load()
    obj["spec"]["replicas"] = replicas
    manager = field_manager(target, body.user_agent)
    done = store_update(cluster, target, stored, obj, manager, dry_run(target), subresource="scale")()
    return scale_of(done)
