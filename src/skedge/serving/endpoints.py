"""Everything the scheduler serves, put together under its paths. Upstream: `cmd/kube-scheduler/app/server.go`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from skedge.clock import Clock
from skedge.names import COMPONENT_NAME, KUBERNETES_VERSION
from skedge.serving import answers
from skedge.serving.answers import Answer, Mux, Request
from skedge.serving.debug import Debug
from skedge.serving.health import Check, install_health
from skedge.serving.pod_resources import PodSource
from skedge.serving.sampling import work_under_way
from skedge.serving.scrape import Scrapes
from skedge.serving.zpages import flagz, statusz
from skedge.telemetry.metrics import Metrics
from skedge.telemetry.process import ProcessCollector, runtime_version

_STATUSZ_PATHS = ("/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz")


@dataclass(frozen=True)
class Sources:
    """What the endpoints show, and where it comes from. Callables are asked at every request, on the loop's thread."""

    metrics: Metrics
    clock: Clock
    random: Random
    config: Callable[[], Mapping[str, Any]]
    """The v1 object, kind and apiVersion included."""
    flags: Mapping[str, str]
    ready: Sequence[Check] = ()
    """What `/readyz` checks, leader election apart."""
    leader_election: Check | None = None
    """None when leader election is off."""
    leading: Callable[[], bool] = lambda: True
    pods: PodSource = tuple
    profiling: bool = True
    """Whether `/debug/...` exists."""
    flagz: bool = True
    statusz: bool = True
    version: str = KUBERNETES_VERSION
    emulation_version: str = KUBERNETES_VERSION.rpartition(".")[0]
    component: str = COMPONENT_NAME


def build_mux(sources: Sources) -> Mux:
    """All endpoints of one process; registers collectors of the process itself in its metrics."""
    mux = Mux()
    install_health(mux, sources.metrics, sources.ready, sources.leader_election)
    Scrapes(sources.metrics.registry, sources.pods, sources.leading).install(mux)

    async def configz(_: Request) -> Answer:
        return answers.json({"componentconfig": sources.config()})

    mux.handle("/configz", configz)
    if sources.profiling:
        Debug(sources.clock).install(mux)
    if sources.flagz:
        mux.handle("/flagz", flagz(sources.component, sources.random, sources.flags))
    if sources.statusz:
        page = statusz(
            sources.component,
            sources.random,
            sources.clock,
            runtime=runtime_version(),
            binary_version=sources.version,
            emulation_version=sources.emulation_version,
            paths=_STATUSZ_PATHS,
        )
        mux.handle("/statusz", page)
    sources.metrics.registry.register(ProcessCollector())
    sources.metrics.gauge("go_goroutines").read_from(work_under_way)
    sources.metrics.gauge("go_threads").read_from(threading.active_count)
    return mux
