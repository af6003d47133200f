"""Nobody writes without the lease: replicas that are stopped, cut off and killed, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from skedge.app.election import Election
from skedge.app.fence import FencedTransport
from skedge.client.clientconfig import ClientConfig
from skedge.client.errors import ConnectionLost, ConnectionRefused
from skedge.client.http1 import Response
from skedge.client.rest import RestClient
from skedge.clock import RealClock, VirtualClock
from skedge.config.durations import Duration
from skedge.config.types import LeaderElection
from unit.client.fakeapi import FakeApi, MemoryTransport, settle

LEASE, DEADLINE, RETRY = 2.0, 1.5, 0.5
STEP = 0.05
KEY = ("/apis/coordination.k8s.io/v1/leases", "kube-system", "kube-scheduler")


ELECTION = LeaderElection(
    lease_duration=Duration.of(LEASE), renew_deadline=Duration.of(DEADLINE), retry_period=Duration.of(RETRY)
)


class Wire(MemoryTransport):
    """A replica's way to the server: cut before or after the server hears it; answers wait while it is stopped."""

    def __init__(self, api: FakeApi) -> None:
        super().__init__(api)
        self.cut = self.deaf = self.stops = False
        self.running = asyncio.Event()
        self.running.set()

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response:
        await self.running.wait()
        if self.cut:
            raise ConnectionRefused("cut off")
        answer = await super().request(method, target, body, content_type)
        if self.stops:
            self.stops = False
            self.running.clear()
        await self.running.wait()
        if self.deaf:
            raise ConnectionLost("cut off")
        return answer


class Replica:
    """A process as far as the lease is concerned. Its clock stands in for its being scheduled by the machine."""

    def __init__(self, api: FakeApi, elapsed: float, seed: int) -> None:
        self.clock = VirtualClock()
        self.clock.advance(elapsed)
        self.wire = Wire(api)
        self.rng = random.Random(seed)
        client = RestClient(self.wire, qps=-1, clock=self.clock, rng=self.rng)
        self.election = Election(
            ELECTION, client, client, component="default-scheduler", clock=self.clock, rng=self.rng
        )
        self.identity = self.election._lock.identity
        self.task = asyncio.create_task(self.election.run(self._lead), name=self.identity)

    @staticmethod
    async def _lead() -> None:
        await asyncio.get_running_loop().create_future()

    async def tick(self, now: float) -> None:
        """The world's time is `now`: a replica that was stopped finds all its timers overdue at once."""
        if self.wire.running.is_set():
            self.clock._elapsed = max(self.clock._elapsed, now)
            self.clock.advance(0)
            await settle()

    async def kill(self) -> None:
        """Gone, without a word to the server."""
        self.wire.running.set()
        self.wire.cut = True
        self.task.cancel()
        while not self.task.done():
            self.clock.advance(STEP)
            await settle()
        await asyncio.gather(self.task, return_exceptions=True)


def holder(api: FakeApi) -> str:
    lease = api.objects.get(KEY)
    return "" if lease is None else lease["spec"]["holderIdentity"]


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(4))
async def test_who_may_write_holds_the_lease(seed: int) -> None:
    """At every moment: stopped while an answer is under way, answers lost, cut off, killed; and it goes on."""
    rng = random.Random(seed)
    api, now = FakeApi(), 0.0
    replicas = [Replica(api, now, rng.getrandbits(32)) for _ in range(3)]
    until: dict[Replica, float] = {}
    leaders: list[str] = []
    last_write = 0.0
    try:
        while now < 60.0:
            now = round(now + STEP, 6)
            for i, each in enumerate(replicas):
                if each.task.done():
                    await each.kill()
                    replicas[i] = each = Replica(api, now, rng.getrandbits(32))
                if until.get(each, now) <= now:
                    each.wire.running.set()
                    each.wire.cut = each.wire.deaf = each.wire.stops = False
                if rng.random() < 0.01:
                    until[each] = now + rng.uniform(0.1, 6.0)
                    match rng.randrange(5):
                        case 0:
                            each.wire.cut = True
                        case 1:
                            each.wire.deaf = True
                        case 2:
                            each.wire.running.clear()
                        case 3:
                            each.wire.stops = True
                        case _:
                            await each.kill()
                await each.tick(now)
                if each.wire.running.is_set() and each.election.may_write():
                    assert holder(api) == each.identity, f"{now}: a former leader would write"
                    last_write = now
                    if leaders[-1:] != [each.identity]:
                        leaders.append(each.identity)
    finally:
        for each in replicas:
            await each.kill()
    assert len(leaders) > 3
    assert now - last_write < 20.0


@pytest.mark.asyncio
async def test_answer_read_after_a_stop_does_not_count_from_then() -> None:
    """The server renewed, we were stopped before we read so, and somebody else leads since."""
    api = FakeApi()
    me = Replica(api, 0.0, 1)
    await settle()
    assert me.election.may_write()
    me.wire.stops = True
    me.clock.advance(RETRY)
    await settle()
    assert not me.wire.running.is_set(), "the server has the renewal, the answer is under way"
    me.clock._elapsed += LEASE + 1
    me.wire.running.set()
    await settle()
    assert me.election.leading, "as far as it was told"
    assert not me.election.may_write()
    await me.kill()


@pytest.mark.asyncio
async def test_wall_clock_tells_of_a_machine_that_slept() -> None:
    """The monotonic clock stands still meanwhile."""
    me = Replica(FakeApi(), 0.0, 1)
    await settle()
    assert me.election.may_write()
    me.clock._start += DEADLINE + 0.1
    assert not me.election.may_write()
    me.clock.advance(RETRY)
    await settle()
    assert me.election.may_write(), "renewed"
    await me.kill()


@pytest.mark.asyncio
async def test_others_take_over_in_time() -> None:
    api = FakeApi()
    first = Replica(api, 0.0, 1)
    await settle()
    others = [Replica(api, 0.0, seed) for seed in (2, 3)]
    await settle()
    await first.kill()
    now = 0.0
    while not any(other.election.may_write() for other in others):
        now += STEP
        assert now <= LEASE + 2.2 * RETRY + STEP
        for other in others:
            await other.tick(now)
    for other in others:
        await other.kill()


@asynccontextmanager
async def server(seen: list[str], arrived: asyncio.Event, answer: asyncio.Event) -> AsyncIterator[str]:
    """Notes each request, and answers when it may."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request.method)
        arrived.set()
        await answer.wait()
        return web.json_response({})

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.asyncio
@pytest.mark.parametrize("proxied", [False, True])
async def test_fence_is_asked_again_when_there_is_a_connection(proxied: bool) -> None:
    """A change that waited in line for one of the connections is not what it was when it got into the line."""
    seen: list[str] = []
    arrived, answer = asyncio.Event(), asyncio.Event()
    state: dict[str, Any] = {"open": True}
    async with server(seen, arrived, answer) as url:
        config = ClientConfig(url, proxy=url if proxied else "")
        transport = FencedTransport(
            config, open=lambda: state["open"], clock=RealClock(), user_agent="test", connections=1
        )
        first = asyncio.create_task(transport.request("POST", "/first", b"{}", "application/json"))
        await arrived.wait()
        second = asyncio.create_task(transport.request("PATCH", "/second", b"{}", "application/json"))
        await settle()
        state["open"] = False
        answer.set()
        assert (await first).status == 200
        assert (await transport.request("GET", "/read")).status == 200
        assert seen == ["POST", "GET"]
        state["open"] = True
        assert (await second).status == 200
        assert seen == ["POST", "GET", "PATCH"]
        await transport.close()
