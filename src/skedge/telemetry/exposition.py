"""Samples as Prometheus reads them: text format 0.0.4 and delimited protocol buffers. Pure functions, any thread.

The text has the shape Go's client gives it, to the byte: labels sorted by name with `le` last, series sorted by label
values, numbers in Go's notation, no `_created` lines. Upstream: `prometheus/common/expfmt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from skedge.telemetry import protobuf as pb
from skedge.telemetry.families import Distribution, FamilySample, Kind, LabelPairs, MetricSpec, Sample
from skedge.telemetry.numbers import go_float

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector as PrometheusCollector

TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
PROTOBUF_TYPE: Final = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores"
)

_PROTO_KINDS: Final[Mapping[Kind, int]] = {"counter": 0, "gauge": 1, "summary": 2, "untyped": 3, "histogram": 4}
_KINDS: Final[Mapping[str, Kind]] = {kind: kind for kind in _PROTO_KINDS}
_PROTO_VALUE_FIELDS: Final[Mapping[Kind, int]] = {"gauge": 2, "counter": 3, "untyped": 5}


def wants_protobuf(accept: str) -> bool:
    """Whether an Accept header prefers the delimited protocol buffer format over text."""
    best, chosen = 0.0, False
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        delimited = (
            media == "application/vnd.google.protobuf"
            and options.get("proto") == "io.prometheus.client.MetricFamily"
            and options.get("encoding") == "delimited"
        )
        text = media in ("text/plain", "text/*", "*/*") and options.get("version", "0.0.4") == "0.0.4"
        try:
            quality = float(options.get("q", "1"))
        except ValueError:
            continue
        if (delimited or text) and quality > best:
            best, chosen = quality, delimited
    return chosen


def render_text(families: Iterable[FamilySample]) -> str:
    """Text format 0.0.4 of the families, in the order given."""
    out: list[str] = []
    for spec, samples in families:
        name = spec.name
        out.append(f"# HELP {name} {_escape_help(spec.help_text)}\n# TYPE {name} {spec.kind}\n")
        for labels, value in sorted(samples, key=_series_key):
            pairs = ",".join([f'{label}="{_escape(text)}"' for label, text in labels])
            block = f"{{{pairs}}}" if pairs else ""
            if not isinstance(value, Distribution):
                out.append(f"{name}{block} {go_float(value)}\n")
                continue
            count = sum(value.counts)
            if spec.kind == "histogram":
                bounds = spec.bound_texts if value.bounds == spec.buckets else (*map(go_float, value.bounds), "+Inf")
                prefix = f'{name}_bucket{{{pairs},le="' if pairs else f'{name}_bucket{{le="'
                out += [
                    f'{prefix}{bound}"}} {total}\n'
                    for bound, total in zip(bounds, accumulate(value.counts), strict=True)
                ]
            out.append(f"{name}_sum{block} {go_float(value.sum)}\n{name}_count{block} {count}\n")
    return "".join(out)


def render_protobuf(families: Iterable[FamilySample]) -> bytes:
    """`io.prometheus.client.MetricFamily` messages, each after its length."""
    out: list[bytes] = []
    for spec, samples in families:
        message = [pb.text(1, spec.name), pb.text(2, spec.help_text), pb.number(3, _PROTO_KINDS[spec.kind])]
        for labels, value in sorted(samples, key=_series_key):
            pairs = b"".join(pb.block(1, pb.text(1, label) + pb.text(2, text)) for label, text in labels)
            message.append(pb.block(4, pairs + _proto_value(spec.kind, value)))
        encoded = b"".join(message)
        out.append(pb.varint(len(encoded)) + encoded)
    return b"".join(out)


def _proto_value(kind: Kind, value: float | Distribution) -> bytes:
    if not isinstance(value, Distribution):
        return pb.block(_PROTO_VALUE_FIELDS[kind], pb.double(1, value))
    head = pb.number(1, sum(value.counts)) + pb.double(2, value.sum)
    if kind == "summary":
        return pb.block(4, head)
    buckets = [
        pb.block(3, pb.number(1, total) + pb.double(2, bound))
        for bound, total in zip(value.bounds, accumulate(value.counts), strict=False)
    ]
    return pb.block(7, head + b"".join(buckets))


def _series_key(sample: Sample) -> tuple[int, tuple[str, ...]]:
    return len(sample.labels), tuple(value for _, value in sample.labels)


def _escape(text: str) -> str:
    if "\\" in text or "\n" in text or '"' in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return text


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


class PrometheusClientAdapter:
    """Shows collectors written for `prometheus_client` (a user's plugin, a library) among ours."""

    def __init__(self, *collectors: PrometheusCollector) -> None:
        self._collectors = collectors

    def collect(self) -> Iterable[FamilySample]:
        """The families of all collectors, in our terms."""
        return [from_prometheus_client(metric) for each in self._collectors for metric in each.collect()]


def from_prometheus_client(metric: Metric) -> FamilySample:
    """A `prometheus_client` metric as a sample of ours; its `_created` and quantile lines are left out."""
    kind = _KINDS.get(metric.type, "untyped")
    name = f"{metric.name}_total" if kind == "counter" else metric.name
    plain: dict[LabelPairs, float] = {}
    buckets: dict[LabelPairs, list[tuple[float, float]]] = {}
    sums: dict[LabelPairs, float] = {}
    counts: dict[LabelPairs, float] = {}
    for sample in metric.samples:
        labels = dict(sample.labels)
        bound = labels.pop("le", None)
        pairs = tuple(sorted(labels.items()))
        suffix = sample.name.removeprefix(metric.name)
        if suffix == "_bucket" and bound is not None:
            buckets.setdefault(pairs, []).append((float(bound), sample.value))
        elif suffix == "_sum":
            sums[pairs] = sample.value
        elif suffix == "_count":
            counts[pairs] = sample.value
        elif suffix in ("", "_total") and "quantile" not in labels:
            plain[pairs] = sample.value
    samples = [Sample(pairs, value) for pairs, value in plain.items()]
    for pairs, total in counts.items():
        steps = sorted(buckets.get(pairs, [(float("inf"), total)]))
        cumulative = [0, *(int(value) for _, value in steps)]
        each = [after - before for before, after in pairwise(cumulative)]
        bounds = tuple(bound for bound, _ in steps[:-1])
        samples.append(Sample(pairs, Distribution(bounds, each, sums.get(pairs, 0.0))))
    return FamilySample(MetricSpec(name, kind, metric.documentation, stability=""), samples)
