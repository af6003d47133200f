"""Sizes of replica sets as plain functions, against worked examples."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers import rollout
from skedge.controlplane.controllers.revisions import scaled, template_hash

JSON = dict[str, Any]


def deployment(replicas: int, surge: Any = 0, unavailable: Any = 0, image: str = "new") -> JSON:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": image}]}}
    return {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "strategy": strategy, "template": template}}


def replica_set(
    name: str, replicas: int, available: int | None = None, image: str = "old", maximum: int = 0, desired: int = 0
) -> JSON:
    annotations = {rollout.MAXIMUM: str(maximum), rollout.DESIRED: str(desired)} if maximum else {}
    labels = {"app": "web", rollout.HASH_LABEL: name}
    return {
        "metadata": {"name": name, "creationTimestamp": f"2026-01-01T00:00:0{name[-1]}Z", "annotations": annotations},
        "spec": {
            "replicas": replicas,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"image": image}]}},
        },
        "status": {"replicas": replicas, "availableReplicas": replicas if available is None else available},
    }


def test_the_hash_label_makes_no_other_template() -> None:
    old, new = replica_set("rs-0", 1), replica_set("rs-1", 1, image="new")
    found, others = rollout.split(deployment(1), [old, new])
    assert found is new
    assert others == [old]


@pytest.mark.parametrize(
    ("surge", "unavailable", "bounds"),
    [("25%", "25%", (3, 2)), (0, 0, (0, 1)), ("1%", "1%", (1, 0)), (0, "1%", (0, 1)), (2, 30, (2, 10))],
)
def test_bounds(surge: Any, unavailable: Any, bounds: tuple[int, int]) -> None:
    assert rollout.bounds(deployment(10, surge, unavailable)) == bounds


@pytest.mark.parametrize(
    ("surge", "new", "old", "expected"),
    [(0, 0, 10, 0), (2, 0, 10, 2), (2, 2, 10, 2), (2, 2, 8, 4), (5, 5, 0, 10), (0, 12, 0, 10)],
)
def test_growth_of_the_new_set(surge: int, new: int, old: int, expected: int) -> None:
    present = replica_set("rs-1", new, image="new")
    assert rollout.new_size(deployment(10, surge, 1), present, [replica_set("rs-0", old)]) == expected


@pytest.mark.parametrize(
    ("unavailable", "new", "old", "expected"),
    [
        (2, (0, 0), [(10, 10)], [8]),
        (2, (5, 5), [(8, 8)], [3]),
        (2, (5, 0), [(8, 8)], []),
        (2, (5, 3), [(8, 8)], [5]),
        (0, (1, 0), [(10, 10)], [9]),
        (2, (0, 0), [(4, 0), (6, 6)], [2]),
        (2, (0, 0), [(0, 0)], []),
    ],
)
def test_shrinking_of_old_sets(
    unavailable: int, new: tuple[int, int], old: list[tuple[int, int]], expected: list[int]
) -> None:
    present = replica_set("rs-9", *new, image="new")
    others = [replica_set(f"rs-{i}", *each) for i, each in enumerate(old)]
    sizes = rollout.shrink(deployment(10, 0, unavailable), present, others)
    assert [size for _, size in sizes] == expected


@pytest.mark.parametrize(
    ("replicas", "surge", "before", "sizes"),
    [
        (15, 0, [5, 5], {"rs-0": 7, "rs-1": 8}),
        (5, 0, [5, 5], {"rs-0": 2, "rs-1": 3}),
        (20, 2, [8, 3], {"rs-0": 16, "rs-1": 6}),
        (0, 0, [6, 4], {"rs-0": 0, "rs-1": 0}),
    ],
)
def test_scaling_keeps_proportions(replicas: int, surge: int, before: list[int], sizes: dict[str, int]) -> None:
    total = sum(before)
    old = replica_set("rs-0", before[0], maximum=total, desired=total - surge)
    new = replica_set("rs-1", before[1], image="new", maximum=total, desired=total - surge)
    obj = deployment(replicas, surge)
    assert rollout.is_scaling(obj, [old, new])
    assert {each["metadata"]["name"]: size for each, size in rollout.proportional(obj, new, [old])} == sizes


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [("25%", 10, True, 3), ("25%", 10, False, 2), (4, 10, True, 4), (None, 10, True, 0), ("x%", 10, True, 0)],
)
def test_shares(value: Any, total: int, up: bool, expected: int) -> None:
    assert scaled(value, total, up=up) == expected


def test_hashes_tell_templates_and_tries_apart() -> None:
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert template_hash(one) == template_hash(other)
    assert len({template_hash(one), template_hash(one, 1), template_hash({"a": 2})}) == 3
