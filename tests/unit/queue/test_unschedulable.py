"""The set of unschedulable pods and its buckets."""

from __future__ import annotations

from skedge.queue.unschedulable import UnschedulablePods
from unit.queue.support import record


def test_unschedulable_pods_lie_in_buckets() -> None:
    pods = UnschedulablePods()
    first, second, gated = record("a"), record("b"), record("c")
    for each in (first, second, gated):
        each.set_rejectors(["Fit"])
    gated.gate("Gates", ())
    assert [pods.put(each) for each in (first, second, gated, first)] == [True, True, True, False]
    pods.validate()
    assert pods.select(lambda bucket: bucket.rejectors == {"Fit"}) == [first, second]
    assert pods.select(lambda bucket: bucket.gating_plugin == "Gates") == [gated]
    second.gate("Gates", ())
    assert not pods.put(second)
    pods.validate()
    assert pods.gated == 2
    for key in ("ns/a", "ns/b", "ns/c"):
        assert pods.remove(key) is not None
    assert pods.remove("ns/a") is None
    assert (len(pods), pods.gated, pods.select(lambda bucket: True)) == (0, 0, [])
