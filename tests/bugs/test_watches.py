"""The reported bug about watches that end, in all the ways it names."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skedge.client.informer import Informer, InformerFactory, Tombstone
from skedge.client.watch import Resource
from skedge.clock import VirtualClock
from unit.client.fakeapi import FakeApi, Reply, advance, memory_client, settle, status

pytestmark = pytest.mark.asyncio
PODS: Resource[dict[str, Any]] = Resource.of("/api/v1/pods", dict)
GONE = status(410, "Expired", "too old resource version")


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}}


class Watched:
    """An informer of pods and what it told."""

    def __init__(self, api: FakeApi, clock: VirtualClock, informer: Informer[dict[str, Any]]) -> None:
        self.api, self.clock, self.informer = api, clock, informer
        self.told: list[str] = []
        informer.add_handler(
            on_add=lambda obj, initial: self.told.append(f"+{obj['metadata']['name']}"),
            on_update=lambda old, new: self.told.append(f"={new['metadata']['name']}"),
            on_delete=self._deleted,
        )

    def _deleted(self, obj: dict[str, Any] | Tombstone[dict[str, Any]]) -> None:
        key = obj.key if isinstance(obj, Tombstone) else f"ns/{obj['metadata']['name']}"
        self.told.append(f"-{key.removeprefix('ns/')}")

    def names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self.informer.store.list())

    def asked(self) -> list[str]:
        """The requests since the last question: `list` or `stream` for all objects, `watch` and its version."""
        found = [
            "stream"
            if "sendInitialEvents" in each.params
            else f"watch {each.params['resourceVersion']}"
            if "watch" in each.params
            else "list"
            for each in self.api.requests
        ]
        self.api.requests.clear()
        return found


@asynccontextmanager
async def watching(*names: str, streams: bool = True) -> AsyncIterator[Watched]:
    api, clock = FakeApi(), VirtualClock()
    api.supports_watch_list = streams
    for name in names:
        api.put(PODS.path, pod(name))
    async with InformerFactory(memory_client(api, clock, rng=random.Random(1))) as factory:
        made = Watched(api, clock, factory.informer(PODS))
        factory.start()
        await factory.wait_for_sync()
        await advance(clock, 5.0)
        assert made.names() == sorted(names)
        made.told.clear()
        made.asked()
        yield made


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("where", ["in the stream", "on connect"])
async def test_b091_an_expired_watch_lists_once(where: str, streams: bool) -> None:
    async with watching("a", "b", streams=streams) as w:
        ((_, stream),) = w.api.watches
        w.api.watches.clear()  # what happens now is not told
        w.api.remove(PODS.path, "ns", "a", silently=True)
        w.api.put(PODS.path, pod("c"))
        before = w.api.version
        if where == "in the stream":
            stream.send("ERROR", GONE)
        else:
            w.api.fail(Reply(410, GONE), watch=True)
            stream.queue.put_nowait(None)
        await advance(w.clock, 60.0)
        first = [] if where == "in the stream" else ["watch 102"]
        assert w.asked() == [*first, *(["stream"] if streams else ["list", f"watch {before}"])]
        assert sorted(w.told) == ["+c", "-a", "=b"]
        assert w.names() == ["b", "c"]
        w.api.end_watches()
        w.api.remove(PODS.path, "ns", "b")
        await settle()
        assert w.asked() == [f"watch {before}"]
        assert w.names() == ["c"]


async def test_b091_bookmarks_alone_advance_the_version() -> None:
    async with watching("a") as w:
        for version in range(200, 400):
            w.api.version = version
            w.api.watches[0][1].send("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})
            await advance(w.clock, 1.0)
        assert w.asked() == []
        w.api.compacted = 390
        w.api.end_watches()
        await advance(w.clock, 1.0)
        assert w.asked() == ["watch 399"]
        assert (w.told, w.names()) == ([], ["a"])


async def test_b091_a_connection_that_closes_after_each_event() -> None:
    async with watching() as w:
        for i in range(100):
            w.api.put(PODS.path, pod(f"p{i}"))
            w.api.end_watches()
            await settle()
        assert w.told == [f"+p{i}" for i in range(100)]
        assert w.asked() == [f"watch {i + 101}" for i in range(100)]


async def test_b091_a_connection_that_closes_at_once_is_made_ever_more_slowly() -> None:
    async with watching("a") as w:
        for _ in range(600):
            w.api.end_watches()
            await advance(w.clock, 0.1)
        assert 4 <= len(w.asked()) <= 24
        w.api.put(PODS.path, pod("b"))
        await advance(w.clock, 60.0)
        assert w.names() == ["a", "b"]


async def test_b091_silence_is_no_end() -> None:
    async with watching("a") as w:
        await advance(w.clock, 60.0)
        assert w.asked() == []
        w.api.put(PODS.path, pod("b"))
        await settle()
        assert (w.told, w.asked()) == (["+b"], [])
