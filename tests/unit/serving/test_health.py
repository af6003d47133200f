"""Texts and statuses of the health endpoints."""

from __future__ import annotations

import pytest

from skedge.clock import VirtualClock
from skedge.serving.answers import Mux, Request
from skedge.serving.health import (
    Check,
    handler_sync_check,
    informer_sync_check,
    install_health,
    leader_election_check,
    shutdown_check,
)
from skedge.telemetry.exposition import render_text
from skedge.telemetry.metrics import Metrics


def good(name: str) -> Check:
    return Check(name, lambda: "")


def bad(name: str) -> Check:
    return Check(name, lambda: f"{name} is ill")


async def ask(
    path: str, *ready: Check, elected: Check | None = None, metrics: Metrics | None = None
) -> tuple[int, str]:
    mux = Mux()
    install_health(mux, metrics or Metrics("1.36.2"), ready, elected)
    path, _, query = path.partition("?")
    answer = await mux(Request("GET", path, query))
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    return answer.status, answer.body.decode()


A, B, ILL = good("a"), good("b"), bad("c")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "checks", "status", "body"),
    [
        ("/readyz", (A, B), 200, "ok"),
        ("/readyz?verbose", (A, B), 200, "[+]a ok\n[+]b ok\nreadyz check passed\n"),
        ("/readyz?verbose=false", (A,), 200, "[+]a ok\nreadyz check passed\n"),
        ("/readyz", (A, ILL), 500, "[+]a ok\n[-]c failed: reason withheld\nreadyz check failed\n"),
        ("/readyz?exclude=c", (A, ILL), 200, "ok"),
        (
            "/readyz?exclude=c&exclude=a&verbose", (A, ILL), 200,
            "[+]a excluded: ok\n[+]c excluded: ok\nreadyz check passed\n",
        ),
        ("/readyz?exclude=zz&exclude=y", (A,), 200, "ok"),
        (
            "/readyz?exclude=zz&exclude=y&verbose", (A,), 200,
            '[+]a ok\nwarn: some health checks cannot be excluded: no matches for "y","zz"\nreadyz check passed\n',
        ),
        ("/readyz/a", (A,), 200, "ok"),
        ("/readyz/c", (A, ILL), 500, "internal server error: c is ill\n"),
        ("/readyz/none", (A,), 404, "404 page not found\n"),
        ("/livez?verbose", (ILL,), 200, "[+]ping ok\nlivez check passed\n"),
        ("/livez/ping", (), 200, "ok"),
        ("/healthz?verbose", (), 200, "[+]ping ok\nhealthz check passed\n"),
    ],
)  # fmt: skip
async def test_answers(path: str, checks: tuple[Check, ...], status: int, body: str) -> None:
    assert await ask(path, *checks) == (status, body)


@pytest.mark.asyncio
async def test_leader_election_stands_in_healthz_and_first_in_readyz() -> None:
    elected = good("leaderElection")
    assert (await ask("/healthz?verbose", elected=elected))[1] == "[+]leaderElection ok\nhealthz check passed\n"
    assert (await ask("/readyz?verbose", A, elected=elected))[
        1
    ] == "[+]leaderElection ok\n[+]a ok\nreadyz check passed\n"
    assert (await ask("/livez?verbose", elected=elected))[1] == "[+]ping ok\nlivez check passed\n"
    assert await ask("/healthz/leaderElection", elected=elected) == (200, "ok")


@pytest.mark.asyncio
async def test_a_check_that_raises_has_failed() -> None:
    def broken() -> str:
        raise OSError("disk on fire")

    assert await ask("/readyz/x", Check("x", broken)) == (500, "internal server error: check broke: disk on fire\n")


@pytest.mark.asyncio
async def test_every_evaluation_is_counted() -> None:
    metrics = Metrics("1.36.2")
    await ask("/readyz", A, ILL, metrics=metrics)
    await ask("/readyz/a", A, metrics=metrics)
    lines = render_text(metrics.registry.sample("slis")).splitlines()
    for line in (
        'kubernetes_healthcheck{name="a",type="readyz"} 1',
        'kubernetes_healthcheck{name="c",type="readyz"} 0',
        'kubernetes_healthchecks_total{name="a",status="success",type="readyz"} 2',
        'kubernetes_healthchecks_total{name="c",status="error",type="readyz"} 1',
    ):
        assert line in lines


def test_reasons() -> None:
    assert shutdown_check(lambda: True).reason() == "process is shutting down"
    assert shutdown_check(lambda: False).reason() == ""
    assert handler_sync_check(lambda: False).reason() == "handlers are not fully synchronized"
    assert handler_sync_check(lambda: True).reason() == ""
    assert informer_sync_check(lambda: ["pods", "nodes"]).reason() == "2 informers not started yet: [pods nodes]"
    assert informer_sync_check(list).reason() == ""


def test_the_watchdog_waits_for_the_lease_and_twenty_seconds() -> None:
    clock = VirtualClock()
    renewed: list[float | None] = [None]
    check = leader_election_check(clock, "kube-scheduler", 15.0, lambda: renewed[0])
    clock.advance(100)
    assert check.reason() == "", "a follower renews nothing"
    renewed[0] = clock.monotonic()
    clock.advance(35)
    assert check.reason() == ""
    clock.advance(0.1)
    assert check.reason() == "failed election to renew leadership on lease kube-scheduler"
