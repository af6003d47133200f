"""Jobs of a dispatcher: order, room, errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from skedge.scheduler.dispatcher import Dispatcher


def note(done: list[str], name: str) -> Callable[[], Awaitable[None]]:
    async def job() -> None:
        done.append(name)

    return job


@pytest.mark.asyncio
async def test_higher_priorities_first_and_equal_ones_in_order() -> None:
    dispatcher, done = Dispatcher(connections=1), list[str]()
    for name, priority in (("a", 0), ("b", 0), ("c", 10), ("d", -5), ("e", 10), ("f", 0)):
        dispatcher.bind(note(done, name), priority)
    dispatcher.call(note(done, "g"), 10)
    dispatcher.start()
    await dispatcher.drain()
    assert done == ["c", "e", "g", "a", "b", "f", "d"]
    assert dispatcher.unfinished_bindings == 0
    await dispatcher.close()


@pytest.mark.asyncio
async def test_room_comes_back() -> None:
    dispatcher, told = Dispatcher(connections=1, per_connection=2), list[bool]()
    dispatcher.on_room = lambda: told.append(dispatcher.has_room)
    gate = asyncio.Event()

    async def held() -> None:
        await gate.wait()

    dispatcher.start()
    dispatcher.bind(held)
    assert dispatcher.has_room
    dispatcher.bind(held)
    assert not dispatcher.has_room
    gate.set()
    await dispatcher.drain()
    assert told == [True]
    await dispatcher.close()


@pytest.mark.asyncio
async def test_a_job_that_raises_costs_no_worker() -> None:
    dispatcher, done = Dispatcher(connections=1), list[str]()

    async def broken() -> None:
        raise RuntimeError("broken")

    dispatcher.start()
    dispatcher.bind(broken)
    dispatcher.bind(note(done, "next"))
    await dispatcher.drain()
    assert done == ["next"]
    assert dispatcher.unfinished_bindings == 0
    await dispatcher.close()
