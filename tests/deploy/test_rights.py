"""The roles of the manifests against the table in the code, and the table against what a running scheduler asks for.

kubectl applies the manifests to an embedded API server that evaluates RBAC; `skedge scheduler` runs there as the
ServiceAccount that they make, with the configuration that they make, behind a proxy that writes down its requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from deploy.support import MANIFESTS, SETS, kubectl, loaded, manifest
from e2e import servers
from e2e.command import Command, kubeconfig, scheduler
from e2e.proxy import Answer, Recorded, RecordingProxy
from skedge.app.rights import Right, rights
from skedge.config.gates import FeatureGates
from skedge.config.types import LeaderElection
from skedge.controlplane.access import Access, User
from skedge.controlplane.request import Target, parse, split
from skedge.controlplane.server import ControlPlane
from skedge.controlplane.tls import Authority

TOKEN = "serviceaccounttoken"
PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEADS = "Successfully acquired lease"


# --- the roles --------------------------------------------------------------------------------------------------------


def granted(rule: dict[str, Any], namespace: str) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or [""]:
                    yield Right(group, resource, verb, namespace, name)


async def effective(operator: servers.Operator, account: str) -> set[Right]:
    """What a ServiceAccount of kube-system may do by all bindings of the server."""
    found: set[Right] = set()
    for plural in ("clusterrolebindings", "rolebindings"):
        for binding in (await operator.send("GET", f"{RBAC}/{plural}"))["items"]:
            if not any(s["kind"] == "ServiceAccount" and s["name"] == account for s in binding.get("subjects") or ()):
                continue
            namespace = binding["metadata"].get("namespace", "")
            role = binding["roleRef"]
            where = f"{RBAC}/namespaces/{namespace}/roles" if role["kind"] == "Role" else f"{RBAC}/clusterroles"
            for rule in (await operator.send("GET", f"{where}/{role['name']}"))["rules"]:
                found |= set(granted(rule, namespace))
    return found


def table(name: str) -> set[Right]:
    """The code's table for the configuration of a manifest."""
    text = manifest(name)["ConfigMap", SETS[name]]["data"]["default.yaml"]
    return set(rights(loaded(text).leader_election, FeatureGates().enabled))


@asynccontextmanager
async def cluster(name: str, folder: Path) -> AsyncIterator[tuple[str, servers.Operator]]:
    """A server that evaluates RBAC, with a set of manifests applied."""
    account = User(f"system:serviceaccount:kube-system:{SETS[name]}", ("system:serviceaccounts",))
    access = Access({servers.ADMIN: servers.USERS[servers.ADMIN], TOKEN: account})
    tls = Authority(folder / "pki", time.time()).serving(["127.0.0.1"])  # kubectl tells who it is over TLS only
    plane = ControlPlane(access=access, tls=tls)
    await plane.start()
    try:
        admin = kubeconfig(
            folder, plane.url, servers.ADMIN, name="admin", **{"certificate-authority": str(tls.client_ca)}
        )
        said = await kubectl(admin, "apply", "-f", str(MANIFESTS / f"{name}.yaml"))
        assert said.count(" created") == len(manifest(name))
        assert "unchanged" in await kubectl(admin, "apply", "-f", str(MANIFESTS / f"{name}.yaml"))
        async with servers.operator(plane.url) as operator:
            yield plane.url, operator
    finally:
        await plane.stop()


@pytest.mark.asyncio
@pytest.mark.parametrize("name", SETS)
async def test_roles_are_what_the_code_asks_for(name: str, tmp_path: Path) -> None:
    async with cluster(name, tmp_path) as (_, operator):
        found, wanted = await effective(operator, SETS[name]), table(name)
    assert found - wanted == set(), "too much"
    assert wanted - found == set(), "missing"


def test_gates_and_elections_change_what_is_asked() -> None:
    plain = rights(LeaderElection(), FeatureGates().enabled)
    alone = rights(LeaderElection(leader_elect=False), FeatureGates().enabled)
    assert alone < plain
    assert {right.resource for right in plain - alone} == {"leases"}
    more = rights(LeaderElection(), lambda gate: True) - plain
    assert {right.resource for right in more} == {"leasecandidates", "podgroups", "devicetaintrules"}


# --- a running scheduler ----------------------------------------------------------------------------------------------


def covers(right: Right, target: Target) -> bool:
    resource = target.plural + (f"/{target.subresource.name}" if target.subresource else "")
    fields = target.query.get("fieldSelector", "")
    name = target.name or (fields.removeprefix("metadata.name=") if fields.startswith("metadata.name=") else "")
    return (
        (right.group, right.resource, right.verb) == (target.group, resource, target.verb)
        and right.namespace in ("", target.namespace)
        and right.name in ("", name)
    )


def asked(requests: list[Recorded]) -> list[Target]:
    targets = []
    for request in requests:
        segments, query = split(request.path)
        if len(segments) > (2 if segments[0] == "api" else 3):
            target = parse(request.method, segments, query)
            assert target is not None, request
            targets.append(target)
    return targets


def no_watch_list(request: Recorded) -> Answer | None:
    """A server that makes clients list first."""
    if "sendInitialEvents" not in request.path:
        return None
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}
    return 422, status | {"message": "not before Kubernetes 1.32"}


@asynccontextmanager
async def running(
    name: str, profile: str, url: str, folder: Path, port: int, *flags: str
) -> AsyncIterator[tuple[Command, RecordingProxy]]:
    """The command with a configuration of the manifests, as their ServiceAccount."""
    async with RecordingProxy(url) as proxy:
        own = kubeconfig(folder, proxy.url, TOKEN, name="own")
        config = yaml.safe_load(manifest(name)["ConfigMap", SETS[name]]["data"][f"{profile}.yaml"])
        config["clientConnection"]["kubeconfig"] = own
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        delegated = (f"--authentication-kubeconfig={own}", f"--authorization-kubeconfig={own}")
        address = ("--bind-address=127.0.0.1", f"--secure-port={port}")
        async with scheduler(f"--config={folder / 'config.yaml'}", *delegated, *address, "-v=2", *flags) as command:
            yield command, proxy


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def pod(name: str, scheduler_name: str, cpu: str, *, claim: str = "", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    spec = {"schedulerName": scheduler_name, "containers": [container], **spec}
    spec["tolerations"] = [{"operator": "Exists"}]
    if claim:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def storage(name: str, provisioner: str) -> dict[str, Any]:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return kind | {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "pv"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "static",
        "local": {"path": "/mnt"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}
                ]
            }
        },
    },
}


async def requested(proxy: RecordingProxy, method: str, ending: str, seconds: float = 15.0) -> None:
    """Waits until such a request was made."""
    async with asyncio.timeout(seconds):
        while not any(r.method == method and r.path.partition("?")[0].endswith(ending) for r in proxy.requests):
            await proxy.arrival(0.2)


async def bound(operator: servers.Operator, *names: str) -> list[str]:
    """Waits until the pods have nodes; these."""
    async with asyncio.timeout(15):
        while True:
            items = (await operator.send("GET", PODS))["items"]
            nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in items}
            if all(nodes.get(name) for name in names):
                return [nodes[name] for name in names]
            await asyncio.sleep(0.05)


UNSEEN = {Right("", "events", "patch"), Right("events.k8s.io", "events", "patch")}
"""For repeated events, which take minutes to come about."""


@pytest.mark.asyncio
async def test_a_scheduler_asks_for_all_that_and_nothing_else(tmp_path: Path) -> None:
    """Binds, fails, preempts, binds volumes, has one provisioned, is asked for its metrics; behind a server without
    watch lists, so that it lists too."""
    name, own = "second-scheduler", "skedge"
    async with cluster(name, tmp_path) as (url, operator):
        await operator.send("POST", "/api/v1/nodes", node("n"))
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
        await operator.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent | {"value": 1000})
        for each, provisioner in (("static", "kubernetes.io/no-provisioner"), ("dynamic", "example.com/disks")):
            await operator.send("POST", "/apis/storage.k8s.io/v1/storageclasses", storage(each, provisioner))
            await operator.send("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim(each))
        await operator.send("POST", "/api/v1/persistentvolumes", VOLUME)
        merge, free = "application/merge-patch+json", {"status": {"phase": "Available"}}
        await operator.send("PATCH", "/api/v1/persistentvolumes/pv/status", free, merge)
        trust = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extension-apiserver-authentication"}}
        await operator.send("POST", "/api/v1/namespaces/kube-system/configmaps", trust)
        port = servers.free_port()
        async with running(name, "default", url, tmp_path, port) as (command, proxy):
            proxy.answer = no_watch_list
            await command.says(LEADS)
            await operator.send("POST", PODS, pod("small", own, "2", terminationGracePeriodSeconds=0))
            await bound(operator, "small")
            await operator.send("POST", PODS, pod("large", own, "100"))
            await requested(proxy, "PATCH", "/pods/large/status")
            await operator.send("POST", PODS, pod("urgent", own, "3", priorityClassName="urgent"))
            await bound(operator, "urgent")
            for each in ("static", "dynamic"):
                await operator.send("POST", PODS, pod(each, own, "100m", claim=each))
            await requested(proxy, "PUT", "/persistentvolumes/pv")
            await requested(proxy, "PUT", "/persistentvolumeclaims/dynamic")
            headers = {"Authorization": f"Bearer {servers.ADMIN}"}
            async with aiohttp.ClientSession(headers=headers) as session:
                async with session.get(f"https://127.0.0.1:{port}/metrics", ssl=False) as answer:
                    assert answer.status == 200
                headers = {"Authorization": f"Bearer {TOKEN}"}
                async with session.get(f"https://127.0.0.1:{port}/metrics", ssl=False, headers=headers) as answer:
                    assert answer.status == 403, "the scheduler's own account may not read metrics"
            await requested(proxy, "POST", "/namespaces/kube-system/events")
            await requested(proxy, "POST", "/namespaces/default/events")
            async with asyncio.timeout(15):
                while not any("configmaps?" in r.path and "watch=true" in r.path for r in proxy.requests):
                    await proxy.arrival(0.2)
            text, requests = command.text, list(proxy.requests)
    assert "orbidden" not in text
    targets, wanted = asked(requests), table(name)
    assert [t for t in targets if not any(covers(right, t) for right in wanted)] == []
    unused = {right for right in wanted if not any(covers(right, target) for target in targets)}
    assert unused == UNSEEN


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "profile", "packed"),
    [
        ("cluster-scheduler", "binpack", True),
        ("cluster-scheduler", "binpack-ratio", True),
        ("cluster-scheduler", "default", False),
    ],
)
async def test_profiles(name: str, profile: str, packed: bool, tmp_path: Path) -> None:
    """Four pods, four nodes: all on one, or one each."""
    async with cluster(name, tmp_path) as (url, operator):
        for i in range(4):
            await operator.send("POST", "/api/v1/nodes", node(f"n{i}"))
        async with running(name, profile, url, tmp_path, 0) as (command, _):
            await command.says(LEADS)
            nodes: set[str] = set()
            for i in range(4):
                await operator.send("POST", PODS, pod(f"p{i}", "default-scheduler", "500m"))
                nodes |= set(await bound(operator, f"p{i}"))
            lease = await operator.send(
                "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
            )
            text = command.text
    assert "orbidden" not in text
    assert lease["spec"]["holderIdentity"]
    assert len(nodes) == (1 if packed else 4)
