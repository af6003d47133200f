"""The table of metrics against the recorded scrape of the reference."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from skedge.names import KUBERNETES_VERSION
from skedge.telemetry.exposition import render_text
from skedge.telemetry.families import MetricSpec
from skedge.telemetry.metric_table import LIBRARIES, OMITTED, OURS, SCHEDULER
from skedge.telemetry.metrics import Metrics, is_hidden
from skedge.telemetry.process import ProcessCollector, describe_build

RECORDED = Path(__file__).parents[2] / "data/serving/endpoints.json.gz"
DEFAULT_GATES = (
    "OpportunisticBatching",
    "SchedulerAsyncPreemption",
    "DRADeviceBindingConditions",
    "DRAExtendedResource",
)
SHOWN_BY_PROCESS = ("process_",)
OWN_RUNTIME = ("go_goroutines", "go_threads")

_LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def recorded_scrape() -> dict[str, tuple[str, list[str]]]:
    """Family → (type, series lines) of the reference's scrape."""
    text = json.loads(gzip.decompress(RECORDED.read_bytes()))["admin GET /metrics"]["text"]
    families: dict[str, tuple[str, list[str]]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            lines: list[str] = []
            families[name] = kind, lines
        else:
            lines.append(line)
    return families


def compared() -> Iterator[str]:
    for name in recorded_scrape():
        left_out = any(name.startswith(prefix) for prefix in OMITTED) and name not in OWN_RUNTIME
        if not left_out and name != "registered_metrics_total" and not name.startswith(SHOWN_BY_PROCESS):
            yield name


def parse(line: str) -> tuple[str, dict[str, str], str]:
    match = _LINE.match(line)
    assert match, line
    return match[1], dict(_PAIR.findall(match[2] or "")), match[3]


def replay(metrics: Metrics, name: str, kind: str, lines: list[str]) -> None:
    """Bring our family to the values of the recorded series."""
    if kind != "histogram":
        for line in lines:
            _, labels, value = parse(line)
            family = metrics.counter(name) if kind == "counter" else metrics.gauge(name)
            family.labels(*(labels[label] for label in family.spec.labels)).value = float(value)
        return
    family = metrics.histogram(name)
    before: dict[tuple[str, ...], int] = {}
    for line in lines:
        series, labels, value = parse(line)
        key = tuple(labels[label] for label in family.spec.labels)
        child = family.labels(*key)
        if series.endswith("_bucket"):
            bucket = family.spec.bound_texts.index(labels["le"])
            child.counts[bucket] = int(value) - before.get(key, 0)
            before[key] = int(value)
        elif series.endswith("_sum"):
            child._sum = float(value)


@pytest.mark.parametrize("name", sorted(compared()))
def test_a_family_counts_and_reads_as_the_recorded_one(name: str) -> None:
    kind, lines = recorded_scrape()[name]
    metrics = Metrics(KUBERNETES_VERSION, DEFAULT_GATES, table=[s for s in ALL if s.name == name])
    replay(metrics, name, kind, lines)
    text = render_text(metrics.registry.sample())
    assert [line for line in text.splitlines() if not line.startswith("# HELP")] == [f"# TYPE {name} {kind}", *lines]


ALL = (*SCHEDULER, *LIBRARIES, *OURS)


def test_every_recorded_family_is_in_the_table_or_left_out_for_a_reason() -> None:
    table = {spec.name: spec for spec in ALL}
    process = {sample.spec.name: sample.spec for sample in ProcessCollector().collect()}
    for name, (kind, _) in recorded_scrape().items():
        spec = table.get(name) or process.get(name)
        if spec is not None:
            assert spec.kind == kind, name
        else:
            assert any(name.startswith(prefix) for prefix in OMITTED), name


def test_names_are_unique_and_well_formed() -> None:
    names = [spec.name for spec in ALL]
    assert len(set(names)) == len(names)
    for spec in ALL:
        assert spec.name.startswith("scheduler_") == (spec in SCHEDULER)
        assert bool(spec.buckets) == (spec.kind == "histogram")
        assert spec.help.endswith(".")


STABILITY = {
    "scheduler_schedule_attempts_total": "STABLE",
    "scheduler_scheduling_algorithm_duration_seconds": "ALPHA",
    "scheduler_pod_scheduling_sli_duration_seconds": "BETA",
    "scheduler_plugin_evaluation_total": "BETA",
    "workqueue_depth": "BETA",
    "rest_client_requests_total": "ALPHA",
    "kubernetes_healthcheck": "STABLE",
}


@pytest.mark.parametrize(("name", "stability"), STABILITY.items())
def test_stability_leads_the_help_text(name: str, stability: str) -> None:
    (spec,) = (spec for spec in ALL if spec.name == name)
    assert spec.help_text.startswith(f"[{stability}] ")


def names_shown(metrics: Metrics) -> set[str]:
    return {family.spec.name for family in metrics.registry.sample()}


def test_a_family_behind_a_gate_exists_while_the_gate_is_on() -> None:
    name = "scheduler_podgroup_scheduling_algorithm_duration_seconds"
    assert name not in names_shown(Metrics(KUBERNETES_VERSION))
    assert name in names_shown(Metrics(KUBERNETES_VERSION, ["GenericWorkload"]))


def test_disabled_and_hidden_families_are_counted_and_not_shown() -> None:
    table = (
        *(spec for spec in LIBRARIES if spec.name.endswith("_metrics_total")),
        *(spec for spec in LIBRARIES if spec.name.startswith("cardinality")),
        MetricSpec("off", "gauge", "Off."),
        MetricSpec("old", "gauge", "Old.", deprecated="1.36.0"),
        MetricSpec("shown", "gauge", "Shown."),
    )
    metrics = Metrics(KUBERNETES_VERSION, disabled=["off"], table=table)
    text = render_text(metrics.registry.sample())
    assert "\ndisabled_metrics_total 1\n" in text
    assert "\nhidden_metrics_total 1\n" in text
    assert 'registered_metrics_total{deprecated_version="",stability_level="ALPHA"} 2\n' in text
    assert 'registered_metrics_total{deprecated_version="",stability_level="BETA"} 3\n' in text
    assert "\nshown 0\n" in text
    assert not {"off", "old"} & names_shown(metrics)
    assert "old" in names_shown(Metrics(KUBERNETES_VERSION, show_hidden_for="1.35", table=table))


@pytest.mark.parametrize(
    ("deprecated", "stability", "shown_for", "hidden"),
    [
        ("", "ALPHA", "", False),
        ("1.36.0", "ALPHA", "", True),
        ("1.36.0", "ALPHA", "1.35", False),
        ("1.35.0", "ALPHA", "1.35", True),
        ("1.36.0", "BETA", "", False),
        ("1.35.0", "BETA", "", True),
        ("1.35.0", "BETA", "1.35", False),
        ("1.34.0", "STABLE", "", False),
        ("1.33.0", "STABLE", "", True),
        ("1.33.0", "STABLE", "1.35", False),
        ("1.32.0", "STABLE", "1.35", True),
    ],
)
def test_when_a_deprecated_family_is_hidden(deprecated: str, stability: str, shown_for: str, hidden: bool) -> None:
    assert is_hidden(deprecated, stability, "1.36.2", shown_for) is hidden


def test_allow_lists_reach_the_family_and_its_counter() -> None:
    allowed = {("scheduler_cache_size", "type"): frozenset({"nodes"})}
    metrics = Metrics(KUBERNETES_VERSION, allowed=allowed)
    metrics.gauge("scheduler_cache_size").labels("cows").set(1)
    text = render_text(metrics.registry.sample())
    assert 'scheduler_cache_size{type="unexpected"} 1\n' in text
    assert "\ncardinality_enforcement_unexpected_categorizations_total 1\n" in text


def test_build_and_features() -> None:
    metrics = Metrics(KUBERNETES_VERSION)
    describe_build(metrics, features={("A", "BETA"): True, ("B", ""): False}, commit="c", build_date="d")
    text = render_text(metrics.registry.sample())
    assert 'version_info{binary="1.36.2",component="kube",emulation="1.36",min_compat="1.35"} 1\n' in text
    assert 'kubernetes_feature_enabled{name="A",stage="BETA"} 1\n' in text
    assert 'kubernetes_feature_enabled{name="B",stage=""} 0\n' in text
    assert re.search(r'kubernetes_build_info\{.*git_version="v1.36.2",go_version="python3.*major="1",minor="36"', text)


PROC_FILES = {
    "self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax address space   unlimited  unlimited  bytes\n",
    "self/net/netstat": "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 700 800\n",
}


def test_what_the_process_collector_adds(tmp_path: Path) -> None:
    for name, text in PROC_FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {sample.spec.name: sample.samples[0].value for sample in ProcessCollector(str(tmp_path)).collect()}
    assert found["process_network_receive_bytes_total"] == 700
    assert found["process_network_transmit_bytes_total"] == 800
    assert found["process_virtual_memory_max_bytes"] == float(2**64)


def test_without_proc_what_needs_it_is_missing(tmp_path: Path) -> None:
    names = {sample.spec.name for sample in ProcessCollector(str(tmp_path)).collect()}
    assert "python_info" in names
    assert not any(name.startswith("process_n") for name in names)
