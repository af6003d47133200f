"""Units and values of /metrics/resources, and the other scrapes' side doors."""

from __future__ import annotations

import gzip

import pytest

from skedge.serving.answers import Mux, Request
from skedge.serving.pod_resources import PodUsage, pod_samples, unit_of
from skedge.serving.scrape import Scrapes
from skedge.telemetry.exposition import render_text
from skedge.telemetry.metrics import Metrics

POD = PodUsage("ns", "p", "", "default-scheduler", None, {"cpu": 1500, "memory": 1 << 20, "a.b/c": 2}, {"cpu": 0})


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("storage", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-x", "integer"),
        ("nvidia.com/gpu", ""),
        ("pods", ""),
    ],
)
def test_units(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit


def test_series() -> None:
    head = 'kube_pod_resource_request{namespace="ns",node="",pod="p",priority="",'
    tail = 'scheduler="default-scheduler",unit='
    assert render_text(pod_samples([POD])).splitlines() == [
        "# HELP kube_pod_resource_request [STABLE] Resources a pod asks for, in total over its containers.",
        "# TYPE kube_pod_resource_request gauge",
        f'{head}resource="a.b/c",{tail}""}} 2',
        f'{head}resource="cpu",{tail}"cores"}} 1.5',
        f'{head}resource="memory",{tail}"bytes"}} 1.048576e+06',
    ]


def scrapes(leading: bool = True) -> tuple[Mux, Metrics]:
    mux, metrics = Mux(), Metrics("1.36.2")
    Scrapes(metrics.registry, lambda: [POD], lambda: leading).install(mux)
    return mux, metrics


@pytest.mark.asyncio
async def test_a_standby_shows_no_pods() -> None:
    mux, _ = scrapes(leading=False)
    answer = await mux(Request("GET", "/metrics/resources"))
    assert (answer.status, answer.body) == (200, b"")
    mux, _ = scrapes()
    assert b"kube_pod_resource_request" in (await mux(Request("GET", "/metrics/resources"))).body


@pytest.mark.asyncio
async def test_gzip_and_protobuf_when_asked_for() -> None:
    mux, _ = scrapes()
    plain = await mux(Request("GET", "/metrics", headers={"Accept-Encoding": "br, gzip;q=0"}))
    assert "Content-Encoding" not in plain.headers
    packed = await mux(Request("GET", "/metrics", headers={"Accept-Encoding": "deflate, gzip;q=0.5"}))
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
    assert (await mux(Request("GET", "/metrics", headers={"Accept": accept}))).content_type.startswith(
        "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
    )


@pytest.mark.asyncio
async def test_delete_resets() -> None:
    mux, metrics = scrapes()
    metrics.counter("scheduler_schedule_attempts_total").labels("scheduled", "p").inc(5)
    for path in ("/metrics", "/metrics/slis", "/metrics/resources"):
        assert (await mux(Request("DELETE", path))).body == b"metrics reset\n"
    assert metrics.counter("scheduler_schedule_attempts_total").labels("scheduled", "p").value == 0
