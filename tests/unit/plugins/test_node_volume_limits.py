"""NodeVolumeLimits: what counts against the limits of a node's drivers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from skedge.api.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from skedge.config.gates import FeatureGates
from skedge.framework.events import QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import Code, PluginError
from skedge.plugins.node_volume_limits import REASON, NodeVolumeLimits
from skedge.snapshot.pods import PlacedPod
from skedge.snapshot.views import Rows
from skedge.testing.builders import make_node
from volume_objects import (
    EBS,
    GCE,
    Json,
    attachment,
    claim,
    cluster,
    csi_node,
    filtered,
    info,
    plugin_of,
    pod,
    pre_filter,
    storage_class,
    volume,
)

NAME = "NodeVolumeLimits"
AWS = "kubernetes.io/aws-ebs"


def ebs(*numbers: int) -> list[Json]:
    return [volume(f"ebs{i}", csi=EBS, handle=f"vol-{i}") for i in numbers]


PVS = [
    *ebs(*range(8)),
    *(volume(f"gce{i}", csi=GCE) for i in range(3)),
    *(volume(f"aws{i}", awsElasticBlockStore={"volumeID": f"in-tree-{i}"}) for i in range(4)),
    volume("host", hostPath={"path": "/x"}),
    volume("file", azureFile={"shareName": "s"}),
]
CLASSES = [
    storage_class("ebs", EBS),
    storage_class("in-tree", AWS),
    storage_class("azure-file", "kubernetes.io/azure-file"),
]
CLAIMS = [
    *(claim(pv["metadata"]["name"], pv["metadata"]["name"]) for pv in PVS),
    claim("pending", storage_class="ebs"),
    claim("pending-in-tree", storage_class="in-tree"),
    claim("pending-file", storage_class="azure-file"),
    claim("lost", "no-such-volume", storage_class="ebs"),
    claim("no-class"),
    claim("unknown-class", storage_class="unknown"),
]


def verdict(mine: Json, there: list[Json], node: Json | None, attachments: list[Json] | None = None) -> bool:
    """Whether the pod fits a node with these pods on it."""
    made = cluster(
        "n",
        pvs=PVS,
        pvcs=CLAIMS,
        storageClasses=CLASSES,
        csiNodes=[node] if node else [],
        volumeAttachments=attachments or [],
        pods=there,
    )
    status = filtered(made, NAME, mine)["n"]
    if status is not None:
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (REASON,))
    return status is None


def limit(count: int | None, migrated: str = "") -> Json:
    return csi_node("n", migrated, ebs__csi__aws__com=count, pd__csi__storage__gke__io=2)


ONE, TWO, RUNNING = pod("one", claims=["ebs0"]), ["ebs1", "ebs2"], ["ebs3"]
ON_NODE = [pod("two", claims=TWO, node="n"), pod("running", claims=RUNNING, node="n")]
INLINE = {"awsElasticBlockStore": {"volumeID": "in-tree-9"}}


def test_room_comes_back_when_pods_go() -> None:
    """The fullest row is remembered; it must not be taken for full for ever, nor anything else for free."""
    nodes = [csi_node(name, ebs__csi__aws__com=2) for name in "ab"]
    made = cluster("a", "b", pvs=PVS, pvcs=CLAIMS, storageClasses=CLASSES, csiNodes=nodes)

    def fits() -> set[str]:
        return {name for name, status in filtered(made, NAME, ONE).items() if status is None}

    assert fits() == {"a", "b"}
    there = [PlacedPod(info(pod(f"p{i}", claims=[f"ebs{i}"], node="a")), "a") for i in (1, 2)]
    for placed in there:
        made.cache.add_pod(placed)
    assert fits() == {"b"}
    made.cache.remove_pod(there[0])
    assert fits() == {"a", "b"}
    made.cache.add_pod(PlacedPod(info(pod("p3", claims=["ebs3", "ebs4"], node="b")), "b"))
    assert fits() == {"a"}


@pytest.mark.parametrize(
    ("mine", "there", "node", "fits"),
    [
        (ONE, ON_NODE, limit(4), True),
        (ONE, ON_NODE, limit(3), False),
        (ONE, ON_NODE, limit(None), True),
        (ONE, ON_NODE, None, True),
        (ONE, [], limit(1), True),
        (ONE, [], limit(0), False),
        (ONE, [pod("a", claims=["pending"], node="n"), ON_NODE[0]], limit(3), False),
        (
            ONE,
            [pod("a", claims=["pending"], node="n"), pod("b", claims=["pending"], node="n"), ON_NODE[0]],
            limit(4),
            True,
        ),
        (ONE, [pod("a", claims=["lost"], node="n"), ON_NODE[0]], limit(3), False),
        (ONE, [pod("a", claims=["no-class"], node="n"), ON_NODE[1]], limit(2), True),
        (ONE, [pod("a", claims=["unknown-class", "gone"], node="n"), ON_NODE[1]], limit(2), True),
        (pod(claims=["gce0", "gce1"]), ON_NODE, limit(2), True),
        (pod(claims=["gce0", "gce1", "gce2"]), ON_NODE, limit(2), False),
        (pod(claims=["aws0"]), [pod("a", claims=["aws1", "aws2"], node="n")], limit(2, AWS), False),
        (pod(claims=["aws0"]), [pod("a", claims=["aws1", "aws2"], node="n")], limit(2), True),
        (pod(claims=["aws0"]), [pod("a", claims=["aws1", "aws2"], node="n")], limit(2, "kubernetes.io/gce-pd"), True),
        (pod("p", INLINE), [pod("a", claims=["aws1", "aws2"], node="n")], limit(2, f"x,{AWS}"), False),
        (pod("p", INLINE), [pod("a", claims=["aws1", "aws2"], node="n")], None, True),
        (pod("p", {"awsElasticBlockStore": {"volumeID": "vol-1"}}), ON_NODE, limit(3, AWS), True),
        (pod(claims=["pending-in-tree"]), ON_NODE, limit(3, AWS), False),
        (pod(claims=["pending-in-tree"]), ON_NODE, limit(3), True),
        (pod(claims=["pending-file", "file"]), ON_NODE, limit(3, "kubernetes.io/azure-file"), True),
        (pod(claims=["host"]), ON_NODE, limit(3), True),
        (pod(claims=["ebs1", "ebs3"]), ON_NODE, limit(3), True),
        (pod(claims=["ebs0", "ebs0", "ebs3"]), ON_NODE, limit(4), True),
    ],
)
def test_filter(mine: Json, there: list[Json], node: Json | None, fits: bool) -> None:
    assert verdict(mine, there, node) is fits


@pytest.mark.parametrize(
    ("attachments", "there", "fits"),
    [
        ([attachment("a", EBS, "n", "ebs0"), attachment("b", EBS, "n", "ebs1")], [], False),
        ([attachment("a", EBS, "n", "ebs0")], [], True),
        ([attachment("a", EBS, "n", "ebs1"), attachment("b", EBS, "n", "ebs1")], [], True),
        ([attachment("a", EBS, "n", "ebs1"), attachment("b", EBS, "other", "ebs2")], [], True),
        ([attachment("a", EBS, "n", "ebs1")], [pod("x", claims=["ebs1"], node="n")], True),
        ([attachment("a", EBS, "n", "ebs1")], [pod("x", claims=["ebs2"], node="n")], False),
        (
            [attachment("a", "", "n", "ebs1"), attachment("b", EBS, "n", None), attachment("c", EBS, "n", "aws1")],
            [],
            True,
        ),
    ],
)
def test_volumes_that_are_still_attached(attachments: list[Json], there: list[Json], fits: bool) -> None:
    assert verdict(ONE, there, limit(2), attachments) is fits


def test_claims_of_the_pod_itself() -> None:
    made = cluster("n", csiNodes=[limit(1)], pvs=PVS)
    ephemeral = pod("p", {"ephemeral": {}})
    status = filtered(made, NAME, ephemeral)["n"]
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('looking up PVC default/p-v0: persistentvolumeclaim "p-v0" not found',)
    made.add("pvcs", claim("p-v0", "ebs0"))
    with pytest.raises(PluginError, match=r"PVC default/p-v0 was not created for pod default/p \(pod is not owner\)"):
        filtered(made, NAME, ephemeral)
    with pytest.raises(PluginError, match="PersistentVolumeClaim had no name"):
        filtered(made, NAME, pod(claims=[""]))


def test_a_stolen_claim_on_the_node_ends_the_cycle_only_where_there_are_limits() -> None:
    there = pod("thief", {"ephemeral": {}}, node="n")
    made = cluster("n", "m", pvs=PVS, pvcs=[*CLAIMS, claim("thief-v0", "ebs1")], pods=[there])
    assert filtered(made, NAME, ONE) == {"n": None, "m": None}
    made.add("csiNodes", csi_node("m", ebs__csi__aws__com=1))
    assert filtered(made, NAME, ONE) == {"n": None, "m": None}
    made.add("csiNodes", limit(5))
    with pytest.raises(PluginError, match="pod is not owner"):
        filtered(made, NAME, ONE)
    made.cache.remove_pod(next(iter(made.cache.pods())))
    assert filtered(made, NAME, ONE) == {"n": None, "m": None}


@pytest.mark.parametrize(
    ("value", "skipped"),
    [
        (pod(), True),
        (pod("p", {"emptyDir": {}}), True),
        (pod("p", {"csi": {"driver": EBS}}), True),
        (pod("p", {"ephemeral": {}}), False),
        (pod("p", INLINE), False),
        (ONE, False),
    ],
)
def test_pods_without_such_volumes_are_skipped(value: Json, skipped: bool) -> None:
    assert pre_filter(cluster("n"), NAME, value).skip is skipped


def test_counts_follow_everything() -> None:
    """Claims, volumes, classes, CSINodes, nodes and pods that come, change and go, in an order that makes trouble."""
    made = cluster(pods=[pod("a", claims=["ebs1", "pending"], node="n"), pod("b", claims=["aws1"], node="n")])
    steps: list[tuple[str, Json, bool]] = [
        ("pvcs", CLAIMS[0], True),
        ("pvs", PVS[0], True),
        ("nodes", make_node("n").json, True),
        ("csiNodes", limit(2), True),
        ("pvcs", claim("ebs1", "ebs1"), True),
        ("pvs", ebs(1)[0], True),  # one attached, one to come
        ("pvcs", claim("pending", storage_class="ebs"), True),
        ("storageClasses", CLASSES[0], False),  # pending counts now
        ("pvcs", claim("pending", storage_class="elsewhere"), True),
        ("pvcs", claim("pending", storage_class="ebs"), False),
        ("csiNodes", limit(3), True),
        ("pvcs", claim("aws1", "aws1"), True),
        ("pvs", volume("aws1", awsElasticBlockStore={"volumeID": "x"}), True),
        ("csiNodes", limit(3, AWS), False),
        ("csiNodes", limit(3), True),
    ]
    for field, value, fits in steps:
        made.add(field, value)
        if made.cache.table.count and len(made.listers.persistent_volumes):
            assert (filtered(made, NAME, ONE)["n"] is None) is fits, (field, value)
    for there in list(made.cache.pods()):
        made.cache.remove_pod(there)
    made.add("csiNodes", limit(1))
    assert filtered(made, NAME, ONE)["n"] is None
    made.cache.remove_node(made.cache.table.nodes[0])
    made.add("nodes", make_node("m").json)  # takes the row over
    made.add("csiNodes", csi_node("m", ebs__csi__aws__com=0))
    assert filtered(made, NAME, ONE)["m"] is not None


def test_columns_grow_with_the_table() -> None:
    made = cluster(pvs=PVS, pvcs=CLAIMS)
    for i in range(200):
        made.add("csiNodes", csi_node(f"n{i}", ebs__csi__aws__com=i % 2))
        made.add("pods", pod(f"g{i}", claims=["ebs1"], node=f"ghost{i}"))
        made.add("nodes", make_node(f"n{i}").json)
        if i % 40 == 0:
            assert (filtered(made, NAME, ONE)[f"n{i}"] is None) is bool(i % 2)
    found = filtered(made, NAME, ONE)
    assert {name for name, status in found.items() if status} == {f"n{i}" for i in range(0, 200, 2)}
    made.add("nodes", make_node("ghost7").json)
    made.add("csiNodes", csi_node("ghost7", ebs__csi__aws__com=1))
    assert filtered(made, NAME, ONE)["ghost7"] is not None  # its pod was there before


def test_limits_may_demand_the_driver() -> None:
    """Gate VolumeLimitScaling: where CSIDriver says so a node without the driver is no place for its volumes."""
    driver = {"metadata": {"name": EBS}, "spec": {"preventPodSchedulingIfMissing": True}}
    gates = FeatureGates(VolumeLimitScaling=True)
    nodes = [csi_node("with", ebs__csi__aws__com=None), csi_node("without", other=None)]
    for enabled, strict, rejected in ((gates, True, {"without", "bare"}), (gates, False, set()), (None, True, set())):
        driver["spec"] = {"preventPodSchedulingIfMissing": strict}
        made = cluster(
            "with", "without", "bare", gates=enabled, pvs=PVS, pvcs=CLAIMS, csiNodes=nodes, csiDrivers=[driver]
        )
        found = filtered(made, NAME, ONE)
        assert {name for name, status in found.items() if status} == rejected
        for name in rejected:
            status = found[name]
            assert status is not None
            assert status.code is Code.UNSCHEDULABLE
            assert status.reasons == (f"{EBS} CSI driver is not installed on the node",)


def test_without_pre_filter_the_filter_works_all_the_same() -> None:
    made = cluster("n", pvs=PVS, pvcs=CLAIMS, csiNodes=[limit(0)])
    plugin = plugin_of(made, NAME)
    assert plugin.filter(CycleState(), info(ONE), Rows(made.cache.table)).tolist() == [1]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (limit(1), limit(2), QueueingHint.QUEUE),
        (limit(None), limit(1), QueueingHint.QUEUE),
        (limit(2), limit(1), QueueingHint.QUEUE_SKIP),
        (limit(1), limit(None), QueueingHint.QUEUE_SKIP),
        (limit(1), csi_node("n", ebs__csi__aws__com=1, pd__csi__storage__gke__io=2, new=1), QueueingHint.QUEUE),
    ],
)
def test_hint_after_limits_changed(old: Json, new: Json, hint: QueueingHint) -> None:
    plugin: NodeVolumeLimits = plugin_of(cluster("n"), NAME)
    changed = (msgspec.convert(each, CSINode) for each in (old, new))
    assert plugin.after_csi_node_update(info(ONE), *changed) is hint


def test_other_hints() -> None:
    plugin: NodeVolumeLimits = plugin_of(cluster("n"), NAME)
    queue, skip = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP

    def gone(value: Any) -> QueueingHint:
        return plugin.after_pod_deletion(info(ONE), info(value), None)

    assert [gone(pod("o", claims=["c"], node="n")), gone(pod("o", claims=["c"])), gone(pod("o", node="n"))] == [
        queue,
        skip,
        skip,
    ]
    assert gone(pod("o", INLINE, node="n")) is queue
    ephemeral = info(pod("p", {"ephemeral": {}}))
    new = msgspec.convert(claim("p-v0"), PersistentVolumeClaim)
    assert plugin.after_claim_addition(ephemeral, None, new) is queue
    assert plugin.after_claim_addition(info(ONE), None, new) is skip
    detached = msgspec.convert(attachment("a", EBS, "n", "ebs1"), VolumeAttachment)
    other = msgspec.convert(attachment("a", GCE, "n", "ebs1"), VolumeAttachment)
    assert plugin.after_attachment_deletion(info(ONE), other, None) is queue
    assert plugin.after_attachment_deletion(info(pod("p", INLINE)), detached, None) is queue
    assert plugin.after_attachment_deletion(info(pod("p", INLINE)), other, None) is skip
    assert plugin.after_attachment_deletion(ephemeral, detached, None) is skip
