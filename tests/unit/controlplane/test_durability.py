"""What was acknowledged survives: restarts, kills under load, watches across them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from plane import MERGE, PODS, pod, running
from skedge.clock import VirtualClock
from skedge.controlplane.server import ControlPlane
from unit.controlplane.controllers.support import lab, workload

pytestmark = pytest.mark.asyncio


async def test_a_restart_keeps_objects_revisions_and_history(tmp_path: Path) -> None:
    async with running(data_dir=tmp_path) as c:
        first = await c.ok("POST", PODS, pod("a"))
        await c.ok("POST", PODS, pod("b"))
        await c.bind("a", "n1")
        await c.ok("DELETE", f"{PODS}/b")
        before = await c.ok("GET", PODS)
    async with running(data_dir=tmp_path) as c:
        after = await c.ok("GET", PODS)
        assert after == before
        version = first["metadata"]["resourceVersion"]
        found = await c.events(f"{PODS}?watch=true&resourceVersion={version}", 4)
        kinds = [(e["type"], e["object"]["metadata"]["name"]) for e in found]
        assert kinds == [("ADDED", "b"), ("MODIFIED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]
        made = await c.ok("POST", PODS, pod("c"))
        assert int(made["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
        patched = await c.ok("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        assert patched["spec"]["nodeName"] == "n1"


async def test_history_on_disk_is_bounded(tmp_path: Path) -> None:
    async with running(data_dir=tmp_path, history=10) as c:
        for i in range(30):
            await c.ok("POST", PODS, pod(f"p{i}"))
    async with running(data_dir=tmp_path, history=10) as c:
        (event,) = await c.events(f"{PODS}?watch=true&resourceVersion=9", 1)
        assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")
        assert len((await c.ok("GET", PODS))["items"]) == 30


class _Server:
    """An API server process on a data directory."""

    def __init__(self, directory: Path, *arguments: str, module: str = "skedge.controlplane") -> None:
        self._arguments = ("-m", module, "--data-dir", str(directory), *arguments)
        self.url = ""

    async def start(self) -> None:
        arguments = self._arguments
        self._process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        assert line.startswith("ready "), line
        self.url = line.split()[1]

    async def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        await self._process.communicate()


async def _load(url: str, prefix: str, acknowledged: dict[str, int]) -> None:
    """Create and bind pods until the server dies; note every answer."""

    async def one(session: aiohttp.ClientSession, worker: int) -> None:
        for i in range(10_000):
            name = f"{prefix}-{worker}-{i}"
            async with session.post(f"{url}{PODS}", json=pod(name)) as answer:
                made: Any = json.loads(await answer.read())
            acknowledged[name] = int(made["metadata"]["resourceVersion"])
            target = {"metadata": {"name": name}, "target": {"name": "n1"}}
            async with session.post(f"{url}{PODS}/{name}/binding", json=target) as answer:
                await answer.read()
                if answer.status == 201:
                    acknowledged[name] = -1  # bound

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(one(session, w) for w in range(8)), return_exceptions=True)


async def test_kill_under_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(3)
    acknowledged: dict[str, int] = {}
    highest = 0
    for round_ in range(3):
        server = _Server(tmp_path)
        await server.start()
        async with aiohttp.ClientSession(server.url) as session, session.get(PODS) as answer:
            found = await answer.json()
        pods = {p["metadata"]["name"]: p for p in found["items"]}
        for name, version in acknowledged.items():
            assert name in pods
            if version < 0:
                assert pods[name]["spec"]["nodeName"] == "n1"
            else:
                assert int(pods[name]["metadata"]["resourceVersion"]) >= version
        assert int(found["metadata"]["resourceVersion"]) >= highest
        highest = max([highest, int(found["metadata"]["resourceVersion"]), *acknowledged.values()])
        load = asyncio.create_task(_load(server.url, f"r{round_}", acknowledged))
        await asyncio.sleep(0.2 + rng.random() * 0.3)
        await server.kill()
        await load
    assert len(acknowledged) > 10


async def test_controllers_go_on_after_kills(tmp_path: Path) -> None:
    """A Deployment and a Job whose controllers are killed at work: neither too few pods in the end, nor too many."""
    rng = random.Random(4)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selector = {"matchLabels": {"a": "b"}}
    deployment = {"metadata": {"name": "d"}, "spec": {"replicas": 150, "selector": selector, "template": template}}
    container = {"name": "c", "image": "i"}
    once = {"spec": {"restartPolicy": "Never", "containers": [container], "nodeName": "node-0"}}
    job = {"metadata": {"name": "j"}, "spec": {"completions": 40, "parallelism": 20, "template": once}}
    server = _Server(tmp_path, "--nodes", "2", module="skedge.controlplane.local")
    await server.start()
    async with aiohttp.ClientSession() as session:
        for path, body in (
            ("apps/v1/namespaces/default/deployments", deployment),
            ("batch/v1/namespaces/default/jobs", job),
        ):
            async with session.post(f"{server.url}/apis/{path}", json=body) as answer:
                assert answer.status == 201
        for _ in range(3):
            await asyncio.sleep(rng.random() * 0.3)
            await server.kill()
            await server.start()

        async def found(path: str) -> Any:
            async with session.get(f"{server.url}{path}") as answer:
                return json.loads(await answer.read())

        for _ in range(200):
            pods = (await found(f"{PODS}?labelSelector=a%3Db"))["items"]
            status = (await found("/apis/batch/v1/namespaces/default/jobs/j"))["status"]
            if len(pods) == 150 and status.get("succeeded") == 40:
                break
            await asyncio.sleep(0.1)
        assert (len(pods), status.get("succeeded"), status.get("failed", 0)) == (150, 40, 0)
        assert [c["type"] for c in status["conditions"] if c["status"] == "True"] == ["SuccessCriteriaMet", "Complete"]
    await server.kill()


async def test_fake_nodes_are_still_there_after_a_long_pause(tmp_path: Path) -> None:
    """Nobody takes nodes for lost that were off together with everything else."""
    clock = VirtualClock()
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    async with lab("2", data_dir=tmp_path, clock=clock) as it:
        await it.client.create(deployments, workload("Deployment", "web", 4))
        await it.until(lambda: it.running(4))
        before = {pod["metadata"]["uid"] for pod in await it.pods()}
    clock.advance(3_600)
    async with lab("2", data_dir=tmp_path, clock=clock) as it:
        await it.let_pass(120, step=5)
        assert {pod["metadata"]["uid"] for pod in await it.pods()} == before
        assert not [node for node in (await it.client.list("/api/v1/nodes"))["items"] if node["spec"].get("taints")]
        await it.client.patch(f"{deployments}/web", {"spec": {"replicas": 6}})
        await it.until(lambda: it.running(6))


async def test_a_data_directory_has_one_user(tmp_path: Path) -> None:
    async with running(data_dir=tmp_path):
        with pytest.raises(OSError, match=r"state\.db: another process uses it"):
            ControlPlane(data_dir=tmp_path)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "state.db").write_bytes(b"no database" * 100)
    with pytest.raises(OSError, match=r"state\.db: file is not a database"):
        ControlPlane(data_dir=tmp_path / "bad")
