"""pods/binding and the legacy bindings collection: the write a scheduler makes for every pod.

`pkg/registry/core/pod/storage/storage.go`, `plugin/pkg/admission/podtopologylabels`. Only the touched levels of the pod
are rebuilt.
"""

from __future__ import annotations

from typing import Any

import msgspec

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import ApiError, bad_request, conflict, internal, not_found
from skedge.controlplane.negotiate import read_object

JSON = dict[str, Any]

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    annotations: dict[str, str] | None = None


class _Target(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""


class _Binding(msgspec.Struct):
    kind: str = "Binding"
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    target: _Target = msgspec.field(default_factory=_Target)


_decoder = msgspec.json.Decoder(_Binding)


def read_binding(body: bytes, content_type: str) -> _Binding:
    """The Binding of a request body. Raises 400 and 415."""
    if content_type == "application/json":
        try:
            return _decoder.decode(body)
        except msgspec.DecodeError:
            pass
    obj = read_object(body, content_type, "Binding")
    try:
        return msgspec.convert(obj, _Binding)
    except msgspec.ValidationError as e:
        raise bad_request(f'Binding in version "v1" cannot be handled as a Binding: json: {e}') from None


def bind(cluster: Cluster, namespace: str, name: str, binding: _Binding, dry_run: bool) -> None:
    """Assign a pod to a node. Raises the refusals of the API server."""
    meta, target = binding.metadata, binding.target
    if name and meta.name and meta.name != name:
        raise bad_request("name in URL does not match name in Binding object")
    if meta.namespace and meta.namespace != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    through_pod = bool(name)  # only the subresource is admitted by the topology label plugin
    name = name or meta.name
    if target.kind not in ("", "Node"):
        raise internal(f'target.kind: Unsupported value: "{target.kind}": supported values: "Node", "<empty>"')
    if not target.name:
        raise internal("target.name: Required value")
    pods = cluster.collection("pods")
    stored = pods.objects.get(f"{namespace}/{name}")
    if stored is None:
        raise not_found("pods", "", name)
    if meta.uid and meta.uid != stored.uid:
        raise uid_conflict("pods", "", f"/registry/pods/{namespace}/{name}", name, meta.uid, stored.uid)
    pod = stored.load()
    spec, status = pod["spec"], pod["status"]
    if "deletionTimestamp" in pod["metadata"]:
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    if dry_run:
        return
    spec["nodeName"] = target.name
    if meta.annotations:
        pod["metadata"].setdefault("annotations", {}).update(meta.annotations)
    node = cluster.collection("nodes").objects.get(target.name) if through_pod else None
    if node is not None:
        for key in TOPOLOGY_LABELS:
            if key in node.labels:
                pod["metadata"].setdefault("labels", {})[key] = node.labels[key]
    status.pop("nominatedNodeName", None)
    _set_scheduled(status, cluster.timestamp())
    pods.replace(stored, pod)


def _set_scheduled(status: JSON, now: str) -> None:
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    conditions: list[JSON] = status.setdefault("conditions", [])
    for i, present in enumerate(conditions):
        if present["type"] == "PodScheduled":
            if present["status"] == "True":
                condition["lastTransitionTime"] = present.get("lastTransitionTime") or now
            conditions[i] = condition
            return
    conditions.append(condition)


def _refused(name: str, why: str) -> ApiError:
    return conflict("pods/binding", "", name, why)


def uid_conflict(resource: str, group: str, key: str, name: str, wanted: str, found: str) -> ApiError:
    """A UID precondition that does not hold, in the storage layer's words."""
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return conflict(resource, group, name, why)
