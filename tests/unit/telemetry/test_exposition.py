"""The text and protocol buffer forms of a scrape."""

from __future__ import annotations

import math
import struct

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from protobuf_reader import decode_message
from skedge.telemetry.exposition import (
    PrometheusClientAdapter,
    from_prometheus_client,
    render_protobuf,
    render_text,
    wants_protobuf,
)
from skedge.telemetry.families import Distribution, FamilySample, MetricSpec, Sample
from skedge.telemetry.numbers import go_float

GO_FLOATS = {
    0: "0",
    1: "1",
    -1: "-1",
    0.1: "0.1",
    5: "5",
    262144: "262144",
    999999: "999999",
    1e6: "1e+06",
    1048576: "1.048576e+06",
    2592000.0: "2.592e+06",
    -2592000.0: "-2.592e+06",
    124416000: "1.24416e+08",
    1.79604523007e9: "1.79604523007e+09",
    25845658435: "2.5845658435e+10",
    1234567.25: "1.23456725e+06",
    2.0**64: "1.8446744073709552e+19",
    1e-05: "1e-05",
    0.0001: "0.0001",
    1.5000000000000002e-05: "1.5000000000000002e-05",
    math.inf: "+Inf",
    -math.inf: "-Inf",
}


@pytest.mark.parametrize(("value", "text"), GO_FLOATS.items())
def test_numbers_are_written_as_go_does(value: float, text: str) -> None:
    assert go_float(value) == text
    assert float(text) == value


def test_nan() -> None:
    assert go_float(math.nan) == "NaN"


HISTOGRAM = FamilySample(
    MetricSpec("h_seconds", "histogram", "Back\\slash\nand line.", ("z", "a"), "STABLE", (0.5, 1e6)),
    [
        Sample((("a", "2"), ("z", 'quote" \\ \n')), Distribution((0.5, 1e6), [1, 2, 3], 7.5)),
        Sample((("a", "1"), ("z", "")), Distribution((0.5, 1e6), [0, 0, 1], 2e6)),
    ],
)


def test_text_form() -> None:
    assert render_text([HISTOGRAM]) == (
        "# HELP h_seconds [STABLE] Back\\\\slash\\nand line.\n"
        "# TYPE h_seconds histogram\n"
        'h_seconds_bucket{a="1",z="",le="0.5"} 0\n'
        'h_seconds_bucket{a="1",z="",le="1e+06"} 0\n'
        'h_seconds_bucket{a="1",z="",le="+Inf"} 1\n'
        'h_seconds_sum{a="1",z=""} 2e+06\n'
        'h_seconds_count{a="1",z=""} 1\n'
        'h_seconds_bucket{a="2",z="quote\\" \\\\ \\n",le="0.5"} 1\n'
        'h_seconds_bucket{a="2",z="quote\\" \\\\ \\n",le="1e+06"} 3\n'
        'h_seconds_bucket{a="2",z="quote\\" \\\\ \\n",le="+Inf"} 6\n'
        'h_seconds_sum{a="2",z="quote\\" \\\\ \\n"} 7.5\n'
        'h_seconds_count{a="2",z="quote\\" \\\\ \\n"} 6\n'
    )


def test_the_text_form_reads_back() -> None:
    (family,) = text_string_to_metric_families(render_text([HISTOGRAM]))
    assert family.type == "histogram"
    assert {sample.labels["z"] for sample in family.samples} == {"", 'quote" \\ \n'}


def test_deprecation_stands_in_the_help_text() -> None:
    spec = MetricSpec("m", "gauge", "M.", stability="BETA", deprecated="1.35.0")
    assert spec.help_text == "[BETA] (Deprecated since 1.35.0) M."


def test_protobuf_form() -> None:
    gauge = FamilySample(MetricSpec("g", "gauge", "G.", ("a",), ""), [Sample((("a", "x"),), 2.5)])
    data = render_protobuf([gauge, HISTOGRAM])
    length = data[0]
    first = decode_message(data[1 : 1 + length])
    assert (first[1], first[2], first[3]) == ([b"g"], [b"G."], [1])
    metric = decode_message(first[4][0])
    assert decode_message(metric[1][0]) == {1: [b"a"], 2: [b"x"]}
    assert decode_message(metric[2][0]) == {1: [struct.pack("<d", 2.5)]}
    rest = data[1 + length :]
    assert rest[0] & 0x80, "a long message has a length of two bytes"
    second = decode_message(rest[2:])
    histogram = decode_message(decode_message(second[4][1])[7][0])
    assert histogram[1] == [6]
    assert [decode_message(bucket)[1] for bucket in histogram[3]] == [[1], [3]]


@pytest.mark.parametrize(
    ("accept", "protobuf"),
    [
        ("", False),
        ("text/plain;version=0.0.4", False),
        ("*/*", False),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
            "text/plain;version=0.0.4;q=0.3",
            True,
        ),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.2,"
            "text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
            False,
        ),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", False),
        ("application/openmetrics-text;version=1.0.0,text/plain;q=x", False),
    ],
)
def test_accept(accept: str, protobuf: bool) -> None:
    assert wants_protobuf(accept) is protobuf


def test_collectors_of_prometheus_client_are_shown_without_created_lines() -> None:
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("mine", "A counter.", ["a"], registry=registry).labels("x").inc(2)
    prometheus_client.Histogram("took", "A histogram.", buckets=(1, 2), registry=registry).observe(1.5)
    prometheus_client.Summary("size", "A summary.", registry=registry).observe(3)
    text = render_text(PrometheusClientAdapter(registry).collect())
    assert text == (
        '# HELP mine_total A counter.\n# TYPE mine_total counter\nmine_total{a="x"} 2\n'
        "# HELP took A histogram.\n# TYPE took histogram\n"
        'took_bucket{le="1"} 0\ntook_bucket{le="2"} 1\ntook_bucket{le="+Inf"} 1\ntook_sum 1.5\ntook_count 1\n'
        "# HELP size A summary.\n# TYPE size summary\nsize_sum 3\nsize_count 1\n"
    )


def test_an_unknown_kind_is_untyped() -> None:
    metric = prometheus_client.Metric("m", "M.", "unknown")
    metric.add_sample("m", {}, 1)
    assert render_text([from_prometheus_client(metric)]) == "# HELP m M.\n# TYPE m untyped\nm 1\n"
