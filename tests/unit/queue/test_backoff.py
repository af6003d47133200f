"""How long a pod waits after a failure, and who comes out when."""

from __future__ import annotations

import pytest

from skedge.queue.backoff import BackoffQueue
from unit.queue.support import priority_sort, record

NANO = 1e-9


def backoff(initial: float = 1.0, maximum: float = 10.0, early: bool = True, now: float = 0.0) -> BackoffQueue:
    return BackoffQueue(
        lambda: now,
        lambda r: priority_sort(r.pod.priority, r.timestamp, r.pod),
        initial=initial,
        maximum=maximum,
        pop_from_backoff_q=early,
    )


@pytest.mark.parametrize(
    ("initial", "maximum", "count", "expected"),
    [
        *((1, 10, count, seconds) for count, seconds in enumerate((1, 2, 4, 8, 10, 10), start=1)),
        (1, 32, 16, 32),
        (1, 32, 10_000, 32),
        (3 * NANO, (2**63 - 1) * NANO, 5, 48 * NANO),
        (3, 10, 2, 6),
        (3, 10, 3, 10),
        (20, 10, 1, 10),
        (0, 10, 4, 0),
    ],
)
def test_duration(initial: float, maximum: float, count: int, expected: float) -> None:
    assert backoff(initial, maximum).duration(count) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("errors", "rejections", "timestamp", "early", "maximum", "expected"),
    [
        (0, 0, 100.5, True, 10, 0.0),
        (0, 1, 100.5, True, 10, 101.0),
        (0, 1, 100.5, False, 10, 101.5),
        (0, 3, 100.9, True, 10, 104.0),
        (2, 3, 100.0, True, 10, 102.0),
        (1, 9, 100.0, True, 10, 101.0),
        (1, 0, 100.5, True, 0, 0.0),
        (0, 5, 100.5, True, 0, 0.0),
    ],
)
def test_expiration(
    errors: int, rejections: int, timestamp: float, early: bool, maximum: float, expected: float
) -> None:
    each = record(timestamp=timestamp, consecutive_errors_count=errors, unschedulable_count=rejections)
    assert backoff(maximum=maximum, early=early).expiration(each) == expected


@pytest.mark.parametrize(
    ("now", "early", "expected"),
    [
        (100.9, True, True),
        (101.0, True, True),  # its own second
        (101.99, True, True),
        (102.0, True, False),
        (101.4, False, True),
        (101.5, False, True),  # its own moment
        (101.6, False, False),
    ],
)
def test_backing_off(now: float, early: bool, expected: bool) -> None:
    """A pause of a second that began at 100.5."""
    assert backoff(now=now, early=early).backing_off(record(timestamp=100.5, unschedulable_count=1)) is expected


def test_expiration_is_kept() -> None:
    queue, each = backoff(), record(timestamp=100.0, unschedulable_count=1)
    queue.push(each)
    each.unschedulable_count = 4
    assert queue.expiration(each) == 101.0
    each.backoff_expiration = 0.0
    assert queue.expiration(each) == 108.0


def test_rejected_and_broken_wait_apart() -> None:
    queue = backoff(now=200.0)
    broken = record("broken", 100.0, consecutive_errors_count=1)
    rejected = record("rejected", 101.0, unschedulable_count=1)
    rejected.set_rejectors(["Fit"])
    later = record("later", 199.0, unschedulable_count=3)
    later.set_rejectors([], ["Fit"])
    assert queue.push(broken) is queue.errors
    assert queue.push(rejected) is queue.push(later) is queue.rejected
    assert (len(queue), queue.next_tick()) == (3, 102.0)
    assert [r.pod.name for r in queue.pop_completed()] == ["rejected", "broken"]
    assert queue.next_tick() == 204.0
    assert queue.pop_early() is later
    assert queue.next_tick() is None


def test_a_pod_changes_sides_with_its_rejectors() -> None:
    queue, each = backoff(), record(timestamp=1.0, unschedulable_count=1)
    queue.push(each)
    each.set_rejectors(["Fit"])
    queue.push(each)
    assert (len(queue.errors), len(queue.rejected)) == (0, 1)
