"""The lease of a process: whom it tells of it, and while it may send changes."""

from __future__ import annotations

import asyncio

import pytest

from skedge.app.election import Election
from skedge.client.errors import ConnectionRefused
from skedge.clock import VirtualClock
from skedge.config.durations import Duration
from skedge.config.fields import ConfigError
from skedge.config.types import LeaderElection
from unit.client.fakeapi import FakeApi, advance, memory_client

EVENTS = "/api/v1/namespaces/kube-system/events"


def election(api: FakeApi, clock: VirtualClock) -> Election:
    client = memory_client(api, clock)
    return Election(LeaderElection(), client, client, component="default-scheduler", clock=clock)


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["cancelled", "lost"])
async def test_the_beginning_of_leading_is_told_and_its_end_is_not(end: str) -> None:
    """As recorded: the reference is gone before it has sent that it `stopped leading`."""
    api, clock = FakeApi(), VirtualClock()
    task = asyncio.create_task(election(api, clock).run(forever))
    await advance(clock, 12.0)  # the sender of events begins at a random moment
    if end == "lost":
        api.faults.append(lambda request: ConnectionRefused("down") if "/leases" in request.path else None)
        await advance(clock, 20.0)
    else:
        task.cancel()
        await advance(clock, 2.0)
    await asyncio.gather(task, return_exceptions=True)
    told = [request.body for request in api.requests if request.method == "POST" and request.path == EVENTS]
    assert [body["message"].partition(" ")[2] for body in told] == ["became leader"]
    assert told[0]["reason"] == "LeaderElection"
    assert told[0]["source"]["component"] == "default-scheduler"
    assert told[0]["involvedObject"]["kind"] == "Lease"


@pytest.mark.asyncio
async def test_changes_may_be_sent_until_the_renew_deadline_only() -> None:
    api, clock = FakeApi(), VirtualClock()
    mine = election(api, clock)
    assert not mine.may_write()
    task = asyncio.create_task(mine.run(forever))
    await advance(clock, 3.0)
    assert mine.may_write()
    api.faults.append(lambda request: ConnectionRefused("down"))
    await advance(clock, 8.5)
    assert mine.leading
    assert mine.may_write()
    await advance(clock, 5.0)
    assert not mine.may_write()
    await asyncio.gather(task, return_exceptions=True)


def test_times_that_cannot_work() -> None:
    api, clock = FakeApi(), VirtualClock()
    config = LeaderElection(retry_period=Duration.of(9.0))
    with pytest.raises(ConfigError, match=r"^couldn't create leader elector: renewDeadline must be greater than "):
        Election(config, memory_client(api, clock), memory_client(api, clock), component="x", clock=clock)
