"""What is kept while it is used: who goes, who stays, and that sizes add up."""

from __future__ import annotations

from dataclasses import dataclass

from skedge.snapshot.counters_recent import Recent


@dataclass
class Value:
    name: str
    nbytes: int = 10


def test_the_least_recently_used_goes_first() -> None:
    gone: list[Value] = []
    recent: Recent[Value] = Recent(80, gone.append)
    for name in "abcdefgh":
        recent.put(name, Value(name))
    assert recent.get("a") is not None
    recent.put("i", Value("i"))
    assert [value.name for value in gone] == ["b", "c"]  # down to seven eighths
    assert recent.get("b") is None
    assert recent.get("a") is not None
    assert recent.nbytes == 70 == sum(value.nbytes for value in recent.values())


def test_what_is_never_asked_for_again_takes_no_room_from_what_is() -> None:
    gone: list[Value] = []
    recent: Recent[Value] = Recent(100, gone.append, trial=30)
    recent.put("used", Value("used"))
    assert recent.get("used") is not None
    for i in range(50):
        recent.put(i, Value(str(i)))
    assert recent.get("used") is not None
    assert len(recent) == 4
    assert recent.nbytes == 40
    assert [value.name for value in gone] == [str(i) for i in range(47)]


def test_a_key_that_comes_again_is_kept() -> None:
    recent: Recent[Value] = Recent(1000, trial=20)
    for _ in range(3):
        for i in range(10):  # more than fit on trial
            if recent.get(i) is None:
                recent.put(i, Value(str(i)))
    assert all(recent.get(i) is not None for i in range(10))
    assert recent.nbytes == 100


def test_one_value_larger_than_a_trial_may_be_used_all_the_same() -> None:
    recent: Recent[Value] = Recent(1000, trial=20)
    recent.put("large", Value("large", 500))
    assert recent.get("large") is not None
    recent.put("other", Value("other", 500))
    assert recent.nbytes == 1000


def test_pop_takes_out_of_either_part() -> None:
    recent: Recent[Value] = Recent(1000, trial=100)
    for name in ("kept", "new"):
        recent.put(name, Value(name))
    recent.get("kept")
    recent.pop("kept")
    recent.pop("new")
    recent.pop("unknown")
    assert len(recent) == 0
    assert recent.nbytes == 0
