"""Where the pods of a group are: waiting, assumed, or with a node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skedge.cache.cache import Cache
from skedge.cache.pod_groups import PodGroups
from skedge.testing.builders import PodBuilder, make_pod

Step = Callable[[Cache, PodGroups], object]


def member(name: str = "p") -> PodBuilder:
    pod = make_pod(name).uid(f"uid-{name}")
    pod.json["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return pod


def appear(cache: Cache, groups: PodGroups) -> None:
    groups.put(member().info())


def assume(cache: Cache, groups: PodGroups) -> None:
    cache.assume_pod(member().info(), "n")


def forget(cache: Cache, groups: PodGroups) -> None:
    cache.forget_pod(member().info(), "n")


def change(cache: Cache, groups: PodGroups) -> None:
    groups.put(member().label(new="yes").info())


def bind(cache: Cache, groups: PodGroups) -> None:
    cache.add_pod(member().node("n").placed())


def update(cache: Cache, groups: PodGroups) -> None:
    cache.update_pod(member().node("n").label(new="yes").placed())


def remove(cache: Cache, groups: PodGroups) -> None:
    cache.remove_pod(member().node("n").placed())


def vanish(cache: Cache, groups: PodGroups) -> None:
    groups.drop(member().info())


@pytest.mark.parametrize(
    ("steps", "counts", "places"),
    [
        ([appear], (1, 0, 0), []),
        ([appear, change], (1, 0, 0), []),
        ([appear, assume], (0, 1, 0), [("default/p", "n")]),
        ([assume], (0, 1, 0), [("default/p", "n")]),
        ([appear, assume, change], (0, 1, 0), [("default/p", "n")]),
        ([appear, assume, forget], (1, 0, 0), []),
        ([appear, assume, bind], (0, 0, 1), [("default/p", "n")]),
        ([bind], (0, 0, 1), [("default/p", "n")]),
        ([appear, bind, update], (0, 0, 1), [("default/p", "n")]),
        ([bind, remove], None, []),
        ([appear, vanish], None, []),
        ([appear, assume, vanish], None, []),
        ([appear, assume, vanish, forget], None, []),
    ],
    ids=lambda value: "-".join(getattr(step, "__name__", "") for step in value) if isinstance(value, list) else "",
)
def test_states(steps: list[Step], counts: tuple[int, int, int] | None, places: list[tuple[str, str]]) -> None:
    cache = Cache()
    groups = cache.groups = PodGroups()
    for step in steps:
        step(cache, groups)
    state = groups.get("default", "g")
    if counts is None:
        assert state is None
        assert groups.of(member().info()) is None
        return
    assert state is not None
    assert (len(state.unscheduled), len(state.assumed), len(state.assigned)) == counts
    assert (len(state), state.scheduled) == (1, counts[1] + counts[2])
    assert list(state.places()) == places
    cache.validate()


def test_a_pod_without_a_group_is_nobody_here() -> None:
    cache = Cache()
    cache.groups = PodGroups()
    cache.groups.put(make_pod().info())
    cache.assume_pod(make_pod().info(), "n")
    assert list(cache.groups) == []


def test_victims_come_back_where_they_stood() -> None:
    cache = Cache()
    pods = [make_pod(f"p{i}").req(cpu="1").node("n").placed() for i in range(3)]
    for pod in pods:
        cache.add_pod(pod)
    cache.take_off(pods[:2])
    assert cache.table.pod_count.sum() == 1
    cache.put_back(pods[:2])
    row = cache.table.row_of["n"]
    assert [pod.name for pod in cache.table.pods[row].values()] == ["p0", "p1", "p2"]
    cache.validate()
