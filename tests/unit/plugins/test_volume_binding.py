"""VolumeBinding: PreFilter, the reasons of Filter, capacities, scores, hints."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from skedge.api.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import ShapePoint
from skedge.framework.events import QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import Code, PluginError
from skedge.plugins.volume_binding.filtering import (
    BIND_CONFLICT,
    NODE_CONFLICT,
    NOT_ENOUGH_SPACE,
    REASONS,
    VOLUME_MISSING,
)
from skedge.plugins.volume_binding.plugin import IMMEDIATE, VolumeBinding
from skedge.snapshot.views import Rows
from skedge.testing.builders import make_node
from skedge.testing.cases import Cluster
from volume_objects import (
    MIGRATED,
    ZONE,
    Json,
    capacity,
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

NAME = "VolumeBinding"
HOST = "kubernetes.io/hostname"
SELECTED = "volume.kubernetes.io/selected-node"
CLASSES = [
    storage_class("late"),
    storage_class("static", "kubernetes.io/no-provisioner"),
    storage_class("now", mode="Immediate"),
    storage_class("modeless", mode=None),
]


def furnished(*nodes: str, **objects: Any) -> Cluster:
    objects.setdefault("storageClasses", CLASSES)
    return cluster(*nodes, **objects)


def bits(made: Cluster, value: Json) -> dict[str, int]:
    """Node -> bits of REASONS."""
    by_reason = {reason: bit for bit, reason in REASONS.items()}
    found = {}
    for node, status in filtered(made, NAME, value).items():
        if status is not None:
            assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            assert list(status.reasons) == [REASONS[bit] for bit in REASONS if REASONS[bit] in status.reasons]
        found[node] = sum(by_reason[reason] for reason in status.reasons) if status else 0
    return found


# --- before any node --------------------------------------------------------------------------------------------------

OWNED = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "uid-default-p", "controller": True}]}
EPHEMERAL = pod("p", {"ephemeral": {}})


@pytest.mark.parametrize(
    ("value", "claims", "reason"),
    [
        (pod(claims=["c"]), [], 'persistentvolumeclaim "c" not found'),
        (EPHEMERAL, [], 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v0"'),
        (
            pod(claims=["c"]),
            [{**claim("c", "v"), "status": {"phase": "Lost"}}],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        (
            pod(claims=["c"]),
            [claim("c", "v", deletionTimestamp="2026-01-01T00:00:00Z")],
            'persistentvolumeclaim "c" is being deleted',
        ),
        (EPHEMERAL, [claim("p-v0", "v")], "PVC default/p-v0 was not created for pod default/p (pod is not owner)"),
        (pod(claims=["c"]), [claim("c")], IMMEDIATE),
        (pod(claims=["c"]), [claim("c", storage_class="now")], IMMEDIATE),
        (pod(claims=["c"]), [claim("c", storage_class="absent")], IMMEDIATE),
        (pod(claims=["c"]), [claim("c", "v", bound=False, storage_class="late")], IMMEDIATE),
        (pod(claims=["c", "d"]), [claim("c", "v"), claim("d")], IMMEDIATE),
    ],
)
def test_rejected_before_any_node(value: Json, claims: list[Json], reason: str) -> None:
    status = pre_filter(furnished("n", pvcs=claims), NAME, value)
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_pods_without_claims_are_skipped_and_bound_ones_that_fit_anywhere_too() -> None:
    made = furnished("n", pvcs=[claim("c", "v"), claim("local", "w")], pvs=[volume("v", csi="d")])
    made.add("pvs", volume("w", affinity=(HOST, ["n"])))
    assert pre_filter(made, NAME, pod()).skip
    assert pre_filter(made, NAME, pod("p", {"emptyDir": {}})).skip
    assert pre_filter(made, NAME, pod(claims=["c"])).skip
    assert pre_filter(made, NAME, pod(claims=["c", "local"])).ok


def test_errors() -> None:
    made = furnished("n", pvcs=[claim("c", storage_class="modeless")])
    status = pre_filter(made, NAME, pod(claims=["c"]))
    assert status.code is Code.ERROR
    assert status.message == 'VolumeBindingMode not set for StorageClass "modeless"'
    with pytest.raises(PluginError, match="not found"):
        plugin_of(made, NAME).filter(CycleState(), info(pod()), Rows(made.cache.table))


# --- claims that are bound --------------------------------------------------------------------------------------------


def test_bound_claims_go_where_their_volumes_are() -> None:
    pvs = [volume("here", affinity=(HOST, ["a"])), volume("there", affinity=(HOST, ["b"])), volume("any")]
    made = furnished("a", "b", pvs=pvs, pvcs=[claim(name, name) for name in ("here", "there", "any", "gone")])
    assert bits(made, pod(claims=["any", "here"])) == {"a": 0, "b": NODE_CONFLICT}
    assert bits(made, pod(claims=["here", "there"])) == {"a": NODE_CONFLICT, "b": NODE_CONFLICT}
    assert bits(made, pod(claims=["gone"])) == {"a": VOLUME_MISSING, "b": VOLUME_MISSING}
    assert bits(made, pod(claims=["here", "gone"])) == {"a": VOLUME_MISSING, "b": NODE_CONFLICT}
    assert bits(made, pod(claims=["gone", "here"])) == {"a": VOLUME_MISSING, "b": VOLUME_MISSING}


def test_node_names_do_not_count_in_the_affinity_of_volumes() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["other"]}]
    by_name = volume("v")
    by_name["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    nothing = volume("w")
    nothing["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": []}}
    made = furnished("n", pvs=[by_name, nothing], pvcs=[claim("c", "v"), claim("d", "w")])
    assert bits(made, pod(claims=["c"])) == {"n": 0}
    assert bits(made, pod(claims=["d"])) == {"n": NODE_CONFLICT}


def test_in_tree_volumes_follow_what_their_node_has_migrated() -> None:
    zonal = volume("v", awsElasticBlockStore={"volumeID": "x"}, affinity=(ZONE, ["z"]))
    labelled = volume("w", awsElasticBlockStore={"volumeID": "y"}, labels={ZONE: "z"})
    made = furnished(pvs=[zonal, labelled], pvcs=[claim("c", "v"), claim("d", "w")])
    driver_zone = "topology.ebs.csi.aws.com/zone"
    for name, labels in (("plain", {ZONE: "z"}), ("moved", {driver_zone: "z"}), ("wrong", {ZONE: "z"})):
        made.add("nodes", make_node(name).labels(labels).json)
    for name in ("moved", "wrong"):
        made.add("csiNodes", csi_node(name, "kubernetes.io/aws-ebs"))
    assert bits(made, pod(claims=["c"])) == {"plain": 0, "moved": 0, "wrong": NODE_CONFLICT}
    assert bits(made, pod(claims=["d"])) == {"plain": 0, "moved": 0, "wrong": NODE_CONFLICT}
    made.add("csiNodes", csi_node("wrong"))
    assert bits(made, pod(claims=["c"])) == {"plain": 0, "moved": 0, "wrong": 0}


# --- claims that wait -------------------------------------------------------------------------------------------------


def chosen(made: Cluster, node: str, *claims: str) -> dict[str, str]:
    """Claim -> the volume it would get on the node; "": one is made."""
    plugin, state, pending = plugin_of(made, NAME), CycleState(), info(pod(claims=claims))
    plugin.pre_filter(state, pending, Rows(made.cache.table))
    assert plugin.reserve(state, pending, node).ok
    decision = state.read(NAME).decision
    plugin.unreserve(state, pending, node)
    found = {promise.claim.metadata.name: promise.volume.metadata.name for promise in decision.promises}
    return found | {each.metadata.name: "" for each in decision.provisions}


def test_the_smallest_volume_that_fits_smallest_claims_first() -> None:
    pvs = [volume(name, storage_class="static", size=size) for name, size in (("l", "9Gi"), ("m", "5Gi"), ("s", "2Gi"))]
    claims = [claim(name, storage_class="static", size=size) for name, size in (("big", "4Gi"), ("small", "1Gi"))]
    made = furnished("n", pvs=pvs, pvcs=claims)
    assert chosen(made, "n", "big") == {"big": "m"}
    assert chosen(made, "n", "big", "small") == {"small": "s", "big": "m"}
    made.add("pvcs", claim("small", storage_class="static", size="3Gi"))
    assert chosen(made, "n", "big", "small") == {"small": "m", "big": "l"}
    made.add("pvcs", claim("huge", storage_class="static", size="10Gi"))
    assert bits(made, pod(claims=["huge"])) == {"n": BIND_CONFLICT}


REF = {"namespace": "default", "name": "c", "uid": "uid-c"}


@pytest.mark.parametrize(
    ("pv", "fits"),
    [
        (volume("v", storage_class="static"), True),
        (volume("v", storage_class="late"), False),
        (volume("v", storage_class="static", phase="Released"), False),
        (volume("v", storage_class="static", phase="Bound"), False),
        (volume("v", storage_class="static", size="1023Mi"), False),
        (volume("v", storage_class="static", modes=("ReadOnlyMany",)), False),
        (volume("v", storage_class="static", modes=("ReadOnlyMany", "ReadWriteOnce")), True),
        (volume("v", storage_class="static", volumeMode="Block"), False),
        (volume("v", storage_class="static", volumeMode="Filesystem"), True),
        (volume("v", storage_class="static", volumeAttributesClassName="gold"), False),
        (volume("v", storage_class="static", volumeAttributesClassName=""), True),
        (volume("v", storage_class="static", affinity=(HOST, ["n"])), True),
        (volume("v", storage_class="static", affinity=(HOST, ["m"])), False),
        (volume("v", storage_class="static", claim_ref=REF, phase="Bound"), True),
        (volume("v", storage_class="static", claim_ref={**REF, "uid": ""}), True),
        (volume("v", storage_class="static", claim_ref={**REF, "uid": "old"}), False),
        (volume("v", storage_class="static", claim_ref={**REF, "name": "d"}), False),
        (volume("v", storage_class="static", claim_ref={**REF, "namespace": "elsewhere"}), False),
        (volume("v", storage_class="static", claim_ref=REF, size="1Mi"), False),
        (volume("v", storage_class="late", claim_ref=REF), False),
    ],
)
def test_which_volume_fits_a_claim(pv: Json, fits: bool) -> None:
    made = furnished("n", pvs=[pv], pvcs=[claim("c", storage_class="static")])
    assert bits(made, pod(claims=["c"])) == {"n": 0 if fits else BIND_CONFLICT}
    pv["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    made.add("pvs", pv)
    assert bits(made, pod(claims=["c"])) == {"n": BIND_CONFLICT}


def test_a_promised_volume_decides_even_where_it_does_not_fit() -> None:
    pvs = [
        volume("promised", storage_class="static", claim_ref=REF, affinity=(HOST, ["a"])),
        volume("free", storage_class="static"),
    ]
    made = furnished("a", "b", pvs=pvs, pvcs=[claim("c", storage_class="static")])
    assert bits(made, pod(claims=["c"])) == {"a": 0, "b": BIND_CONFLICT}
    assert chosen(made, "a", "c") == {"c": "promised"}


def test_selectors_choose_by_labels() -> None:
    pvs = [volume("v", storage_class="static", labels={"disk": "ssd"}, affinity=(HOST, ["a"]))]
    pvs.append(volume("w", storage_class="static", labels={"disk": "hdd"}, affinity=(HOST, ["b"])))
    wish = claim("c", storage_class="static")
    wish["spec"]["selector"] = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    assert bits(furnished("a", "b", pvs=pvs, pvcs=[wish]), pod(claims=["c"])) == {"a": 0, "b": BIND_CONFLICT}
    wish["spec"]["selector"] = {"matchExpressions": [{"key": "disk", "operator": "In", "values": []}]}
    with pytest.raises(PluginError, match="error creating internal label selector for claim: default/c"):
        bits(furnished("a", pvs=pvs, pvcs=[wish]), pod(claims=["c"]))


def test_amounts_that_cannot_be_read_are_none() -> None:
    made = furnished(
        "n", pvs=[volume("v", storage_class="static", size="much")], pvcs=[claim("c", storage_class="static")]
    )
    assert bits(made, pod(claims=["c"])) == {"n": BIND_CONFLICT}
    made.add("pvcs", claim("c", storage_class="static", size="some"))
    assert chosen(made, "n", "c") == {"c": "v"}


def test_fractions_of_bytes_count() -> None:
    for size, fits in (("1500m", False), ("2", True)):
        pv = volume("v", storage_class="static", size=size, affinity=(HOST, ["n"]))
        made = furnished("n", pvs=[pv], pvcs=[claim("c", storage_class="static", size="1600m")])
        assert bits(made, pod(claims=["c"])) == {"n": 0 if fits else BIND_CONFLICT}


def test_profiles_share_what_is_assumed() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}],
    }
    made = Cluster(config)
    made.add("nodes", make_node("n").json)
    for each in CLASSES:
        made.add("storageClasses", each)
    made.add("pvs", volume("v", storage_class="static"))
    for name in ("c", "d"):
        made.add("pvcs", claim(name, storage_class="static"))
    one, two = (next(p for p in made.profiles[n].plugins if p.name == NAME) for n in ("default-scheduler", "other"))
    assert one is not two
    state, pending = CycleState(), info(pod(claims=["c"]))
    one.pre_filter(state, pending, Rows(made.cache.table))
    assert one.reserve(state, pending, "n").ok
    other, second = CycleState(), info(pod("q", claims=["d"]))
    two.pre_filter(other, second, Rows(made.cache.table))
    assert two.filter(other, second, Rows(made.cache.table)).tolist() == [BIND_CONFLICT]
    rejected = two.reserve(other, second, "n")
    assert rejected.reasons == (REASONS[BIND_CONFLICT],)


def test_both_parts_of_a_node_are_judged() -> None:
    pvs = [volume("v", affinity=(HOST, ["a"]))]
    made = furnished("a", "b", pvs=pvs, pvcs=[claim("bound", "v"), claim("c", storage_class="static")])
    assert bits(made, pod(claims=["bound", "c"])) == {"a": BIND_CONFLICT, "b": NODE_CONFLICT | BIND_CONFLICT}


def test_the_unmatched_claims_decide_when_volumes_are_made() -> None:
    pvs = [volume("v", storage_class="late")]
    made = furnished("n", pvs=pvs, pvcs=[claim("c", storage_class="late"), claim("d", storage_class="late")])
    assert chosen(made, "n", "c", "d") == {"c": "v", "d": ""}
    made.add("pvcs", claim("d", storage_class="static"))
    assert bits(made, pod(claims=["c", "d"])) == {"n": BIND_CONFLICT}


def test_a_selected_node_leaves_no_choice() -> None:
    made = furnished(
        "a",
        "b",
        pvcs=[claim("c", storage_class="late", annotations={SELECTED: "b"}), claim("d", storage_class="static")],
    )
    assert bits(made, pod(claims=["c"])) == {"a": BIND_CONFLICT, "b": 0}
    assert bits(made, pod(claims=["c", "d"])) == {"a": BIND_CONFLICT, "b": BIND_CONFLICT}


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        (None, True),
        ([], True),
        ([{}], False),
        ([{"matchLabelExpressions": [{"key": ZONE, "values": ["x", "z"]}]}], True),
        ([{"matchLabelExpressions": [{"key": ZONE, "values": ["x"]}]}, {}], False),
        ([{"matchLabelExpressions": [{"key": ZONE, "values": ["z"]}, {"key": "rack", "values": ["r"]}]}], False),
        (
            [
                {"matchLabelExpressions": [{"key": "rack", "values": ["r"]}]},
                {"matchLabelExpressions": [{"key": HOST, "values": ["n"]}]},
            ],
            True,
        ),
    ],
)
def test_allowed_topologies(terms: Any, fits: bool) -> None:
    made = cluster(storageClasses=[{**storage_class("late"), "allowedTopologies": terms}])
    made.add("nodes", make_node("n").zone("z").json)
    made.add("pvcs", claim("c", storage_class="late"))
    assert bits(made, pod(claims=["c"])) == {"n": 0 if fits else BIND_CONFLICT}


EVERYWHERE: Json = {}


@pytest.mark.parametrize(
    ("published", "enough"),
    [
        ([capacity(topology=EVERYWHERE, capacity="1Gi")], True),
        ([capacity(topology={"matchLabels": {HOST: "n"}}, capacity="1Gi")], True),
        ([capacity(topology={"matchExpressions": [{"key": HOST, "operator": "Exists"}]}, capacity="1Gi")], True),
        ([], False),
        ([capacity(capacity="1Gi")], False),
        ([capacity(topology={"matchLabels": {HOST: "other"}}, capacity="1Gi")], False),
        ([capacity(topology=EVERYWHERE, storage_class="static", capacity="1Gi")], False),
        ([capacity(topology=EVERYWHERE, capacity="1Mi")], False),
        ([capacity(topology=EVERYWHERE, capacity="1Gi", maximumVolumeSize="1Mi")], False),
        ([capacity(topology=EVERYWHERE, capacity="1Mi", maximumVolumeSize="1Gi")], True),
        ([capacity(topology=EVERYWHERE, maximumVolumeSize="1Gi")], True),
        ([capacity(topology=EVERYWHERE, capacity="0")], False),
        ([capacity(topology=EVERYWHERE, maximumVolumeSize="0")], False),
        ([capacity(topology=EVERYWHERE)], False),
        ([capacity("a", topology=EVERYWHERE, capacity="0"), capacity("b", topology=EVERYWHERE, capacity="2Gi")], True),
    ],
)
def test_capacities(published: list[Json], enough: bool) -> None:
    driver = {"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": True}}
    made = furnished("n", pvcs=[claim("c", storage_class="late"), claim("any", storage_class="late", size=None)])
    made.add("pvcs", claim("d", storage_class="late"))
    for each in published:
        made.add("csiStorageCapacities", each)
    assert bits(made, pod(claims=["c"])) == {"n": 0}  # no CSIDriver: not tracked
    made.add("csiDrivers", driver)
    assert bits(made, pod(claims=["c"])) == {"n": 0 if enough else NOT_ENOUGH_SPACE}
    assert bits(made, pod(claims=["c", "d"])) == {"n": 0 if enough else NOT_ENOUGH_SPACE}  # each is judged alone
    assert bits(made, pod(claims=["any"])) == {"n": 0}
    made.add("csiDrivers", {**driver, "spec": {"storageCapacity": False}})
    assert bits(made, pod(claims=["c"])) == {"n": 0}


def test_capacities_come_and_go() -> None:
    driver = {"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": True}}
    made = furnished("n", pvcs=[claim("c", storage_class="late")], csiDrivers=[driver])
    one = capacity(topology=EVERYWHERE, capacity="1Gi")
    made.add("csiStorageCapacities", one)
    assert bits(made, pod(claims=["c"])) == {"n": 0}
    made.add("csiStorageCapacities", {**one, "capacity": "1Mi"})
    assert bits(made, pod(claims=["c"])) == {"n": NOT_ENOUGH_SPACE}
    made.add("csiStorageCapacities", one)
    made.listers.csi_storage_capacities.delete(msgspec.convert(one, CSIStorageCapacity))
    assert bits(made, pod(claims=["c"])) == {"n": NOT_ENOUGH_SPACE}


# --- scores -----------------------------------------------------------------------------------------------------------

SCORING = FeatureGates(StorageCapacityScoring=True)
RISING = [(0, 0), (100, 10)]


def scores(made: Cluster, *claims: str, shape: Any = RISING) -> dict[str, int]:
    plugin: VolumeBinding = plugin_of(made, NAME)
    plugin._shape = [(x, y * 10) for x, y in shape]
    table = made.cache.table
    state, pending, everything = CycleState(), info(pod(claims=claims)), Rows(table)
    plugin.pre_filter(state, pending, everything)
    fits = np.flatnonzero(np.broadcast_to(plugin.filter(state, pending, everything), (table.size,)) == 0)
    view = Rows(table, fits)
    assert plugin.pre_score(state, pending, view).ok
    return {table.names[row]: int(score) for row, score in zip(fits, plugin.score(state, pending, view), strict=True)}


def sized(name: str, size: str, node: str, storage_class: str = "late") -> Json:
    return volume(name, storage_class=storage_class, size=size, affinity=(HOST, [node]))


def test_scores_of_free_volumes() -> None:
    pvs = [sized("a", "200Gi", "a"), sized("b", "100Gi", "b")]
    made = furnished("a", "b", gates=SCORING, pvs=pvs, pvcs=[claim("c", storage_class="late", size="50Gi")])
    assert scores(made, "c") == {"a": 25, "b": 50}
    assert scores(made, "c", shape=[(0, 0), (50, 3), (100, 5)]) == {"a": 15, "b": 30}
    pvs = [sized("a0", "200Gi", "a"), sized("a1", "200Gi", "a", "static")]
    pvs += [sized("b0", "100Gi", "b"), sized("b1", "100Gi", "b", "static")]
    claims = [claim("c", storage_class="late", size="50Gi"), claim("d", storage_class="static", size="100Gi")]
    made = furnished("a", "b", "c", gates=SCORING, pvs=pvs, pvcs=claims)
    assert scores(made, "c", "d") == {"a": 38, "b": 75}


def test_scores_of_storage_to_be_made() -> None:
    published = [
        capacity(name, topology={"matchLabels": {HOST: name}}, capacity=size)
        for name, size in (("a", "100Gi"), ("b", "50Gi"), ("c", "10Gi"))
    ]
    driver = {"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": True}}
    claims = [claim("x", storage_class="late", size="10Gi"), claim("y", storage_class="late", size="10Gi")]
    made = furnished("a", "b", "c", gates=SCORING, pvcs=claims, csiStorageCapacities=published, csiDrivers=[driver])
    assert scores(made, "x") == {"a": 10, "b": 20, "c": 100}
    assert scores(made, "x", shape=[(0, 10), (100, 0)]) == {"a": 90, "b": 80, "c": 0}
    assert scores(made, "x", "y") == {"a": 20, "b": 40, "c": 100}  # more is asked for than there is
    made.add("pvs", sized("v", "20Gi", "b"))  # a free volume counts, what is made beside it does not
    assert scores(made, "x", "y") == {"a": 20, "b": 50, "c": 100}
    made.add("csiDrivers", {**driver, "spec": {}})
    assert scores(made, "x") == {"a": 0, "b": 50, "c": 0}


def test_nothing_is_scored_without_the_gate_or_without_waiting_claims() -> None:
    made = furnished("n", pvcs=[claim("c", storage_class="late"), claim("b", "v")], pvs=[volume("v")])
    for gates, name in ((None, "c"), (SCORING, "b")):
        made = furnished("n", gates=gates, pvcs=[claim("c", storage_class="late"), claim("b", "v")], pvs=[volume("v")])
        plugin, state, pending = plugin_of(made, NAME), CycleState(), info(pod(claims=[name]))
        plugin.pre_filter(state, pending, Rows(made.cache.table))
        assert plugin.pre_score(state, pending, Rows(made.cache.table)).skip
    default = plugin_of(furnished("n", gates=SCORING), NAME)
    assert default._shape == [(0, 100), (100, 0)]
    assert ShapePoint(0, 10).score * 10 == 100


# --- hints ------------------------------------------------------------------------------------------------------------


def test_hints() -> None:
    plugin: VolumeBinding = plugin_of(furnished("n"), NAME)
    pending = info(pod("p", {"ephemeral": {}}, {"csi": {"driver": "d"}}, claims=["c"]))
    queue, skip = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP

    def of(kind: Any, value: Json) -> Any:
        return msgspec.convert(value, kind)

    plain = of(StorageClass, storage_class("x"))
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z"]}]}]
    narrow = of(StorageClass, {**storage_class("x"), "allowedTopologies": allowed})
    assert plugin.after_class_change(pending, None, plain) is queue
    assert plugin.after_class_change(pending, plain, narrow) is queue
    assert plugin.after_class_change(pending, narrow, narrow) is skip
    for name, namespace, hint in (
        ("c", "default", queue),
        ("p-v0", "default", queue),
        ("d", "default", skip),
        ("c", "other", skip),
    ):
        made = of(PersistentVolumeClaim, claim(name, namespace=namespace))
        assert plugin.after_claim_change(pending, None, made) is hint
    old, new = of(CSINode, csi_node("n")), of(CSINode, csi_node("n", "kubernetes.io/aws-ebs"))
    assert MIGRATED in new.metadata.annotations
    assert plugin.after_csi_node_change(pending, None, old) is queue
    assert plugin.after_csi_node_change(pending, old, new) is queue
    assert plugin.after_csi_node_change(pending, new, new) is skip

    def driver(name: str, tracked: bool | None) -> CSIDriver:
        return of(CSIDriver, {"metadata": {"name": name}, "spec": {"storageCapacity": tracked}})  # type: ignore[no-any-return]

    assert plugin.after_driver_update(pending, driver("d", True), driver("d", None)) is queue
    assert plugin.after_driver_update(pending, driver("d", True), driver("d", True)) is skip
    assert plugin.after_driver_update(pending, driver("d", False), driver("d", None)) is skip
    assert plugin.after_driver_update(pending, driver("e", True), driver("e", False)) is skip

    def published(**amounts: str) -> CSIStorageCapacity:
        return of(CSIStorageCapacity, capacity(**amounts))  # type: ignore[arg-type, no-any-return]

    assert plugin.after_capacity_change(pending, None, published()) is queue
    assert plugin.after_capacity_change(pending, published(), published(capacity="1Gi")) is queue
    assert plugin.after_capacity_change(pending, published(capacity="1Gi"), published(capacity="2Gi")) is queue
    assert plugin.after_capacity_change(pending, published(capacity="1Gi"), published(capacity="1Gi")) is skip
    assert plugin.after_capacity_change(pending, published(capacity="1Gi"), published()) is skip
    grown = published(capacity="9Gi", maximumVolumeSize="1Gi")
    assert plugin.after_capacity_change(pending, published(capacity="2Gi"), grown) is skip
