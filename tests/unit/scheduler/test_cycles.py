"""A pod's way from the watch to its node, and every way back into the queue."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from skedge.config.defaults import default_configuration
from skedge.config.types import KubeSchedulerConfiguration, Plugin
from skedge.framework.events import NODE, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import PostFilterResult
from skedge.framework.state import PODS_TO_ACTIVATE, CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


CONNECTIONS = 4


class Misbehaving:
    """A plugin at every point; `at` says what it does where: a Status to return, or an exception to raise."""

    name = "Misbehaving"
    normalizer = None

    def __init__(self, at: dict[str, Any]) -> None:
        self.at = at
        self.calls: list[str] = []
        self.unreserved: list[str] = []

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), self.hint)]

    def hint(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        self._do("hint")
        return QueueingHint.QUEUE

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._do("pre_enqueue")

    def _do(self, point: str) -> Status:
        self.calls.append(point)
        what = self.at.get(point, SUCCESS)
        if isinstance(what, BaseException):
            raise what
        return cast(Status, what)

    def filter(self, state: CycleState, pod: PodInfo, view: Any) -> Any:
        return view.full(0 if self._do("filter").ok else 1)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        self._do("filter_status")
        return Status(Code.UNSCHEDULABLE, "no")

    def pre_filter(self, state: CycleState, pod: PodInfo, view: Any) -> tuple[None, Status]:
        return None, self._do("pre_filter")

    def pre_score(self, state: CycleState, pod: PodInfo, view: Any) -> Status:
        return self._do("pre_score")

    def score(self, state: CycleState, pod: PodInfo, view: Any) -> Any:
        self._do("score")
        return view.full(0)

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Any) -> tuple[PostFilterResult | None, Status]:
        return None, self._do("post_filter")

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self._do("reserve")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.unreserved.append(pod.key)
        self._do("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return self._do("permit"), 10.0

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, bool]:
        return self._do("pre_bind_preflight"), True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self._do("pre_bind")

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._do("post_bind")


def with_plugin(at: dict[str, Any]) -> tuple[Harness, Misbehaving]:
    config: KubeSchedulerConfiguration = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.append(Plugin("Misbehaving", 1))
    plugin = Misbehaving(at)
    return Harness(config, out_of_tree={"Misbehaving": lambda args, handle: plugin}), plugin


async def test_a_pod_that_fits_is_bound_and_told() -> None:
    async with Harness() as h:
        h.add_node(make_node("n1"))
        h.add_pod(make_pod("p").req(cpu="1"))
        await h.settle()
        assert h.node_of("p") == "n1"
        assert [e[1:] for e in h.events] == [
            ("Normal", "Scheduled", "Binding", "Successfully assigned default/p to n1")
        ]
        assert h.patches == []
        h.validate()


async def test_a_pod_that_does_not_fit_waits_and_a_new_node_wakes_it() -> None:
    async with Harness() as h:
        h.add_node(make_node("n1").capacity(cpu="1"))
        h.add_pod(make_pod("p").req(cpu="2"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert condition["status"] == "False"
        assert [e.reason for e in h.events] == ["FailedScheduling"]
        h.validate()
        h.add_node(make_node("n2"))
        await h.settle(2.0)
        assert h.node_of("p") == "n2"
        h.validate()


async def test_no_nodes_is_an_unschedulable_pod_that_is_tried_again() -> None:
    async with Harness() as h:
        h.add_pod(make_pod("p"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert condition["message"] == "no nodes available to schedule pods"
        h.add_node(make_node("n"))
        await h.settle(2.0)
        assert h.node_of("p") == "n"


async def test_gated_pods_are_left_alone_until_the_last_gate_goes() -> None:
    async with Harness() as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p").gates("a.io/x", "a.io/y"))
        await h.settle()
        assert (h.node_of("p"), h.events, h.patches) == ("", [], [])
        h.update_pod(make_pod("p").gates("a.io/x"))
        await h.settle()
        assert h.node_of("p") == ""
        h.update_pod(make_pod("p"))
        await h.settle()
        assert h.node_of("p") == "n"


async def test_higher_priority_first() -> None:
    async with Harness() as h:
        for name, priority in (("low", 0), ("high", 10), ("middle", 5)):
            h.add_pod(make_pod(name).priority(priority))
        h.add_node(make_node("n"))
        await h.settle(2.0)
        assert [key for key, _ in h.bindings] == ["default/high", "default/middle", "default/low"]


async def test_pods_of_other_schedulers_count_only_once_they_have_a_node() -> None:
    async with Harness() as h:
        h.add_node(make_node("n").capacity(cpu="2"))
        h.add_pod(make_pod("theirs").scheduler("other").req(cpu="2"))
        h.add_pod(make_pod("ours").req(cpu="2"))
        await h.settle()
        assert (h.node_of("ours"), h.node_of("theirs")) == ("n", "")
        h.delete_pod("ours")
        h.add_pod(make_pod("theirs").scheduler("other").req(cpu="2").node("n"))
        h.add_pod(make_pod("late").req(cpu="1"))
        await h.settle()
        assert h.node_of("late") == ""
        h.validate()


async def test_a_deleting_pod_is_skipped_with_an_event() -> None:
    async with Harness() as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p").terminating())
        await h.settle()
        assert h.node_of("p") == ""
        assert h.events[-1].note == "skip schedule deleting pod: default/p"


ERROR = Status.from_error(RuntimeError("it broke"))
NO = Status(Code.UNSCHEDULABLE, "not today")
CRASH = RuntimeError("a bug")
CANCELLED = asyncio.CancelledError("by itself")


@pytest.mark.parametrize(
    ("at", "reason", "message"),
    [
        ({"filter": CRASH}, "SchedulerError", "a bug"),
        ({"pre_filter": ERROR}, "SchedulerError", 'running PreFilter plugin "Misbehaving": it broke'),
        ({"pre_filter": CRASH}, "SchedulerError", "a bug"),
        ({"reserve": ERROR}, "SchedulerError", 'running Reserve plugin "Misbehaving": it broke'),
        ({"reserve": NO}, "Unschedulable", "0/1 nodes are available: 1 not today."),
        ({"reserve": CRASH}, "SchedulerError", "a bug"),
        ({"permit": ERROR}, "SchedulerError", 'running Permit plugin "Misbehaving": it broke'),
        ({"permit": NO}, "Unschedulable", "0/1 nodes are available: 1 not today."),
        ({"permit": CRASH}, "SchedulerError", "a bug"),
        ({"reserve": NO, "unreserve": CRASH}, "Unschedulable", "0/1 nodes are available: 1 not today."),
        ({"pre_bind_preflight": ERROR}, "SchedulerError", 'running PreBindPreFlight "Misbehaving": it broke'),
        ({"pre_bind_preflight": CRASH}, "SchedulerError", "a bug"),
        ({"pre_bind": ERROR}, "SchedulerError", 'running PreBind plugin "Misbehaving": it broke'),
        ({"pre_bind": NO}, "Unschedulable", "not today"),
        ({"pre_bind": CRASH}, "SchedulerError", "a bug"),
        ({"pre_bind": CRASH, "unreserve": CRASH}, "SchedulerError", "a bug"),
        ({"pre_bind": CANCELLED}, "SchedulerError", "by itself"),
        ({"filter": NO}, "Unschedulable", "0/1 nodes are available: 1 no."),
        ({"filter": NO, "filter_status": CRASH}, "SchedulerError", "a bug"),
        ({"filter": NO, "post_filter": CRASH}, "SchedulerError", "a bug"),
        ({"filter": NO, "hint": CRASH}, "Unschedulable", "0/1 nodes are available: 1 no."),
        ({"reserve": NO, "hint": CRASH}, "Unschedulable", "0/1 nodes are available: 1 not today."),
        ({"reserve": None}, "SchedulerError", "'NoneType' object has no attribute"),
        ({"permit": None, "unreserve": CRASH}, "SchedulerError", "'NoneType' object has no attribute"),
        ({"pre_bind": None}, "SchedulerError", "'NoneType' object has no attribute"),
    ],
    ids=lambda value: ",".join(f"{k}={type(v).__name__}" for k, v in value.items()) if isinstance(value, dict) else "",
)
async def test_every_failure_leaves_the_pod_in_one_queue_and_nothing_behind(
    at: dict[str, Any], reason: str, message: str
) -> None:
    h, plugin = with_plugin(at)
    async with h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert condition["reason"] == reason
        assert condition["message"].startswith(message)
        assert ("reserve" in plugin.calls) == bool(plugin.unreserved)
        assert list(h.scheduler.cache.pods()) == []
        h.validate()
        plugin.at.clear()
        h.add_node(make_node("n2"))  # an event for pods that were rejected; the others come back by themselves
        await h.settle(12.0)
        assert h.node_of("p") in ("n", "n2")
        h.validate()


async def test_a_pod_that_is_bound_stays_so_whatever_post_bind_does() -> None:
    h, plugin = with_plugin({"post_bind": CRASH})
    async with h:
        h.add_node(make_node("n"))
        for i in range(3 * CONNECTIONS):  # more than there are workers: none of them may be lost
            h.add_pod(make_pod(f"p{i}"))
        await h.settle()
        assert all(h.node_of(f"p{i}") == "n" for i in range(3 * CONNECTIONS))
        assert plugin.calls.count("post_bind") == 3 * CONNECTIONS
        assert h.scheduler.dispatcher.unfinished_bindings == 0
        h.validate()


async def test_pre_enqueue_that_breaks_gates_the_pod_until_it_is_well() -> None:
    h, plugin = with_plugin({"pre_enqueue": CRASH})
    async with h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert h.node_of("p") == ""
        h.validate()
        plugin.at.clear()
        h.add_node(make_node("n2"))
        await h.settle(2.0)
        assert h.node_of("p") in ("n", "n2")
        h.validate()


@pytest.mark.parametrize("what", ["event", "patch_status"])
async def test_telling_that_fails_changes_nothing(what: str) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise CRASH

    async with Harness(connections=CONNECTIONS) as h:
        setattr(h, what, broken)
        for i in range(2 * CONNECTIONS):
            h.add_pod(make_pod(f"p{i}").req(cpu="100m"))
        h.add_node(make_node("small").capacity(cpu="10m"))
        h.add_pod(make_pod("deleting").terminating())
        await h.settle()
        assert h.bindings == []
        h.delete_pod("deleting")
        h.validate()
        h.add_node(make_node("n"))
        await h.settle(2.0)
        assert all(h.node_of(f"p{i}") == "n" for i in range(2 * CONNECTIONS))
        h.validate()


async def test_nonsense_among_pods_to_activate_does_no_harm() -> None:
    h, plugin = with_plugin({})
    plugin.reserve = lambda state, pod, node: state.write(PODS_TO_ACTIVATE, {"x": None}) or SUCCESS  # type: ignore[method-assign]
    async with h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert h.node_of("p") == "n"
        h.validate()


async def test_bind_that_fails_once_is_tried_again() -> None:
    async with Harness() as h:
        failures = [RuntimeError("etcd is down")]
        h.fail_bind = lambda pod, node: failures.pop() if failures else None
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert condition["reason"] == "SchedulerError"
        assert condition["message"] == 'running Bind plugin "DefaultBinder": etcd is down'
        h.validate()
        await h.settle(3.0)
        assert h.node_of("p") == "n"
        h.validate()


async def test_pod_deleted_while_it_is_being_bound() -> None:
    """Its room is free at once, and the binding that fails later does no harm."""
    async with Harness() as h:
        gate = asyncio.Event()
        h.bind_delay = lambda pod: gate if pod.name == "p" else None
        h.add_node(make_node("n").capacity(cpu="1"))
        h.add_pod(make_pod("p").req(cpu="1"))
        await h.settle()
        h.update_pod(make_pod("p").req(cpu="1").terminating())
        h.delete_pod("p")
        h.add_pod(make_pod("q").req(cpu="1"))
        await h.settle()
        assert h.node_of("q") == "n"
        gate.set()
        await h.settle()
        h.validate()


async def test_permit_wait_allow_reject_and_timeout() -> None:
    h, _ = with_plugin({"permit": Status(Code.WAIT), "pre_bind_preflight": Status(Code.SKIP)})
    async with h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        (waiting,) = list(h.scheduler.waiting)
        assert waiting.pending_plugins == ["Misbehaving"]
        assert h.json["default/p"]["status"]["nominatedNodeName"] == "n"
        waiting.allow("Misbehaving")
        await h.settle()
        assert h.node_of("p") == "n"
        h.add_pod(make_pod("q"))
        await h.settle()
        (waiting,) = list(h.scheduler.waiting)
        assert waiting.reject("Misbehaving", "go away")
        assert not waiting.reject("Misbehaving", "twice")
        await h.settle()
        condition = h.condition("q")
        assert condition is not None
        assert condition["message"] == "0/1 nodes are available: 1 go away."
        h.validate()


async def test_backpressure_no_pod_is_popped_while_bindings_pile_up() -> None:
    async with Harness(connections=2) as h:
        gate = asyncio.Event()
        h.bind_delay = lambda pod: gate
        h.add_node(make_node("n"))
        for i in range(20):
            h.add_pod(make_pod(f"p{i}"))
        await h.settle()
        assert h.scheduler.dispatcher.unfinished_bindings == h.scheduler.dispatcher.limit == 8
        h.add_pod(make_pod("urgent").priority(100))
        gate.set()
        await h.settle()
        order = [key for key, _ in h.bindings]
        assert order.index("default/urgent") == 8
        assert len(order) == 21
        h.validate()


@pytest.mark.parametrize("seed", range(3))
async def test_one_seed_one_schedule(seed: int) -> None:
    async def run() -> list[tuple[str, str]]:
        async with Harness(seed=seed) as h:
            for i in range(10):
                h.add_node(make_node(f"n{i}"))
            for i in range(20):
                h.add_pod(make_pod(f"p{i}").req(cpu="100m"))
            await h.settle()
            return h.bindings

    assert await run() == await run()


async def test_out_of_tree_names_may_not_repeat_in_tree_ones() -> None:
    with pytest.raises(Exception, match="a plugin named NodeName already exists"):
        Harness(out_of_tree={"NodeName": lambda args, handle: None})
