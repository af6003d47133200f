"""VolumeZone: zone and region labels of volumes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from skedge.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from skedge.framework.events import QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import Code
from skedge.plugins.volume_zone import REASON, VolumeZone
from skedge.snapshot.views import Rows
from skedge.testing.builders import make_node
from volume_objects import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    claim,
    cluster,
    filtered,
    info,
    plugin_of,
    pod,
    pre_filter,
    storage_class,
    volume,
)

NAME = "VolumeZone"


@pytest.mark.parametrize(
    ("of_volume", "of_node", "fits"),
    [
        ({BETA_ZONE: "a"}, {}, True),
        ({BETA_ZONE: "a"}, {"other": "a"}, True),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "a"}, True),
        ({BETA_REGION: "r"}, {BETA_REGION: "other"}, False),
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, False),
        ({BETA_ZONE: "a"}, {ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {ZONE: "b"}, False),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False),
        ({BETA_ZONE: "c__a"}, {BETA_ZONE: "a"}, True),
        ({BETA_ZONE: " c __ a "}, {BETA_ZONE: "a"}, True),
        ({ZONE: "a__"}, {ZONE: "b"}, True),
        ({ZONE: "a"}, {REGION: "r"}, False),
        ({"other": "a"}, {ZONE: "b"}, True),
    ],
)
def test_filter(of_volume: dict[str, str], of_node: dict[str, str], fits: bool) -> None:
    made = cluster(pvs=[volume("v", labels=of_volume)], pvcs=[claim("c", "v")])
    made.add("nodes", make_node("n").labels(of_node).json)
    status = filtered(made, NAME, pod(claims=["c"]))["n"]
    if fits:
        assert status is None
    else:
        assert status is not None
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON,))


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c")], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("c", storage_class="absent")], 'storageclass.storage.k8s.io "absent" not found'),
        ([claim("c", storage_class="modeless")], 'VolumeBindingMode not set for StorageClass "modeless"'),
        ([claim("c", storage_class="now")], "PersistentVolume had no name"),
        ([claim("c", "gone")], 'persistentvolume "gone" not found'),
    ],
)
def test_rejected_before_any_node(claims: list[Any], reason: str) -> None:
    classes = [storage_class("modeless", mode=None), storage_class("now", mode="Immediate")]
    status = pre_filter(cluster("n", pvcs=claims, storageClasses=classes), NAME, pod(claims=["c"]))
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    empty = pre_filter(cluster("n"), NAME, pod(claims=[""]))
    assert empty.reasons == ("PersistentVolumeClaim had no name",)


@pytest.mark.parametrize(
    "value",
    [
        pod(),
        pod("p", {"emptyDir": {}}),
        pod("p", {"ephemeral": {}}),
        pod(claims=["waits"]),
        pod(claims=["plain"]),
    ],
    ids=["no volumes", "no claim", "ephemeral", "waits for first consumer", "volume without zones"],
)
def test_skipped(value: Any) -> None:
    made = cluster(
        "n", pvcs=[claim("waits", storage_class="late"), claim("plain", "v")], storageClasses=[storage_class("late")]
    )
    made.add("pvs", volume("v"))
    assert pre_filter(made, NAME, value).skip


def test_without_pre_filter_the_filter_finds_out_itself() -> None:
    made = cluster(pvs=[volume("v", labels={ZONE: "a"})], pvcs=[claim("c", "v"), claim("d", "gone")])
    made.add("nodes", make_node("n").zone("b").json)
    plugin: VolumeZone = plugin_of(made, NAME)
    for name, reason in (("c", REASON), ("d", 'persistentvolume "gone" not found')):
        pending = info(pod(claims=[name]))
        codes = plugin.filter(CycleState(), pending, Rows(made.cache.table))
        code = int(codes) if isinstance(codes, int) else int(codes[0])
        assert plugin.filter_status(CycleState(), pending, code).reasons == (reason,)


def test_hints() -> None:
    plugin: VolumeZone = plugin_of(cluster("n"), NAME)
    pending = info(pod(claims=["c"]))

    def of(kind: Any, value: Any) -> Any:
        return msgspec.convert(value, kind)

    queue, skip = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
    late, now = of(StorageClass, storage_class("x")), of(StorageClass, storage_class("x", mode="Immediate"))
    assert plugin.after_class_addition(pending, None, late) is queue
    assert plugin.after_class_addition(pending, None, now) is skip
    assert plugin.after_claim_change(pending, None, of(PersistentVolumeClaim, claim("c"))) is queue
    assert plugin.after_claim_change(pending, None, of(PersistentVolumeClaim, claim("other"))) is skip
    elsewhere = of(PersistentVolumeClaim, claim("c", namespace="elsewhere"))
    assert plugin.after_claim_change(pending, None, elsewhere) is skip
    plain, zoned = of(PersistentVolume, volume("v")), of(PersistentVolume, volume("v", labels={ZONE: "a"}))
    assert plugin.after_volume_change(pending, None, plain) is queue
    assert plugin.after_volume_change(pending, plain, zoned) is queue
    assert plugin.after_volume_change(pending, zoned, zoned) is skip
