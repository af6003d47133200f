"""The REST client: rate limit, retries, errors, parameters; over memory in virtual time and over real sockets."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import msgspec
import pytest

from skedge.client.clientconfig import ClientConfig
from skedge.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ClientError,
    Conflict,
    ConnectionLost,
    ConnectionRefused,
    DecodeError,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unauthorized,
    api_error,
)
from skedge.client.hooks import ClientHooks
from skedge.client.limiter import TokenBucket, rate_limiter
from skedge.client.rest import RestClient, encode_params, go_duration
from skedge.client.transport import Stream
from skedge.clock import VirtualClock

from .fakeapi import FakeApi, Reply, advance, memory_client, serving, settle, status

PODS = "/api/v1/namespaces/ns/pods"


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


@pytest.mark.asyncio
async def test_verbs() -> None:
    api = FakeApi()
    client = memory_client(api, VirtualClock())
    created = await client.create(PODS, pod("a"))
    await client.update(f"{PODS}/a", created | {"spec": {"x": 1}})
    await client.patch(f"{PODS}/a", {"metadata": {"labels": {"k": "v"}}})
    found = await client.get(f"{PODS}/a")
    assert (found["spec"], found["metadata"]["labels"]) == ({"x": 1}, {"k": "v"})
    with pytest.raises(Conflict):
        await client.update(f"{PODS}/a", created)
    with pytest.raises(AlreadyExists, match='"a" already exists'):
        await client.create(PODS, pod("a"))
    await client.delete(f"{PODS}/a")
    with pytest.raises(NotFound):
        await client.get(f"{PODS}/a")
    assert [r.content_type for r in api.requests[:3]] == [
        "application/json",
        "application/json",
        "application/merge-patch+json",
    ]
    api.fail(Reply(200, "text"))
    with pytest.raises(DecodeError, match=r"no Named: Expected `object`, got `str`"):
        await client.get_as(Named, PODS)


async def drain(stream: Stream) -> None:
    while await stream.next_chunk():
        pass


class Named(msgspec.Struct):
    metadata: dict[str, Any]


@pytest.mark.asyncio
async def test_list_joins_pages() -> None:
    api = FakeApi()
    for i in range(25):
        api.put("/api/v1/pods", {"metadata": {"name": f"p{i}", "namespace": "ns"}})
    client = memory_client(api, VirtualClock())
    found = await client.list(PODS, limit=10, label_selector="a in (b,c)", field_selector="spec.nodeName=")
    assert [item["metadata"]["name"] for item in found["items"]] == [f"p{i}" for i in range(25)]
    assert found["metadata"] == {"resourceVersion": "125"}
    assert api.requests[2].params == {
        "limit": "10",
        "continue": "20",
        "labelSelector": "a in (b,c)",
        "fieldSelector": "spec.nodeName=",
    }
    assert (await client.list("/api/v1/nodes"))["items"] == []


@pytest.mark.asyncio
@pytest.mark.parametrize("code", [429, 500, 503])
async def test_retry_after_is_honoured(code: int) -> None:
    api, clock = FakeApi(), VirtualClock()
    client = memory_client(api, clock)
    reply = Reply(code, status(code, "Busy"), {"Retry-After": "3"})
    api.fail(reply, reply)
    task = asyncio.create_task(client.request("POST", PODS, body=pod("a")))
    await advance(clock, 2.9)
    assert len(api.requests) == 1
    await advance(clock, 3.2)
    assert len(api.requests) == 3
    assert json.loads(await task)["metadata"]["name"] == "a"
    assert api.requests[2].body == pod("a")


@pytest.mark.asyncio
async def test_retries_end() -> None:
    """Ten times; not without Retry-After; not for other codes."""
    api, clock = FakeApi(), VirtualClock()
    client = memory_client(api, clock)
    api.faults.append(lambda request: Reply(429, status(429, "TooManyRequests", "slow"), {"Retry-After": "1"}))
    task = asyncio.create_task(client.get(PODS))
    await advance(clock, 20)
    with pytest.raises(TooManyRequests, match="slow") as caught:
        await task
    assert caught.value.retry_after == 1
    assert len(api.requests) == 11
    for reply in (Reply(503, {}), Reply(404, {}, {"Retry-After": "1"}), Reply(500, {}, {"Retry-After": "soon"})):
        api.faults[0] = lambda request, reply=reply: reply
        with pytest.raises(ApiError):
            await client.get(PODS)
    assert len(api.requests) == 14


@pytest.mark.asyncio
async def test_lost_connections_are_retried_for_reads_only() -> None:
    api, clock = FakeApi(), VirtualClock()
    client = memory_client(api, clock)
    api.fail(ConnectionLost("broke"), method="GET")
    task = asyncio.create_task(client.get(PODS))
    await advance(clock, 1.1)
    assert "items" in await task
    for error, method in ((ConnectionLost("broke"), "POST"), (ConnectionRefused("no"), "GET")):
        api.fail(error)
        with pytest.raises(type(error)):
            await client.request(method, PODS)


@pytest.mark.asyncio
async def test_rate_limit() -> None:
    """A burst at once, then so many a second, in order; every retry takes a token, too."""
    api, clock = FakeApi(), VirtualClock()
    client = memory_client(api, clock, qps=10, burst=5)
    tasks = [asyncio.create_task(client.request("GET", f"{PODS}/{i}")) for i in range(20)]
    await settle()
    assert len(api.requests) == 5
    await advance(clock, 1.01)
    assert [r.path for r in api.requests] == [f"{PODS}/{i}" for i in range(15)]
    tasks[15].cancel()
    await advance(clock, 1)
    assert len(api.requests) == 19
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    ("qps", "burst", "expected"),
    [(-1, 0, None), (0, 0, 10), (0, 3, 3), (50, 100, 100)],
)
def test_limiter_settings(qps: float, burst: int, expected: int | None) -> None:
    limiter = rate_limiter(qps, burst, VirtualClock())
    taken = 0
    while limiter is not None and limiter.try_take():
        taken += 1
    assert (None if limiter is None else taken) == expected


def test_positive_qps_needs_a_burst() -> None:
    with pytest.raises(ValueError, match="burst is required to be greater than 0 when RateLimiter is not set and QPS"):
        rate_limiter(1, 0)


def test_bucket_refills_up_to_its_burst() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(2, 4, clock)
    assert [bucket.reserve() for _ in range(6)] == [0, 0, 0, 0, 0.5, 1.0]
    clock.advance(100)
    assert sum(bucket.try_take() for _ in range(10)) == 4


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, BadRequest),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (405, MethodNotAllowed),
        (409, Conflict),
        (410, Expired),
        (415, ApiError),
        (422, Invalid),
        (429, TooManyRequests),
        (500, InternalError),
        (503, ServerError),
    ],
)
def test_error_types(code: int, kind: type[ApiError]) -> None:
    error = api_error(code, json.dumps(status(code, "Why", "because")).encode())
    assert type(error) is kind
    assert (error.code, error.reason, error.message) == (code, "Why", "because")
    assert isinstance(error, ClientError)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the server answered 502 to GET /x: no further message"),
        (b"<html>\nBad</html>", "the server answered 502 to GET /x: no further message"),
        (b"upstream\n  timed out", "the server answered 502 to GET /x: upstream timed out"),
        (b'{"message": 5}', "the server answered 502 to GET /x: no further message"),
        (b"\xff\xfe", "the server answered 502 to GET /x: \ufffd\ufffd"),
    ],
)
def test_answers_that_are_no_status(body: bytes, message: str) -> None:
    assert str(api_error(502, body, what="GET /x")) == message


def test_retry_after_in_details() -> None:
    error = api_error(429, json.dumps(status(429, "TooManyRequests", retryAfterSeconds=7)).encode())
    assert error.retry_after == 7


def test_parameters() -> None:
    assert encode_params({"watch": True, "b": "x=y z,/", "a": 5}) == "a=5&b=x%3Dy%20z%2C%2F&watch=true"
    assert [go_duration(s) for s in (5, 60, 318, 3725, 0.2)] == ["5s", "1m0s", "5m18s", "1h2m5s", "1s"]


@pytest.mark.asyncio
async def test_hooks() -> None:
    seen: list[tuple[Any, ...]] = []

    class Hooks(ClientHooks):
        def request(self, verb: str, host: str, code: str, seconds: float, sent: int, received: int) -> None:
            seen.append((verb, host, code, sent))

        def retried(self, verb: str, host: str, code: str) -> None:
            seen.append(("retried", code))

        def throttled(self, verb: str, host: str, seconds: float) -> None:
            if seconds:
                seen.append(("throttled", seconds))

    api, clock = FakeApi(), VirtualClock()
    client = memory_client(api, clock, qps=1, burst=2, hooks=Hooks(), rng=random.Random(1))
    api.fail(Reply(429, {}, {"Retry-After": "0"}), ConnectionRefused("no"))
    task = asyncio.create_task(client.request("POST", PODS, body=b"{}"))
    await settle()
    with pytest.raises(ConnectionRefused):
        await task
    task = asyncio.create_task(client.request("GET", PODS))
    await advance(clock, 1.1)
    await task
    assert seen == [
        ("POST", "fake", "429", 2),
        ("retried", "429"),
        ("POST", "fake", "<error>", 2),
        ("throttled", pytest.approx(1.0)),
        ("GET", "fake", "200", 0),
    ]


@pytest.mark.asyncio
async def test_over_http() -> None:
    """The same verbs over sockets; a connection cut by the server, a silent one, a large body."""
    api = FakeApi()
    async with serving(api) as url, RestClient.connect(ClientConfig(url), qps=-1, timeout=5) as client:
        await client.create(PODS, pod("a"))
        assert api.requests[0].params == {"timeout": "5s"}
        big = pod("big") | {"data": "x" * (2 << 20)}
        assert (await client.create(PODS, big))["data"] == big["data"]
        api.fail(ConnectionLost("cut"), method="POST")
        with pytest.raises(ConnectionLost, match=rf"^POST {PODS}: 127.0.0.1:\d+ closed the connection$"):
            await client.create(PODS, pod("b"))
        stream = await client.stream(PODS, {"watch": True}, idle_timeout=0.05)
        async with stream as response:
            assert response.status == 200
            with pytest.raises(RequestTimeout, match="did not answer in time"):
                await drain(response)
        api.fail(Reply(403, status(403, "Forbidden", "no")))
        async with await client.stream(PODS, {"watch": True}, idle_timeout=5) as response:
            assert (response.status, json.loads(await response.read())["message"]) == (403, "no")


@pytest.mark.asyncio
async def test_slow_answer_times_out() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with RestClient.connect(ClientConfig(url)) as client:
            with pytest.raises(RequestTimeout, match=r"^GET /x: 127.0.0.1:\d+ did not answer in time$"):
                await client.request("GET", "/x", timeout=0.05)
        await settle()
