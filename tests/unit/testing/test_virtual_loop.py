"""Time that costs nothing: order, exactness, what is left over, standstill."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from skedge.testing import virtual_loop
from skedge.testing.virtual_loop import LoopClock, Standstill, VirtualLoop, run


def test_hours_pass_in_order_and_at_once() -> None:
    loop = VirtualLoop()
    clock = LoopClock(loop, start=1000.0)
    told: list[tuple[str, int]] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        told.append((name, round(clock.now())))

    async def main() -> int:
        await asyncio.gather(wait("late", 7200.0), wait("soon", 60.0), wait("now", 0.0))
        clock.jump(-500.0)
        assert clock.now() < 1000.0 + 7200.0
        return round(clock.monotonic())

    assert run(loop, main()) == (7200, [])
    assert told == [("now", 1000), ("soon", 1060), ("late", 8200)]


def test_no_timer_fires_before_its_time() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        for _ in range(1000):
            due = loop.time() + 0.1
            await asyncio.sleep(0.1)
            assert loop.time() >= due

    run(loop, main())


def test_tasks_that_are_left_over_are_named() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(1e9), name="forgotten")
        await asyncio.sleep(0)
        assert not task.done()

    assert run(VirtualLoop(), main()) == (None, ["forgotten"])


def test_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Standstill, match="every task waits"):
        run(VirtualLoop(), forever())
    monkeypatch.setattr(virtual_loop, "MOST_TURNS", 100)

    async def busy() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    with pytest.raises(Standstill, match="no end of work"):
        run(VirtualLoop(), busy())
