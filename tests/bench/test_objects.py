"""Templates filled in, tables and charts."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.charts import Bar, bars, lines, number
from bench.defaults import as_stored
from bench.objects import Template
from bench.profile import part_of

import skedge
from bench import report, scenarios


def test_bodies_are_numbered() -> None:
    template = Template("pod-all-different", change=as_stored)
    pod = json.loads(template.body(123, 9))
    assert pod["metadata"]["name"] == template.name(123) == "different-123"
    assert pod["metadata"]["uid"].endswith("-000000000009")
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "133m", "memory": "100123Ki"}
    assert pod["spec"]["tolerations"][0]["value"] == "team-123"
    assert pod["spec"]["schedulerName"] == "default-scheduler"


def test_labels_take_turns() -> None:
    template = Template("node", labels={"zone": ["a", "b", "c"]})
    assert [json.loads(template.body(i))["metadata"]["labels"]["zone"] for i in range(4)] == ["a", "b", "c", "a"]
    assert json.loads(template.body(2))["metadata"]["labels"]["kubernetes.io/hostname"] == template.name(2)


def test_a_fixed_name_stays() -> None:
    assert Template("node-with-name").name(5) == "scheduler-perf-node"


def test_a_prefix_replaces_the_generated_name() -> None:
    assert Template("namespace", prefix="sched").name(1) == "sched-1"


def test_volumes_and_priorities() -> None:
    pod = json.loads(Template("pod-high-priority", volume=True, change=as_stored).body(4))
    assert pod["spec"]["priority"] == 10
    assert pod["spec"]["volumes"][-1]["persistentVolumeClaim"] == {"claimName": "pvc-4"}


@pytest.mark.parametrize(("value", "text"), [(12345.6, "12,346"), (0.04711, "0.0471"), (12.34, "12.3"), (0, "0")])
def test_figures_as_people_read_them(value: float, text: str) -> None:
    assert number(value) == text


def test_charts_are_well_formed() -> None:
    for text in (
        bars("A & B", "pods/s", [Bar("one <", 10.0), Bar("two", 0.0)], target=5.0),
        lines("Growth", "nodes", "pods/s", {"a": [(500, 10.0), (5000, 20.0)], "b": []}),
        lines("Nothing", "x", "y", {}),
    ):
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_table_and_charts_of_records(tmp_path: Path) -> None:
    figures = {"p50_ms": 0.1, "p99_ms": 0.2, "peak_rss_mib": 100.0, "size": "s", "cpu_ms_per_pod": 0.1}
    records = [
        {"workload": "A", "mode": "decisions", "nodes": 500, "pods_per_s": 9000.0, "null_pods_per_s": None, **figures},
        {"workload": "A", "mode": "decisions", "nodes": 5000, "pods_per_s": 8000.0, "null_pods_per_s": None, **figures},
        {"workload": "A", "mode": "e2e", "nodes": 5000, "pods_per_s": 600.0, "null_pods_per_s": 640.0, **figures},
        {"workload": "B", "mode": "e2e", "size": "s", "error": "no"},
    ]
    assert [line.split()[0] for line in report.table(records).splitlines()] == ["workload", "A", "A", "A", "B"]
    drawn = {path.name for path in report.charts(records, tmp_path)}
    assert drawn == {"decisions.svg", "e2e-cpu.svg", "e2e-rate.svg", "growth.svg"}


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        ([("plugins/image_locality.py", "score"), ("profiles/kept.py", "sync")], "cycle: image_locality"),
        ([("queue/heap.py", "push"), ("scheduler/event_handlers.py", "pod_added")], "queue"),
        ([("client/transport.py", "send"), ("client/outbox.py", "_work")], "event HTTP"),
        ([("client/transport.py", "send"), ("app/ports.py", "bind")], "bind HTTP"),
    ],
)
def test_parts_of_the_work(frames: list[tuple[str, str]], part: str) -> None:
    root = str(Path(skedge.__file__).parent)
    assert part_of([(f"{root}/{path}", name) for path, name in frames]) == part


@pytest.mark.asyncio
@pytest.mark.parametrize("label", [label for label, scenario in scenarios.SCENARIOS.items() if scenario.test])
async def test_smallest_scenarios(label: str) -> None:
    found = await scenarios.SCENARIOS[label].run(None)
    assert found["peak_rss_mib"] > 0
    assert not found.get("unplaced")
