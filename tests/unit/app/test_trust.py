"""The cluster's ConfigMap of client CAs: read, followed, tolerated when it is not there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from plane import MERGE, Client, running
from skedge.app.trust import NAME, ClusterTrust, TrustError, read_trust
from skedge.client.clientconfig import ClientConfig
from skedge.client.rest import RestClient
from skedge.serving.authentication import ClientTrust, RequestHeaderConfig

DATA = {
    "client-ca-file": "CA",
    "requestheader-client-ca-file": "PROXY CA",
    "requestheader-allowed-names": json.dumps(["front"]),
    "requestheader-username-headers": json.dumps(["X-Remote-User"]),
    "requestheader-uid-headers": json.dumps(["X-Remote-Uid"]),
    "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
    "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
}
HEADER = RequestHeaderConfig(
    "PROXY CA", ("front",), ("X-Remote-User",), ("X-Remote-Uid",), ("X-Remote-Group",), ("X-Remote-Extra-",)
)
PATH = f"/api/v1/namespaces/kube-system/configmaps/{NAME}"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, ClientTrust()),
        (DATA, ClientTrust("CA", HEADER)),
        ({"client-ca-file": "CA"}, ClientTrust("CA")),
        (
            {"requestheader-client-ca-file": "P", "requestheader-allowed-names": "no list"},
            ClientTrust("", RequestHeaderConfig("P", (), (), (), (), ())),
        ),
    ],
    ids=["empty", "whole", "client CA", "broken list"],
)
def test_data(data: dict[str, Any], expected: ClientTrust) -> None:
    assert read_trust(data) == expected


class Applied(list[ClientTrust]):
    """What was taken over."""

    def __init__(self) -> None:
        self.grew = asyncio.Event()

    async def take(self, trust: ClientTrust) -> None:
        self.append(trust)
        self.grew.set()

    async def until(self, trust: ClientTrust) -> None:
        async with asyncio.timeout(5):
            while not self or self[-1] != trust:
                self.grew.clear()
                await self.grew.wait()


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Client, RestClient]]:
    async with running() as operator, RestClient.connect(ClientConfig(operator.plane.url)) as client:
        yield operator, client


async def publish(operator: Client, data: dict[str, Any]) -> None:
    metadata = {"name": NAME, "namespace": "kube-system"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    await operator.ok("POST", PATH.rpartition("/")[0], body)


@pytest.mark.asyncio
async def test_absent_config_map() -> None:
    async with cluster() as (_, client):
        applied = Applied()
        with pytest.raises(
            TrustError, match=r"unable to load configmap based request-header-client-ca-file: .*not found"
        ):
            await ClusterTrust(client, applied.take).look_up(tolerate=False)
        await ClusterTrust(client, applied.take).look_up(tolerate=True)
        assert applied == [ClientTrust()]


@pytest.mark.asyncio
async def test_changes_are_followed_and_a_deletion_changes_nothing() -> None:
    async with cluster() as (operator, client):
        applied = Applied()
        trust = ClusterTrust(client, applied.take)
        await trust.look_up(tolerate=True)
        task = asyncio.create_task(trust.follow())
        try:
            await publish(operator, DATA)
            await applied.until(ClientTrust("CA", HEADER))
            await operator.ok("PATCH", PATH, {"data": {"client-ca-file": "NEW CA"}}, MERGE)
            await applied.until(ClientTrust("NEW CA", HEADER))
            count = len(applied)
            await operator.ok("DELETE", PATH)
            await asyncio.sleep(0.05)
            assert len(applied) == count
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.asyncio
async def test_what_the_command_line_says_comes_first() -> None:
    async with cluster() as (operator, client):
        await publish(operator, DATA)
        applied = Applied()
        own = RequestHeaderConfig("OWN")
        await ClusterTrust(client, applied.take, own_client_ca=True, own_header=own).look_up(tolerate=False)
        assert applied == [ClientTrust("", own)]
