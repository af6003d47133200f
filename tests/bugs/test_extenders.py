"""Reported bugs about extenders. Named after their ids."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from bugs.placing import placed
from skedge.client.extender_client import HttpExtender
from skedge.config.defaults import default_configuration
from skedge.config.types import Extender
from skedge.profiles.search import Search
from skedge.testing.builders import make_node, make_pod
from skedge.testing.extenders import CaseBodies
from skedge.testing.harness import Harness


@pytest.mark.asyncio
@pytest.mark.parametrize("by_name", [True, False], ids=["names", "objects"])
async def test_b076_what_nodes_have_in_use_after_an_extender_was_asked(by_name: bool) -> None:
    """By name nothing is lost. Nodes that come back as objects are scored as if they were empty, as the reference's
    recorded decisions are; whether a pod fits is decided before, with all that is in use."""
    asked: list[list[str]] = []

    async def keep_all(request: web.BaseRequest) -> web.Response:
        body = await request.json()
        nodes, names = body["Nodes"], body["NodeNames"]
        asked.append(sorted(names or (each["metadata"]["name"] for each in nodes["items"])))
        return web.json_response({"Nodes": nodes, "NodeNames": names})

    runner = web.ServerRunner(web.Server(keep_all), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await _schedule(Extender(url_prefix=url, filter_verb="filter", node_cache_capable=by_name))
    finally:
        await runner.cleanup()
    assert asked == [["n1", "n2"]] * 2 + [["n2"]]


async def _schedule(settings: Extender) -> None:
    config = default_configuration()
    config.extenders = [settings]
    nodes = [make_node(name).capacity(cpu="10", memory="10Gi") for name in ("n1", "n2")]
    pod, large = (make_pod(name).uid(name) for name in ("p", "large"))
    case: dict[str, Any] = {"nodes": [node.json for node in nodes], "pods": [large.json], "pod": pod.json}
    client = HttpExtender(settings, CaseBodies(case))
    try:
        async with Harness(config, extenders=[client]) as h:
            for node in nodes:
                h.add_node(node)
            h.add_pod(make_pod("busy").req(cpu="9", memory="9Gi").node("n1"))
            await h.settle()
            search = Search(h.scheduler.profiles["default-scheduler"], pod.req(cpu="100m", memory="100Mi").info())
            search.run()
            assert search.scores_by_plugin()["NodeResourcesFit"].tolist() == [9, 99]
            await h.scheduler.extenders.filter(search, nominated=False)
            scores = search.scores_by_plugin()["NodeResourcesFit"].tolist()
            totals = search.scores().tolist()
            if settings.node_cache_capable:
                assert scores == [9, 99]
                assert totals[0] < totals[1]
                assert await placed(h, pod) == ["n2"]
            else:
                assert scores == [99, 99]
                assert totals[0] == totals[1]
                assert (await placed(h, pod))[0] in ("n1", "n2")
            assert await placed(h, large.req(cpu="2", memory="2Gi")) == ["n2"]
    finally:
        await client.close()
