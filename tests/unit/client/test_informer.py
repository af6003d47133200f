"""Stores, handlers, tombstones, sync, the inbox, resync, and failure of a handler."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skedge.client.errors import ConnectionLost
from skedge.client.informer import Inbox, Informer, InformerFactory, Tombstone
from skedge.client.watch import Resource
from skedge.clock import VirtualClock
from skedge.stores.store import Store

from .fakeapi import FakeApi, advance, memory_client, settle

PODS: Resource[dict[str, Any]] = Resource.of("/api/v1/pods", dict)


def pod(name: str, node: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"nodeName": node}}


class Notes:
    """A handler that writes down what it is told."""

    def __init__(self, informer: Informer[dict[str, Any]]) -> None:
        self.calls: list[str] = []
        self.registration = informer.add_handler(on_add=self.add, on_update=self.update, on_delete=self.delete)

    def add(self, obj: dict[str, Any], is_initial: bool) -> None:
        self.calls.append(f"{'initial' if is_initial else 'add'} {obj['metadata']['name']}")

    def update(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        self.calls.append(f"update {new['metadata']['name']} {old['spec']['nodeName']}>{new['spec']['nodeName']}")

    def delete(self, obj: dict[str, Any] | Tombstone[dict[str, Any]]) -> None:
        self.calls.append(f"gone {obj.key}" if isinstance(obj, Tombstone) else f"delete {obj['metadata']['name']}")


def api_with(*names: str) -> FakeApi:
    api = FakeApi()
    for name in names:
        api.put(PODS.path, pod(name))
    return api


@pytest.mark.asyncio
async def test_store_and_handlers() -> None:
    api = api_with("a", "b")
    async with InformerFactory(memory_client(api, VirtualClock())) as factory:
        pods = factory.informer(PODS)
        assert factory.informer(PODS) is pods
        notes = Notes(pods)
        pods.add_indexer("node", lambda p: [p["spec"]["nodeName"]] if p["spec"]["nodeName"] else [])
        assert not pods.has_synced
        factory.start()
        factory.start()
        await factory.wait_for_sync()
        assert notes.registration.has_synced
        assert notes.calls == ["initial a", "initial b"]
        api.put(PODS.path, pod("c"))
        api.put(PODS.path, pod("a", "n1"))
        api.put(PODS.path, pod("b", "n1"))
        api.put(PODS.path, pod("b", "n2"))
        api.remove(PODS.path, "ns", "c")
        await settle()
        assert notes.calls[2:] == ["add c", "update a >n1", "update b >n1", "update b n1>n2", "delete c"]
        assert [p["metadata"]["name"] for p in pods.store.by_index("node", "n1")] == ["a"]
        assert sorted(pods.store.index_values("node")) == ["n1", "n2"]
        assert (len(pods.store), pods.store.resource_version) == (2, "107")
        late = Notes(pods)
        assert late.calls == ["initial a", "initial b"]
        assert late.registration.has_synced
        pods.remove_handler(late.registration)
        api.put(PODS.path, pod("d"))
        await settle()
        assert len(late.calls) == 2


@pytest.mark.asyncio
async def test_vanished_objects_become_tombstones() -> None:
    api, clock = api_with("a", "b"), VirtualClock()
    async with InformerFactory(memory_client(api, clock)) as factory:
        pods = factory.informer(PODS)
        notes = Notes(pods)
        factory.start()
        await factory.wait_for_sync()
        await advance(clock, 5)
        api.remove(PODS.path, "ns", "a", silently=True)
        api.compacted = api.version
        api.end_watches(ConnectionLost("broke"))
        await advance(clock, 3)
        assert notes.calls == ["initial a", "initial b", "update b >", "gone ns/a"]
        assert "ns/a" not in pods.store


@pytest.mark.asyncio
async def test_inbox_keeps_changes_back_while_held() -> None:
    """The store does not move under the holder; afterwards everything comes, in order, over all informers."""
    api, inbox = api_with("a"), Inbox()
    async with InformerFactory(memory_client(api, VirtualClock()), submit=inbox.submit) as factory:
        pods = factory.informer(PODS)
        notes = Notes(pods)
        factory.start()
        await factory.wait_for_sync()
        with inbox.held():
            with inbox.held():
                api.put(PODS.path, pod("b"))
                await settle()
            api.remove(PODS.path, "ns", "a")
            await settle()
            assert notes.calls == ["initial a"]
            assert len(inbox) == 2
            assert pods.store.keys() == {"ns/a"}
        assert notes.calls == ["initial a", "add b", "delete a"]
        assert len(inbox) == 0


def test_inbox_order() -> None:
    """A call made by a waiting call comes after those that waited; an error is the holder's, nothing is lost."""
    inbox, calls = Inbox(), list[str]()
    inbox.submit(lambda: calls.append("now"))
    with inbox.held():
        inbox.submit(lambda: inbox.submit(lambda: calls.append("nested")))
        inbox.submit(lambda: calls.append("second"))
    assert calls == ["now", "second", "nested"]
    holding = inbox.held()
    holding.__enter__()
    inbox.submit(lambda: calls.append(str(1 / 0)))
    inbox.submit(lambda: calls.append("after"))
    with pytest.raises(ZeroDivisionError):
        holding.__exit__(None, None, None)
    inbox.submit(lambda: calls.append("later"))
    assert calls[3:] == ["after", "later"]


@pytest.mark.asyncio
async def test_large_lists_let_others_run() -> None:
    api = api_with(*(f"p{i}" for i in range(2500)))
    async with InformerFactory(memory_client(api, VirtualClock())) as factory:
        pods, sizes = factory.informer(PODS), set[int]()
        factory.start()
        while not pods.has_synced:
            sizes.add(len(pods.store))
            await asyncio.sleep(0)
        assert {0, 1000, 2000} <= sizes
        assert len(pods.store) == 2500


@pytest.mark.asyncio
async def test_resync_is_off_unless_asked_for() -> None:
    for resync, expected in ((0.0, 0), (30.0, 2)):
        api, clock = api_with("a"), VirtualClock()
        async with InformerFactory(memory_client(api, clock), resync=resync) as factory:
            notes = Notes(factory.informer(PODS))
            factory.start()
            await advance(clock, 61)
            assert notes.calls.count("update a >") == expected


@pytest.mark.asyncio
async def test_failing_handler_ends_the_factory() -> None:
    """No silent loss: the block is cancelled and the error comes out."""
    api = api_with("a")

    def fail(obj: object, is_initial: bool) -> None:
        raise LookupError("handler bug")

    async def work() -> None:
        async with InformerFactory(memory_client(api, VirtualClock())) as factory:
            factory.informer(PODS).add_handler(on_add=fail)
            factory.start()
            await asyncio.Event().wait()

    with pytest.raises(BaseExceptionGroup) as caught:
        await work()
    assert caught.value.split(LookupError)[0] is not None


def test_store_indices() -> None:
    store: Store[dict[str, Any]] = Store()
    store.put("a", {"labels": ["x", "y"]})
    store.add_indexer("label", lambda obj: obj["labels"])
    with pytest.raises(ValueError, match="label"):
        store.add_indexer("label", lambda obj: [])
    store.put("b", {"labels": ["y"]})
    assert len(store.by_index("label", "y")) == 2
    store.put("a", {"labels": ["z"]})
    assert store.by_index("label", "x") == []
    assert store.index_values("label") == ["y", "z"]
    store.remove("b")
    store.remove("b")
    assert store.index_values("label") == ["z"]
    assert [*store] == store.list() == [store.get("a")]
