"""Volumes, claims and what belongs to them, as JSON values, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from skedge.api.core import Pod
from skedge.framework.state import CycleState
from skedge.framework.status import Status
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows
from skedge.testing.builders import make_node, make_pod
from skedge.testing.cases import Cluster

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
EBS, GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"


def claim(
    name: str,
    volume: str = "",
    *,
    bound: bool = True,
    storage_class: str | None = None,
    size: str | None = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: dict[str, str] | None = None,
    **meta: Any,
) -> Json:
    """In namespace default. Bound to `volume` if one is named (`bound=False`: not completely)."""
    notes = dict(annotations or {})
    spec: Json = {"accessModes": list(modes), "resources": {"requests": {"storage": size} if size else {}}}
    if volume:
        spec["volumeName"] = volume
        if bound:
            notes["pv.kubernetes.io/bind-completed"] = "yes"
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": notes or None, **meta}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Bound" if volume and bound else "Pending"}}


def volume(
    name: str,
    *,
    csi: str = "",
    handle: str = "",
    storage_class: str = "",
    size: str = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    affinity: tuple[str, list[str]] | None = None,
    claim_ref: Json | None = None,
    phase: str = "Available",
    labels: dict[str, str] | None = None,
    **source: Any,
) -> Json:
    spec: Json = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "storageClassName": storage_class,
        **source,
    }
    if csi:
        spec["csi"] = {"driver": csi, "volumeHandle": handle or name}
    if affinity is not None:
        expression = {"key": affinity[0], "operator": "In", "values": affinity[1]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if claim_ref is not None:
        spec["claimRef"] = claim_ref
    metadata = {"name": name, "uid": f"uid-{name}", "labels": labels}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def storage_class(name: str, provisioner: str = "csi.example.com", mode: str | None = "WaitForFirstConsumer") -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def csi_node(name: str, migrated: str = "", **limits: int | None) -> Json:
    """`limits`: driver (`__` for `.`) -> highest number, None: none published."""
    drivers = [
        {
            "name": driver.replace("__", "."),
            "nodeID": name,
            **({} if count is None else {"allocatable": {"count": count}}),
        }
        for driver, count in limits.items()
    ]
    annotations = {MIGRATED: migrated} if migrated else None
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}


def attachment(name: str, attacher: str, node: str, volume_name: str | None) -> Json:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume_name}}
    return {"metadata": {"name": name}, "spec": spec}


def capacity(name: str = "c", storage_class: str = "late", topology: Json | None = None, **amounts: str) -> Json:
    return {
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": storage_class,
        "nodeTopology": topology,
        **amounts,
    }


def pod(
    name: str = "p", *volumes: Json, claims: Sequence[str] = (), node: str = "", namespace: str = "default"
) -> Json:
    """A pod with these volume sources and claims."""
    made = make_pod(name, namespace).json
    sources = [*volumes, *({"persistentVolumeClaim": {"claimName": each}} for each in claims)]
    made["spec"]["volumes"] = [{"name": f"v{i}", **source} for i, source in enumerate(sources)]
    if node:
        made["spec"]["nodeName"] = node
    return made


def info(value: Json) -> PodInfo:
    return PodInfo(msgspec.convert(value, Pod))


def cluster(*nodes: str, gates: Any = None, **objects: Sequence[Json]) -> Cluster:
    """Nodes of these names and objects by the names of their lists in recorded cases."""
    made = Cluster(gates=gates)
    for name in nodes:
        made.add("nodes", make_node(name).json)
    for field, values in objects.items():
        for value in values:
            made.add(field, value)
    return made


def plugin_of(made: Cluster, name: str) -> Any:
    return next(p for p in made.profiles["default-scheduler"].plugins if p.name == name)


def pre_filter(made: Cluster, name: str, value: Json) -> Status:
    return plugin_of(made, name).pre_filter(CycleState(), info(value), Rows(made.cache.table))[1]  # type: ignore[no-any-return]


def filtered(made: Cluster, name: str, value: Json) -> dict[str, Status | None]:
    """Node -> why the plugin rejects it, None: it does not. All the same when PreFilter skips the pod."""
    plugin, state, pending = plugin_of(made, name), CycleState(), info(value)
    table = made.cache.table
    view = Rows(table)
    _, status = plugin.pre_filter(state, pending, view)
    assert status.ok or status.skip, status
    codes = [0] * table.size
    if not status.skip:
        found = plugin.filter(state, pending, view)
        codes = [int(found)] * table.size if isinstance(found, int) else found.tolist()
    return {
        table.names[row]: plugin.filter_status(state, pending, code) if code else None for row, code in enumerate(codes)
    }
