"""Changes wait while the lease may be lost; reads do not."""

from __future__ import annotations

import asyncio

import pytest

from plane import PODS, pod, running
from skedge.app.fence import FencedTransport
from skedge.client.clientconfig import ClientConfig
from skedge.client.rest import RestClient
from skedge.clock import RealClock


@pytest.mark.asyncio
async def test_changes_wait_and_go_on() -> None:
    ours = False
    async with running() as operator:
        transport = FencedTransport(
            ClientConfig(operator.plane.url), open=lambda: ours, clock=RealClock(), user_agent="test"
        )
        async with RestClient(transport) as client:
            writing = asyncio.create_task(client.create(PODS, pod()))
            assert (await client.get(PODS))["items"] == []
            await asyncio.sleep(0.1)
            assert not writing.done()
            assert (await client.get(PODS))["items"] == []
            ours = True
            await asyncio.wait_for(writing, 5)
            assert len((await client.get(PODS))["items"]) == 1


@pytest.mark.asyncio
async def test_a_change_that_waits_can_be_given_up() -> None:
    async with running() as operator:
        transport = FencedTransport(
            ClientConfig(operator.plane.url), open=lambda: False, clock=RealClock(), user_agent="test"
        )
        async with RestClient(transport) as client:
            writing = asyncio.create_task(client.create(PODS, pod()))
            await asyncio.sleep(0.1)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            assert (await client.get(PODS))["items"] == []
