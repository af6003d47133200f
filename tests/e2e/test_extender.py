"""The process with extenders: the sample one, and one that takes its time."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from e2e import servers
from e2e.proxy import RecordingProxy
from e2e.test_process import NODE, PODS, bound, configuration, pod, running, until
from skedge.config.durations import Duration

SAMPLE = Path(__file__).parents[2] / "examples" / "extender.py"


def sample() -> Any:
    spec = importlib.util.spec_from_file_location("extender", SAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def node(name: str, watts: str | None) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name} | ({} if watts is None else {"example.com/watts": watts})
    return {**NODE, "metadata": {"name": name, "labels": labels}}


def drawing(name: str, watts: int, **spec: Any) -> dict[str, Any]:
    made = pod(name, **spec)
    made["metadata"]["annotations"] = {"example.com/watts": str(watts)}
    return made


VERBS = "filterVerb: filter, prioritizeVerb: prioritize, preemptVerb: preempt, bindVerb: bind, weight: 10"


@pytest.mark.asyncio
async def test_the_sample_extender() -> None:
    """Whole objects reach it (annotations are nothing the scheduler reads), and it binds the pods itself."""
    async with servers.running("embedded") as url, servers.operator(url) as operator:
        budget = sample().PowerBudget(url, servers.SCHEDULER)
        async with serving(budget.app()) as extender, RecordingProxy(url) as proxy:
            for name, watts in (("dark", None), ("small", "100"), ("large", "1000")):
                await operator.send("POST", "/api/v1/nodes", node(name, watts))
            config = configuration(f"extenders: [{{urlPrefix: '{extender}', {VERBS}}}]\n")
            async with running(proxy.url, config):
                nodes = []
                for i, drawn in enumerate((100, 900, 100)):
                    await operator.send("POST", PODS, drawing(f"p{i}", drawn))
                    nodes.append((await bound(operator, f"p{i}"))["spec"]["nodeName"])
                    await until(lambda: not budget._wanted)
                assert nodes in (["small", "large", "large"], ["large", "large", "small"])
                await operator.send("POST", PODS, drawing("p3", 100))
                await until(lambda: any(each.path == f"{PODS}/p3/status" for each in proxy.requests))
            patch = next(each.body for each in proxy.requests if each.path == f"{PODS}/p3/status")
            message = patch["status"]["conditions"][0]["message"]
            assert message.startswith("0/3 nodes are available: 1 node has no power budget, 2 not enough power.")
            assert not [each for each in proxy.requests if each.path.endswith("/binding")]


@pytest.mark.asyncio
async def test_a_slow_extender_costs_no_lease() -> None:
    """It takes longer to answer than the lease is good for, and the lease is renewed meanwhile; events wait."""
    asked = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        args = await request.json()
        asked.set()
        await asyncio.sleep(2)
        return web.json_response({"nodenames": args["NodeNames"]})

    app = web.Application()
    app.router.add_post("/filter", slow)
    async with (
        servers.running("embedded") as url,
        servers.operator(url) as operator,
        serving(app) as extender,
        RecordingProxy(url) as proxy,
    ):
        await operator.send("POST", "/api/v1/nodes", NODE)
        text = f"extenders: [{{urlPrefix: '{extender}', filterVerb: filter, nodeCacheCapable: true}}]\n"
        config = configuration(text, elect=True)
        election = config.leader_election
        election.lease_duration, election.renew_deadline = Duration.of(1.5), Duration.of(1)
        async with running(proxy.url, config) as process:
            await operator.send("POST", PODS, pod("p"))
            await asyncio.wait_for(asked.wait(), 10)
            before = _renewals(proxy)
            await operator.send("POST", "/api/v1/nodes", node("late", None))
            await until(lambda: _renewals(proxy) > before + 3)
            assert process.scheduler is not None
            assert "late" not in process.scheduler.cache.table.row_of
            await bound(operator, "p")
            await until(lambda: process.scheduler is not None and "late" in process.scheduler.cache.table.row_of)
            assert process.election is not None
            assert process.election.leading


def _renewals(proxy: RecordingProxy) -> int:
    return len([each for each in proxy.requests if each.method == "PUT" and "/leases/" in each.path])
