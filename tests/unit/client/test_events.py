"""Events of both APIs: bodies as the reference writes them, series, aggregation, limits, retries; in virtual time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skedge.client import core_events
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.errors import ConnectionRefused
from skedge.client.events import EventBroadcaster, EventRecorder, ObjectRef, serves_events_v1
from skedge.clock import VirtualClock

from .fakeapi import FakeApi, Reply, advance, memory_client, settle, status

START = 1_796_045_237.17135  # 2026-11-30T13:27:17.171350Z
EVENTS = "/apis/events.k8s.io/v1/namespaces/sw/events"
CORE = "/api/v1/namespaces/kube-system/events"
POD = ObjectRef("Pod", "sw", "ok", "c0e5", "v1", "241")
LEASE = ObjectRef("Lease", "kube-system", "kube-scheduler", "54e0", "coordination.k8s.io/v1", "235")
SCHEDULED = ("Normal", "Scheduled", "Binding", "Successfully assigned sw/ok to sw-1")


class Bench:
    def __init__(self) -> None:
        self.api, self.clock = FakeApi(), VirtualClock(START)
        self.client = memory_client(self.api, self.clock)


@asynccontextmanager
async def new_api(**options: Any) -> AsyncIterator[tuple[Bench, EventBroadcaster, EventRecorder]]:
    bench = Bench()
    async with EventBroadcaster(bench.client, **options) as events:
        yield bench, events, events.recorder("default-scheduler", "vm")


@asynccontextmanager
async def core_api() -> AsyncIterator[tuple[Bench, CoreEventBroadcaster, EventRecorder]]:
    bench = Bench()
    async with CoreEventBroadcaster(bench.client) as events:
        yield bench, events, events.recorder("default-scheduler")


@pytest.mark.asyncio
async def test_body() -> None:
    async with new_api() as (bench, events, recorder):
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
        (request,) = bench.api.requests
        assert (request.method, request.path) == ("POST", EVENTS)
        name = request.body["metadata"]["name"]
        assert re.fullmatch(r"ok\.[0-9a-f]{16}", name)
        assert abs(int(name.rpartition(".")[2], 16) - START * 1e9) < 1000
        assert request.body == {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": name, "namespace": "sw"},
            "eventTime": "2026-11-30T13:27:17.171350Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-vm",
            "action": "Binding",
            "reason": "Scheduled",
            "regarding": {
                "kind": "Pod",
                "namespace": "sw",
                "name": "ok",
                "uid": "c0e5",
                "apiVersion": "v1",
                "resourceVersion": "241",
            },
            "note": "Successfully assigned sw/ok to sw-1",
            "type": "Normal",
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }


@pytest.mark.asyncio
async def test_related_and_cluster_scoped_objects() -> None:
    async with new_api() as (bench, events, recorder):
        node = ObjectRef("Node", "", "n1", "u")
        recorder.event(node, POD, "Normal", "R", "A", "n")
        await events.flush()
        (request,) = bench.api.requests
        assert request.path == "/apis/events.k8s.io/v1/namespaces/default/events"
        assert request.body["metadata"]["namespace"] == "default"
        assert request.body["regarding"] == {"kind": "Node", "name": "n1", "uid": "u", "apiVersion": "v1"}
        assert request.body["related"]["name"] == "ok"


@pytest.mark.asyncio
async def test_series() -> None:
    """First a create, second a patch with count 2, later ones only counted; a new resourceVersion is a new event."""
    async with new_api() as (bench, _, recorder):
        recorder.event(POD, None, *SCHEDULED)
        await advance(bench.clock, 10)
        recorder.event(POD, None, "Normal", "Scheduled", "Binding", "another note")
        await advance(bench.clock, 10)
        recorder.event(POD, None, *SCHEDULED)
        recorder.event(POD._replace(resource_version="242"), None, *SCHEDULED)
        await advance(bench.clock, 10)
        create, patch, other = bench.api.requests
        name = create.body["metadata"]["name"]
        assert (patch.method, patch.path) == ("PATCH", f"{EVENTS}/{name}")
        assert patch.content_type == "application/strategic-merge-patch+json"
        assert patch.body == {"series": {"count": 2, "lastObservedTime": "2026-11-30T13:27:27.171350Z"}}
        assert other.method == "POST"


@pytest.mark.asyncio
async def test_idle_series_is_finished_and_forgotten() -> None:
    async with new_api() as (bench, _, recorder):
        for _ in range(5):
            recorder.event(POD, None, *SCHEDULED)
            await advance(bench.clock, 1)
        await advance(bench.clock, 800)
        assert [r.method for r in bench.api.requests] == ["POST", "PATCH", "PATCH"]
        assert bench.api.requests[2].body["series"]["count"] == 5
        await advance(bench.clock, 1000)
        assert len(bench.api.requests) == 3
        recorder.event(POD, None, *SCHEDULED)
        await settle()
        assert bench.api.requests[3].method == "POST"


@pytest.mark.asyncio
async def test_singleton_is_forgotten_after_six_minutes() -> None:
    async with new_api() as (bench, _, recorder):
        recorder.event(POD, None, *SCHEDULED)
        await advance(bench.clock, 721)
        recorder.event(POD, None, *SCHEDULED)
        await settle()
        assert [r.method for r in bench.api.requests] == ["POST", "POST"]


@pytest.mark.asyncio
async def test_running_series_is_refreshed_every_half_hour() -> None:
    async with new_api() as (bench, _, recorder):
        for _ in range(40):
            recorder.event(POD, None, *SCHEDULED)
            await advance(bench.clock, 60)
        assert [r.method for r in bench.api.requests] == ["POST", "PATCH", "PATCH"]
        assert bench.api.requests[2].body["series"]["count"] == 30


@pytest.mark.asyncio
async def test_repeat_during_creation_follows_it() -> None:
    """The patch is sent after the create was answered, not beside it."""
    async with new_api() as (bench, events, recorder):
        recorder.event(POD, None, *SCHEDULED)
        recorder.event(POD, None, *SCHEDULED)
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
        assert [r.method for r in bench.api.requests] == ["POST", "PATCH"]
        assert bench.api.requests[1].body["series"]["count"] == 3


@pytest.mark.asyncio
async def test_patch_of_a_vanished_event_creates_it() -> None:
    async with new_api() as (bench, events, recorder):
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
        bench.api.objects.clear()
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
        assert [r.method for r in bench.api.requests] == ["POST", "PATCH", "POST"]
        body = bench.api.requests[2].body
        assert body["series"]["count"] == 2
        assert body["metadata"] == bench.api.requests[0].body["metadata"]


@pytest.mark.asyncio
async def test_already_exists_while_falling_back_is_tried_again() -> None:
    async with new_api() as (bench, events, recorder):
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
        bench.api.fail(Reply(404, status(404, "NotFound")), method="PATCH")
        recorder.event(POD, None, *SCHEDULED)
        await advance(bench.clock, 13)
        assert [r.method for r in bench.api.requests] == ["POST", "PATCH", "POST", "PATCH"]


@pytest.mark.asyncio
async def test_refused_events_are_not_retried(logged: Callable[[], str]) -> None:
    async with new_api() as (bench, events, recorder):
        bench.api.fail(Reply(403, status(403, "Forbidden", "namespace is terminating")))
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
        assert len(bench.api.requests) == 1
        assert "Server rejected event (will not retry!) err=namespace is terminating" in logged()


@pytest.mark.asyncio
async def test_transport_errors_are_retried_twelve_times() -> None:
    async with new_api() as (bench, events, recorder):
        bench.api.faults.append(lambda request: ConnectionRefused("down"))
        recorder.event(POD, None, *SCHEDULED)
        await advance(bench.clock, 9.9)
        assert len(bench.api.requests) == 1
        await advance(bench.clock, 12 * 12.5)
        assert len(bench.api.requests) == 12
        assert events.dropped == 0


@pytest.mark.asyncio
async def test_full_queue_drops(logged: Callable[[], str]) -> None:
    """1000 events fit between two turns of the loop; recording never waits, and what is lost is told once."""
    async with new_api() as (bench, events, recorder):
        for i in range(1005):
            recorder.event(POD._replace(name=f"p{i}"), None, *SCHEDULED)
        assert events.dropped == 5
        assert logged().count("too many queued events") == 1
        await events.flush()
        assert len(bench.api.requests) == 1000
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
        assert len(bench.api.requests) == 1001


@pytest.mark.asyncio
async def test_known_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest single events are forgotten, series are not."""
    monkeypatch.setattr("skedge.client.events.KNOWN_SIZE", 10)
    async with new_api() as (bench, events, recorder):
        for i in range(40):
            recorder.event(POD._replace(name=f"p{i}"), None, *SCHEDULED)
            recorder.event(POD, None, *SCHEDULED)
            await events.flush()
        assert len(events._known) == 10
        bench.api.requests.clear()
        for name in ("ok", "p39", "p0"):
            recorder.event(POD._replace(name=name), None, *SCHEDULED)
            await events.flush()
        assert [r.method for r in bench.api.requests] == ["PATCH", "POST"]


@pytest.mark.asyncio
async def test_names() -> None:
    """Two at the same moment differ; what is no DNS name becomes a UUID."""
    async with new_api() as (bench, events, recorder):
        for name in ("same", "same", "Bad_Name", "x" * 240):
            recorder.event(
                POD._replace(name=name, uid=name, resource_version=str(len(bench.api.requests))), None, *SCHEDULED
            )
            await events.flush()
        names = [r.body["metadata"]["name"] for r in bench.api.requests]
        assert len(set(names)) == 4
        assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name) for name in names[2:])


@pytest.mark.asyncio
async def test_choice_of_api() -> None:
    bench = Bench()
    assert await serves_events_v1(bench.client)
    bench.api.fail(Reply(404, status(404, "NotFound")), ConnectionRefused("down"))
    assert not await serves_events_v1(bench.client)
    assert not await serves_events_v1(bench.client)
    assert {r.path for r in bench.api.requests} == {"/apis/events.k8s.io/v1"}


@pytest.mark.asyncio
async def test_core_body() -> None:
    async with core_api() as (bench, events, recorder):
        recorder.event(LEASE, None, "Normal", "LeaderElection", "", "vm_1 became leader")
        await events.flush()
        (request,) = bench.api.requests
        assert (request.method, request.path) == ("POST", CORE)
        name = request.body["metadata"]["name"]
        assert re.fullmatch(r"kube-scheduler\.[0-9a-f]{16}", name)
        assert request.body == {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "kube-system"},
            "involvedObject": {
                "kind": "Lease",
                "namespace": "kube-system",
                "name": "kube-scheduler",
                "uid": "54e0",
                "apiVersion": "coordination.k8s.io/v1",
                "resourceVersion": "235",
            },
            "reason": "LeaderElection",
            "message": "vm_1 became leader",
            "source": {"component": "default-scheduler"},
            "firstTimestamp": "2026-11-30T13:27:17Z",
            "lastTimestamp": "2026-11-30T13:27:17Z",
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": "default-scheduler",
            "reportingInstance": "",
        }


@pytest.mark.asyncio
async def test_core_repeats_are_counted() -> None:
    """The same message, even about a newer version of the object; anew when the server forgot the event."""
    async with core_api() as (bench, events, recorder):
        recorder.event(LEASE, None, "Normal", "R", "", "m")
        await advance(bench.clock, 5)
        recorder.event(LEASE._replace(resource_version="300"), None, "Normal", "R", "", "m")
        await events.flush()
        create, patch = bench.api.requests
        assert patch.path == f"{CORE}/{create.body['metadata']['name']}"
        assert patch.body == {"count": 2, "lastTimestamp": "2026-11-30T13:27:22Z", "message": "m"}
        bench.api.objects.clear()
        recorder.event(LEASE, None, "Normal", "R", "", "m")
        await events.flush()
        assert [r.method for r in bench.api.requests[2:]] == ["PATCH", "POST"]
        assert bench.api.requests[3].body["count"] == 3


@pytest.mark.asyncio
async def test_core_many_messages_are_combined() -> None:
    """From the tenth different message in ten minutes on, one event stands for them all."""
    async with core_api() as (bench, events, recorder):
        for i in range(12):
            recorder.event(LEASE, None, "Normal", "R", "", f"m{i}")
        await events.flush()
        requests = bench.api.requests
        assert [r.method for r in requests] == ["POST"] * 10 + ["PATCH"] * 2
        assert requests[8].body["message"] == "m8"
        assert requests[9].body["message"] == "(combined from similar events): m9"
        assert requests[11].body == {
            "count": 3,
            "lastTimestamp": "2026-11-30T13:27:17Z",
            "message": "(combined from similar events): m11",
        }
        await advance(bench.clock, 601)
        recorder.event(LEASE, None, "Normal", "R", "", "fresh")
        await events.flush()
        assert requests[-1].body["message"] == "fresh"


def test_core_caches_have_the_size_of_the_reference() -> None:
    assert (core_events.CACHE_SIZE, core_events.SPAM_BURST, core_events.AGGREGATE_MESSAGES) == (4096, 25, 10)


@pytest.mark.asyncio
async def test_core_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used longest ago is forgotten, and begins anew: created again, and no spam any more."""
    monkeypatch.setattr(core_events, "CACHE_SIZE", 10)
    async with core_api() as (bench, events, recorder):
        for _ in range(2):
            recorder.event(LEASE, None, "Normal", "R", "", "m")
        for i in range(30):
            recorder.event(POD._replace(name=f"p{i}"), None, "Normal", "R", "", "m")
        await events.flush()
        assert [len(cache) for cache in (events._messages, events._seen, events._buckets)] == [10, 10, 10]
        assert [request.method for request in bench.api.requests[:3]] == ["POST", "PATCH", "POST"]
        bench.api.requests.clear()
        recorder.event(LEASE, None, "Normal", "R", "", "m")
        recorder.event(POD._replace(name="p29"), None, "Normal", "R", "", "m")
        await events.flush()
        assert [request.method for request in bench.api.requests] == ["POST", "PATCH"]


@pytest.mark.asyncio
async def test_core_spam_filter() -> None:
    """25 at once for an object, then one in five minutes; other objects are not held back."""
    async with core_api() as (bench, events, recorder):
        for _ in range(30):
            recorder.event(LEASE, None, "Normal", "R", "", "m")
        recorder.event(POD, None, "Normal", "R", "", "m")
        await events.flush()
        assert len(bench.api.requests) == 26
        assert events.filtered == 5
        await advance(bench.clock, 301)
        recorder.event(LEASE, None, "Normal", "R", "", "m")
        recorder.event(LEASE, None, "Normal", "R", "", "m")
        await events.flush()
        assert len(bench.api.requests) == 27
        assert bench.api.requests[-1].body["count"] == 31


@pytest.mark.asyncio
async def test_core_retries_start_at_a_random_moment() -> None:
    async with core_api() as (bench, events, recorder):
        bench.api.faults.append(lambda request: ConnectionRefused("down"))
        recorder.event(LEASE, None, "Normal", "R", "", "m")
        await advance(bench.clock, 10)
        assert len(bench.api.requests) == 2
        await advance(bench.clock, 200)
        assert len(bench.api.requests) == 12
        await events.flush()


@pytest.mark.asyncio
async def test_leaving_sends_what_waits() -> None:
    async with new_api() as (bench, _, recorder):
        recorder.event(POD, None, *SCHEDULED)
    assert len(bench.api.requests) == 1
    bench = Bench()
    async with CoreEventBroadcaster(bench.client) as events:
        events.recorder("c").event(LEASE, None, "Normal", "R", "", "m")
    assert len(bench.api.requests) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("core", [False, True])
async def test_server_that_does_not_answer_stalls_nothing(
    core: bool, monkeypatch: pytest.MonkeyPatch, logged: Callable[[], str]
) -> None:
    """What finds no room is dropped and counted; what is left over at the end is told, and not waited for."""
    monkeypatch.setattr("skedge.client.outbox.BACKLOG", 50)
    monkeypatch.setattr("skedge.client.core_events.QUEUE_SIZE", 50)
    bench = Bench()

    async def silence(*_: object, **__: object) -> bytes:
        return await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(bench.client, "request", silence)
    events = CoreEventBroadcaster(bench.client) if core else EventBroadcaster(bench.client, workers=2)
    recorder = events.recorder("default-scheduler", "vm")

    async def work() -> None:
        async with events:
            for i in range(200):
                recorder.event(POD._replace(name=f"p{i}"), None, *SCHEDULED)
                await asyncio.sleep(0)
            assert events.dropped == (150 if core else 148)
            raise KeyError

    with pytest.raises(KeyError):
        await work()
    assert logged().count("too many queued events") == 1
    assert f"Events were not sent number={50 if core else 52}" in logged()


@pytest.mark.asyncio
@pytest.mark.parametrize("api", [new_api, core_api])
async def test_echo(api: Any, logged: Callable[[], str], verbose: Callable[[int], None]) -> None:
    async with api() as (_, events, recorder):
        recorder.event(POD, None, *SCHEDULED)
        assert "Event occurred" not in logged()
        verbose(3)
        recorder.event(POD, None, *SCHEDULED)
        await events.flush()
    action = "Binding" if api is new_api else ""
    assert (
        f"Event occurred object=sw/ok kind=Pod apiVersion=v1 type=Normal reason=Scheduled action={action} "
        "note=Successfully assigned sw/ok to sw-1"
    ) in logged()
