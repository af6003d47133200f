"""`/metrics`, `/metrics/slis`, `/metrics/resources`: sampled on the loop, rendered on a thread.

Upstream: `component-base/metrics/{legacyregistry,prometheus/slis}`, `pkg/scheduler/metrics/resources`.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

from skedge.serving import answers
from skedge.serving.answers import Answer, Mux, Request
from skedge.serving.pod_resources import PodSource, pod_samples
from skedge.telemetry.exposition import PROTOBUF_TYPE, TEXT_TYPE, render_protobuf, render_text, wants_protobuf
from skedge.telemetry.families import FamilySample, Registry


class Scrapes:
    """The three endpoints. `leading`: only a leader shows its pods (without election every process leads)."""

    def __init__(self, registry: Registry, pods: PodSource, leading: Callable[[], bool]) -> None:
        self._registry = registry
        self._pods = pods
        self._leading = leading

    def install(self, mux: Mux) -> None:
        mux.handle("/metrics", self._endpoint("metrics"))
        mux.handle("/metrics/slis", self._endpoint("slis"))
        mux.handle("/metrics/resources", self._resources)

    def _endpoint(self, name: str) -> answers.Handler:
        async def handle(request: Request) -> Answer:
            if request.method == "DELETE":
                self._registry.reset(name)
                return answers.text("metrics reset\n")
            return await _rendered(request, self._registry.sample(name))

        return handle

    async def _resources(self, request: Request) -> Answer:
        if not self._leading():
            return Answer(b"", TEXT_TYPE)
        # Nothing is kept between scrapes, so there is nothing that DELETE could reset.
        if request.method == "DELETE":
            return answers.text("metrics reset\n")
        return await _rendered(request, pod_samples(self._pods()))


async def _rendered(request: Request, families: list[FamilySample]) -> Answer:
    protobuf = wants_protobuf(request.headers.get("Accept", ""))
    packed = _accepts_gzip(request.headers.get("Accept-Encoding", ""))

    def render() -> bytes:
        body = render_protobuf(families) if protobuf else render_text(families).encode()
        return gzip.compress(body, 1) if packed else body

    headers = {"Content-Encoding": "gzip"} if packed else {}
    return Answer(await asyncio.to_thread(render), PROTOBUF_TYPE if protobuf else TEXT_TYPE, 200, headers)


def _accepts_gzip(header: str) -> bool:
    for entry in header.split(","):
        coding, _, quality = entry.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.strip().replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
