"""Counting, sampling, and label rules of metric families."""

from __future__ import annotations

import random
from bisect import bisect_left

import pytest

from skedge.telemetry.exposition import render_text
from skedge.telemetry.families import (
    MANY,
    Counter,
    Distribution,
    Family,
    FamilySample,
    Gauge,
    Histogram,
    MetricSpec,
    Registry,
    Share,
    exponential,
)


def test_exponential_rounds_at_every_step() -> None:
    assert exponential(0.00001, 1.5, 4) == (
        1e-05,
        1.5000000000000002e-05,
        2.2500000000000005e-05,
        3.375000000000001e-05,
    )


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, 0), (1.0, 0), (1.0000001, 1), (2.0, 1), (4.5, 3), (-1.0, 0), (float("inf"), 3)],
)
def test_an_observation_belongs_to_the_first_bound_not_below_it(value: float, bucket: int) -> None:
    histogram = Histogram((1.0, 2.0, 4.0))
    histogram.observe(value)
    assert histogram.counts.index(1) == bucket
    assert histogram.sum == value


def test_many_equal_observations() -> None:
    once, many = Histogram((1.0,)), Histogram((1.0,))
    for _ in range(3):
        once.observe(0.5)
    many.observe_many(0.5, 3)
    assert (once.counts, once.sum) == (many.counts, many.sum)


def test_observations_that_wait_are_counted_as_one_by_one() -> None:
    rng = random.Random(1)
    bounds = exponential(0.001, 2, 8)
    histogram, plain = Histogram(bounds), [0] * (len(bounds) + 1)
    seen: list[float] = []
    for _ in range(2 * MANY + 100):
        value = rng.choice([rng.random() * 0.3, *bounds, 0.0])
        seen.append(value)
        plain[bisect_left(bounds, value)] += 1
        histogram.observe(value)
        assert len(histogram.late) < MANY
    assert histogram.counts == plain
    assert histogram.sum == pytest.approx(sum(seen))
    assert not histogram.late
    histogram.observe(0.1)
    histogram.reset()
    assert (sum(histogram.counts), histogram.sum) == (0, 0.0)


def test_a_share_is_read_by_all_counters_that_include_it() -> None:
    family = Family(MetricSpec("m_total", "counter", "M.", ("x",)), Counter)
    share = Share()
    for x in "ab":
        family.labels(x).include(share)
    share.value += 5
    family.labels("a").inc(2)
    assert [sample.value for sample in family.sample().samples] == [7, 5]
    family.reset()
    assert [sample.value for sample in family.sample().samples] == [0, 0]
    share.value += 1
    assert family.labels("b").total == 1


def test_a_family_without_labels_shows_zero_from_the_start_and_one_with_labels_nothing() -> None:
    registry = Registry()
    registry.add(Family(MetricSpec("b_total", "counter", "B."), Counter))
    registry.add(Family(MetricSpec("a", "gauge", "A.", ("x",)), Gauge))
    assert render_text(registry.sample()) == "# HELP b_total [ALPHA] B.\n# TYPE b_total counter\nb_total 0\n"


def test_labels_are_given_in_table_order_and_shown_by_name() -> None:
    family = Family(MetricSpec("m", "gauge", "M.", ("z", "a")), Gauge)
    family.labels("last", "first").set(1)
    assert family.sample().samples[0].labels == (("a", "first"), ("z", "last"))
    assert family.labels("last", "first") is family.labels("last", "first")
    with pytest.raises(ValueError, match=r"m: expected values for \('z', 'a'\), got \('one',\)"):
        family.labels("one")


def test_labelled_histograms_show_only_children_that_observed_something() -> None:
    quiet = Family(MetricSpec("h", "histogram", "H.", ("a",), buckets=(1.0,)), lambda: Histogram((1.0,)))
    quiet.labels("kept in advance")
    assert quiet.sample().samples == []
    loud = Family(
        MetricSpec("h", "histogram", "H.", ("a",), buckets=(1.0,), show_empty=True), lambda: Histogram((1.0,))
    )
    loud.labels("x")
    assert loud.sample().samples[0].value == Distribution((1.0,), [0, 0], 0.0)


def test_a_sample_does_not_change_afterwards() -> None:
    family = Family(MetricSpec("h", "histogram", "H.", buckets=(1.0,)), lambda: Histogram((1.0,)))
    before = family.sample()
    family.only.observe(3)
    assert before.samples[0].value == Distribution((1.0,), [0, 0], 0.0)


def test_callbacks_are_read_at_every_sample_and_replace_a_single_child() -> None:
    size = {("active",): 1.0}
    queue = Family(MetricSpec("pods", "gauge", "P.", ("queue",)), Gauge)
    queue.read_from(lambda: size)
    queue.labels("set by hand").set(5)
    lone = Family(MetricSpec("bytes", "gauge", "B."), Gauge)
    lone.read_from(lambda: 7)
    size["active",] = 2
    assert [(s.labels, s.value) for s in queue.sample().samples] == [
        ((("queue", "set by hand"),), 5),
        ((("queue", "active"),), 2),
    ]
    assert [s.value for s in lone.sample().samples] == [7]


def test_values_outside_the_allow_list_become_unexpected_and_are_counted_each_time() -> None:
    unexpected = Counter()
    family = Family(MetricSpec("m", "counter", "M.", ("a", "b")), Counter, {"a": frozenset({"ok"})}, unexpected)
    family.labels("ok", "1").inc()
    family.labels("bad", "1").inc()
    family.labels("worse", "1").inc()
    assert {s.labels[0][1]: s.value for s in family.sample().samples} == {"ok": 1, "unexpected": 2}
    assert unexpected.value == 2


def test_values_read_by_callback_are_limited_and_added_up() -> None:
    """A series that is there twice would cost the whole scrape."""
    unexpected = Counter()
    family = Family(MetricSpec("m", "gauge", "M.", ("a",)), Gauge, {"a": frozenset({"ok"})}, unexpected)
    family.read_from(lambda: {("ok",): 1.0, ("bad",): 2.0, ("worse",): 3.0})
    assert {s.labels[0][1]: s.value for s in family.sample().samples} == {"ok": 1, "unexpected": 5}
    assert len(family.sample().samples) == 2
    assert unexpected.value == 4


def test_reset_spares_families_without_labels_and_children_that_are_held() -> None:
    registry = Registry()
    plain = Family(MetricSpec("plain", "counter", "P."), Counter)
    labelled = Family(MetricSpec("labelled", "histogram", "L.", ("a",), buckets=(1.0,)), lambda: Histogram((1.0,)))
    registry.add(plain)
    registry.add(labelled)
    plain.only.inc(3)
    held = labelled.labels("x")
    held.observe(1)
    registry.reset()
    assert [family.spec.name for family in registry.sample()] == ["plain"]
    held.observe(1)
    assert [family.spec.name for family in registry.sample()] == ["labelled", "plain"]


def test_a_name_is_registered_once() -> None:
    registry = Registry()
    registry.add(Family(MetricSpec("m", "gauge", "M."), Gauge))
    with pytest.raises(ValueError, match="metric m is registered already"):
        registry.add(Family(MetricSpec("m", "gauge", "M."), Gauge))


def test_an_endpoint_shows_its_own_families() -> None:
    registry = Registry()
    registry.add(Family(MetricSpec("m", "gauge", "M."), Gauge))
    registry.add(Family(MetricSpec("s", "gauge", "S.", endpoints=frozenset({"slis"})), Gauge))
    assert [family.spec.name for family in registry.sample("slis")] == ["s"]
    assert [family.spec.name for family in registry.sample()] == ["m"]


def test_a_broken_source_costs_its_own_series_only(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> float:
        raise KeyError("gone")

    class Broken:
        def collect(self) -> list[FamilySample]:
            raise OSError("no /proc")

    registry = Registry()
    bad = Family(MetricSpec("bad", "gauge", "B."), Gauge)
    bad.read_from(broken)
    registry.add(bad)
    registry.add(Family(MetricSpec("good", "gauge", "G."), Gauge))
    registry.register(Broken())
    assert [family.spec.name for family in registry.sample()] == ["good"]
    assert [(record.msg, record.values["source"]) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("Failed to collect metrics", "bad"),
        ("Failed to collect metrics", "Broken"),
    ]
