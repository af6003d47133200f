"""List, watch, resume, and every way a watch can end; in virtual time."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from skedge.client.errors import ConnectionFailed, ConnectionLost, ConnectionRefused, DecodeError, RequestTimeout
from skedge.client.hooks import ClientHooks
from skedge.client.reflector import Reflector
from skedge.client.watch import Delta, LineSplitter, ObjectDecoder, Resource
from skedge.clock import VirtualClock

from .fakeapi import FakeApi, MemoryTransport, Reply, advance, memory_client, settle, status

PODS = "/api/v1/pods"


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[Any] = []


class Pod(msgspec.Struct):
    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)


def pod(name: str, node: str = "", **fields: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "ns"}, "spec": {"nodeName": node}} | fields


class Ends(ClientHooks):
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def watch_ended(self, resource: str, reason: str) -> None:
        self.reasons.append(reason)


class Log:
    """A sink that writes down what it is told, shortened."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def replace(self, items: dict[str, Any], version: str) -> None:
        self.calls.append((sorted(items), version))

    def apply(self, deltas: list[Delta], version: str) -> None:
        self.calls += [(d.type, d.key, d.version) for d in deltas]


class Bench:
    def __init__(self, watch_list: bool) -> None:
        self.api, self.clock, self.log, self.hooks = FakeApi(), VirtualClock(), Log(), Ends()
        client = memory_client(self.api, self.clock, rng=random.Random(1), hooks=self.hooks)
        assert isinstance(client.transport, MemoryTransport)
        self.transport = client.transport
        self.reflector = Reflector(client, Resource.of(PODS, Pod), self.log, watch_list=watch_list)

    def queries(self) -> list[dict[str, str]]:
        """Parameters of the requests so far, without those that vary."""
        return [
            {k: v for k, v in r.params.items() if k not in ("timeout", "timeoutSeconds")} for r in self.api.requests
        ]


@asynccontextmanager
async def reflecting(*pods: dict[str, Any], watch_list: bool = True, **settings: Any) -> AsyncIterator[Bench]:
    bench = Bench(watch_list)
    for item in pods:
        bench.api.put(PODS, item)
    for name, value in settings.items():
        setattr(bench.api, name, value)
    task = asyncio.create_task(bench.reflector.run(), name="reflector")
    await settle()
    try:
        yield bench
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


INITIAL = {
    "allowWatchBookmarks": "true",
    "watch": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
}
WATCH = {"allowWatchBookmarks": "true", "watch": "true"}


@pytest.mark.asyncio
async def test_watch_list() -> None:
    """One stream brings the initial objects and goes on as the watch."""
    async with reflecting(pod("a"), pod("b")) as bench:
        bench.api.put(PODS, pod("c"))
        bench.api.put(PODS, pod("a", "n1"))
        bench.api.remove(PODS, "ns", "b")
        await settle()
        assert bench.log.calls == [
            (["ns/a", "ns/b"], "102"),
            ("ADDED", "ns/c", "103"),
            ("MODIFIED", "ns/a", "104"),
            ("DELETED", "ns/b", "105"),
        ]
        assert bench.queries() == [INITIAL]
        params = bench.api.requests[0].params
        assert 300 <= int(params["timeoutSeconds"]) < 600
        assert params["timeout"] == f"{int(params['timeoutSeconds']) // 60}m{int(params['timeoutSeconds']) % 60}s"


@pytest.mark.asyncio
async def test_server_without_watch_list_gets_a_list() -> None:
    """It is asked once, not again after every interruption."""
    async with reflecting(pod("a"), supports_watch_list=False) as bench:
        assert bench.log.calls == [(["ns/a"], "101")]
        assert bench.queries() == [
            INITIAL,
            {"limit": "500", "resourceVersion": "0"},
            WATCH | {"resourceVersion": "101"},
        ]
        await advance(bench.clock, 5)
        bench.api.compacted = 150
        bench.api.version = 200
        bench.api.end_watches()
        await advance(bench.clock, 2)
        assert bench.queries()[3:] == [
            WATCH | {"resourceVersion": "101"},
            {"limit": "500"},
            WATCH | {"resourceVersion": "200"},
        ]


@pytest.mark.asyncio
async def test_list_in_pages() -> None:
    names = [f"p{i:04}" for i in range(1100)]
    async with reflecting(*map(pod, names), watch_list=False, page_limit=500) as bench:
        assert bench.log.calls == [([f"ns/{name}" for name in names], "1200")]
        assert [q.get("continue") for q in bench.queries()] == [None, "500", "1000", None]
        assert bench.queries()[1] == {"limit": "500", "continue": "500"}


@pytest.mark.asyncio
async def test_pages_that_expire_become_one_list() -> None:
    bench = Bench(watch_list=False)
    for i in range(600):
        bench.api.put(PODS, pod(f"p{i:04}"))
    bench.api.page_limit = 500
    expired = Reply(410, status(410, "Expired", "The provided continue parameter is too old"))
    bench.api.faults.append(lambda request: expired if "continue" in request.params else None)
    task = asyncio.create_task(bench.reflector.run())
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [len(call[0]) for call in bench.log.calls] == [600]
    assert bench.queries()[2] == {"resourceVersion": "0"}


@pytest.mark.asyncio
async def test_closed_watch_resumes_at_the_last_version() -> None:
    async with reflecting(pod("a")) as bench:
        await advance(bench.clock, 5)
        bench.api.version = 150
        bench.api.watches[0][1].send("BOOKMARK", {"metadata": {"resourceVersion": "150"}, "spec": {"containers": None}})
        await settle()
        bench.api.end_watches()
        bench.api.put(PODS, pod("b"))
        await settle()
        assert bench.queries()[1:] == [WATCH | {"resourceVersion": "150"}]
        assert bench.log.calls[1:] == [("ADDED", "ns/b", "151")]
        assert bench.hooks.reasons == ["closed"]
        assert bench.reflector.version == "151"


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [ConnectionLost("broke"), RequestTimeout("silent")])
async def test_broken_or_stalled_connection_is_a_closed_watch(error: Exception) -> None:
    async with reflecting(pod("a"), supports_watch_list=False) as bench:
        await advance(bench.clock, 5)
        bench.api.end_watches(error)
        await settle()
        assert bench.queries()[3:] == [WATCH | {"resourceVersion": "101"}]
        assert bench.hooks.reasons == ["closed"]
        seconds = [int(r.params["timeoutSeconds"]) for r in bench.api.requests if "timeoutSeconds" in r.params]
        assert bench.transport.idle_timeouts == [s + 30 for s in seconds]


@pytest.mark.asyncio
async def test_expired_watch_lists_anew_and_consistently() -> None:
    """410: list with no version after a backoff; what vanished meanwhile is not in the new list."""
    async with reflecting(pod("a"), pod("b"), supports_watch_list=False) as bench:
        await advance(bench.clock, 5)
        bench.api.remove(PODS, "ns", "a", silently=True)
        bench.api.compacted = bench.api.version
        bench.api.end_watches()
        await settle()
        assert bench.hooks.reasons == ["closed", "expired"]
        assert len(bench.api.requests) == 4  # nothing before the backoff is over
        await advance(bench.clock, 0.79)
        assert len(bench.api.requests) == 4
        await advance(bench.clock, 1.0)
        assert bench.queries()[4:] == [{"limit": "500"}, WATCH | {"resourceVersion": "103"}]
        assert bench.log.calls[-1] == (["ns/b"], "103")


@pytest.mark.asyncio
async def test_expired_watch_list_starts_without_version() -> None:
    async with reflecting(pod("a")) as bench:
        await advance(bench.clock, 5)
        bench.api.watches[0][1].send("ERROR", status(410, "Expired"))
        await advance(bench.clock, 0.7)
        assert bench.hooks.reasons == ["expired"]
        assert len(bench.api.requests) == 1
        await advance(bench.clock, 1)
        assert bench.queries()[1:] == [INITIAL]
        assert bench.log.calls[1:] == [(["ns/a"], "101")]


@pytest.mark.asyncio
async def test_version_from_the_future_lists_without_one() -> None:
    """A server that lags behind answers 504 with a cause; the next list asks for the newest, at once."""
    async with reflecting(pod("a"), supports_watch_list=False) as bench:
        too_large = status(
            504, "Timeout", "Too large resource version: 101", causes=[{"reason": "ResourceVersionTooLarge"}]
        )
        bench.api.fail(Reply(504, too_large), method="GET", watch=False)
        bench.api.fail(Reply(500, status(500, "InternalError", "boom")), watch=True)
        await advance(bench.clock, 5)
        bench.api.end_watches()
        await advance(bench.clock, 2)
        assert bench.hooks.reasons == ["closed", "error"]
        assert bench.queries()[4:] == [{"resourceVersion": "101"}, {"limit": "500"}, WATCH | {"resourceVersion": "101"}]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault", [ConnectionRefused("refused"), Reply(429, status(429, "TooManyRequests", "slow down"))]
)
async def test_refused_and_throttled_watches_wait_and_go_on(fault: Reply | Exception) -> None:
    async with reflecting(pod("a"), supports_watch_list=False) as bench:
        await advance(bench.clock, 5)
        bench.api.fail(fault, fault, watch=True)
        bench.api.end_watches()
        await advance(bench.clock, 10)
        assert bench.queries()[3:] == [WATCH | {"resourceVersion": "101"}] * 3
        assert bench.log.calls == [(["ns/a"], "101")]


@pytest.mark.asyncio
async def test_other_errors_list_again_at_the_last_version(logged: Callable[[], str]) -> None:
    async with reflecting(pod("a"), supports_watch_list=False) as bench:
        await advance(bench.clock, 5)
        forbidden = Reply(403, status(403, "Forbidden", "pods is forbidden"))
        bench.api.fail(forbidden, ConnectionFailed("no route"), watch=True)
        bench.api.end_watches()
        await advance(bench.clock, 6)
        listed = {"resourceVersion": "101"}
        watched = WATCH | {"resourceVersion": "101"}
        assert bench.queries()[3:] == [watched, listed, watched, listed, watched]
        assert "Failed to list and watch err=pods is forbidden path=/api/v1/pods" in logged()


@pytest.mark.asyncio
async def test_short_watch_without_events_backs_off() -> None:
    async with reflecting(pod("a"), supports_watch_list=False) as bench:
        bench.api.end_watches()
        await settle()
        assert bench.hooks.reasons == ["short"]
        assert len(bench.api.requests) == 3
        await advance(bench.clock, 2)
        assert bench.queries()[3:] == [{"resourceVersion": "101"}, WATCH | {"resourceVersion": "101"}]


@pytest.mark.asyncio
async def test_server_that_is_down_at_the_start() -> None:
    """Refused watches are tried again with growing delays; the objects come when the server does."""
    bench = Bench(watch_list=True)
    bench.api.put(PODS, pod("a"))
    bench.api.fail(*[ConnectionRefused("refused")] * 5)
    task = asyncio.create_task(bench.reflector.run())
    await advance(bench.clock, 0.79)
    assert len(bench.api.requests) == 1
    await advance(bench.clock, 60)
    assert bench.log.calls == [(["ns/a"], "101")]
    assert bench.queries() == [INITIAL] * 6
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.asyncio
async def test_undecodable_objects_are_left_out(logged: Callable[[], str]) -> None:
    """In a list and in a watch; a deletion still counts, and the version moves on."""
    bad = pod("bad", spec={"nodeName": 5})
    async with reflecting(pod("a"), bad, supports_watch_list=False) as bench:
        bench.api.put(PODS, pod("a", spec={"nodeName": []}))
        bench.api.put(PODS, bad)
        bench.api.put(PODS, pod("c"))
        bench.api.remove(PODS, "ns", "bad")
        await settle()
        assert bench.log.calls == [(["ns/a"], "102"), ("ADDED", "ns/c", "105"), ("DELETED", "ns/bad", "106")]
        assert bench.reflector.decoder.undecodable == 4
        assert "Object left out, it cannot be decoded err=Expected `str`, got `int`" in logged()
        assert "resource=pods key=ns/bad" in logged()


@pytest.mark.parametrize(
    ("chunks", "batches"),
    [
        ([b"a\nb\n"], [[b"a", b"b"]]),
        ([b"a", b"b\nc", b"\n"], [[], [b"ab"], [b"c"]]),
        ([b"\n\na\n"], [[b"a"]]),
        ([b"a" * 3] * 3 + [b"\n"], [[], [], [], [b"a" * 9]]),
        ([b"unfinished"], [[]]),
    ],
)
def test_line_splitter(chunks: list[bytes], batches: list[list[bytes]]) -> None:
    splitter = LineSplitter()
    assert [splitter.feed(chunk) for chunk in chunks] == batches


def test_decoder_shapes() -> None:
    """Plain JSON objects, transforms, unknown event types, lines that are no events, lists that are none."""
    line = json.dumps({"type": "ADDED", "object": pod("a", "n1")}).encode()
    plain = ObjectDecoder(Resource.of(PODS, dict))
    assert plain.event(line).obj["spec"] == {"nodeName": "n1"}
    assert plain.page(b'{"metadata":{"resourceVersion":"5"},"items":null}') == ({}, "5", "")
    slim = ObjectDecoder(Resource.of(PODS, Pod).transformed(lambda p: p.spec.node_name))
    assert slim.event(line) == Delta("ADDED", "ns/a", "n1", "")
    assert slim.event(line.replace(b"ADDED", b"NOVEL")).type == "BOOKMARK"
    with pytest.raises(DecodeError, match="pods: not a watch event"):
        slim.event(b'{"kind": "Node"}')
    with pytest.raises(DecodeError, match="pods: not a list"):
        slim.page(b"<html>")


def test_failing_transform_leaves_the_object_out() -> None:
    def transform(item: Pod) -> str:
        return str({"n1": "x"}[item.spec.node_name])

    decoder = ObjectDecoder(Resource.of(PODS, Pod).transformed(transform))
    page = {"items": [pod("a", "n1"), pod("b", "n2")]}
    assert decoder.page(json.dumps(page).encode()).items == {"ns/a": "x"}
    assert decoder.undecodable == 1
