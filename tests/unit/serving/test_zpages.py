"""Negotiation and contents of /flagz and /statusz."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
import yaml

from skedge.clock import VirtualClock
from skedge.serving.answers import Answer, Request
from skedge.serving.zpages import ZPage, flagz, statusz

FULL = "application/json;v={};g=config.k8s.io;as=Flagz"
BETA, ALPHA = FULL.format("v1beta1"), FULL.format("v1alpha1")


async def get(page: ZPage, accept: str | None = None) -> Answer:
    return await page(Request("GET", "/", headers={} if accept is None else {"Accept": accept}))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("accept", "answer"),
    [
        (None, "text"),
        ("", "text"),
        ("text/plain", "text"),
        ("*/*", "text"),
        ("text/html, */*;q=0.8", "text"),
        (BETA, "v1beta1"),
        (BETA.replace(";", "; "), "v1beta1"),
        (ALPHA, "v1alpha1"),
        (f"{ALPHA},{BETA}", "v1alpha1"),
        (f"{BETA},{ALPHA}", "v1beta1"),
        ("application/json,*/*", "text"),
        ("application/json", 406),
        ("application/json;v=v1beta1;g=config.k8s.io", 406),
        ("application/json;v=v1beta1;g=other.k8s.io;as=Flagz", 406),
        ("application/json;v=v1;g=config.k8s.io;as=Flagz", 406),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", 406),
        ("application/xml", 406),
    ],
)
async def test_negotiation(accept: str | None, answer: str | int) -> None:
    got = await get(flagz("kube-scheduler", Random(1), {"v": "2", "config": ""}), accept)
    if answer == 406:
        assert got.status == 406
        assert json.loads(got.body)["reason"] == "NotAcceptable"
    elif answer == "text":
        assert got.body.startswith(
            b"\nkube-scheduler flagz\nWarning: This endpoint is not meant to be machine parseable"
        )
    else:
        assert json.loads(got.body) == {
            "kind": "Flagz",
            "apiVersion": f"config.k8s.io/{answer}",
            "metadata": {"name": "kube-scheduler"},
            "flags": {"config": "", "v": "2"},
        }
        assert ("Warning" in got.headers) == (answer == "v1alpha1")


@pytest.mark.asyncio
async def test_yaml() -> None:
    got = await get(flagz("kube-scheduler", Random(1), {"v": "2"}), BETA.replace("json", "yaml"))
    assert got.content_type == "application/yaml"
    assert yaml.safe_load(got.body)["flags"] == {"v": "2"}


@pytest.mark.asyncio
async def test_the_delimiter_differs_between_processes_and_not_within_one() -> None:
    seen = set()
    for seed in range(30):
        page = flagz("kube-scheduler", Random(seed), {"name": "value"})
        body = (await get(page)).body
        assert (await get(page)).body == body
        seen.add(body.decode().splitlines()[-1].removeprefix("name").removesuffix("value"))
    assert seen == {":", ": ", "=", " "}


def page(clock: VirtualClock, emulation: str = "1.36") -> ZPage:
    return statusz(
        "kube-scheduler",
        Random(0),
        clock,
        runtime="python3.11",
        binary_version="1.36.2",
        emulation_version=emulation,
        paths=["/metrics", "/configz"],
    )


@pytest.mark.asyncio
async def test_statusz() -> None:
    clock = VirtualClock(start=1796045230)
    made = page(clock)
    clock.advance(3 * 3600 + 61.5)
    value: dict[str, Any] = json.loads((await get(made, BETA.replace("Flagz", "Statusz"))).body)
    assert value == {
        "kind": "Statusz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kube-scheduler"},
        "startTime": "2026-11-30T13:27:10Z",
        "uptimeSeconds": 10861,
        "goVersion": "python3.11",
        "binaryVersion": "1.36.2",
        "emulationVersion": "1.36",
        "paths": ["/configz", "/metrics"],
    }
    assert " 3 hr 01 min 01 sec\n" in (await get(made)).body.decode()


@pytest.mark.asyncio
async def test_statusz_without_emulation() -> None:
    assert "Emulation" not in (await get(page(VirtualClock(), ""))).body.decode()
