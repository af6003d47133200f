"""Which paths exist, by configuration."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from skedge.clock import VirtualClock
from skedge.serving.answers import Mux, Request
from skedge.serving.endpoints import Sources, build_mux
from skedge.telemetry.metrics import Metrics


def mux(**changes: Any) -> Mux:
    sources = {
        "metrics": Metrics("1.36.2"),
        "clock": VirtualClock(),
        "random": Random(0),
        "config": lambda: {"kind": "KubeSchedulerConfiguration"},
        "flags": {},
    }
    return build_mux(Sources(**(sources | changes)))


async def status(mux: Mux, path: str) -> int:
    return (await mux(Request("GET", path))).status


@pytest.mark.asyncio
async def test_what_configuration_switches_off() -> None:
    full, bare = mux(), mux(profiling=False, flagz=False, statusz=False)
    for path in ("/debug/pprof/", "/debug/pprof/heap", "/debug/flags", "/flagz", "/statusz"):
        assert await status(full, path) == 200, path
        assert await status(bare, path) == 404, path
    for path in ("/healthz", "/livez", "/readyz", "/metrics", "/metrics/slis", "/metrics/resources", "/configz"):
        assert await status(bare, path) == 200, path
    for path in ("/", "/version", "/healthz/", "/metrics/", "/livez/none"):
        assert await status(full, path) == 404, path


@pytest.mark.asyncio
async def test_configz_is_asked_every_time() -> None:
    answers = iter(("one", "two"))
    made = mux(config=lambda: {"kind": next(answers)})
    bodies = [(await made(Request("GET", "/configz"))).body for _ in range(2)]
    assert bodies == [b'{"componentconfig":{"kind":"one"}}', b'{"componentconfig":{"kind":"two"}}']


@pytest.mark.asyncio
async def test_the_start_of_the_process_is_on_slis_too() -> None:
    body = (await mux()(Request("GET", "/metrics/slis"))).body.decode()
    assert "\nprocess_start_time_seconds " in body
    assert "scheduler_" not in body
