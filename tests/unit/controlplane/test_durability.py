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

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.url = ""

    async def start(self) -> None:
        arguments = ("-m", "skedge.controlplane", "--data-dir", str(self._directory))
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
