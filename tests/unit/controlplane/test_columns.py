"""Printer columns of kinds that the recordings do not show."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.tables import cells, columns

JSON = dict[str, Any]

NOW = 1_800_000_000.0
META = {"name": "x", "creationTimestamp": "2027-01-15T08:00:00Z"}  # NOW
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("storage", "header", "obj", "shown"),
    [
        (
            "resourcequotas",
            "Name Request Limit Age",
            {"status": {"hard": {"pods": "9", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3", "cpu": "500m"}}},
            ["cpu: 500m/1, pods: 3/9", "limits.cpu: 0/2", "0s"],
        ),
        ("limitranges", "Name,Created At", {}, ["2027-01-15T08:00:00Z"]),
        (
            "controllerrevisions.apps",
            "Name Controller Revision Age",
            {"revision": 3, "metadata": {**META, "ownerReferences": [OWNER]}},
            ["statefulset.apps/db", 3, "0s"],
        ),
        ("controllerrevisions.apps", "Name Controller Revision Age", {"revision": 1}, ["<none>", 1, "0s"]),
        (
            "podtemplates",
            "Name,Containers,Images,Pod Labels",
            {
                "template": {
                    "metadata": {"labels": {"b": "2", "a": "1"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                }
            },
            ["c", "i", "a=1,b=2"],
        ),
        (
            "endpoints",
            "Name Endpoints Age",
            {"subsets": [{"addresses": [{"ip": f"10.0.0.{i}"} for i in range(5)], "ports": [{"port": 80}]}]},
            ["10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more...", "0s"],
        ),
        ("endpoints", "Name Endpoints Age", {}, ["<none>", "0s"]),
        (
            "endpointslices.discovery.k8s.io",
            "Name AddressType Ports Endpoints Age",
            {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]},
            ["IPv4", "80", "10.0.0.1", "0s"],
        ),
        (
            "volumeattachments.storage.k8s.io",
            "Name Attacher PV Node Attached Age",
            {
                "spec": {"attacher": "csi", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
                "status": {"attached": True},
            },
            ["csi", "v", "n", True, "0s"],
        ),
        (
            "csidrivers.storage.k8s.io",
            "Name AttachRequired PodInfoOnMount StorageCapacity TokenRequests RequiresRepublish Modes Age",
            {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}},
            [False, False, False, "<unset>", False, "Persistent,Ephemeral", "0s"],
        ),
        (
            "csistoragecapacities.storage.k8s.io",
            "Name StorageClassName Capacity",
            {"storageClassName": "fast", "capacity": "1Gi"},
            ["fast", "1Gi"],
        ),
        (
            "volumeattributesclasses.storage.k8s.io",
            "Name DriverName Age",
            {"driverName": "csi"},
            ["csi", "0s"],
        ),
        ("deviceclasses.resource.k8s.io", "Name Age", {}, ["0s"]),
    ],
)
def test_rows(storage: str, header: str, obj: JSON, shown: list[Any]) -> None:
    assert [column["name"] for column in columns(storage)] == header.split("," if "," in header else " ")
    assert cells(storage, {"metadata": META, **obj}, NOW) == ["x", *shown]
