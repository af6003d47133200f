"""Events kept for the pods that were popped before them."""

from __future__ import annotations

from skedge.framework import events
from skedge.queue.in_flight import InFlight
from unit.queue.support import NODE_LABEL, record


def test_events_are_kept_for_those_popped_before_them() -> None:
    flying = InFlight()
    flying.start("a", record("a"))
    flying.append(events.NODE_ADD, None, 1)
    flying.start("b", record("b"))
    flying.append(NODE_LABEL, 2, 3)
    flying.append(events.NODE_ADD, None, 4)
    assert [(e.event, e.old, e.new) for e in flying.since("b")] == [(NODE_LABEL, 2, 3), (events.NODE_ADD, None, 4)]
    assert [e.new for e in flying.since("a")] == [1, 3, 4]
    assert flying.event_counts == {"NodeAdd": 2, "NodeUpdateNodeLabel": 1}
    assert flying.done("a")
    flying.validate()
    assert flying.event_counts == {"NodeAdd": 1, "NodeUpdateNodeLabel": 1}
    assert [e.new for e in flying.since("b")] == [3, 4]
    assert not flying.done("a")
    assert flying.done("b")
    flying.validate()
    assert (len(flying), flying.events, flying.event_counts) == (0, 0, {})


def test_events_between_two_others_stay() -> None:
    flying = InFlight()
    for uid in "abc":
        flying.start(uid, record(uid))
        flying.append(events.NODE_ADD, None, uid)
    flying.done("b")
    flying.validate()
    assert [e.new for e in flying.since("a")] == ["a", "b", "c"]
    flying.done("a")
    assert [e.new for e in flying.since("c")] == ["c"]
    assert flying.events == 1


def test_one_marker_a_uid() -> None:
    flying, first = InFlight(), record("a")
    assert flying.start("u", first)
    flying.append(events.NODE_ADD, None, None)
    assert not flying.start("u", record("other"))
    assert flying.get("u") is first
    assert len(list(flying.since("u"))) == 1
    flying.clear()
    assert ("u" in flying, flying.events) == (False, 0)
