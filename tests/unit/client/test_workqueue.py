"""The queue's three sets, delays and the default rate limit; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from skedge.client.hooks import QueueHooks
from skedge.client.workqueue import QueueShutDown, RateLimit, WorkQueue
from skedge.clock import VirtualClock

from .fakeapi import advance, settle


@pytest.mark.asyncio
async def test_waiting_items_are_not_added_twice() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in ("a", "b", "a"):
        queue.add(item)
    assert len(queue) == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]


@pytest.mark.asyncio
async def test_item_added_while_processing_waits_for_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert len(queue) == 1
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


@pytest.mark.asyncio
async def test_earliest_of_several_delays_counts() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    queue.add_after("now", 0)
    assert len(queue) == 1
    clock.advance(4.9)
    assert len(queue) == 1
    clock.advance(0.2)
    assert len(queue) == 2
    clock.advance(100)
    assert len(queue) == 2


def test_default_rate_limit() -> None:
    """5 ms doubling to 1000 s an item; over all items 10 a second after the first 100."""
    clock = VirtualClock()
    limit: RateLimit[str] = RateLimit(clock)
    assert [limit.when("a") for _ in range(4)] == [0.005, 0.01, 0.02, 0.04]
    assert limit.failures("a") == 4
    limit.forget("a")
    assert limit.when("a") == 0.005
    for i in range(95):
        assert limit.when(f"b{i}") == 0.005
    assert limit.when("c") == pytest.approx(0.1)
    assert limit.when("d") == pytest.approx(0.2)
    clock.advance(3600)
    for _ in range(70):
        last = limit.when("a")
    assert last == 1000.0


@pytest.mark.asyncio
async def test_run_retries_failures_and_forgets_successes() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    tries: list[float] = []

    async def work(item: str) -> None:
        tries.append(clock.monotonic())
        if len(tries) < 4:
            raise RuntimeError("not yet")

    task = asyncio.create_task(queue.run(work, workers=2))
    queue.add("a")
    await advance(clock, 1)
    assert tries == pytest.approx([0, 0.005, 0.015, 0.035])
    assert queue.failures("a") == 0
    await queue.wait_until_idle()
    queue.shut_down()
    await task


@pytest.mark.asyncio
async def test_shut_down_hands_out_what_waits() -> None:
    queue: WorkQueue[str] = WorkQueue(clock=VirtualClock())
    queue.add("a")
    queue.add_after("b", 5)
    queue.shut_down()
    queue.add("c")
    queue.add_after("d", 5)
    assert await queue.get() == "a"
    with pytest.raises(QueueShutDown):
        await queue.get()


@pytest.mark.asyncio
async def test_cancelled_worker_passes_its_item_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    first.cancel()
    assert await second == "a"
    assert first.cancelled() or (await asyncio.gather(first, return_exceptions=True))


@pytest.mark.asyncio
async def test_hooks_and_idle() -> None:
    clock, seen = VirtualClock(), list[tuple[object, ...]]()

    class Hooks(QueueHooks):
        def added(self, depth: int) -> None:
            seen.append(("added", depth))

        def retried(self) -> None:
            seen.append(("retried",))

        def got(self, depth: int, waited: float) -> None:
            seen.append(("got", depth, waited))

        def done(self, worked: float) -> None:
            seen.append(("done", worked))

    queue: WorkQueue[str] = WorkQueue(clock=clock, hooks=Hooks())
    queue.add("a")
    clock.advance(2)
    await queue.get()
    clock.advance(3)
    idle = asyncio.create_task(queue.wait_until_idle())
    await settle()
    assert not idle.done()
    queue.done("a")
    await idle
    queue.add_rate_limited("a")
    assert seen == [("added", 1), ("got", 0, 2.0), ("done", 3.0), ("retried",)]
