"""Watches: initial objects, resume, bookmarks, compaction, readers that go away or fall behind."""

from __future__ import annotations

import asyncio
import json

import pytest

from plane import MERGE, PODS, pod, running

pytestmark = pytest.mark.asyncio


def _short(event: dict[str, object]) -> tuple[object, object]:
    obj = event["object"]
    assert isinstance(obj, dict)
    return event["type"], obj["metadata"].get("name")


async def test_objects_then_changes() -> None:
    async with running() as c:
        await c.ok("POST", PODS, pod("a"))
        watch = asyncio.create_task(c.events(f"{PODS}?watch=true", 4))
        await c.watching(1)
        await c.ok("POST", PODS, pod("b"))
        await c.bind("a", "n1")
        await c.ok("DELETE", f"{PODS}/b")
        found = await watch
        assert [_short(e) for e in found] == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("MODIFIED", "b")]


async def test_resume_misses_and_repeats_nothing() -> None:
    async with running() as c:
        first = await c.ok("POST", PODS, pod("a"))
        await c.ok("POST", PODS, pod("b"))
        await c.ok("DELETE", f"{PODS}/a")
        version = first["metadata"]["resourceVersion"]
        found = await c.events(f"{PODS}?watch=true&resourceVersion={version}", 3)
        assert [_short(e) for e in found] == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert found[1]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0


async def test_leaving_and_entering_a_selector() -> None:
    async with running() as c:
        start = await c.ok("GET", PODS)
        await c.ok("POST", PODS, pod("a"))
        for value in ("x", "a"):
            await c.ok("PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": value}}}, MERGE)
        version = start["metadata"]["resourceVersion"]
        found = await c.events(f"{PODS}?watch=true&labelSelector=app%3Da&resourceVersion={version}", 3)
        assert [_short(e) for e in found] == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
        left = found[1]["object"]["metadata"]
        assert left["labels"] == {"app": "a"}
        assert int(left["resourceVersion"]) > int(found[0]["object"]["metadata"]["resourceVersion"])


async def test_too_old_a_revision_is_an_error_event() -> None:
    async with running() as c:
        await c.ok("POST", PODS, pod("a"))
        c.plane.store.compact(c.plane.store.revision)
        (event,) = await c.events(f"{PODS}?watch=true&resourceVersion=2", 2)
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 2 (")


async def test_watch_list_ends_with_its_bookmark() -> None:
    async with running() as c:
        await c.ok("POST", PODS, pod("a"))
        path = f"{PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        found = await c.events(path, 2)
        assert [e["type"] for e in found] == ["ADDED", "BOOKMARK"]
        meta = found[1]["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(meta["resourceVersion"]) == c.plane.store.revision


async def test_bookmarks_come_now_and_then() -> None:
    async with running(bookmark_interval=0.01) as c:
        found = await c.events(f"{PODS}?watch=true&allowWatchBookmarks=true", 2)
        assert [e["type"] for e in found] == ["BOOKMARK", "BOOKMARK"]


async def test_a_watch_ends_at_its_timeout() -> None:
    async with running() as c:
        assert await c.events(f"{PODS}?watch=true&timeoutSeconds=1", 1) == []


async def test_events_of_the_other_group_and_metadata_only() -> None:
    async with running() as c:
        event = {
            "metadata": {"name": "e"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "s",
            "reportingInstance": "s-1",
            "action": "Binding",
            "reason": "Scheduled",
            "note": "text",
            "type": "Normal",
            "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        }
        await c.ok("POST", "/apis/events.k8s.io/v1/namespaces/default/events", event)
        (new,) = await c.events("/apis/events.k8s.io/v1/events?watch=true", 1)
        assert (new["object"]["note"], new["object"]["apiVersion"]) == ("text", "events.k8s.io/v1")
        (core,) = await c.events("/api/v1/events?watch=true", 1)
        assert (core["object"]["message"], core["object"]["involvedObject"]["name"]) == ("text", "p")


async def test_a_slow_reader_is_dropped_and_harms_nobody() -> None:
    async with running(watch_buffer=200_000) as c:
        _, writer = await asyncio.open_connection(c.plane.host, c.plane.port)
        writer.write(f"GET {PODS}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await writer.drain()
        await c.watching(1)
        big = {"metadata": {"annotations": {"big": "x" * 200_000}}}
        await c.ok("POST", PODS, pod("a"))
        for i in range(60):
            big["metadata"]["annotations"]["n"] = str(i)
            await c.ok("PATCH", f"{PODS}/a", big, MERGE)
            if not c.plane._watches.open:
                break
        await c.watching(0)
        assert not c.plane.store.collection("pods").listeners
        writer.close()
        found = await c.ok("GET", f"{PODS}/a")
        assert found["metadata"]["annotations"]["n"] == str(i)


async def test_a_reader_that_leaves_is_forgotten() -> None:
    async with running() as c:
        answer = await c.session.get(f"{PODS}?watch=true")
        assert len(c.plane._watches.open) == 1
        answer.close()
        await c.watching(0)


async def test_stopping_ends_watches() -> None:
    async with running() as c, c.session.get(f"{PODS}?watch=true") as answer:
        c.plane._watches.stop()
        assert await answer.content.read() == b""


async def test_ten_watchers_see_the_same_bytes() -> None:
    async with running() as c:
        tasks = [asyncio.create_task(c.events(f"{PODS}?watch=true", 3)) for _ in range(10)]
        await c.watching(10)
        for name in ("a", "b", "c"):
            await c.ok("POST", PODS, pod(name))
        found = await asyncio.gather(*tasks)
        assert len({json.dumps(events) for events in found}) == 1
