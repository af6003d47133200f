"""The dump of SIGUSR2 and the comparison with the informers."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from skedge.app.debugger import Debugger
from skedge.serving.dump import Mismatch
from skedge.stores.store import Store
from skedge.telemetry.logs import set_verbosity
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness


def debugger(harness: Harness) -> tuple[Debugger, Store[Any], Store[Any]]:
    """With stores that hold what the harness delivered."""
    nodes: Store[Any] = Store()
    pods: Store[Any] = Store()
    for name, node in harness.nodes.items():
        nodes.put(name, node)
    for key, pod in harness.store.items():
        pods.put(key, pod)
    return Debugger(harness.scheduler, nodes, pods), nodes, pods


async def filled(harness: Harness) -> None:
    harness.add_node(make_node("n1").capacity(cpu="4", memory="8Gi", pods="110"))
    harness.add_pod(make_pod("bound").req(cpu="1"))
    harness.add_pod(make_pod("big").req(cpu="64"))
    await harness.settle()


@pytest.mark.asyncio
async def test_agreement() -> None:
    async with Harness() as harness:
        await filled(harness)
        harness.add_pod(make_pod("foreign").scheduler("somebody-else"))
        assert debugger(harness)[0].compare() == []


@pytest.mark.asyncio
async def test_disagreement(caplog: pytest.LogCaptureFixture) -> None:
    async with Harness() as harness:
        await filled(harness)
        comparing, nodes, pods = debugger(harness)
        nodes.put("n2", make_node("n2").obj())
        nodes.remove("n1")
        gone = pods.remove("default/bound")
        assert gone is not None
        with caplog.at_level(logging.INFO):
            found = comparing.compare()
    assert found == [Mismatch(("n2",), ("n1",)), Mismatch((), (gone.uid,))]
    assert [record.message for record in caplog.records] == ["Cache mismatch", "Cache mismatch"]


@pytest.mark.asyncio
async def test_dump(caplog: pytest.LogCaptureFixture) -> None:
    set_verbosity(3)
    try:
        async with Harness() as harness:
            await filled(harness)
            with caplog.at_level(logging.INFO):
                debugger(harness)[0].run()
    finally:
        set_verbosity(0)
    told = {record.message: getattr(record, "values", {}) for record in caplog.records}
    assert list(told)[-4:] == [
        "cache comparer started",
        "cache comparer finished",
        "Dump of cached NodeInfo",
        "Dump of scheduling queue",
    ]
    nodes, queue = told["Dump of cached NodeInfo"]["nodes"], told["Dump of scheduling queue"]["queue"]
    assert "Node name: n1" in nodes
    assert "cpu:1000" in nodes
    assert "name: bound, namespace: default" in nodes
    assert "unschedulablePods:1" in queue
    assert "name: big, namespace: default" in queue
