"""VolumeRestrictions: disks and one-pod claims."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from skedge.api.storage import PersistentVolumeClaim
from skedge.framework.events import QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import Code, PluginError
from skedge.plugins.volume_restrictions import REASON_DISK, REASON_ONE_POD, VolumeRestrictions
from skedge.snapshot.pods import PlacedPod
from skedge.snapshot.views import DeltaView, Rows
from volume_objects import Json, claim, cluster, filtered, info, plugin_of, pod, pre_filter

NAME = "VolumeRestrictions"


def gce(name: str, read_only: bool = False) -> Json:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def aws(name: str, read_only: bool = False) -> Json:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str, read_only: bool = False, lun: int = 0) -> Json:
    return {"iscsi": {"iqn": iqn, "lun": lun, "targetPortal": "t", "readOnly": read_only}}


def rbd(monitors: str, image: str = "i", pool: str = "p", read_only: bool = False) -> Json:
    return {"rbd": {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}}


@pytest.mark.parametrize(
    ("there", "mine", "conflict"),
    [
        (gce("a"), gce("a"), True),
        (gce("a"), gce("b"), False),
        (gce("a", True), gce("a", True), False),
        (gce("a", True), gce("a"), True),
        (aws("a"), aws("a"), True),
        (aws("a", True), aws("a", True), True),
        (aws("a"), aws("b"), False),
        (aws("a"), gce("a"), False),
        (iscsi("q"), iscsi("q", lun=1), True),
        (iscsi("q", True), iscsi("q", True), False),
        (iscsi("q"), iscsi("r"), False),
        (rbd("ab"), rbd("bc"), True),
        (rbd("ab"), rbd("cd"), False),
        (rbd("ab"), rbd("ab", image="j"), False),
        (rbd("ab"), rbd("ab", pool="q"), False),
        (rbd("ab", read_only=True), rbd("ab", read_only=True), False),
    ],
)
def test_disks(there: Json, mine: Json, conflict: bool) -> None:
    made = cluster("n1", "n2", pods=[pod("there", there, node="n1")])
    found = filtered(made, NAME, pod("p", mine))
    assert found["n2"] is None
    status = found["n1"]
    assert (status is not None) is conflict
    if status is not None:
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (REASON_DISK,))
    # the disk is free again once the pod is gone, and so it is in a world without the pod
    table = made.cache.table
    plugin, state, pending = plugin_of(made, NAME), CycleState(), info(pod("p", mine))
    plugin.pre_filter(state, pending, Rows(table))
    other = next(iter(made.cache.pods()))
    view = DeltaView(table, np.array([table.row_of["n1"]]), removed={other.row: [other]})
    assert plugin.filter(state, pending, view).tolist() == [0]
    made.cache.remove_pod(other)
    assert filtered(made, NAME, pod("p", mine))["n1"] is None


ONE = ("ReadWriteOncePod",)


@pytest.mark.parametrize(
    ("claims", "users", "mine", "conflict"),
    [
        ([claim("c", modes=ONE)], [("there", "c", "n1")], ["c"], True),
        ([claim("c", modes=ONE)], [("there", "c", "gone")], ["c"], None),
        ([claim("c", modes=ONE)], [], ["c"], None),
        ([claim("c", modes=("ReadWriteMany",))], [("there", "c", "n1")], ["c"], None),
        ([claim("c", modes=ONE), claim("d", modes=ONE)], [("there", "d", "n2")], ["c"], None),
        ([claim("c", modes=ONE), claim("d", modes=ONE)], [("there", "d", "n2")], ["c", "d"], True),
    ],
)
def test_one_pod_claims_exclude_everywhere(claims: Any, users: Any, mine: Any, conflict: bool | None) -> None:
    there = [pod(name, claims=[used], node=node) for name, used, node in users]
    made = cluster("n1", "n2", pvcs=claims, pods=there)
    if conflict is None:
        assert pre_filter(made, NAME, pod(claims=mine)).skip
        return
    for status in filtered(made, NAME, pod(claims=mine)).values():
        assert status is not None
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (REASON_ONE_POD,))


def test_a_world_without_all_users_fits() -> None:
    """Conflicts are counted a claim; each pod taken away counts down by its own volumes, whatever its namespace."""
    claims = [claim("c", modes=ONE), claim("d", modes=ONE)]
    made = cluster("n1", pvcs=claims, pods=[pod("x", claims=["c"], node="n1"), pod("y", claims=["d"], node="n1")])
    plugin, state, pending = plugin_of(made, NAME), CycleState(), info(pod(claims=["c", "d"]))
    table = made.cache.table
    plugin.pre_filter(state, pending, Rows(table))
    x, y = made.cache.pods()
    stranger = PlacedPod(info(pod("z", claims=["c"], namespace="elsewhere")), "n1")

    def code(**changes: list[PlacedPod]) -> int:
        worlds = {how: {0: pods} for how, pods in changes.items()}
        return int(plugin.filter(state, pending, DeltaView(table, np.array([0]), **worlds))[0])

    assert [bool(code(removed=[x])), bool(code(removed=[x, y]))] == [True, False]
    assert bool(code(removed=[x, y], added=[stranger]))


def test_missing_claims_and_state() -> None:
    made = cluster("n1")
    status = pre_filter(made, NAME, pod(claims=["c"]))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('persistentvolumeclaim "c" not found',)
    for harmless in (pod(), pod("p", {"emptyDir": {}}), pod("p", {}), pod("p", {"ephemeral": {}})):
        assert pre_filter(made, NAME, harmless).skip
    with pytest.raises(PluginError, match='cannot read "PreFilterVolumeRestrictions" from cycleState'):
        plugin_of(made, NAME).filter(CycleState(), info(pod()), Rows(made.cache.table))


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        (pod("o", gce("a"), node="n"), QueueingHint.QUEUE),
        (pod("o", gce("b"), node="n"), QueueingHint.QUEUE_SKIP),
        (pod("o", claims=["c"], node="n"), QueueingHint.QUEUE),
        (pod("o", claims=["d"], node="n"), QueueingHint.QUEUE_SKIP),
        (pod("o", gce("a"), claims=["c"], node="n", namespace="elsewhere"), QueueingHint.QUEUE_SKIP),
    ],
)
def test_hint_after_a_pod_went(deleted: Json, hint: QueueingHint) -> None:
    plugin: VolumeRestrictions = plugin_of(cluster("n"), NAME)
    assert plugin.after_pod_deletion(info(pod("p", gce("a"), claims=["c"])), info(deleted), None) is hint


def test_hint_after_a_claim_came() -> None:
    plugin: VolumeRestrictions = plugin_of(cluster("n"), NAME)
    pending = info(pod("p", {"ephemeral": {}}, claims=["c"]))
    for value, hint in (
        (claim("c"), QueueingHint.QUEUE),
        (claim("d"), QueueingHint.QUEUE_SKIP),
        (claim("p-v0"), QueueingHint.QUEUE_SKIP),
        (claim("c", namespace="elsewhere"), QueueingHint.QUEUE_SKIP),
    ):
        assert plugin.after_claim_addition(pending, None, msgspec.convert(value, PersistentVolumeClaim)) is hint
