"""Each fault does to a request or a watch what it says; a client on top of all of them still sees the truth."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from skedge.app.watches import NODES, PODS
from skedge.client.errors import ApiError, ClientError, ConnectionFailed, ConnectionLost, RequestTimeout
from skedge.client.informer import InformerFactory
from skedge.client.rest import RestClient
from skedge.testing.builders import make_pod
from skedge.testing.faults import APPLIES, Fault, Faults, FaultTransport, Step
from skedge.testing.memory_server import MemoryServer
from skedge.testing.virtual_loop import LoopClock, VirtualLoop, run

PATH = "/api/v1/namespaces/default/pods"


class Lab:
    """A server, and a client through one fault that hits every request it can."""

    def __init__(self, loop: VirtualLoop, fault: Fault | None, seed: int = 0, rate: float = 1.0) -> None:
        self.clock = LoopClock(loop)
        self.server = MemoryServer(self.clock, random.Random(seed))
        self.crashed = 0
        self.faults = Faults(
            random.Random(seed), rate=rate, restart=self.server.crash, jump=self.clock.jump, crash=self._crash
        )
        if fault is not None:
            self.faults.pick = lambda step, share=1.0: (  # type: ignore[method-assign]
                fault if step in APPLIES[fault] and self.faults.on else None
            )
        self.transport = FaultTransport(self.server.transport(), self.faults, self.clock)
        self.client = RestClient(self.transport, qps=-1.0, clock=self.clock, rng=random.Random(seed))

    def _crash(self) -> None:
        self.crashed += 1
        self.transport.alive = False

    def pod(self, name: str) -> None:
        body = make_pod(name).json
        for key in ("uid", "resourceVersion", "generation"):
            del body["metadata"][key]
        self.server.do("POST", PATH, body)

    async def bind(self, name: str) -> None:
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
        await self.client.create(f"{PATH}/{name}/binding", body)

    def node_of(self, name: str) -> str:
        node: str = self.server.do("GET", f"{PATH}/{name}")["spec"].get("nodeName", "")
        return node


def in_lab(fault: Fault | None, test: Callable[[Lab], Coroutine[Any, Any, None]], **options: Any) -> None:
    loop = VirtualLoop()
    run(loop, _with_pod(Lab(loop, fault, **options), test))


async def _with_pod(lab: Lab, test: Callable[[Lab], Coroutine[Any, Any, None]]) -> None:
    lab.pod("p")
    await test(lab)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.DROP, ConnectionFailed),
        (Fault.CONFLICT, ApiError),
        (Fault.INTERNAL, ApiError),
        (Fault.RESTART, ConnectionLost),
    ],
    ids=lambda value: value.value if isinstance(value, Fault) else "",
)
def test_requests_that_fail(fault: Fault, error: type[Exception], seed: int) -> None:
    async def test(lab: Lab) -> None:
        with pytest.raises(error):
            await lab.bind("p")
        assert lab.node_of("p") in ("", "n")
        assert lab.faults.hits[fault, Step.BIND] == 1
        if fault is Fault.RESTART:
            with pytest.raises(ConnectionFailed):
                await lab.client.get(PATH)

    in_lab(fault, test, seed=seed)


@pytest.mark.parametrize("fault", [Fault.DELAY, Fault.REORDER, Fault.CLOCK_JUMP])
def test_requests_that_succeed_in_the_end(fault: Fault) -> None:
    async def test(lab: Lab) -> None:
        before = lab.clock.start
        await lab.bind("p")
        assert lab.node_of("p") == "n"
        assert (lab.clock.start != before) is (fault is Fault.CLOCK_JUMP)
        assert (lab.clock.monotonic() > 0.01) is (fault is not Fault.CLOCK_JUMP)

    in_lab(fault, test)


def test_a_duplicate_is_carried_out_once_and_refused_once() -> None:
    answers: set[str] = set()

    async def test(lab: Lab) -> None:
        try:
            await lab.bind("p")
        except ApiError as error:
            answers.add(error.reason)
        else:
            answers.add("ok")
        assert lab.node_of("p") == "n"

    for seed in range(8):
        in_lab(Fault.DUPLICATE, test, seed=seed)
    assert answers == {"ok", "Conflict"}


def test_throttling_is_waited_out() -> None:
    async def test(lab: Lab) -> None:
        waiting = asyncio.create_task(lab.bind("p"))
        await asyncio.sleep(5.0)
        assert not waiting.done()
        lab.faults.on = False
        await waiting
        assert lab.node_of("p") == "n"

    in_lab(Fault.THROTTLED, test)


def test_after_a_crash_nothing_comes_back() -> None:
    async def test(lab: Lab) -> None:
        waiting = [asyncio.create_task(lab.bind("p")), asyncio.create_task(lab.client.get(PATH))]
        await asyncio.sleep(1000.0)
        assert lab.crashed == 1
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    in_lab(Fault.CRASH, test)


async def drained(stream: Any) -> None:
    while await stream.next_chunk():
        pass


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.HALF_OPEN, (ConnectionLost, RequestTimeout)), (Fault.TRUNCATED, ConnectionLost)],
    ids=["half-open", "truncated"],
)
def test_watches_that_break(fault: Fault, error: Any) -> None:
    async def test(lab: Lab) -> None:
        async with lab.transport.stream(f"{PATH}?watch=true&resourceVersion=1", 300.0) as stream:
            with pytest.raises(error):
                await drained(stream)

    in_lab(fault, test)


@pytest.mark.parametrize("seed", range(4))
def test_an_informer_sees_the_truth_through_all_faults(seed: int) -> None:
    async def test(lab: Lab) -> None:
        async with InformerFactory(lab.client) as factory:
            pods, nodes = factory.informer(PODS), factory.informer(NODES)
            factory.start()
            for i in range(60):
                lab.pod(f"p{i}")
                if i % 3 == 0:
                    lab.server.do("DELETE", f"{PATH}/p{i}", {"gracePeriodSeconds": 0})
                if i % 20 == 7:
                    lab.server.compact()
                await asyncio.sleep(1.0)
            lab.faults.on = False
            await asyncio.sleep(800.0)
            assert pods.has_synced
            assert nodes.has_synced
            expected = {f"default/p{i}" for i in range(60) if i % 3} | {"default/p"}
            assert set(pods.store.keys()) == expected

    loop = VirtualLoop()
    lab = Lab(loop, None, seed=seed, rate=0.8)
    lab.faults.crash = None
    lab.faults._choices = {
        step: [fault for fault in faults if fault is not Fault.CRASH] for step, faults in lab.faults._choices.items()
    }
    run(loop, _with_pod(lab, test))
    assert sum(lab.faults.hits.values()) > 5


def test_errors_are_the_clients_own() -> None:
    assert issubclass(ConnectionFailed, ClientError)
