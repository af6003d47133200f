"""In-tree volumes in the words of CSI drivers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from skedge.api.core import Volume
from skedge.api.storage import PersistentVolume
from skedge.plugins.helpers.csi_translation import IN_TREE, in_tree, inline_handle, translated_affinity, volume_handle
from volume_objects import BETA_REGION, BETA_ZONE, REGION, ZONE, Json, volume


def pv(labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    return msgspec.convert(volume("v", labels=labels, **spec), PersistentVolume)


AWS: Json = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        (AWS, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-1a/vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-1a/disk"}}, "ebs.csi.aws.com", None),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
        ({"azureDisk": {"diskName": "d", "diskURI": "/sub/d"}}, "disk.csi.azure.com", "/sub/d"),
        ({"cinder": {"volumeID": "c"}}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com", "p"),
    ],
)
def test_inline_volumes(source: Json, driver: str, handle: str | None) -> None:
    found = msgspec.convert({"name": "v", **source}, Volume)
    plugin = in_tree(found)
    assert plugin is not None
    assert (plugin.driver, inline_handle(plugin, found)) == (driver, handle)


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        (None, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ({ZONE: "us-1-a"}, "projects/UNSPECIFIED/zones/us-1-a/disks/d"),
        ({BETA_ZONE: "us-1-b", ZONE: "us-1-a"}, "projects/UNSPECIFIED/zones/us-1-b/disks/d"),
        ({ZONE: "us-1-a__us-1-b"}, "projects/UNSPECIFIED/regions/us-1/disks/d"),
        ({ZONE: "us-1-a__eu-1-b"}, None),
        ({ZONE: "a__b"}, None),
    ],
)
def test_a_disk_may_be_regional(labels: dict[str, str] | None, handle: str | None) -> None:
    made = pv(labels, gcePersistentDisk={"pdName": "d"})
    assert volume_handle(IN_TREE["kubernetes.io/gce-pd"], made) == handle


def test_some_plugins_are_never_switched() -> None:
    assert {name for name, plugin in IN_TREE.items() if not plugin.switchable} == {
        "kubernetes.io/azure-file",
        "kubernetes.io/vsphere-volume",
    }
    assert in_tree(msgspec.convert({"name": "v", "csi": {"driver": "d"}}, Volume)) is None


TOPOLOGY = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("labels", "affinity", "expected"),
    [
        (None, None, None),
        ({ZONE: "a"}, None, [(TOPOLOGY, ("a",))]),
        ({BETA_ZONE: "b__a"}, None, [(TOPOLOGY, ("a", "b"))]),
        ({ZONE: "__"}, None, None),
        (None, (ZONE, ["a"]), [(TOPOLOGY, ("a",))]),
        ({ZONE: "b"}, (ZONE, ["a"]), [(TOPOLOGY, ("a",))]),
        (None, (BETA_ZONE, ["a"]), [(TOPOLOGY, ("a",))]),
        ({ZONE: "b"}, ("rack", ["r"]), [("rack", ("r",)), (TOPOLOGY, ("b",))]),
        ({BETA_ZONE: "b"}, (BETA_REGION, ["r"]), [(REGION, ("r",)), (TOPOLOGY, ("b",))]),
        ({ZONE: "b"}, (BETA_REGION, ["r"]), [(BETA_REGION, ("r",)), (TOPOLOGY, ("b",))]),
    ],
)
def test_zones_go_by_the_drivers_label(labels: Any, affinity: Any, expected: Any) -> None:
    found = translated_affinity(IN_TREE["kubernetes.io/aws-ebs"], pv(labels, affinity=affinity, **AWS))
    if found is None:
        assert expected is None
    else:
        (term,) = found.node_selector_terms or ()
        assert [(each.key, each.values) for each in term.match_expressions or ()] == expected
