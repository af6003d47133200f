"""Reported bugs about pods that were not tried (again), about events and about messages. Named after their ids."""

from __future__ import annotations

from typing import Any

import pytest

from bugs.placing import HOST, app, message, no_flush, placed
from pitfalls.scripted import by_name, place, scripted, world
from skedge.config.defaults import default_configuration
from skedge.framework.events import ASSIGNED_POD_DELETE, NODE_ADD, ClusterEventWithHint
from skedge.framework.status import SUCCESS, Code, Status
from skedge.telemetry.hooks import SchedulerHooks
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio
LATER = 30.0


async def test_b001_a_failed_binding_whose_clean_up_fails_too() -> None:
    broken = [RuntimeError("clean-up"), None]

    def unreserve(*args: Any) -> None:
        error = broken.pop(0) if broken else None
        if error is not None:
            raise error

    async with world(scripted("S", reserve=SUCCESS, unreserve=unreserve), max_in_unschedulable=float("inf")) as h:
        failures = [RuntimeError("500")]
        h.fail_bind = lambda pod, node: failures.pop() if failures and pod.name == "a" else None
        for i in range(3):
            h.add_node(make_node(f"n{i}"))
        h.add_pod(make_pod("a"))
        h.add_pod(make_pod("b"))
        await h.settle()
        assert place(h, "a") == "error backoff"
        condition = h.condition("a")
        assert condition is not None
        assert condition["reason"] == "SchedulerError"
        assert {pod.name for pod in h.scheduler.cache.pods()} == {"b"}
        await h.settle(3.0)
        assert h.node_of("a") != ""
        h.validate()


async def test_b002_updates_of_the_same_version_wake_nobody() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        for i in range(50):
            h.add_pod(make_pod(f"p{i}").req(cpu="2"))
        await h.settle()
        cycle = h.scheduler.queue.scheduling_cycle
        for pod in list(h.store.values()):
            h.scheduler.handlers.pod_updated(pod, pod)
        await h.settle(LATER)
        assert h.scheduler.queue.scheduling_cycle == cycle


async def test_b004_a_pod_made_active_wakes_the_loop() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        await placed(h, make_pod("p").req(cpu="2"))
        h.scheduler._wake.clear()
        h.scheduler.queue.activate([h.store["default/p"]])
        assert h.scheduler._wake.is_set()


async def test_b005_one_event_of_several_in_flight_is_enough() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("e").req(cpu="1").node("n"))
        h.add_pod(make_pod("p").req(cpu="1"))
        queue = h.scheduler.queue
        record = queue.pop()
        assert record is not None
        h.update_node(make_node("n").capacity(cpu="1").label(irrelevant="yes"))
        h.delete_pod("e")
        record.set_rejectors(["NodeResourcesFit"])
        queue.add_unschedulable_if_not_present(record)
        assert place(h) in ("backoff", "active")
        await h.settle(LATER)
        assert h.node_of("p") == "n"


async def test_b008_a_taint_that_goes_after_the_node_came() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        await placed(h, make_pod("p").req(cpu="2"))
        h.add_node(make_node("n2").taint("node.kubernetes.io/not-ready"))
        await h.settle(LATER)
        assert h.node_of("p") == ""
        h.update_node(make_node("n2"))
        await h.settle(11.0)
        assert h.node_of("p") == "n2"


async def test_b010_deleting_the_pod_whose_anti_affinity_was_in_the_way() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("e").pod_affinity(HOST, {"app": "x"}, anti=True).node("n"))
        assert await placed(h, app("p", "x")) == [""]
        h.delete_pod("e")
        await h.settle(2.0)
        assert h.node_of("p") == "n"


async def test_b011_one_of_two_terms_of_anti_affinity() -> None:
    """The hint of 1.36 wants all terms to match (the contract); the sweep brings the pod back."""
    async with Harness() as h:
        h.add_node(make_node("n"))
        h.add_pod(app("e", "b").node("n"))
        pod = make_pod("p").pod_affinity(HOST, {"app": "a"}, anti=True).pod_affinity(HOST, {"app": "b"}, anti=True)
        assert await placed(h, pod) == [""]
        h.delete_pod("e")
        await h.settle(2.0)
        assert h.node_of("p") == ""
        await h.settle(400.0)
        assert h.node_of("p") == "n"


@pytest.mark.parametrize("anti", [False, True])
async def test_b013_terms_with_a_namespace_selector(anti: bool) -> None:
    """The hint of 1.36 takes namespaces as if they had no labels (the contract); the sweep brings the pod back."""
    pod = make_pod("p", "dev").pod_affinity(HOST, {"app": "db"}, anti=anti)
    affinity = pod.json["spec"]["affinity"]["podAntiAffinity" if anti else "podAffinity"]
    affinity["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaceSelector"] = {"matchLabels": {"team": "x"}}
    async with Harness() as h:
        h.put("Namespace", {"metadata": {"name": "team-1", "labels": {"team": "x"}}})
        h.put("Namespace", {"metadata": {"name": "dev"}})
        h.add_node(make_node("n"))
        db = make_pod("db", "team-1").label(app="db").node("n")
        if anti:
            h.add_pod(db)
        assert await placed(h, pod) == [""]
        if anti:
            h.delete_pod("db", "team-1")
        else:
            h.add_pod(db)
        await h.settle(400.0)
        assert h.node_of("p", "dev") == "n"


async def test_b014_a_gate_of_a_plugin_opens_by_its_event() -> None:
    go: list[bool] = []
    closed = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "not yet")
    events = [ClusterEventWithHint(NODE_ADD)]
    plugin = scripted("S", pre_enqueue=lambda pod: SUCCESS if go else closed, events_to_register=lambda: events)
    async with world(plugin, max_in_unschedulable=float("inf")) as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("p"))
        await h.settle(LATER)
        assert (place(h), h.node_of("p")) == ("gated", "")
        go.append(True)
        h.add_node(make_node("m"))
        await h.settle(2.0)
        assert h.node_of("p") != ""
        h.add_pod(make_pod("q").req(cpu="64"))
        await h.settle()
        go.clear()
        h.add_node(make_node("big").capacity(cpu="128"))  # it may be tried, were it not for the gate now
        await h.settle(LATER)
        assert (place(h, "q"), h.node_of("q")) == ("gated", "")


async def test_b016_pods_that_cannot_be_placed_do_not_starve_new_ones() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        for i in range(100):
            h.add_pod(make_pod(f"p{i}").req(cpu="2"))
        await h.settle()
        for i in range(10):
            h.update_node(make_node("n").capacity(cpu="1", memory=f"{i + 1}Gi"))
            await h.settle(0.1)
        h.add_pod(make_pod("new").req(cpu="500m"))
        await h.settle()
        assert h.node_of("new") == "n"


async def test_b017_a_pod_made_again_while_the_old_one_is_tried() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))

        def fail(pod: Any, node: str) -> Exception | None:
            if pod.uid != "one":
                return None
            h.delete_pod("web-0")
            h.add_pod(make_pod("web-0").uid("two"))
            return LookupError("gone")

        h.fail_bind = fail
        h.add_pod(make_pod("web-0").uid("one"))
        await h.settle(2.0)
        assert h.node_of("web-0") == "n"
        assert [pod.uid for pod in h.scheduler.cache.pods()] == ["two"]
        h.validate()


async def test_b019_no_backoff_where_none_is_wanted() -> None:
    config = default_configuration()
    config.pod_initial_backoff_seconds = config.pod_max_backoff_seconds = 0
    async with no_flush(config=config) as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("e").req(cpu="1").node("n"))
        await placed(h, make_pod("p").req(cpu="1"))
        h.delete_pod("e")
        await h.settle()
        assert h.node_of("p") == "n"


async def test_b026_a_nominated_node_that_is_deleted_keeps_nothing() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        h.add_pod(make_pod("low").req(cpu="1").node("n1"))
        h.delete = _sleep  # type: ignore[method-assign]
        await placed(h, make_pod("h").req(cpu="1").priority(10))
        assert list(h.scheduler.queue.nominator.nominated_nodes()) == ["n1"]
        h.add_node(make_node("n2"))
        h.delete_node("n1")
        h.delete_pod("low")
        await h.settle(LATER)
        assert h.node_of("h") == "n2"
        assert list(h.scheduler.queue.nominator.nominated_nodes()) == []


async def _sleep(pod: Any) -> bool:
    """Evicts in its own time: the victim goes by other hands."""
    return True


async def test_b092_errors_of_the_scheduler_are_not_the_clusters_fault() -> None:
    def fail(state: Any, pod: Any, view: Any) -> Any:
        if pod.name == "broken":
            raise RuntimeError("a bug")
        return view.full(0)

    async with world(scripted("S", filter=fail)) as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("broken"))
        h.add_pod(make_pod("big").req(cpu="2"))
        await h.settle()
        reasons = [(h.condition(name) or {}).get("reason") for name in ("broken", "big")]
        assert reasons == ["SchedulerError", "Unschedulable"]


class Counting(SchedulerHooks):
    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.scheduled: list[tuple[int, float | None]] = []

    def schedule_attempt(self, result: str, profile: str, seconds: float) -> None:
        self.attempts.append(result)

    def pod_scheduled(self, attempts: int, sli_seconds: float | None, after_flush: bool) -> None:
        self.scheduled.append((attempts, sli_seconds))


async def test_b095_no_nodes_is_unschedulable_and_no_error() -> None:
    hooks = Counting()
    async with no_flush(hooks=hooks) as h:
        await placed(h, make_pod("p"))
        assert message(h) == "no nodes available to schedule pods"
        assert hooks.attempts == ["unschedulable"]
        h.add_node(make_node("n"))
        await h.settle(3.0)
        assert h.node_of("p") == "n"


async def test_b097_a_late_failure_does_not_overwrite_a_success() -> None:
    """The server's binding sets the condition; what was decided before it must not come after it."""
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("e").req(cpu="1").node("n"))
        await placed(h, make_pod("p").req(cpu="1"))
        h.delete_pod("e")
        await h.settle(2.0)
        assert h.node_of("p") == "n"
        patches = len(h.patches)
        await h.settle(LATER)
        assert len(h.patches) == patches


async def test_b100_time_at_a_gate_is_not_scheduling_time() -> None:
    hooks = Counting()
    async with no_flush(hooks=hooks) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p").gates("g"))
        await h.settle(60.0)
        h.update_pod(make_pod("p"))
        await h.settle()
        ((attempts, seconds),) = hooks.scheduled
        assert attempts == 1
        assert seconds is not None
        assert seconds < 1.0


async def test_b110_events_kept_for_pods_in_flight_are_let_go() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n"))
        for i in range(300):
            h.add_pod(make_pod(f"p{i}").terminating())
            if i % 10 == 0:
                h.update_node(make_node("n").capacity(cpu=str(4 + i)))
        await h.settle()
        assert h.scheduler.queue.in_flight_counts() == {"PodPopped": 0}
        assert h.scheduler.queue.statistics()["in_flight_events"] == 0


async def test_b130_room_that_appears_once_is_enough() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        await placed(h, make_pod("driver").req(cpu="1100m"))
        await h.settle(5.0)
        h.update_node(make_node("n").capacity(cpu="2"))
        await h.settle(2.0)
        assert h.node_of("driver") == "n"


async def test_b031_without_hints_the_sweep_brings_a_preemptor_back() -> None:
    events = [ClusterEventWithHint(ASSIGNED_POD_DELETE)]
    plugin = scripted("S", filter=by_name(lambda name: 0), events_to_register=lambda: events)
    async with world(plugin, post_filter=True) as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("low").req(cpu="1").node("n"))
        move, h.scheduler.queue.move_all = h.scheduler.queue.move_all, lambda *args: None  # type: ignore[method-assign]
        h.add_pod(make_pod("p").req(cpu="1").priority(10))
        await h.settle()
        assert (h.deleted, h.node_of("p")) == (["default/low"], "")
        h.scheduler.queue.move_all = move  # type: ignore[method-assign]
        await h.settle(400.0)
        assert h.node_of("p") == "n"
