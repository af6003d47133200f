"""The real command: what it says and how it ends, for bad input and for good."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from e2e import servers
from e2e.command import kubeconfig, scheduler
from e2e.proxy import RecordingProxy
from serving_authority import authority
from skedge.controlplane.server import ControlPlane
from skedge.controlplane.tls import ServerTLS

LOCAL = ("--bind-address=127.0.0.1", "--secure-port=0")
FAST_LEASE = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
LEADS = "Successfully acquired lease"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with servers.running("embedded") as url:
        yield url


async def ends(*flags: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Runs the command to its end; exit status and the one line that says why."""
    async with scheduler(*flags, **(env or {})) as command:
        status = await command.ended()
    failed = [line for line in command.lines if "command failed" in line]
    assert len(failed) == 1, command.text
    return status, failed[0]


# --- bad input --------------------------------------------------------------------------------------------------------


BROKEN = {
    "absent": (None, r"/absent\b.*no such file"),
    "no-yaml": ("clusters: [", r"no-yaml.*"),
    "no-context": ("apiVersion: v1\nkind: Config\n", r"no-context.*"),
    "no-server": (
        "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {}}]\n",
        r"no-server.*server",
    ),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("case", BROKEN)
async def test_unusable_kubeconfig(tmp_path: Path, case: str) -> None:
    text, expected = BROKEN[case]
    path = tmp_path / case
    if text is not None:
        path.write_text(text)
    status, line = await ends(f"--kubeconfig={path}", *LOCAL)
    assert status == 1
    assert re.search(expected, line, re.IGNORECASE), line


@pytest.mark.asyncio
async def test_no_configuration_at_all() -> None:
    status, line = await ends(*LOCAL)
    assert status == 1
    assert "invalid configuration: no configuration has been provided" in line


@pytest.mark.asyncio
async def test_server_with_an_unknown_certificate(tmp_path: Path) -> None:
    pair = authority("strangers").issue("127.0.0.1")
    (tmp_path / "crt").write_text(pair.certificate)
    (tmp_path / "key").write_text(pair.key)
    plane = ControlPlane(tls=ServerTLS(tmp_path / "crt", tmp_path / "key"))
    await plane.start()
    try:
        status, line = await ends(f"--kubeconfig={kubeconfig(tmp_path, plane.url)}", *LOCAL)
    finally:
        await plane.stop()
    assert status == 1
    assert "certificate" in line


@pytest.mark.asyncio
async def test_unknown_token(tmp_path: Path, url: str) -> None:
    status, line = await ends(f"--kubeconfig={kubeconfig(tmp_path, url, 'nobody')}", *LOCAL)
    assert status == 1
    assert "the API server does not accept our credentials: Unauthorized" in line


@pytest.mark.asyncio
async def test_user_who_may_not_read_pods(tmp_path: Path, url: str) -> None:
    status, line = await ends(f"--kubeconfig={kubeconfig(tmp_path, url, servers.PLAIN)}", *LOCAL)
    assert status == 1
    assert re.search(r'User \\?"jane\\?" cannot (list|watch) resource \\?"(pods|nodes)\\?"', line), line


@pytest.mark.asyncio
async def test_address_in_use(tmp_path: Path, url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        flags = ("--bind-address=127.0.0.1", f"--secure-port={port}")
        status, line = await ends(f"--kubeconfig={kubeconfig(tmp_path, url, servers.SCHEDULER)}", *flags)
    assert status == 1
    assert f"failed to listen on 127.0.0.1:{port}: Address already in use" in line


@pytest.mark.asyncio
async def test_lease_times_that_cannot_work(tmp_path: Path) -> None:
    times = ("--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=9s")
    status, line = await ends(f"--kubeconfig={kubeconfig(tmp_path, 'http://127.0.0.1:1')}", *LOCAL, *times)
    assert status == 1
    assert "couldn't create leader elector: renewDeadline must be greater than retryPeriod*JitterFactor" in line


# --- life and death ---------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_waits_for_a_server_that_is_down(tmp_path: Path) -> None:
    port = servers.free_port()
    path = kubeconfig(tmp_path, f"http://127.0.0.1:{port}", servers.SCHEDULER)
    async with scheduler(f"--kubeconfig={path}", *LOCAL) as command:
        await command.says("The API server does not answer, trying again.*refused")
        plane = ControlPlane(port, access=servers.access())
        await plane.start()
        try:
            await command.says(LEADS)
            command.send(signal.SIGTERM)
            assert await command.ended() == 0
        finally:
            await plane.stop()
    tries = [line for line in command.lines if "trying again" in line]
    assert len(tries) == sum("refused" in line for line in command.lines), "one line a try"


@pytest.mark.asyncio
async def test_end_with_an_election_releases_the_lease(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path, url, servers.SCHEDULER)
    async with scheduler(f"--kubeconfig={path}", *LOCAL, "-v=3") as command, servers.operator(url) as operator:
        await command.says("Handlers synced[^$]*" + LEADS)
        held = await operator.send("GET", LEASE)
        command.send(signal.SIGUSR2)
        await command.says("cache comparer finished[^$]*Dump of cached NodeInfo[^$]*Dump of scheduling queue")
        assert "Cache mismatch" not in command.text
        command.send(signal.SIGTERM)
        assert await command.ended() == 0
        released = await operator.send("GET", LEASE)
    assert "Requested to terminate, exiting" in command.lines[-1]
    assert held["spec"]["holderIdentity"]
    assert not released["spec"].get("holderIdentity")
    assert released["spec"]["leaseTransitions"] == held["spec"]["leaseTransitions"]


@pytest.mark.asyncio
async def test_end_without_an_election_is_a_failure(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path, url, servers.SCHEDULER)
    async with scheduler(f"--kubeconfig={path}", *LOCAL, "--leader-elect=false", "-v=3") as command:
        await command.says("Leader election is off")
        command.send(signal.SIGINT)
        assert await command.ended() == 1
    assert 'command failed" err="finished without leader elect"' in command.lines[-1]


@pytest.mark.asyncio
async def test_second_signal_ends_at_once(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path, url, servers.SCHEDULER)
    delegated = (f"--authentication-kubeconfig={path}", f"--authorization-kubeconfig={path}")
    port = servers.free_port()
    flags = (f"--kubeconfig={path}", *delegated, "--bind-address=127.0.0.1", f"--secure-port={port}")
    async with scheduler(*flags) as command, aiohttp.ClientSession() as session:
        await command.says(LEADS)
        slow = asyncio.create_task(get(session, port, "/debug/pprof/profile?seconds=30", servers.ADMIN))
        await asyncio.sleep(0.5)
        command.send(signal.SIGTERM)
        await command.says("secure server has stopped listening")
        command.send(signal.SIGTERM)
        assert await command.ended(2.0) == 1
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
    assert "Requested to terminate" not in command.text


@pytest.mark.asyncio
async def test_lease_lost(tmp_path: Path, url: str) -> None:
    async with RecordingProxy(url) as proxy, servers.operator(url) as operator:
        path = kubeconfig(tmp_path, proxy.url, servers.SCHEDULER)
        async with scheduler(f"--kubeconfig={path}", *LOCAL, *FAST_LEASE) as command:
            await command.says(LEADS)
            proxy.answer = lambda request: (500, {}) if "/leases" in request.path else None
            await command.says("Failed to renew lease")
            for name, body in (("n", NODE), ("p", POD)):
                await operator.send("POST", PATHS[name], body)
            assert await command.ended() == 1
    assert "Leaderelection lost" in command.lines[-1]
    assert not [request for request in proxy.requests if request.path.endswith("/binding")]


PATHS = {"n": "/api/v1/nodes", "p": "/api/v1/namespaces/default/pods"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]},
}


@pytest.mark.asyncio
async def test_configuration_is_written_and_read_back(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    for source, target in ((f"--kubeconfig={path}", first), (f"--config={first}", second)):
        async with scheduler(source, f"--write-config-to={target}", *LOCAL) as command:
            assert await command.ended() == 0, command.text
        assert "Wrote configuration" in command.lines[-1]
    assert first.read_text() == second.read_text()


# --- serving ----------------------------------------------------------------------------------------------------------


async def get(session: aiohttp.ClientSession, port: int, path: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with session.get(f"https://127.0.0.1:{port}{path}", headers=headers, ssl=False) as answer:
        return answer.status, await answer.text()


@pytest.mark.asyncio
async def test_serves_while_it_waits(tmp_path: Path) -> None:
    """Nobody to ask: what is always allowed works, all else does not; not ready."""
    path = kubeconfig(tmp_path, f"http://127.0.0.1:{servers.free_port()}")
    port = servers.free_port()
    flags = (
        f"--authentication-kubeconfig={path}",
        f"--authorization-kubeconfig={path}",
        "--authentication-skip-lookup",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--authorization-always-allow-paths=/healthz,/readyz,/configz",
    )
    async with scheduler(f"--kubeconfig={path}", *flags) as command, aiohttp.ClientSession() as session:
        await command.https_port()
        assert await get(session, port, "/healthz") == (200, "ok")
        status, text = await get(session, port, "/readyz")
        assert (status, text.splitlines()[2]) == (500, "[-]sched-handler-sync failed: reason withheld")
        assert (await get(session, port, "/metrics"))[0] == 500
        assert (await get(session, port, "/metrics", "token"))[0] == 401
        status, text = await get(session, port, "/configz")
        assert status == 200
        assert json.loads(text)["componentconfig"]["kind"] == "KubeSchedulerConfiguration"
        command.send(signal.SIGTERM)
        assert await command.ended() == 0


async def authentication_config_map(operator: servers.Operator) -> Any:
    data = {
        "client-ca-file": authority("clients").pem,
        "requestheader-client-ca-file": authority("proxies").pem,
        "requestheader-allowed-names": json.dumps(["front"]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
        "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
    }
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return await operator.send("POST", "/api/v1/namespaces/kube-system/configmaps", body)


@pytest.mark.asyncio
async def test_client_certificates_of_the_cluster(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path, url, servers.ADMIN)
    port = servers.free_port()
    flags = (f"--authentication-kubeconfig={path}", f"--authorization-kubeconfig={path}", f"--secure-port={port}")
    async with servers.operator(url) as operator:
        await authentication_config_map(operator)
        async with scheduler(f"--kubeconfig={path}", *flags, "--bind-address=127.0.0.1") as command:
            await command.https_port()
            assert await asked_with(tmp_path, port, "clients", "root", "system:masters") == 200
            assert await asked_with(tmp_path, port, "clients", "jane") == 403
            asserted = {"X-Remote-User": "somebody", "X-Remote-Group": "system:masters"}
            assert await asked_with(tmp_path, port, "proxies", "front", headers=asserted) == 200
            assert await asked_with(tmp_path, port, "proxies", "back", headers=asserted) == 401


async def asked_with(
    folder: Path, port: int, signer: str, name: str, *groups: str, headers: dict[str, str] | None = None
) -> int:
    """The status of /metrics for the owner of a certificate."""
    pair = authority(signer).issue(name, *groups)
    (folder / "client.crt").write_text(pair.certificate)
    (folder / "client.key").write_text(pair.key)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(folder / "client.crt", folder / "client.key")
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://127.0.0.1:{port}/metrics", ssl=context, headers=headers) as answer,
    ):
        return answer.status


@pytest.mark.asyncio
async def test_lookup_of_the_trust_may_have_to_work(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path, url, servers.SCHEDULER)
    flags = (f"--authentication-kubeconfig={path}", "--authentication-tolerate-lookup-failure=false")
    port = servers.free_port()
    status, line = await ends(f"--kubeconfig={path}", *flags, f"--secure-port={port}")
    assert status == 1
    assert "unable to load configmap based request-header-client-ca-file" in line


@pytest.mark.asyncio
async def test_plain_http_on_loopback(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path, url, servers.SCHEDULER)
    port = servers.free_port()
    async with scheduler(f"--kubeconfig={path}", "--secure-port=0", f"--port={port}", "--address=127.0.0.1") as command:
        await command.says("Serving insecurely")
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/metrics") as answer,
        ):
            assert answer.status == 200
            assert "scheduler_pending_pods" in await answer.text()
