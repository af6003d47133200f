"""Every stored kind: created, read, listed as objects and as a table, watched, changed, deleted; defaults, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plane import MERGE, Client, running
from skedge.controlplane import kinds
from skedge.controlplane.fields.table import table
from skedge.controlplane.kinds import Resource
from skedge.controlplane.tables import cells, columns

pytestmark = pytest.mark.asyncio

JSON = dict[str, Any]

TEMPLATE: JSON = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
ONCE: JSON = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
WORKLOAD: JSON = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
ROLE_REF: JSON = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}}
CLAIM: JSON = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
DEVICES: JSON = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}}

BODIES: dict[str, JSON] = {
    "pods": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    "podtemplates": {"template": TEMPLATE},
    "replicationcontrollers": {"spec": {"template": TEMPLATE}},
    "deployments.apps": WORKLOAD,
    "replicasets.apps": WORKLOAD,
    "statefulsets.apps": WORKLOAD,
    "daemonsets.apps": WORKLOAD,
    "controllerrevisions.apps": {"revision": 1, "data": {"x": 1}},
    "jobs.batch": {"spec": {"template": ONCE}},
    "cronjobs.batch": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}},
    "persistentvolumes": {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    },
    "persistentvolumeclaims": {"spec": CLAIM},
    "storageclasses.storage.k8s.io": {"provisioner": "p"},
    "csinodes.storage.k8s.io": {"spec": {"drivers": []}},
    "csistoragecapacities.storage.k8s.io": {"storageClassName": "s"},
    "volumeattachments.storage.k8s.io": {
        "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}
    },
    "volumeattributesclasses.storage.k8s.io": {"driverName": "d"},
    "priorityclasses.scheduling.k8s.io": {"value": 1},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "endpointslices.discovery.k8s.io": {"addressType": "IPv4", "endpoints": []},
    "rolebindings.rbac.authorization.k8s.io": ROLE_REF,
    "clusterrolebindings.rbac.authorization.k8s.io": ROLE_REF,
    "poddisruptionbudgets.policy": {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
    "resourceclaims.resource.k8s.io": {"spec": DEVICES},
    "resourceclaimtemplates.resource.k8s.io": {"spec": {"spec": DEVICES}},
    "resourceslices.resource.k8s.io": {
        "spec": {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"}
    },
    "devicetaintrules.resource.k8s.io": {"spec": {"taint": {"key": "k", "effect": "NoSchedule"}}},
    "podgroups.scheduling.k8s.io": {"spec": {"schedulingPolicy": {"basic": {}}}},
    "workloads.scheduling.k8s.io": {"spec": {"podGroupTemplates": []}},
    "resourcequotas": {"spec": {"hard": {"pods": "1", "count/jobs.batch": "2", "requests.nvidia.com/gpu": "1"}}},
    "events": {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "type": "Normal"},
}


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    return f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


STORED = [r for r in kinds.RESOURCES if r.stored and r.group != "events.k8s.io"]


async def test_all_kinds_of_the_field_table_are_served() -> None:
    assert len(kinds.RESOURCES) == 50  # and Scale and Eviction, which are subresources only
    served = {f"{r.api_version}/{r.kind}" for r in kinds.RESOURCES}
    assert table().kinds.keys() - served == {"autoscaling/v1/Scale", "policy/v1/Eviction"}


async def test_life_of_every_kind() -> None:
    async with running() as c:
        for resource in STORED:
            await _life(c, resource)


async def _life(c: Client, resource: Resource) -> None:
    path = _path(resource)
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}}
    made = await c.ok("POST", path, {**body, **BODIES.get(resource.storage, {})})
    assert (made["kind"], made["apiVersion"]) == (resource.kind, resource.api_version)
    assert made["metadata"]["uid"]
    assert await c.ok("GET", f"{path}/x") == made
    (item,) = [i for i in (await c.ok("GET", path))["items"] if i["metadata"]["name"] == "x"]
    assert item == {k: v for k, v in made.items() if k not in ("kind", "apiVersion")}
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    code, table = await c.send("GET", f"{path}/x", **accept)
    assert code == 200
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
    (event,) = await c.events(f"{path}?watch=true&fieldSelector=metadata.name%3Dx", 1)
    assert (event["type"], event["object"]) == ("ADDED", made)
    changed = await c.ok("PATCH", f"{path}/x", {"metadata": {"labels": {"l": "1"}}}, MERGE)
    assert changed["metadata"].get("generation") == made["metadata"].get("generation")
    put = await c.ok("PUT", f"{path}/x", changed)
    assert put == changed
    if "status" in resource.subresources:
        assert (await c.ok("GET", f"{path}/x/status"))["metadata"]["name"] == "x"
    await c.ok("DELETE", f"{path}/x")
    if made["metadata"].get("finalizers"):  # protected while in use: no controller says here that it is not
        await c.ok("PATCH", f"{path}/x", {"metadata": {"finalizers": None}}, MERGE)
    if resource.plural != "namespaces":
        assert (await c.send("GET", f"{path}/x"))[0] == 404


@pytest.mark.parametrize(
    ("storage", "wanted"),
    [
        ("deployments.apps", {"replicas": 1, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10}),
        ("statefulsets.apps", {"replicas": 1, "podManagementPolicy": "OrderedReady"}),
        (
            "daemonsets.apps",
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
        ),
        ("jobs.batch", {"completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed"}),
        ("cronjobs.batch", {"concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 3}),
        ("persistentvolumeclaims", {"volumeMode": "Filesystem"}),
        ("persistentvolumes", {"persistentVolumeReclaimPolicy": "Retain"}),
        ("services", {"type": "ClusterIP", "sessionAffinity": "None"}),
    ],
)
async def test_defaults(storage: str, wanted: JSON) -> None:
    resource = kinds.BY_STORAGE[storage]
    async with running() as c:
        made = await c.ok("POST", _path(resource), {"metadata": {"name": "x"}, **BODIES[storage]})
        assert {key: made["spec"].get(key) for key in wanted} == wanted


def _with(body: JSON, path: str, value: Any) -> JSON:
    """A deep copy with one value set; the path is dotted."""
    copy: JSON = json.loads(json.dumps(body))
    *parents, last = path.split(".")
    target = copy
    for key in parents:
        target = target.setdefault(key, {})
    target[last] = value
    return copy


@pytest.mark.parametrize(
    ("storage", "path", "value", "field"),
    [
        ("deployments.apps", "spec.selector", None, "spec.selector"),
        ("deployments.apps", "spec.selector", {"matchLabels": {"x": "y"}}, "spec.template.metadata.labels"),
        ("deployments.apps", "spec.replicas", -1, "spec.replicas"),
        ("replicasets.apps", "spec.template.spec.containers", [], "spec.template.spec.containers"),
        ("jobs.batch", "spec.template.spec.restartPolicy", "Always", "spec.template.spec.restartPolicy"),
        ("cronjobs.batch", "spec.schedule", "", "spec.schedule"),
        ("cronjobs.batch", "spec.schedule", "nope", "spec.schedule"),
        ("cronjobs.batch", "spec.schedule", "TZ=UTC * * * * *", "spec.schedule"),
        ("cronjobs.batch", "spec.timeZone", "Nowhere/Land", "spec.timeZone"),
        ("cronjobs.batch", "spec.timeZone", "Local", "spec.timeZone"),
        ("cronjobs.batch", "spec.concurrencyPolicy", "Perhaps", "spec.concurrencyPolicy"),
        ("cronjobs.batch", "spec.startingDeadlineSeconds", -1, "spec.startingDeadlineSeconds"),
        ("cronjobs.batch", "metadata.name", "x" * 53, "metadata.name"),
        (
            "cronjobs.batch",
            "spec.jobTemplate.spec.template.spec.restartPolicy",
            "Always",
            "spec.jobTemplate.spec.template.spec.restartPolicy",
        ),
        ("configmaps", "data", {"a b": "c"}, "data[a b]"),
        ("configmaps", "data", {"..x": "c"}, "data[..x]"),
        ("configmaps", "data", {"x": "y" * 1_048_577}, "[]"),
        ("secrets", "data", {"a/b": "Yg=="}, "data[a/b]"),
        ("secrets", "stringData", {"x": "y" * 1_048_577}, "data"),
        ("resourcequotas", "spec.hard", {"limit.cpu": "1"}, "spec.hard[limit.cpu]"),
        ("resourcequotas", "spec.hard", {"pods": "-1"}, "spec.hard[pods]"),
        ("persistentvolumeclaims", "spec.accessModes", [], "spec.accessModes"),
        ("persistentvolumes", "spec.capacity", {}, "spec.capacity"),
        ("storageclasses.storage.k8s.io", "volumeBindingMode", "Soon", "volumeBindingMode"),
        ("poddisruptionbudgets.policy", "spec.maxUnavailable", 1, "spec"),
        ("priorityclasses.scheduling.k8s.io", "preemptionPolicy", "Perhaps", "preemptionPolicy"),
        ("services", "metadata.name", "A", "metadata.name"),
        ("deployments.apps", "metadata.labels", {"a b": "c"}, "metadata.labels"),
        ("deployments.apps", "metadata.finalizers", ["bare"], "metadata.finalizers[0]"),
        ("deployments.apps", "metadata.ownerReferences", [{"kind": "X"}], "metadata.ownerReferences[0].apiVersion"),
    ],
)
async def test_refusals_name_the_field(storage: str, path: str, value: Any, field: str) -> None:
    resource = kinds.BY_STORAGE[storage]
    async with running() as c:
        body = _with({"metadata": {"name": "x"}, **BODIES.get(storage, {})}, path, value)
        code, answer = await c.send("POST", _path(resource), body)
        assert (code, answer["details"]["causes"][0]["field"]) == (422, field), answer


@pytest.mark.parametrize(
    ("storage", "path", "value"),
    [
        ("deployments.apps", "spec.selector", {"matchLabels": {"a": "b", "c": "d"}}),
        ("persistentvolumeclaims", "spec.accessModes", ["ReadWriteMany"]),
        ("storageclasses.storage.k8s.io", "provisioner", "other"),
        ("services", "spec.clusterIP", "10.0.0.99"),
        ("statefulsets.apps", "spec.serviceName", "other"),
        ("jobs.batch", "spec.template.spec.containers", [{"name": "c", "image": "other"}]),
        ("resourcequotas", "spec.scopes", ["BestEffort"]),
        ("resourceclaims.resource.k8s.io", "spec.devices.requests", []),
        ("clusterrolebindings.rbac.authorization.k8s.io", "roleRef.name", "other"),
    ],
)
async def test_what_is_fixed_at_creation(storage: str, path: str, value: Any) -> None:
    resource = kinds.BY_STORAGE[storage]
    async with running() as c:
        await c.ok("POST", _path(resource), {"metadata": {"name": "x"}, **BODIES[storage]})
        code, answer = await c.send("PATCH", f"{_path(resource)}/x", _with({}, path, value), MERGE)
        assert (code, answer["reason"]) == (422, "Invalid")


def _pod(status: JSON, **meta: Any) -> JSON:
    return {"metadata": {"name": "p", **meta}, "spec": {"containers": [{"name": "c"}]}, "status": status}


NOW = 1_700_000_000.0
RUN = {"name": "c", "ready": True, "restartCount": 2, "state": {"running": {}}}


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        (_pod({"phase": "Pending"}), ["p", "0/1", "Pending", "0"]),
        (_pod({"phase": "Running", "containerStatuses": [{**RUN, "restartCount": 0}]}), ["p", "1/1", "Running", "0"]),
        (
            _pod(
                {
                    "phase": "Running",
                    "containerStatuses": [
                        {**RUN, "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2023-11-14T22:11:20Z"}}}
                    ],
                }
            ),
            ["p", "1/1", "Running", "2 (2m ago)"],
        ),
        (
            _pod(
                {
                    "phase": "Pending",
                    "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
                }
            ),
            ["p", "0/1", "ImagePullBackOff", "0"],
        ),
        (
            _pod({"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3}}}]}),
            ["p", "0/1", "ExitCode:3", "0"],
        ),
        (_pod({"phase": "Failed", "reason": "Evicted"}), ["p", "0/1", "Evicted", "0"]),
        (_pod({"phase": "Running"}, deletionTimestamp="2023-11-14T22:13:20Z"), ["p", "0/1", "Terminating", "0"]),
        (
            _pod({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
            ["p", "0/1", "Init:0/0", "0"],
        ),
    ],
)
async def test_the_status_word_of_a_pod(pod: JSON, wanted: list[str]) -> None:
    assert cells("pods", pod, NOW)[:4] == wanted
    assert len(columns("pods")) == 9


async def test_as_much_data_as_there_may_be() -> None:
    async with running() as c:
        for plural, field in (("configmaps", "data"), ("secrets", "stringData")):
            body = {"metadata": {"name": "x"}, field: {"a": "y" * 1_048_570, "b": "z" * 6}}
            await c.ok("POST", f"/api/v1/namespaces/default/{plural}", body)


async def test_node_ports_are_given_kept_and_taken_away() -> None:
    async with running() as c:
        services = "/api/v1/namespaces/default/services"
        ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30500}]
        body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
        made = await c.ok("POST", services, body)
        first, second = (port["nodePort"] for port in made["spec"]["ports"])
        assert (first in range(30000, 32768), second) == (True, 30500)
        again = await c.ok("PUT", f"{services}/s", body)
        assert [port["nodePort"] for port in again["spec"]["ports"]] == [first, second]
        plain = await c.ok("PATCH", f"{services}/s", {"spec": {"type": "ClusterIP"}}, MERGE)
        assert [port.get("nodePort") for port in plain["spec"]["ports"]] == [None, None]


async def test_where_pods_go_can_be_said_until_a_suspended_job_starts() -> None:
    async with running() as c:
        body = _with({"metadata": {"name": "j"}, **BODIES["jobs.batch"]}, "spec.suspend", True)
        jobs = "/apis/batch/v1/namespaces/default/jobs"
        await c.ok("POST", jobs, body)
        await c.ok("PATCH", f"{jobs}/j", _with({}, "spec.template.spec.nodeSelector", {"a": "b"}), MERGE)
        await c.ok("PATCH", f"{jobs}/j", {"spec": {"suspend": False}}, MERGE)
        code, _ = await c.send("PATCH", f"{jobs}/j", _with({}, "spec.template.spec.nodeSelector", {"a": "c"}), MERGE)
        assert code == 422


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"completionMode": "Indexed", "parallelism": 2}, "spec.completions: Required value"),
        ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"),
        ({"successPolicy": {"rules": [{"succeededCount": 1}]}}, "spec.successPolicy: Invalid value"),
        (
            {"completionMode": "Indexed", "completions": 2, "maxFailedIndexes": 1},
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
        ),
    ],
)
async def test_what_indexed_jobs_have(spec: dict[str, Any], message: str) -> None:
    async with running() as c:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        body = {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}
        code, answer = await c.send("POST", "/apis/batch/v1/namespaces/default/jobs", body)
        assert code == 422
        assert message in answer["message"]
