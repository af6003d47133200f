"""Expectations: nothing is done twice, and nothing is waited for for ever."""

from __future__ import annotations

from skedge.clock import VirtualClock
from skedge.controlplane.controllers.expectations import TIMEOUT, Expectations


def test_creations_and_deletions() -> None:
    expectations = Expectations(VirtualClock())
    assert expectations.met("k")
    expectations.expect_creations("k", 2)
    expectations.expect_deletion("k", "u")
    expectations.created("k")
    assert not expectations.met("k")
    expectations.created("k")
    assert not expectations.met("k")
    expectations.deleted("k", "another")
    assert not expectations.met("k")
    expectations.deleted("k", "u")
    assert expectations.met("k")
    assert expectations.met("other")


def test_news_that_come_before_they_are_expected_do_not_count() -> None:
    expectations = Expectations(VirtualClock())
    expectations.created("k", 5)
    expectations.expect_creations("k", 1)
    assert not expectations.met("k")


def test_time_runs_out_and_gone_objects_are_forgotten() -> None:
    clock = VirtualClock()
    expectations = Expectations(clock)
    expectations.expect_creations("k", 1)
    clock.advance(TIMEOUT + 1)
    assert expectations.met("k")
    expectations.expect_creations("l", 1)
    expectations.forget("l")
    assert expectations.met("l")
