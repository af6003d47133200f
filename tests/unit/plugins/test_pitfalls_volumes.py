"""Where people get it wrong, from the specification: by number, input and what has to come out. Volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scenes import Scene, node, pod
from skedge.testing.builders import PodBuilder, make_pod

ZONE = "topology.kubernetes.io/zone"

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
WRONG_ZONE = "node(s) had no available volume zone"
TOO_MANY = "node(s) exceed max volume count"


def claim(
    name: str = "c", volume: str = "", storage_class: str = "late", mode: str = "ReadWriteOnce", **meta: Any
) -> Any:
    spec = {"accessModes": [mode], "storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}}
    bound = {"annotations": BOUND} if volume and "annotations" not in meta else {}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, **bound, **meta},
        "spec": {**spec, "volumeName": volume},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, size: str = "1Gi", labels: Mapping[str, str] | None = None, **spec: Any) -> Any:
    rest = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "capacity": {"storage": size}}
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {**rest, **spec},
        "status": {"phase": "Available"},
    }


def storage_class(name: str = "late", provisioner: str = "d", mode: str = "WaitForFirstConsumer") -> Any:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def using(*claims: str, on: str = "", **more: Any) -> PodBuilder:
    listed = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}} for i, each in enumerate(claims)]
    return pod(on=on, volumes=listed, **more)


def disk(kind: str, *, read_only: bool, on: str = "") -> PodBuilder:
    fields = {
        "awsElasticBlockStore": {"volumeID": "x"},
        "gcePersistentDisk": {"pdName": "x"},
        "iscsi": {"iqn": "x", "targetPortal": "p", "lun": 0},
        "rbd": {"monitors": ["m"], "image": "x", "pool": "p"},
    }[kind]
    return pod(on=on, volumes=[{"name": "v", kind: {**fields, "readOnly": read_only}}])


def csi(name: str) -> Any:
    return volume(name, csi={"driver": "d", "volumeHandle": name})


def csi_node(name: str, count: int) -> Any:
    return {
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": "d", "nodeID": name, "allocatable": {"count": count}}]},
    }


LATE = {"storageClasses": [storage_class()]}
VOLUMES: dict[str, tuple[Scene, PodBuilder, dict[str, str]]] = {
    "110 for one pod in the whole cluster": (
        Scene(
            node("a"),
            node("b"),
            pods=[using("c", on="a")],
            pvcs=[claim(volume="v", mode="ReadWriteOncePod")],
            pvs=[volume("v")],
        ),
        using("c"),
        {"a": IN_USE, "b": IN_USE},
    ),
    "111 used by a pending pod": (
        Scene(node("a"), pods=[using("c")], pvcs=[claim(volume="v", mode="ReadWriteOncePod")], pvs=[volume("v")]),
        using("c"),
        {"a": ""},
    ),
    "113 a volume name without the annotation": (
        Scene(node("a"), pvcs=[claim(volume="v", annotations={})], pvs=[volume("v")], **LATE),
        using("c"),
        {"*": IMMEDIATE},
    ),
    "114 a missing class": (Scene(node("a"), pvcs=[claim(storage_class="gone")]), using("c"), {"*": IMMEDIATE}),
    "115 nobody makes volumes": (
        Scene(node("a"), pvcs=[claim()], storageClasses=[storage_class(provisioner="kubernetes.io/no-provisioner")]),
        using("c"),
        {"a": NO_VOLUME},
    ),
    "116 one matched, one made": (
        Scene(node("a"), pvcs=[claim("c"), claim("e")], pvs=[volume("v")], **LATE),
        using("c", "e"),
        {"a": ""},
    ),
    "117 another node was selected": (
        Scene(
            node("a"),
            node("b"),
            pvcs=[claim(annotations={"volume.kubernetes.io/selected-node": "b"})],
            **LATE,
        ),
        using("c"),
        {"a": NO_VOLUME, "b": ""},
    ),
    "119 a volume that is not available": (
        Scene(
            node("a"),
            pvcs=[claim()],
            pvs=[{**volume("v"), "status": {"phase": "Released"}}],
            storageClasses=[storage_class(provisioner="kubernetes.io/no-provisioner")],
        ),
        using("c"),
        {"a": NO_VOLUME},
    ),
    "119 unless it is promised to this claim": (
        Scene(
            node("a"),
            pvcs=[claim()],
            pvs=[{**volume("v", claimRef={"name": "c", "namespace": "default"}), "status": {"phase": "Released"}}],
            storageClasses=[storage_class(provisioner="kubernetes.io/no-provisioner")],
        ),
        using("c"),
        {"a": ""},
    ),
    "123 zone labels of then and now": (
        Scene(
            node("a", {"failure-domain.beta.kubernetes.io/zone": "z"}),
            node("b", {ZONE: "z"}),
            pvcs=[claim(volume="v")],
            pvs=[volume("v", labels={ZONE: "z"})],
        ),
        using("c"),
        {"a": WRONG_ZONE, "b": ""},
    ),
    "123 the other way round": (
        Scene(
            node("a", {ZONE: "z"}),
            pvcs=[claim(volume="v")],
            pvs=[volume("v", labels={"failure-domain.beta.kubernetes.io/zone": "z"})],
        ),
        using("c"),
        {"a": ""},
    ),
    "124 no zone labels, and a region alone": (
        Scene(
            node("a"),
            node("b", {"topology.kubernetes.io/region": "r"}),
            pvcs=[claim(volume="v")],
            pvs=[volume("v", labels={ZONE: "z"})],
        ),
        using("c"),
        {"a": "", "b": WRONG_ZONE},
    ),
    "125 a shared volume counts once": (
        Scene(
            node("a"),
            pods=[using("c", on="a")],
            pvcs=[claim("c", "v"), claim("e", "w")],
            pvs=[csi("v"), csi("w")],
            csiNodes=[csi_node("a", 1)],
        ),
        using("c"),
        {"a": ""},
    ),
    "126 an attachment without a pod": (
        Scene(
            node("a"),
            pvcs=[claim("c", "v")],
            pvs=[csi("v"), csi("w")],
            csiNodes=[csi_node("a", 1)],
            volumeAttachments=[
                {
                    "metadata": {"name": "at"},
                    "spec": {"attacher": "d", "nodeName": "a", "source": {"persistentVolumeName": "w"}},
                }
            ],
        ),
        using("c"),
        {"a": TOO_MANY},
    ),
    "127 no CSINode, no limit": (
        Scene(node("a"), pvcs=[claim("c", "v")], pvs=[csi("v")]),
        using("c"),
        {"a": ""},
    ),
    "128 an unbound claim counts": (
        Scene(node("a"), pods=[using("e", on="a")], pvcs=[claim("c"), claim("e")], csiNodes=[csi_node("a", 1)], **LATE),
        using("c"),
        {"a": TOO_MANY},
    ),
    "129 somebody else's ephemeral claim": (
        Scene(node("a"), pvcs=[claim("p-v", "v")], pvs=[csi("v")], csiNodes=[csi_node("a", 1)]),
        make_pod("p"),
        {"*": "PVC default/p-v was not created for pod default/p (pod is not owner)"},
    ),
}
VOLUMES["129 somebody else's ephemeral claim"][1].json["spec"]["volumes"] = [
    {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
]


@pytest.mark.parametrize("case", VOLUMES)
def test_volumes(case: str) -> None:
    scene, asking, want = VOLUMES[case]
    assert scene.says(asking) == want


@pytest.mark.parametrize(
    ("kind", "conflict"),
    [("awsElasticBlockStore", True), ("gcePersistentDisk", False), ("iscsi", False), ("rbd", False)],
)
def test_pitfall_112_reading_the_same_disk(kind: str, conflict: bool) -> None:
    scene = Scene(node("a"), pods=[disk(kind, read_only=True, on="a")])
    taken = {"a": "node(s) had no available disk"}
    assert scene.says(disk(kind, read_only=True)) == (taken if conflict else {"a": ""})
    assert scene.says(disk(kind, read_only=False)) == taken


def capacity(**fields: str) -> Any:
    return {"metadata": {"name": "x", "namespace": "default"}, "storageClassName": "late", "nodeTopology": {}, **fields}


@pytest.mark.parametrize(
    ("published", "enough"),
    [
        pytest.param([capacity()], False, id="120 neither"),
        pytest.param([capacity(capacity="9Gi", maximumVolumeSize="1Mi")], False, id="121 the maximum wins"),
        pytest.param([capacity(capacity="1Mi", maximumVolumeSize="1Gi")], True, id="121 the larger maximum"),
        pytest.param([], False, id="none"),
    ],
)
def test_capacities(published: list[Any], enough: bool) -> None:
    driver = {"metadata": {"name": "d"}, "spec": {"storageCapacity": True}}
    scene = Scene(node("a"), pvcs=[claim()], csiDrivers=[driver], csiStorageCapacities=published, **LATE)
    assert scene.says(using("c")) == {"a": "" if enough else "node(s) did not have enough free storage"}
