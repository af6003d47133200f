"""The command from the outside: who gets what of its endpoints, how it begins, what it watches and waits for.

Rows of the serving matrix, and steps A21, A37, A38, A43 and A44 of the start-up flow of old releases.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from e2e import servers
from e2e.command import Command, kubeconfig, scheduler
from e2e.proxy import RecordingProxy
from e2e.test_process import NODE, PODS, bound, configuration, pod, running, until


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with servers.running("embedded") as url:
        yield url


async def codes(port: int, *questions: str) -> dict[str, int]:
    """Answers to `anonymous /path` or `admin /path`."""
    found = {}
    async with aiohttp.ClientSession() as session:
        for question in questions:
            who, path = question.split()
            headers = {"Authorization": f"Bearer {servers.ADMIN}"} if who == "admin" else {}
            async with session.get(f"https://127.0.0.1:{port}{path}", headers=headers, ssl=False) as answer:
                found[question] = answer.status
    return found


async def end(command: Command) -> None:
    command.send(signal.SIGTERM)
    assert await command.ended() == 0


@pytest.mark.asyncio
async def test_matrix_only_a_kubeconfig(tmp_path: Path, url: str) -> None:
    """Nobody to ask about users: what is always allowed works; tokens mean nothing."""
    path, port = kubeconfig(tmp_path, url, servers.SCHEDULER), servers.free_port()
    async with scheduler(f"--kubeconfig={path}", "--bind-address=127.0.0.1", f"--secure-port={port}") as command:
        await command.https_port()
        asked = await codes(port, "anonymous /healthz", "anonymous /metrics", "admin /metrics", "anonymous /livez/ping")
        assert list(asked.values()) == [200, 403, 403, 403]
        await end(command)


@pytest.mark.asyncio
async def test_matrix_all_is_well(tmp_path: Path, url: str) -> None:
    path, port = kubeconfig(tmp_path, url, servers.SCHEDULER), servers.free_port()
    flags = [f"--{name}={path}" for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]
    async with scheduler(*flags, "--bind-address=127.0.0.1", f"--secure-port={port}", "-v=3") as command:
        await command.says("Handlers synced")
        good = ("/metrics", "/livez", "/livez/ping", "/readyz", "/readyz/shutdown", "/readyz/sched-handler-sync")
        asked = await codes(port, "anonymous /healthz", *(f"admin {each}" for each in good))
        assert set(asked.values()) == {200}, asked
        assert await codes(port, "anonymous /readyz/shutdown") == {"anonymous /readyz/shutdown": 403}
        await end(command)
    told = ["Starting Kubernetes Scheduler", "Serving securely", "Handlers synced", "Successfully acquired lease"]
    assert told == [word for line in command.lines for word in told if word in line], "A43, A44: in this order"
    assert 'version="v1.36.2"' in next(line for line in command.lines if told[0] in line)


@pytest.mark.asyncio
async def test_matrix_nobody_answers(tmp_path: Path) -> None:
    """The server that would know is not there: errors, but for what is always allowed."""
    path, port = kubeconfig(tmp_path, f"http://127.0.0.1:{servers.free_port()}"), servers.free_port()
    flags = [f"--{name}={path}" for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]
    more = ("--authentication-skip-lookup", "--authorization-always-allow-paths=healthz,/metrics,readyz*")
    async with scheduler(*flags, *more, "--bind-address=127.0.0.1", f"--secure-port={port}") as command:
        await command.https_port()
        asked = await codes(port, "anonymous /healthz", "anonymous /metrics", "anonymous /configz", "anonymous /readyz")
        assert list(asked.values()) == [200, 200, 500, 500]
        await end(command)


@pytest.mark.asyncio
async def test_matrix_no_port(tmp_path: Path, url: str) -> None:
    path = kubeconfig(tmp_path, url, servers.SCHEDULER)
    async with scheduler(f"--kubeconfig={path}", "--bind-address=127.0.0.1", "--secure-port=0") as command:
        await command.says("Successfully acquired lease")
        await end(command)
    assert "Serving securely" not in command.text


OF_OLD = """nodes pods persistentvolumes persistentvolumeclaims replicationcontrollers replicasets statefulsets services
poddisruptionbudgets storageclasses csinodes"""
OF_TODAY = "namespaces csidrivers csistoragecapacities volumeattachments"


@pytest.mark.asyncio
async def test_a21_and_a44_what_is_watched_and_in_which_order(url: str) -> None:
    async with RecordingProxy(url) as proxy:
        async with running(proxy.url, configuration(elect=True)) as process:
            await until(lambda: process.election is not None and process.election.leading)
        paths = [each.path for each in proxy.requests]
    watched = {path.partition("?")[0].rpartition("/")[2] for path in paths if "watch=true" in path}
    assert {*OF_OLD.split(), *OF_TODAY.split()} <= watched
    groups = {"/apis/policy/v1/poddisruptionbudgets", "/apis/storage.k8s.io/v1/csinodes"}
    assert groups <= {path.partition("?")[0] for path in paths}
    first = [
        next(i for i, path in enumerate(paths) if word in path)
        for word in ("/events.k8s.io/", "/api/v1/pods", "/leases")
    ]
    assert first == sorted(first), "events API, then informers, then the lease"


@pytest.mark.asyncio
async def test_a38_nothing_is_placed_before_everything_is_known(url: str) -> None:
    async with RecordingProxy(url) as proxy, servers.operator(url) as operator:
        hidden = True
        failure = {"kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500, "message": "not now"}
        proxy.answer = lambda request: (500, failure) if hidden and "/persistentvolumes?" in request.path else None
        await operator.send("POST", "/api/v1/nodes", NODE)
        await operator.send("POST", PODS, pod("p"))
        async with running(proxy.url, configuration()) as process:
            await until(lambda: sum("/persistentvolumes?" in each.path for each in proxy.requests) >= 2)
            assert process.watches is not None
            assert not process.watches.handlers_synced
            assert not [each for each in proxy.requests if each.path.endswith("/binding")]
            hidden = False
            await bound(operator, "p")
