"""SettledClaims: what is known at once of pods with ordinary claims is what the plugins find out by themselves."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.api.storage import PersistentVolumeClaim
from skedge.framework.state import CycleState
from skedge.plugins.helpers.settled_claims import SettledClaims
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows
from twins.furnished import Furnished
from volume_objects import BETA_REGION, EBS, ZONE, Json, claim, cluster, info, plugin_of, pod, volume

PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
DELETED = "2026-01-01T00:00:00Z"
AWS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def settled_of(made: Any) -> SettledClaims:
    found: SettledClaims = plugin_of(made, "VolumeZone")._settled
    return found


def answers(made: Any, pod: PodInfo) -> list[Any]:
    """What the volume plugins say of each node, or why they don't."""
    found: list[Any] = []
    view = Rows(made.cache.table)
    for name in PLUGINS:
        plugin, state = plugin_of(made, name), CycleState()
        names, status = plugin.pre_filter(state, pod, view)
        codes = [0] * view.size
        if status.ok:
            codes = np.broadcast_to(plugin.filter(state, pod, view), (view.size,)).tolist()
        told = (names, status.code, status.reasons) if not (status.ok or status.skip) else None
        found.append((name, told, codes))
    return found


def test_what_pods_with_claims_come_to() -> None:
    made = cluster(
        "n1",
        pvcs=[claim("a", "va"), claim("b", "vb"), claim("c", "vc"), claim("d", "va")],
        pvs=[
            volume("va", csi=EBS, handle="1"),
            volume("vb", csi=EBS, handle="2", affinity=(ZONE, ["z1"])),
            volume("vc", hostPath={"path": "/x"}),
        ],
    )
    settled = settled_of(made)
    found = settled.of(info(pod("p", claims=["a", "c"])))
    assert found is not None
    assert ([each.metadata.name for each in found.claims], found.anywhere) == (["a", "c"], True)
    assert [each.key for each in found.csi] == [(EBS, "1")]
    found = settled.of(info(pod("p", claims=["a", "b", "d"])))
    assert found is not None
    assert ([each.key for each in found.csi], found.anywhere) == ([(EBS, "1"), (EBS, "2")], False)


@pytest.mark.parametrize(
    ("mine", "its_claim", "its_volume"),
    [
        (pod(claims=["other"]), claim("c", "v"), volume("v", csi=EBS)),
        (pod(claims=[""]), claim("c", "v"), volume("v", csi=EBS)),
        (pod("p", AWS, claims=["c"]), claim("c", "v"), volume("v", csi=EBS)),
        (pod("p", {"ephemeral": {}}, claims=["c"]), claim("c", "v"), volume("v", csi=EBS)),
        (pod(claims=["c"], namespace="other"), claim("c", "v"), volume("v", csi=EBS)),
        (pod(claims=["c"]), claim("c", "v", bound=False), volume("v", csi=EBS)),
        (pod(claims=["c"]), claim("c"), volume("v", csi=EBS)),
        (pod(claims=["c"]), claim("c", "gone"), volume("v", csi=EBS)),
        (pod(claims=["c"]), claim("c", "v", deletionTimestamp=DELETED), volume("v", csi=EBS)),
        (pod(claims=["c"]), claim("c", "v", modes=["ReadWriteOncePod"]), volume("v", csi=EBS)),
        (pod(claims=["c"]), claim("c", "v") | {"status": {"phase": "Lost"}}, volume("v", csi=EBS)),
        (pod(claims=["c"]), claim("c", "v"), volume("v", csi=EBS, labels={ZONE: "z1"})),
        (pod(claims=["c"]), claim("c", "v"), volume("v", labels={BETA_REGION: "r"}, **AWS)),
    ],
)
def test_not_settled(mine: Json, its_claim: Json, its_volume: Json) -> None:
    made = cluster("n1", pvcs=[its_claim], pvs=[its_volume])
    assert settled_of(made).of(info(mine)) is None


def test_a_claim_that_changes_is_looked_at_again() -> None:
    made = cluster("n1", pvcs=[claim("c", "v")], pvs=[volume("v", csi=EBS)])
    settled, mine = settled_of(made), info(pod(claims=["c"]))
    assert settled.of(mine) is not None
    made.listers.persistent_volumes.remove("v")
    assert settled.of(mine) is None
    made.add("pvs", volume("v", csi=EBS))
    assert settled.of(mine) is not None
    assumed = msgspec.convert(claim("c", "v"), PersistentVolumeClaim)
    settled.claims.assume(assumed)
    assert settled.of(mine) is None  # not all plugins look at what is assumed
    settled.claims.restore("default/c")
    assert settled.of(mine) is not None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_plugins_say_the_same_without_it(seed: int) -> None:
    furnished = Furnished(seed)
    for _ in range(20):
        furnished.step()
    for _ in range(10):
        furnished.step()
        mine = PodInfo(furnished.pod())
        with_it = answers(furnished.cluster, mine)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(SettledClaims, "of", lambda self, pod: None)
            assert answers(furnished.cluster, mine) == with_it


def test_furnished_clusters_have_pods_with_settled_claims() -> None:
    """Else the test above tells nothing."""
    found = {True: 0, False: 0}
    for seed in range(40):
        furnished = Furnished(seed)
        for _ in range(30):
            furnished.step()
            mine = PodInfo(furnished.pod())
            if mine.volumes:
                settled = settled_of(furnished.cluster).of(mine)
                if settled is not None:
                    found[settled.anywhere] += 1
    assert min(found.values()) >= 5
