"""What an administrator, an anonymous and an unprivileged user get, as recorded from the reference."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from skedge.clock import RealClock, VirtualClock
from skedge.serving.authentication import Authenticator
from skedge.serving.authorization import Authorizer
from skedge.serving.endpoints import Sources, build_mux
from skedge.serving.guard import Guard
from skedge.serving.health import Check, handler_sync_check, shutdown_check
from skedge.serving.pod_resources import PodUsage
from skedge.serving.server import EndpointServer, Listen, Secure
from skedge.serving.users import AccessReview, TokenReview, UserInfo
from skedge.telemetry.metrics import Metrics

RECORDED = json.loads(gzip.decompress((Path(__file__).parents[2] / "data/serving/endpoints.json.gz").read_bytes()))
CASES = [key for key in RECORDED if not key.endswith("/metrics") or not key.startswith("admin")]
TOKENS = {"admin": "admin-token", "plain user": "jane-token"}
USERS = {"admin-token": UserInfo("admin", groups=("system:masters",)), "jane-token": UserInfo("jane")}
PUBLIC = {"/healthz", "/livez", "/readyz", "/version"}


class Cluster:
    """Knows two tokens and lets everybody see what a cluster's stock roles let everybody see."""

    async def review_token(self, token: str) -> TokenReview:
        return TokenReview(USERS.get(token))

    async def review_access(self, user: UserInfo, verb: str, path: str) -> AccessReview:
        return AccessReview(allowed=path in PUBLIC)


def recorded_flags() -> dict[str, str]:
    lines = RECORDED["admin GET /flagz"]["text"].splitlines()[3:]
    return dict(line.split("=", 1) for line in lines)


def recorded_pods() -> list[PodUsage]:
    pods: dict[str, PodUsage] = {}
    for line in RECORDED["admin GET /metrics/resources"]["text"].splitlines()[1:]:
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        amount = round(float(line.rpartition(" ")[2]) * 1000)
        pods[labels["pod"]] = PodUsage(
            labels["namespace"],
            labels["pod"],
            labels["node"],
            labels["scheduler"],
            int(labels["priority"]),
            {labels["resource"]: amount, "memory": 0},
            {},
        )
    return list(pods.values())


class FirstDelimiter(Random):
    """Chooses the delimiters of the recording: `=` for flagz, a space for statusz."""

    def __init__(self) -> None:
        super().__init__(0)
        self._left = ["=", " "]

    def choice(self, seq: Any) -> Any:
        chosen = self._left.pop(0)
        assert chosen in seq
        return chosen


@pytest_asyncio.fixture
async def server() -> AsyncIterator[EndpointServer]:
    metrics = Metrics("1.36.2")
    clock = VirtualClock(start=1796045230)
    sources = Sources(
        metrics,
        clock,
        FirstDelimiter(),
        config=lambda: json.loads(RECORDED["admin GET /configz"]["text"])["componentconfig"],
        flags=recorded_flags(),
        ready=[shutdown_check(lambda: False), handler_sync_check(lambda: True)],
        leader_election=Check("leaderElection", lambda: ""),
        pods=recorded_pods,
    )
    mux = build_mux(sources)
    clock.advance(126)
    authenticator = Authenticator(metrics, clock, Random(0), Cluster())
    guard = Guard(mux, clock, authenticator, Authorizer(metrics, clock, Random(0), Cluster()))
    server = EndpointServer(guard, Listen("127.0.0.1", 0), RealClock(), Secure(), authenticator)
    await server.start()
    yield server
    await server.stop()


async def ask(server: EndpointServer, case: str) -> tuple[int, str, str]:
    user, method, path = re.fullmatch(r"(.*) (GET) (/.*)", case).groups()  # type: ignore[union-attr]
    headers = {"Authorization": f"Bearer {TOKENS[user]}"} if user in TOKENS else {}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"https://127.0.0.1:{server.port}{path}", headers=headers, ssl=False) as response,
    ):
        assert response.headers["Cache-Control"] == "no-cache, private"
        return response.status, response.headers["Content-Type"], await response.text()


@pytest.mark.asyncio
async def test_every_recorded_answer(server: EndpointServer) -> None:
    for case in CASES:
        recorded = RECORDED[case]
        status, content_type, text = await ask(server, case)
        assert (status, content_type) == (recorded["status"], recorded["content_type"]), case
        if recorded["text"] == "(HTML index)":
            assert text.startswith("<html>")
            continue
        text = re.sub(r"^# HELP .*\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"^(Go version  ).*", r"\1go1.26.6", text, flags=re.MULTILINE)
        if "/metrics" in case:
            # Taking the HELP lines out of the recording took its last line end with them.
            text = text.rstrip("\n") if status == 200 else text
        assert text == recorded["text"], case


@pytest.mark.asyncio
async def test_the_scrape_is_of_the_recorded_form(server: EndpointServer) -> None:
    for case in ("admin GET /healthz", "anonymous GET /metrics", "plain user GET /metrics"):
        await ask(server, case)
    status, content_type, text = await ask(server, "admin GET /metrics")
    recorded = RECORDED["admin GET /metrics"]
    assert (status, content_type) == (200, recorded["content_type"])

    def types(scrape: str) -> dict[str, str]:
        return dict(re.findall(r"^# TYPE (\S+) (\S+)$", scrape, flags=re.MULTILINE))

    ours, theirs = types(text), types(recorded["text"])
    for name in ours.keys() & theirs.keys():
        assert ours[name] == theirs[name], name
    for name in (
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_open_fds",
        "process_max_fds",
        "process_virtual_memory_bytes",
        "go_goroutines",
        "scheduler_preemption_attempts_total",
        "apiserver_delegated_authn_request_total",
        "authorization_duration_seconds",
    ):
        assert name in ours, name
    assert "_created" not in text
    assert 'authenticated_user_requests{username="other"} 2\n' in text
    assert 'authorization_attempts_total{result="no-opinion"} 2\n' in text
