"""Virtual time moves only when told, and fires what it passes."""

from __future__ import annotations

import time

import pytest

from skedge.clock import Clock, RealClock, VirtualClock


def test_real_clock() -> None:
    clock: Clock = RealClock()
    assert time.time() - 5 < clock.now() <= time.time() + 5
    assert clock.monotonic() <= clock.monotonic()


def test_timers_fire_in_order_and_see_their_own_time() -> None:
    clock = VirtualClock(start=100.0)
    fired: list[tuple[str, float]] = []

    def note(name: str) -> None:
        fired.append((name, clock.now()))
        if name == "b":
            clock.call_at(clock.monotonic() + 1, lambda: note("from b"))

    clock.call_at(5, lambda: note("b"))
    clock.call_at(2, lambda: note("a"))
    cancelled = clock.call_at(3, lambda: note("never"))
    cancelled.cancel()
    assert clock.next_timer() == 2
    clock.advance(5.5)
    assert fired == [("a", 102.0), ("b", 105.0)]
    clock.advance(10)
    assert fired[2:] == [("from b", 106.0)]
    assert (clock.now(), clock.monotonic(), clock.next_timer()) == (115.5, 15.5, None)


def test_past_moments_fire_at_the_next_advance() -> None:
    clock, fired = VirtualClock(), list[float]()
    clock.advance(10)
    clock.call_at(3, lambda: fired.append(clock.monotonic()))
    clock.advance(0)
    assert fired == [10.0]


def test_time_cannot_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        VirtualClock().advance(-1)
