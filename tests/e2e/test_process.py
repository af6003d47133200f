"""The process on a server: several profiles, waiting in reserve, events by the older API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e import servers
from e2e.proxy import Answer, Recorded, RecordingProxy
from skedge.app.process import SchedulerProcess
from skedge.config.durations import Duration
from skedge.config.gates import FeatureGates
from skedge.config.load import decode
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import KubeSchedulerConfiguration

PODS = "/api/v1/namespaces/default/pods"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


def pod(name: str, scheduler: str = "default-scheduler", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    tolerations = [{"operator": "Exists"}]
    whole = {"schedulerName": scheduler, "containers": containers, "tolerations": tolerations, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def configuration(text: str = "", *, elect: bool = False) -> KubeSchedulerConfiguration:
    """Without an election, or with a fast one."""
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    config = decode(head + text, args_types=PLUGIN_ARGS)
    election = config.leader_election
    election.leader_elect = elect
    election.lease_duration, election.renew_deadline = Duration.of(3), Duration.of(2)
    election.retry_period = Duration.of(0.2)
    return config


@asynccontextmanager
async def running(url: str, config: KubeSchedulerConfiguration, **gates: bool) -> AsyncIterator[SchedulerProcess]:
    process = SchedulerProcess(config, servers.as_user(url, servers.SCHEDULER), gates=FeatureGates(**gates))
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        process.stop()
        await task


async def until(holds: Callable[[], Any], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def bound(operator: servers.Operator, name: str) -> dict[str, Any]:
    """Waits until a pod has a node."""
    async with asyncio.timeout(10):
        while True:
            found: dict[str, Any] = await operator.send("GET", f"{PODS}/{name}")
            if found["spec"].get("nodeName"):
                return found
            await asyncio.sleep(0.02)


TWO_PROFILES = """
profiles:
- schedulerName: default-scheduler
- schedulerName: second
  plugins:
    multiPoint:
      disabled: [{name: NodeAffinity}]
"""


@pytest.mark.asyncio
async def test_each_profile_has_its_plugins_and_its_name() -> None:
    picky = {"nodeSelector": {"no": "where"}}
    async with servers.running("embedded") as url, servers.operator(url) as operator:
        await operator.send("POST", "/api/v1/nodes", NODE)
        async with RecordingProxy(url) as proxy, running(proxy.url, configuration(TWO_PROFILES)):
            await operator.send("POST", PODS, pod("first", **picky))
            await operator.send("POST", PODS, pod("other", "second", **picky))
            await operator.send("POST", PODS, pod("foreign", "third"))
            await bound(operator, "other")
            await until(lambda: len(events(proxy)) == 2)
        assert {(body["regarding"]["name"], body["reason"], body["reportingController"]) for body in events(proxy)} == {
            ("first", "FailedScheduling", "default-scheduler"),
            ("other", "Scheduled", "second"),
        }


ONE_RULE = """
profiles:
- plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: NodeName}, {name: VolumeZone}, {name: DefaultBinder}]
"""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "extra"),
    [
        (ONE_RULE, {"persistentvolumes", "persistentvolumeclaims", "storageclasses"}),
        (ONE_RULE.replace("{name: VolumeZone}, ", ""), set()),
    ],
    ids=["volumes", "nothing"],
)
async def test_a_small_profile_watches_little(text: str, extra: set[str]) -> None:
    async with servers.running("embedded") as url, RecordingProxy(url) as proxy:
        async with running(proxy.url, configuration(text)) as process:
            await until(lambda: process.watches is not None and process.watches.handlers_synced)
        watched = {each.path.partition("?")[0].rpartition("/")[2] for each in proxy.requests if "watch" in each.path}
        assert watched == {"pods", "nodes", "namespaces"} | extra


@pytest.mark.asyncio
async def test_without_the_gate_the_first_state_is_listed() -> None:
    async with servers.running("embedded") as url, RecordingProxy(url) as proxy:
        async with running(proxy.url, configuration(ONE_RULE), WatchListClient=False) as process:
            await until(lambda: process.watches is not None and process.watches.handlers_synced)
        listed = {each.path.partition("?")[0] for each in proxy.requests if "watch=" not in each.path}
        assert {"/api/v1/pods", "/api/v1/nodes"} <= listed
        assert not [each.path for each in proxy.requests if "sendInitialEvents" in each.path]


def events(proxy: RecordingProxy) -> list[Any]:
    return [each.body for each in proxy.requests if each.method == "POST" and each.path.endswith("/events")]


@pytest.mark.asyncio
async def test_events_by_the_older_api() -> None:
    async with servers.running("embedded") as url, servers.operator(url) as operator:
        await operator.send("POST", "/api/v1/nodes", NODE)
        async with RecordingProxy(url) as proxy:
            gone = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "none"}
            proxy.answer = lambda request: (404, gone) if "events.k8s.io" in request.path else None
            async with running(proxy.url, configuration()):
                await operator.send("POST", PODS, pod("p"))
                await bound(operator, "p")
                await until(lambda: events(proxy))
        (body,) = events(proxy)
        assert body["apiVersion"] == "v1"
        assert body["involvedObject"]["name"] == "p"
        assert body["source"]["component"] == "default-scheduler"
        assert (body["reason"], body["message"]) == ("Scheduled", "Successfully assigned default/p to n")


@pytest.mark.asyncio
@pytest.mark.parametrize("late", [False, True], ids=["caches at once", "caches when active"])
async def test_a_second_process_waits_in_reserve(late: bool) -> None:
    text = "delayCacheUntilActive: true\n" if late else ""
    async with servers.running("embedded") as url, servers.operator(url) as operator:
        await operator.send("POST", "/api/v1/nodes", NODE)
        async with RecordingProxy(url) as proxy:
            async with running(url, configuration(elect=True)) as first:
                await until(lambda: first.election is not None and first.election.leading)
                second = SchedulerProcess(
                    configuration(text, elect=True), servers.as_user(proxy.url, servers.SCHEDULER)
                )
                task = asyncio.create_task(second.run())
                await until(lambda: any("/leases/" in each.path for each in proxy.requests))
                if not late:
                    await until(lambda: second.watches is not None and second.watches.handlers_synced)
                await operator.send("POST", PODS, pod("one"))
                await bound(operator, "one")
                watched = [each for each in proxy.requests if "watch=true" in each.path]
                assert bool(watched) is not late
                assert not [each for each in proxy.requests if each.method != "GET"], "it does nothing"
            await operator.send("POST", PODS, pod("two"))
            await bound(operator, "two")
            assert [each.path for each in proxy.requests if each.path.endswith("/binding")] == [f"{PODS}/two/binding"]
            second.stop()
            assert await task == 0


@pytest.mark.asyncio
async def test_an_end_lets_bindings_finish_and_then_releases_the_lease() -> None:
    async with servers.running("embedded") as url, servers.operator(url) as operator:
        await operator.send("POST", "/api/v1/nodes", NODE)
        async with RecordingProxy(url) as proxy:
            proxy.delay = lambda request: 0.5 if request.path.endswith("/binding") else 0.0
            async with running(proxy.url, configuration(elect=True)) as process:
                await until(lambda: process.election is not None and process.election.leading)
                await operator.send("POST", PODS, pod("p"))
                await until(lambda: any(each.path.endswith("/binding") for each in proxy.requests))
                process.stop()
                await operator.send("POST", PODS, pod("too-late"))
            assert (await operator.send("GET", f"{PODS}/p"))["spec"]["nodeName"] == "n"
            assert "nodeName" not in (await operator.send("GET", f"{PODS}/too-late"))["spec"]
    changes = [each for each in proxy.requests if each.method != "GET"]
    assert changes[-1].method == "PUT"
    assert not changes[-1].body["spec"].get("holderIdentity")
    assert [body["reason"] for body in events(proxy)] == ["LeaderElection", "Scheduled"]


CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/kube-system/leasecandidates"


class Candidates:
    """Stands in for the embedded server, which has no LeaseCandidates; lists, creates, and watches nothing."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def answer(self, request: Recorded) -> Answer | None:
        if not request.path.startswith(CANDIDATES):
            return None
        if request.method == "POST":
            self.items.append(request.body)
            return 201, request.body
        if "watch=true" in request.path:
            return 400, {"kind": "Status", "status": "Failure", "reason": "BadRequest", "code": 400}
        if request.path.partition("?")[0] != CANDIDATES and not self.items:
            return 404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
        return 200, {"kind": "LeaseCandidateList", "metadata": {"resourceVersion": "1"}, "items": self.items}


@pytest.mark.asyncio
async def test_a_controller_may_hand_out_the_lease() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    async with servers.running("embedded") as url, servers.operator(url) as operator, RecordingProxy(url) as proxy:
        await operator.send("POST", "/api/v1/nodes", NODE)
        candidates = Candidates()
        proxy.answer = candidates.answer
        gates = FeatureGates(CoordinatedLeaderElection=True)
        process = SchedulerProcess(
            configuration(elect=True), servers.as_user(proxy.url, servers.SCHEDULER), gates=gates
        )
        task = asyncio.create_task(process.run())
        await until(lambda: candidates.items and process.election is not None and process.election.candidate_synced)
        (candidate,) = candidates.items
        spec = candidate["spec"]
        assert (spec["leaseName"], spec["binaryVersion"], spec["emulationVersion"]) == (
            "kube-scheduler",
            "1.36.2",
            "1.36.0",
        )
        assert (await operator.send("GET", leases))["items"] == []
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        times = {"acquireTime": now, "renewTime": now, "leaseDurationSeconds": 15, "leaseTransitions": 0}
        held = {"holderIdentity": candidate["metadata"]["name"], "strategy": "OldestEmulationVersion", **times}
        await operator.send("POST", leases, {"metadata": {"name": "kube-scheduler"}, "spec": held})
        await operator.send("POST", PODS, pod("p"))
        await bound(operator, "p")
        process.stop()
        assert await task == 0
