"""AssumeCache: what `get` says between our write and its return."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from skedge.api.storage import PersistentVolume
from skedge.stores.assume import AssumeCache, AssumeError, is_newer
from skedge.stores.store import Store


def volume(version: str, phase: str = "", uid: str = "u") -> PersistentVolume:
    return msgspec.convert(
        {"metadata": {"name": "v", "uid": uid, "resourceVersion": version}, "status": {"phase": phase}},
        PersistentVolume,
    )


@pytest.fixture
def cache() -> AssumeCache[Any]:
    cache: AssumeCache[Any] = AssumeCache(Store())
    cache.store.set(volume("5", "api"))
    cache.assume(volume("5", "assumed"))
    return cache


@pytest.mark.parametrize(
    ("arrives", "expected"),
    [
        (volume("5", "again"), "assumed"),
        (volume("4", "older"), "assumed"),
        (volume("6", "newer"), "newer"),
        (volume("10", "much newer"), "much newer"),
        (volume("5", "another", uid="other"), "another"),
    ],
    ids=lambda case: case if isinstance(case, str) else case.status.phase,
)
def test_assumed_until_something_newer_arrives(cache: AssumeCache[Any], arrives: Any, expected: str) -> None:
    cache.store.set(arrives)
    found = cache.get("v")
    assert found is not None
    assert found.status.phase == expected
    assert [each.status.phase for each in cache] == [expected]


def test_deletion_ends_an_assumption(cache: AssumeCache[Any]) -> None:
    cache.store.delete(volume("6"))
    assert cache.get("v") is None
    cache.store.set(volume("7", "new"))
    found = cache.get("v")
    assert found is not None
    assert found.status.phase == "new"


def test_restore_goes_back_to_the_store(cache: AssumeCache[Any]) -> None:
    cache.restore("v")
    cache.restore("v")
    found = cache.get("v")
    assert found is not None
    assert found.status.phase == "api"


def test_only_the_known_version_is_assumed(cache: AssumeCache[Any]) -> None:
    with pytest.raises(AssumeError, match=r'"v" is out of sync \(stored: 5, assume: 4\)'):
        cache.assume(volume("4"))
    with pytest.raises(AssumeError, match="could not find"):
        AssumeCache(Store[Any]()).assume(volume("1"))


def test_observers_see_what_get_answers(cache: AssumeCache[Any]) -> None:
    seen: list[tuple[str, str]] = []

    def phase(obj: Any) -> str:
        return "" if obj is None else obj.status.phase  # type: ignore[no-any-return]

    cache.observers.append(lambda old, new: seen.append((phase(old), phase(new))))
    cache.store.set(volume("5", "again"))  # hidden behind the assumption
    cache.restore("v")
    cache.assume(volume("5", "second"))
    cache.store.set(volume("6", "newer"))
    cache.store.delete(volume("6"))
    assert seen == [("assumed", "again"), ("again", "second"), ("second", "newer"), ("newer", "")]


@pytest.mark.parametrize(
    ("one", "two", "newer"), [("10", "9", True), ("9", "10", False), ("", "", False), ("b", "a", True)]
)
def test_versions_compare_as_numbers(one: str, two: str, newer: bool) -> None:
    assert is_newer(one, two) is newer
