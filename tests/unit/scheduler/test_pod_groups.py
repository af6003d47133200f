"""Pod groups; ids that begin with a number are those of the list of pitfalls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from skedge.clock import VirtualClock
from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.config.types import Plugin, Profile
from skedge.framework.plugin import PostFilterResult
from skedge.framework.ports import ExtenderFiltered, ExtenderVictims
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.plugins.gang_scheduling import NOT_APPEARED, NOT_SCHEDULED
from skedge.queue.pending import Place
from skedge.scheduler.pod_group_verdict import Fate
from skedge.scheduler.pod_groups import GroupCycle
from skedge.scheduler.scheduling_cycle import WAITING
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness
from unit.scheduler.groups import GATES, gang, group_condition, groups, member, placed

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(10)]

HELD = f"pod group is unschedulable, {NOT_SCHEDULED}, {WAITING}"


# --- outcomes ---------------------------------------------------------------------------------------------------------


async def test_a_gang_that_fits_is_bound_in_one_cycle() -> None:
    async with groups(nodes=2) as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}"))
        await h.settle()
        assert sorted(placed(h)) == ["p0", "p1", "p2"]
        assert group_condition(h) == ("True", "Scheduled", "")
        h.validate()


async def test_a_gang_that_does_not_fit_leaves_nothing_behind() -> None:
    """11: a member that fits while its gang does not is told what it waits for; 90: nobody waits at Permit."""
    async with groups(cpu="2") as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}").priority(10 - i))
        await h.settle()
        assert placed(h) == {}
        assert not list(h.scheduler.waiting)
        assert h.scheduler.cache.statistics()["assumed_pods"] == 0
        messages = [(h.condition(f"p{i}") or {})["message"] for i in range(3)]
        assert messages[:2] == [HELD, HELD]
        assert messages[2].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert (h.condition("p0") or {})["reason"] == "Unschedulable"
        assert group_condition(h) == ("False", "Unschedulable", "pod group is unschedulable")
        h.validate()


async def test_members_are_not_parked() -> None:
    """126: they are tried again by backoff, whatever rejected them."""
    async with groups(cpu="2") as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}"))
        await h.settle()
        places = {record.key: place for place, record in h.scheduler.queue.records()}
        assert set(places.values()) <= {Place.BACKOFF, Place.ERROR_BACKOFF, Place.ACTIVE}
        h.add_node(make_node("more").capacity(cpu="2"))
        await h.settle(advance=120)
        assert len(placed(h)) == 3


async def test_once_true_the_condition_stays() -> None:
    """127: a later pod that does not fit changes nothing about the group."""
    async with groups(cpu="3") as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}"))
        await h.settle()
        h.add_pod(member("extra"))
        await h.settle()
        assert len(placed(h)) == 3
        assert group_condition(h) == ("True", "Scheduled", "")
        assert (h.condition("extra") or {})["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


async def test_members_of_different_schedulers() -> None:
    """pitfall 128: none of them is scheduled."""
    config = default_configuration(h_gates())
    config.profiles.append(Profile(scheduler_name="other", plugins=config.profiles[0].plugins))
    async with Harness(config, gates=h_gates()) as h:
        h.add_node(make_node("n"))
        gang(h, min_count=2)
        h.add_pod(member("a").priority(2))
        h.add_pod(member("b").scheduler("other").priority(1))
        await h.settle()
        text = (
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            'got: "other" and "default-scheduler"'
        )
        assert [(h.condition(name) or {})["message"] for name in "ab"] == [text, text]
        assert {(h.condition(name) or {})["reason"] for name in "ab"} == {"SchedulerError"}
        assert placed(h) == {}


def h_gates() -> FeatureGates:
    return FeatureGates(**dict.fromkeys(GATES, True))


async def test_the_rest_of_a_gang_joins_later() -> None:
    async with groups(cpu="3") as h:
        gang(h)
        for i in range(4):
            h.add_pod(member(f"p{i}"))
        await h.settle()
        assert len(placed(h)) == 3
        h.add_node(make_node("more"))
        await h.settle(advance=120)
        assert len(placed(h)) == 4


async def test_basic_group_takes_what_fits() -> None:
    async with groups(cpu="2") as h:
        gang(h, min_count=None)
        for i in range(3):
            h.add_pod(member(f"p{i}"))
        await h.settle()
        assert len(placed(h)) == 2
        assert group_condition(h) == ("True", "Scheduled", "")


async def test_two_gangs_and_room_for_one() -> None:
    async with groups(cpu="3") as h:
        for name in "ab":
            gang(h, name)
            for i in range(3):
                h.add_pod(member(f"{name}{i}", name))
        await h.settle()
        assert sorted(placed(h)) == ["a0", "a1", "a2"]
        assert group_condition(h, "b")[0] == "False"
        h.validate()


async def test_with_the_gates_off_members_are_ordinary_pods() -> None:
    async with Harness() as h:
        h.add_node(make_node("n"))
        h.add_pod(member("p"))
        await h.settle()
        assert h.node_of("p") == "n"


# --- waiting for others to appear -------------------------------------------------------------------------------------


async def test_pods_wait_for_their_group_and_for_each_other() -> None:
    async with groups() as h:
        queue = h.scheduler.queue
        plugin = next(p for p in h.scheduler.profiles["default-scheduler"].pre_enqueue if p.name == "GangScheduling")
        h.add_pod(member("p0"))
        assert [place for place, _ in queue.records()] == [Place.GATED]
        assert plugin.pre_enqueue(member("p0").info()).reasons == (
            'waiting for pods\'s pod group "g" to appear in scheduling queue',
        )
        gang(h, min_count=2)
        assert [place for place, _ in queue.records()] == [Place.GATED]
        assert plugin.pre_enqueue(member("p0").info()).reasons == (NOT_APPEARED,)
        h.add_pod(member("p1"))
        assert {place for place, _ in queue.records()} == {Place.ACTIVE}
        await h.settle()
        assert len(placed(h)) == 2


async def test_a_gang_shrinks_below_its_count() -> None:
    """A member that is deleted counts no more."""
    async with groups() as h:
        gang(h, min_count=3)
        h.add_pod(member("p0"))
        h.add_pod(member("p1"))
        h.delete_pod("p1")
        h.add_pod(member("p2"))
        await h.settle()
        assert placed(h) == {}
        assert {place for place, _ in h.scheduler.queue.records()} == {Place.GATED}


# --- the algorithm, outcome by outcome --------------------------------------------------------------------------------


class Scripted:
    """Rejects, errs, waits, nominates as the letters behind a pod's name say."""

    name = "Scripted"
    normalizer = None

    def __init__(self, script: dict[str, str]) -> None:
        self._script = script

    def pre_filter(self, state: CycleState, pod: PodInfo, view: Any) -> tuple[None, Status]:
        what = self._script[pod.name][0]
        if what == "E":
            return None, Status(Code.ERROR, "broken")
        return None, Status(Code.UNSCHEDULABLE, "no") if what in "XP" else SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: Any) -> Any:
        return view.full(0)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        raise AssertionError

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Any) -> tuple[PostFilterResult | None, Status]:
        if self._script[pod.name][0] == "P":
            return PostFilterResult("n0"), SUCCESS
        return None, Status(Code.UNSCHEDULABLE)

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        match self._script[pod.name][1:]:
            case "S":
                return SUCCESS, 0.0
            case "R":
                return Status(Code.UNSCHEDULABLE, "not so"), 0.0
            case "E":
                return Status(Code.ERROR, "broken"), 0.0
        return Status(Code.WAIT, "hold on"), 60.0


def scripted(*letters: str) -> Harness:
    """A group whose members p0, p1, ... fare as the letters say: F, X, P or E, then what Permit says."""
    gates = FeatureGates(GenericWorkload=True)
    config = default_configuration(gates)
    plugins = config.profiles[0].plugins
    enabled = [plugin for plugin in plugins.multi_point.enabled if plugin.name != "DefaultPreemption"]
    plugins.multi_point.enabled = [Plugin("Scripted"), *enabled]
    plugin = Scripted({f"p{i}": each for i, each in enumerate(letters)})
    harness = Harness(config, gates=gates, out_of_tree={"Scripted": lambda args, handle: plugin})
    harness.add_node(make_node("n0"))
    gang(harness)
    for i in range(len(letters)):
        harness.add_pod(member(f"p{i}").priority(10 - i))
    return harness


ROWS = [
    (("FS", "FS", "FS"), "Success", False),
    (("FW", "FW", "FS"), "Success", False),
    (("FW", "FW", "FW"), "Unschedulable", False),
    (("FS", "FS", "FW"), "Success", False),
    (("FW", "FR", "FS"), "Success", False),
    (("PS", "PS", "PS"), "Unschedulable", True),
    (("PW", "PW", "PW"), "Unschedulable", False),
    (("PW", "FW", "FS"), "Unschedulable", True),
    (("PS", "X", "FS"), "Unschedulable", True),
    (("X", "X", "X"), "Unschedulable", False),
    (("FS", "E", "FS"), "Error", False),
    (("FS", "FE", "FS"), "Error", False),
    (("PS", "E", "FS"), "Error", False),
]


@pytest.mark.parametrize(("letters", "code", "waiting"), ROWS, ids=[" ".join(row[0]) for row in ROWS])
async def test_verdicts(letters: tuple[str, ...], code: str, waiting: bool) -> None:
    async with scripted(*letters) as h:
        first = h.scheduler.queue.pop()
        assert first is not None
        cycle = GroupCycle(h.scheduler, first)
        assert cycle._collect()
        verdict = await cycle.attempt()
        assert (verdict.status.code.word, verdict.waiting) == (code, waiting)
        assert len(verdict.trials) == (2 if code == "Error" else 3)
        assert h.scheduler.cache.statistics()["assumed_pods"] == 0
        if code == "Error":
            assert verdict.status.message.startswith("failed to schedule other pod from a pod group: running ")
            assert verdict.status.message.endswith(' plugin "Scripted": broken')
            assert verdict.trials[-1].fate is Fate.ERROR


WAITS = f"pod group is unschedulable, hold on, {WAITING}"
NO = "0/1 nodes are available: no."
OUTCOMES = [
    (("FS", "FS", "FW"), {"p0": "n0", "p1": "n0"}, {}, {}),
    (("FW", "X", "FS"), {"p2": "n0"}, {"p1": NO}, {}),
    (
        ("PS", "FS", "FS"),
        {},
        {"p0": NO, "p1": "waiting", "p2": "waiting"},
        {"p0": "n0", "p1": "n0", "p2": "n0"},
    ),
    (("PS", "X", "FS"), {}, {"p0": NO, "p1": NO, "p2": "waiting"}, {"p0": "n0", "p2": "n0"}),
    (("FS", "PW", "FW"), {"p0": "n0"}, {"p1": WAITS}, {}),
    (("PW", "FW", "X"), {}, {"p0": WAITS, "p1": WAITS, "p2": NO}, {}),
    (
        ("FS", "E", "FS"),
        {},
        {
            "p0": "failed to schedule other pod from a pod group",
            "p1": 'running PreFilter plugin "Scripted": broken',
            "p2": "failed to schedule other pod from a pod group",
        },
        {},
    ),
]


@pytest.mark.parametrize(
    ("letters", "bound", "messages", "nominated"), OUTCOMES, ids=[" ".join(row[0]) for row in OUTCOMES]
)
async def test_what_becomes_of_the_members(
    letters: tuple[str, ...], bound: dict[str, str], messages: dict[str, str], nominated: dict[str, str]
) -> None:
    async with scripted(*letters) as h:
        h.scheduler.run_slice(0.0)
        for _ in range(30):
            await asyncio.sleep(0)
        assert placed(h) == bound
        for name, message in messages.items():
            got = (h.condition(name) or {})["message"]
            if message == "waiting":
                assert got == "pod group is unschedulable, pod group is waiting for preemption to complete"
            else:
                assert got.startswith(message)
        status = {name: h.json[f"default/{name}"]["status"].get("nominatedNodeName") for name in ("p0", "p1", "p2")}
        waiting = {pod.pod.name for pod in h.scheduler.waiting}
        assert {name: node for name, node in status.items() if node and name not in bound and name not in waiting} == (
            nominated
        )
        if any(letter == "E" for letter in letters):
            assert group_condition(h)[1] == "SchedulerError"


async def test_a_nomination_survives_trying() -> None:
    async with groups(cpu="2") as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}").nominated("n0") if not i else member(f"p{i}"))
        first = h.scheduler.queue.pop()
        assert first is not None
        cycle = GroupCycle(h.scheduler, first)
        assert cycle._collect()
        await cycle.attempt()
        assert h.scheduler.queue.nominator.node_of(next(q for q in cycle.members if q.pod.name == "p0").pod.uid) == "n0"


async def test_nominated_member_in_flight_is_a_bare_name() -> None:
    """77: other members see it without priority and requests."""
    async with groups(cpu="3") as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}").priority(5).nominated("n0"))
        await h.settle()
        assert len(placed(h)) == 3


async def test_state_of_the_group_is_gone() -> None:
    async with groups() as h:
        gang(h, min_count=1)
        h.add_pod(member("p"))
        assert h.scheduler.cache.groups is not None
        h.scheduler.cache.groups._states.clear()
        h.scheduler.run_slice()
        await h.settle()
        assert (h.condition("p") or {})["message"] == (
            "error while retrieving pod group state: pod group state not found for pod group default/g"
        )


async def test_a_plain_pod_and_a_group_take_turns() -> None:
    async with groups(cpu="4") as h:
        gang(h)
        h.add_pod(make_pod("plain").req(cpu="2").priority(100))
        for i in range(3):
            h.add_pod(member(f"p{i}"))
        await h.settle()
        assert placed(h) == {"plain": "n0"}
        h.validate()


# --- cycles that wait -------------------------------------------------------------------------------------------------


class Slow:
    """An extender that lets every node pass, when it is told to."""

    name = "http://slow"
    weight = 1
    ignorable = False
    managed_resources: frozenset[str] = frozenset()
    filters, prioritizes, preempts, binds = True, False, False, False

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked: list[str] = []

    async def filter(self, pod: PodInfo, nodes: Sequence[str]) -> ExtenderFiltered:
        self.asked.append(pod.name)
        await self.gate.wait()
        return ExtenderFiltered(nodes, {}, {}, False)

    async def prioritize(self, pod: PodInfo, nodes: Sequence[str]) -> Mapping[str, int]:
        raise AssertionError

    async def preempt(self, pod: PodInfo, candidates: Any) -> Mapping[str, ExtenderVictims]:
        raise AssertionError

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise AssertionError


async def test_extenders_are_asked_about_each_member() -> None:
    """Meanwhile nothing changes."""
    extender = Slow()
    async with groups(extenders=[extender]) as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}").priority(3 - i))
        cycle = asyncio.create_task(h.scheduler.work())
        while not extender.asked:  # noqa: ASYNC110
            await asyncio.sleep(0)
        h.add_node(make_node("late"))
        assert "late" not in h.scheduler.cache.table.row_of
        extender.gate.set()
        await cycle
        assert extender.asked == ["p0", "p1", "p2"]
        assert "late" in h.scheduler.cache.table.row_of
        await h.settle()
        assert len(placed(h)) == 3
        h.validate()


class Ticking(VirtualClock):
    """Every look at it takes a while."""

    def monotonic(self) -> float:
        self.advance(0.002)
        return super().monotonic()


async def test_a_large_group_lets_sockets_breathe() -> None:
    async with groups(clock=Ticking(), cpu="100") as h:
        gang(h, min_count=20)
        for i in range(20):
            h.add_pod(member(f"p{i}"))
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(other())
        first = h.scheduler.queue.pop()
        assert first is not None
        with h.inbox.held():
            await GroupCycle(h.scheduler, first, pauses=True).run()
        beside.cancel()
        assert turns >= 5
        await h.settle()
        assert len(placed(h)) == 20


async def test_a_bug_while_collecting_loses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async with groups() as h:
        gang(h)
        for i in range(3):
            h.add_pod(member(f"p{i}"))
        queue = h.scheduler.queue
        pop = queue.pop_specific_pod

        def breaks(pod: PodInfo) -> Any:
            if len(list(queue.records())) and pod.name == "p2":
                raise RuntimeError("no such luck")
            return pop(pod)

        monkeypatch.setattr(queue, "pop_specific_pod", breaks)
        h.scheduler.run_slice()
        monkeypatch.undo()
        await h.settle(advance=60)
        assert len(placed(h)) == 3
        h.validate()
