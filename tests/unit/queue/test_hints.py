"""Registrations, matching and what an event means for a pod."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.clock import VirtualClock
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent
from skedge.queue.hints import QueueingHints, Strategy, hint_map, registered_actions
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.snapshot.pods import PlacedPod
from unit.queue.support import NODE_LABEL, POD_DELETE, PROFILE, QUEUE, SKIP, Barrier, Counts, Rejector, pod

NODE_TAINT = ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT)
DEFAULT = {
    "Pod",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "storage.k8s.io/CSINode",
    "storage.k8s.io/CSIDriver",
    "storage.k8s.io/CSIStorageCapacity",
    "storage.k8s.io/StorageClass",
    "resource.k8s.io/ResourceClaim",
    "resource.k8s.io/DeviceClass",
}


class Silent:
    """Takes part, and says nothing of events."""

    name = "Silent"

    def reserve(self) -> None: ...


class Scorer:
    name = "Scorer"

    def score(self) -> None: ...


def hints(*plugins: Any, counts: Counts | None = None) -> QueueingHints:
    return QueueingHints({PROFILE: hint_map(plugins)}, VirtualClock().monotonic, counts or Counts())


def record(*unschedulable: str, pending: tuple[str, ...] = (), scheduler: str = PROFILE) -> QueuedPodInfo:
    made = QueuedPodInfo(pod(scheduler=scheduler), 0.0)
    made.set_rejectors(unschedulable, pending)
    return made


@pytest.mark.parametrize(
    ("registered", "extra"),
    [
        ((events.NODE_ADD,), True),
        ((events.NODE_ADD, NODE_LABEL), True),
        ((ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),), True),
        ((events.NODE_ADD, NODE_TAINT), False),
        ((ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT),), False),
        ((ClusterEvent(events.NODE, ActionType.ALL),), False),
        ((NODE_LABEL,), False),
        ((POD_DELETE,), False),
        ((), False),
    ],
)
def test_node_add_brings_taints_along(registered: tuple[ClusterEvent, ...], extra: bool) -> None:
    found = hint_map([Rejector("Fit", *registered)])
    assert [r.event for r in found if r.hint is None] == ([NODE_TAINT] if extra else [])
    assert [r.event for r in found if r.hint is not None] == list(registered)


def test_silent_plugins_get_the_default() -> None:
    found = hint_map([Silent(), Scorer()])
    assert {r.event.resource for r in found} == DEFAULT
    assert {r.event.action for r in found} == {ActionType.ALL}
    assert {(r.plugin, r.hint) for r in found} == {("Silent", None)}


def test_default_with_pod_groups() -> None:
    found = hint_map([Silent()], generic_workload=True)
    assert {r.event.resource for r in found} == DEFAULT | {"scheduling.k8s.io/PodGroup"}


def test_extenders_take_part_as_one() -> None:
    assert hint_map([]) == ()
    found = hint_map([], extenders=True)
    assert ({r.plugin for r in found}, {r.event.resource for r in found}) == ({"Extender"}, DEFAULT)


@pytest.mark.parametrize("point", ["pre_enqueue", "pre_filter", "filter", "filter_node", "reserve", "permit"])
def test_who_takes_part(point: str) -> None:
    assert hint_map([type("Plugin", (), {"name": "x", point: lambda self: None})()])


@pytest.mark.parametrize("point", ["pre_score", "score", "pre_bind", "bind", "post_bind", "post_filter"])
def test_who_does_not(point: str) -> None:
    assert not hint_map([type("Plugin", (), {"name": "x", point: lambda self: None})()])


def test_union_of_what_is_listened_to() -> None:
    maps = [hint_map([Rejector("A", events.NODE_ADD)]), hint_map([Rejector("B", NODE_LABEL, POD_DELETE)])]
    assert registered_actions(maps) == {
        "Node": ActionType.ADD | ActionType.UPDATE_NODE_TAINT | ActionType.UPDATE_NODE_LABEL,
        "Pod": ActionType.DELETE,
    }


ALL_POD = ClusterEvent(events.POD, ActionType.ALL)
POD_UPDATE = ClusterEvent(events.POD, ActionType.UPDATE)
POD_LABEL = ClusterEvent(events.POD, ActionType.UPDATE_POD_LABEL)
WILDCARD = ClusterEvent(events.WILDCARD, ActionType.ALL)


@pytest.mark.parametrize(
    ("registered", "incoming", "expected"),
    [
        (POD_UPDATE, events.UNSCHEDULABLE_POD_UPDATE, True),
        (ALL_POD, events.UNSCHEDULABLE_POD_UPDATE, True),
        (POD_LABEL, events.UNSCHEDULABLE_POD_UPDATE, False),
        (POD_UPDATE, ClusterEvent(events.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL), True),
        (POD_DELETE, events.ASSIGNED_POD_DELETE, True),
        (POD_DELETE, events.ASSIGNED_POD_ADD, False),
        (POD_DELETE, events.NODE_DELETE, False),
        (ClusterEvent(events.WILDCARD, ActionType.ADD), events.NODE_ADD, True),
        (WILDCARD, events.NODE_ADD, True),
        (WILDCARD, events.UNSCHEDULABLE_TIMEOUT, True),
        (ALL_POD, events.UNSCHEDULABLE_TIMEOUT, False),
        (ClusterEvent(events.ASSIGNED_POD, ActionType.ADD), ClusterEvent(events.POD, ActionType.ADD), False),
    ],
)
def test_matching_decides_interest(registered: ClusterEvent, incoming: ClusterEvent, expected: bool) -> None:
    assert registered.matches(incoming) is expected
    asked = Rejector("Fit", registered)
    found = hints(asked)
    assert found.of_interest(incoming) is (expected or incoming.wildcard)
    if not incoming.wildcard:
        assert found.can_matter(PROFILE, frozenset({"Fit"}), incoming) is expected
        found.worth_requeuing(record("Fit"), incoming, None, None)
        assert bool(asked.asked) is expected


@pytest.mark.parametrize(
    ("unschedulable", "pending", "first", "second", "expected"),
    [
        ((), (), QUEUE, QUEUE, Strategy.AFTER_BACKOFF),
        (("A",), (), QUEUE, QUEUE, Strategy.AFTER_BACKOFF),
        (("A",), (), SKIP, QUEUE, Strategy.SKIP),
        (("A", "B"), (), SKIP, QUEUE, Strategy.AFTER_BACKOFF),
        (("A", "B"), (), SKIP, SKIP, Strategy.SKIP),
        (("C",), (), QUEUE, QUEUE, Strategy.SKIP),
        (("A", "B"), ("B",), QUEUE, QUEUE, Strategy.IMMEDIATELY),
        (("A", "B"), ("B",), QUEUE, SKIP, Strategy.AFTER_BACKOFF),
        (("A", "B"), ("B",), SKIP, QUEUE, Strategy.IMMEDIATELY),
        (("A", "B"), ("B",), SKIP, SKIP, Strategy.SKIP),
        ((), ("B",), QUEUE, QUEUE, Strategy.IMMEDIATELY),
        (("A",), (), ValueError(), SKIP, Strategy.AFTER_BACKOFF),
        (("A", "B"), ("B",), SKIP, ValueError(), Strategy.IMMEDIATELY),
    ],
)
def test_worth_requeuing(
    unschedulable: tuple[str, ...], pending: tuple[str, ...], first: Any, second: Any, expected: Strategy
) -> None:
    plugins = [Rejector("A", events.NODE_ADD, answer=first), Rejector("B", events.NODE_ADD, answer=second)]
    each = record(*unschedulable, pending=pending)
    assert hints(*plugins).worth_requeuing(each, events.NODE_ADD, None, "node") is expected


@pytest.mark.parametrize("event", [events.FORCE_ACTIVATE, events.UNSCHEDULABLE_TIMEOUT])
@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (None, Strategy.AFTER_BACKOFF),
        (pod(), Strategy.AFTER_BACKOFF),
        (PlacedPod(pod(), "n"), Strategy.AFTER_BACKOFF),
        (pod("other"), Strategy.SKIP),
        ("a node", Strategy.SKIP),
    ],
)
def test_wildcards(event: ClusterEvent, new: Any, expected: Strategy) -> None:
    asked = Rejector("Fit", WILDCARD)
    assert hints(asked).worth_requeuing(record("Fit"), event, None, new) is expected
    assert asked.asked == []


def test_profile_without_hints() -> None:
    found = hints(Rejector("Fit", events.NODE_ADD))
    assert found.worth_requeuing(record("Fit", scheduler="x"), NODE_LABEL, None, None) is Strategy.AFTER_BACKOFF
    assert found.can_matter("x", frozenset({"Fit"}), NODE_LABEL)


def test_no_more_is_asked_than_needed_and_all_is_measured() -> None:
    counts = Counts()
    first, second = Rejector("A", events.NODE_ADD), Rejector("B", events.NODE_ADD)
    hints(first, second, counts=counts).worth_requeuing(record("A", "B"), events.NODE_ADD, 1, 2)
    assert (first.asked, second.asked) == ([("ns/p", 1, 2)], [])
    assert counts.hints == [("A", "NodeAdd", "Queue")]


def test_without_a_hint_function_it_is_queue() -> None:
    counts = Counts()
    assert hints(Silent(), counts=counts).worth_requeuing(record("Silent"), NODE_LABEL, 1, 2) is Strategy.AFTER_BACKOFF
    assert counts.hints == [("Silent", "NodeUpdateNodeLabel", "Queue")]


def test_gating_events_are_the_union_over_profiles() -> None:
    maps = {"a": hint_map([Barrier("Gate", POD_DELETE)]), "b": hint_map([Barrier("Gate", POD_DELETE, NODE_LABEL)])}
    found = QueueingHints(maps, VirtualClock().monotonic, Counts())
    assert found.events_of("Gate") == (POD_DELETE, NODE_LABEL)
    assert found.events_of("Nobody") == ()
    assert found.of_interest(NODE_LABEL)
