"""What a provisioner makes for a claim: the manifest of a volume. Upstream: `sig-storage-lib-external-provisioner`.

A storage class with the parameter `topology: zone` (or `hostname`) gets volumes that only nodes of one zone (or one
node) reach; so does any class whose claims wait for their first consumer, unless it says `topology: none`.
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane.controllers.kinds import CLAIM, VOLUME
from skedge.controlplane.controllers.objects import Node

JSON = dict[str, Any]

PROVISIONER = "skedge.io/fake"
_KEYS = {"zone": "topology.kubernetes.io/zone", "hostname": "kubernetes.io/hostname"}


def new_volume(claim: JSON, storage_class: JSON, node: Node | None) -> JSON:
    """The volume for a claim; `node` is the one its first consumer was placed on, if the class waits for one."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    volume: JSON = {
        "accessModes": spec["accessModes"],
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "claimRef": {
            "kind": CLAIM.name,
            "apiVersion": CLAIM.api_version,
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": spec.get("volumeMode", "Filesystem"),
    }
    if storage_class.get("mountOptions"):
        volume["mountOptions"] = storage_class["mountOptions"]
    terms = _terms(storage_class, node)
    if terms:
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    annotations = {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]}
    return {
        "apiVersion": VOLUME.api_version,
        "kind": VOLUME.name,
        "metadata": {"name": name, "annotations": annotations},
        "spec": volume,
    }


def _terms(storage_class: JSON, node: Node | None) -> list[JSON]:
    """Where the volume can be reached from."""
    kind = (storage_class.get("parameters") or {}).get("topology", "zone" if node is not None else "none")
    key = _KEYS.get(kind)
    labels = (node.metadata.labels or {}) if node is not None else {}
    if key is not None and key in labels:
        return [{"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]}]}]
    allowed = []
    for term in storage_class.get("allowedTopologies") or ():
        wanted = [
            {"key": each["key"], "operator": "In", "values": each["values"]}
            for each in term.get("matchLabelExpressions") or ()
        ]
        if wanted:
            allowed.append({"matchExpressions": wanted})
    return allowed
