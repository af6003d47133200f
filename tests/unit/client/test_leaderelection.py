"""Acquire, renew, take over, lose, release: several electors against one Lease, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from skedge.client.errors import ConnectionRefused, RequestTimeout
from skedge.client.hooks import LeaderHooks
from skedge.client.leaderelection import LeaderElector
from skedge.client.leasecandidate import LeaseCandidate
from skedge.client.leaselock import LeaseLock
from skedge.clock import VirtualClock

from .fakeapi import FakeApi, Reply, advance, memory_client, settle, status

LEASES = "/apis/coordination.k8s.io/v1/leases"
PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
KEY = (LEASES, "kube-system", "kube-scheduler")


class Candidate(LeaderHooks):
    """One elector and the story of its callbacks."""

    def __init__(self, api: FakeApi, clock: VirtualClock, identity: str, **options: Any) -> None:
        self.story: list[str] = []
        self.slow = 0
        self.work: Callable[[], Awaitable[None]] | None = None
        client = memory_client(api, clock, rng=random.Random(identity), timeout=options.pop("timeout", None))
        self.lock = LeaseLock(client, "kube-system", "kube-scheduler", identity)
        self.elector = LeaderElector(
            self.lock,
            on_started_leading=self._lead,
            on_stopped_leading=lambda: self.story.append("stopped"),
            on_new_leader=lambda identity: self.story.append(f"leader {identity}"),
            on_event=lambda message: self.story.append(f"event {message}"),
            clock=clock,
            rng=client.rng,
            hooks=self,
            **options,
        )

    async def _lead(self) -> None:
        self.story.append("started")
        try:
            if self.work is not None:
                await self.work()
            await asyncio.Event().wait()
        finally:
            self.story.append("work cancelled")

    def slow_path(self) -> None:
        self.slow += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.elector.run(), name=self.lock.identity)
        await settle()
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def lease(holder: str, **spec: Any) -> dict[str, Any]:
    times = {"acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z"}
    fields = {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3}
    return {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": fields | times | spec}


@pytest.mark.asyncio
async def test_first_leader_creates_and_renews_without_reading() -> None:
    """GET, POST, PUT at once, then a PUT every two seconds; bodies as the reference sends them."""
    api, clock = FakeApi(), VirtualClock(1_000_000_000.25)
    me = Candidate(api, clock, "me", timeout=5)
    async with me.running():
        await advance(clock, 4.1)
        assert [(r.method, r.path) for r in api.requests] == [
            ("GET", f"{PATH}/kube-scheduler"),
            ("POST", PATH),
            ("PUT", f"{PATH}/kube-scheduler"),
            ("PUT", f"{PATH}/kube-scheduler"),
            ("PUT", f"{PATH}/kube-scheduler"),
        ]
        assert {r.params["timeout"] for r in api.requests} == {"5s"}
        spec = {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2001-09-09T01:46:40.250000Z",
            "renewTime": "2001-09-09T01:46:40.250000Z",
            "leaseTransitions": 0,
        }
        assert api.requests[1].body == {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
            "spec": spec,
        }
        assert api.requests[4].body["spec"] == spec | {"renewTime": "2001-09-09T01:46:44.250000Z"}
        assert api.requests[4].body["metadata"]["resourceVersion"] == "103"
        assert me.story == ["leader me", "event me became leader", "started"]
        assert me.elector.is_leader
        assert me.slow == 0


@pytest.mark.asyncio
async def test_release_on_cancel() -> None:
    """Work is told first, then the lease is given up (GET and PUT), then the stop callback runs."""
    api, clock = FakeApi(), VirtualClock(1_000_000_000.25)
    me = Candidate(api, clock, "me")
    async with me.running() as task:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [r.method for r in api.requests[-2:]] == ["GET", "PUT"]
    assert api.objects[KEY]["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2001-09-09T01:46:40.250000Z",
        "renewTime": "2001-09-09T01:46:40.250000Z",
        "leaseTransitions": 0,
    }
    assert me.story[2:] == ["started", "work cancelled", "event me stopped leading", "stopped"]


@pytest.mark.asyncio
async def test_no_release_when_not_asked_for() -> None:
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me", release_on_cancel=False)
    async with me.running():
        pass
    assert api.objects[KEY]["spec"]["holderIdentity"] == "me"


@pytest.mark.asyncio
async def test_expiry_is_measured_by_our_own_clock() -> None:
    """The holder's times are years old, yet it has its duration from when we first saw the record."""
    api, clock = FakeApi(), VirtualClock()
    api.put(LEASES, lease("other"))
    me = Candidate(api, clock, "me")
    async with me.running():
        await advance(clock, 14.9)
        assert not me.elector.is_leader
        assert me.story == ["leader other"]
        await advance(clock, 4.6)
        assert me.elector.is_leader
        assert api.objects[KEY]["spec"]["leaseTransitions"] == 4
        assert me.story[1:3] == ["leader me", "event me became leader"]


@pytest.mark.asyncio
async def test_a_changed_record_starts_the_time_anew() -> None:
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me")
    api.put(LEASES, lease("other", leaseDurationSeconds=15))
    async with me.running():
        for i in range(5):
            await advance(clock, 8)
            api.put(LEASES, lease("other", renewTime=f"2020-01-01T00:00:0{i}.000000Z"))
        assert not me.elector.is_leader


@pytest.mark.asyncio
async def test_released_lease_is_taken_at_the_next_try() -> None:
    api, clock = FakeApi(), VirtualClock()
    one, two = Candidate(api, clock, "one"), Candidate(api, clock, "two")
    async with one.running() as first, two.running():
        await advance(clock, 7)
        assert (one.elector.is_leader, two.elector.is_leader) == (True, False)
        first.cancel()
        await settle()
        await advance(clock, 4.4)
        assert two.elector.is_leader
        assert api.objects[KEY]["spec"]["leaseTransitions"] == 1
        assert two.story[0] == "leader one"


@pytest.mark.asyncio
async def test_attempts_of_a_follower_are_jittered() -> None:
    """Each wait is the retry period stretched by up to 1.2 times itself."""
    api, clock = FakeApi(), VirtualClock()
    api.put(LEASES, lease("other", leaseDurationSeconds=10_000))
    me, times = Candidate(api, clock, "me"), list[float]()
    api.faults.append(lambda request: times.append(clock.monotonic()))
    async with me.running():
        await advance(clock, 60)
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert len(set(waits)) > 5
    assert all(2.0 <= wait <= 4.4 for wait in waits)


@pytest.mark.asyncio
async def test_lease_is_lost_after_the_renew_deadline() -> None:
    """Nothing gets through for 10 s: work is cancelled, the stop callback runs, `run` returns."""
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me")
    async with me.running() as task:
        await advance(clock, 2)
        api.faults.append(lambda request: ConnectionRefused("down"))
        await advance(clock, 11.9)
        assert "stopped" not in me.story
        await advance(clock, 0.2)
        assert task.done()
        assert me.story[3:] == ["work cancelled", "event me stopped leading", "stopped"]


@pytest.mark.asyncio
async def test_a_hanging_request_does_not_outlast_the_renew_deadline() -> None:
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me")
    async with me.running() as task:
        await advance(clock, 1)

        async def hang(*args: Any, **kwargs: Any) -> Any:
            await asyncio.Event().wait()

        me.lock._client.transport.request = hang  # type: ignore[method-assign]
        await advance(clock, 11.1)
        assert "work cancelled" in me.story
        await advance(clock, 10)
        assert task.done()


@pytest.mark.asyncio
async def test_conflict_on_the_fast_path_reads_and_goes_on() -> None:
    """Somebody edited the Lease: the update conflicts, the slow path reads it and keeps the edit."""
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me")
    async with me.running():
        edited = api.objects[KEY]
        api.put(LEASES, edited | {"metadata": edited["metadata"] | {"labels": {"team": "a"}}})
        await advance(clock, 2)
        assert [r.method for r in api.requests[-3:]] == ["PUT", "GET", "PUT"]
        assert api.objects[KEY]["metadata"]["labels"] == {"team": "a"}
        assert me.slow == 1
        assert api.objects[KEY]["spec"]["leaseTransitions"] == 0


@pytest.mark.asyncio
async def test_lease_stolen_by_another_is_given_up() -> None:
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me")
    async with me.running() as task:
        api.put(LEASES, lease("thief", leaseDurationSeconds=60))
        await advance(clock, 13)
        assert task.done()
        assert api.objects[KEY]["spec"]["holderIdentity"] == "thief"
        assert me.story[3:] == ["leader thief", "work cancelled", "event me stopped leading", "stopped"]


@pytest.mark.asyncio
async def test_fields_nobody_knows_survive() -> None:
    """Take-over, renewal and release change six fields of the JSON and nothing else."""
    api, clock = FakeApi(), VirtualClock()
    before = lease("", strategy="OldestEmulationVersion", preferredHolder="x", future={"a": [1, None]})
    before["metadata"] |= {"annotations": {"k": "v"}, "managedFields": [{"manager": "m"}], "finalizers": ["f"]}
    before["extra"] = {"deep": {"deeper": 1.5}}
    api.put(LEASES, before)
    me = Candidate(api, clock, "me")
    async with me.running():
        await advance(clock, 5)
    after = api.objects[KEY]
    changed = {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"}
    for key, value in before["spec"].items():
        assert key in changed or after["spec"][key] == value
    assert after["extra"] == before["extra"]
    for key in ("annotations", "managedFields", "finalizers"):
        assert after["metadata"][key] == before["metadata"][key]


@pytest.mark.asyncio
async def test_errors_of_a_follower_are_survived(logged: Callable[[], str]) -> None:
    api, clock = FakeApi(), VirtualClock()
    api.fail(ConnectionRefused("refused"), Reply(403, status(403, "Forbidden", "no")), RequestTimeout("late"))
    api.fail(Reply(409, status(409, "AlreadyExists", "raced")), method="POST")
    me = Candidate(api, clock, "me")
    async with me.running():
        await advance(clock, 30)
        assert me.elector.is_leader
    assert "Error retrieving lease lock err=refused lock=kube-system/kube-scheduler" in logged()
    assert "Error initially creating lease lock" in logged()


@pytest.mark.asyncio
async def test_failing_work_releases_and_comes_out() -> None:
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me")

    async def fail() -> None:
        raise LookupError("bug")

    me.work = fail
    async with me.running() as task:
        await settle()
        with pytest.raises(ExceptionGroup):
            await task
    assert api.objects[KEY]["spec"]["holderIdentity"] == ""
    assert me.story[-1] == "stopped"


@pytest.mark.asyncio
async def test_health() -> None:
    """A leader whose loop stood still for longer than its lease and the tolerance is ill."""
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me")
    assert not me.elector.lease_expired_for(20)
    async with me.running():
        await advance(clock, 30)
        assert not me.elector.lease_expired_for(20)
        clock._elapsed += 34
        assert not me.elector.lease_expired_for(20)
        clock._elapsed += 2
        assert me.elector.lease_expired_for(20)


@pytest.mark.asyncio
async def test_coordinated_lease_is_only_renewed() -> None:
    """It is not created, not taken when expired, renewed while it names us, and lost at the end of the term."""
    api, clock = FakeApi(), VirtualClock()
    me = Candidate(api, clock, "me", coordinated=True)
    async with me.running() as task:
        await advance(clock, 10)
        assert {r.method for r in api.requests} == {"GET"}
        api.put(LEASES, lease("", strategy="OldestEmulationVersion"))
        await advance(clock, 30)
        assert not me.elector.is_leader
        api.put(LEASES, lease("me", strategy="OldestEmulationVersion", leaseTransitions=7))
        await advance(clock, 10)
        assert me.elector.is_leader
        spec = api.objects[KEY]["spec"]
        assert (spec["leaseTransitions"], spec["strategy"]) == (7, "OldestEmulationVersion")
        assert spec["renewTime"] > "2023-11-14T22:14:05"
        api.put(LEASES, api.objects[KEY] | {"spec": spec | {"preferredHolder": "other"}})
        await advance(clock, 13)
        assert task.done()
        assert me.story[-1] == "stopped"


@pytest.mark.asyncio
async def test_lease_candidate() -> None:
    """Published at the start, renewed every five minutes and when pinged; fields we don't know survive."""
    api, clock = FakeApi(), VirtualClock(1_000_000_000)
    collection = "/apis/coordination.k8s.io/v1beta1/leasecandidates"
    api.fail(Reply(500, status(500, "InternalError")), method="POST")
    candidate = LeaseCandidate(
        memory_client(api, clock),
        namespace="kube-system",
        name="me",
        lease_name="kube-scheduler",
        binary_version="1.36.2",
        emulation_version="1.36.0",
    )
    task = asyncio.create_task(candidate.run())
    await candidate.wait_for_sync()
    await advance(clock, 1)
    key = (collection, "kube-system", "me")
    assert api.seen("POST")[-1].body == {
        "kind": "LeaseCandidate",
        "apiVersion": "coordination.k8s.io/v1beta1",
        "metadata": {"name": "me", "namespace": "kube-system"},
        "spec": {
            "leaseName": "kube-scheduler",
            "binaryVersion": "1.36.2",
            "emulationVersion": "1.36.0",
            "strategy": "OldestEmulationVersion",
            "renewTime": "2001-09-09T01:46:40.005000Z",
        },
    }
    assert [r.params["fieldSelector"] for r in api.requests if "watch" in r.params] == ["metadata.name=me"]
    spec = api.objects[key]["spec"] | {"pingTime": "2001-09-09T01:46:50.000000Z"}
    api.put(collection, api.objects[key] | {"spec": spec, "future": {"x": 1}})
    await advance(clock, 1)
    assert len(api.seen("PUT")) == 1
    assert api.objects[key]["spec"] == spec | {"renewTime": "2001-09-09T01:46:41.000000Z"}
    assert api.objects[key]["future"] == {"x": 1}
    await advance(clock, 602)
    renewed = api.objects[key]["spec"]["renewTime"]
    assert renewed >= "2001-09-09T01:51:40"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lease_duration": 10}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": 9}, r"renewDeadline must be greater than retryPeriod\*JitterFactor"),
        ({"retry_period": 0}, "retryPeriod must be greater than zero"),
        ({"lease_duration": 0, "renew_deadline": -1, "retry_period": -2}, "leaseDuration must be greater than zero"),
    ],
)
def test_times_that_cannot_work(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Candidate(FakeApi(), VirtualClock(), "me", **options)
