"""Schedules, and cron jobs against the real API server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skedge.controlplane.controllers.cron import CronError, Schedule
from skedge.controlplane.controllers.kinds import CRON_JOB, JOB
from unit.controlplane.controllers.support import Lab, lab

CRON_JOBS, JOBS = CRON_JOB.path("default"), JOB.path("default")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00:00", "2026-01-01T00:01:00"),
        ("*/15 * * * *", "2026-01-01T00:15:30", "2026-01-01T00:30:00"),
        ("0 9-17/4 * * *", "2026-01-01T13:00:00", "2026-01-01T17:00:00"),
        ("30 4 1,15 * 5", "2026-01-02T05:00:00", "2026-01-09T04:30:00"),
        ("0 0 * feb mon", "2026-01-31T00:00:00", "2026-02-02T00:00:00"),
        ("0 0 29 2 *", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 * * 0", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("@hourly", "2026-12-31T23:59:59", "2027-01-01T00:00:00"),
    ],
)
def test_next_and_latest(text: str, after: str, expected: str) -> None:
    schedule, found = Schedule(text), _time(expected)
    assert schedule.next(_time(after)) == found
    assert schedule.latest(found.replace(second=59), _time(after)) == found
    assert schedule.latest(found.replace(second=59), found) is None


def test_a_day_that_never_comes() -> None:
    assert Schedule("0 0 30 2 *").next(_time("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("@nope", "unrecognized descriptor: @nope"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("0 0 * * 7", "end of range (7) above maximum (6): 7"),
        ("* * * foo *", 'failed to parse int from foo: strconv.Atoi: parsing "foo": invalid syntax'),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
    ],
)
def test_bad_schedules(text: str, problem: str) -> None:
    with pytest.raises(CronError) as failure:
        Schedule(text)
    assert str(failure.value) == problem


def _cron_job(seconds: int, **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "work"}]}
    annotations = {"skedge.io/run-seconds": str(seconds)}
    template = {"spec": {"template": {"metadata": {"annotations": annotations}, "spec": pod}}}
    return {"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec}}


async def _jobs(it: Lab) -> list[str]:
    return sorted(each["metadata"]["name"] for each in (await it.client.list(JOBS))["items"])


@pytest.mark.asyncio
async def test_a_job_each_minute_and_a_short_history() -> None:
    async with lab() as it:
        await it.client.create(CRON_JOBS, _cron_job(2, successfulJobsHistoryLimit=2))
        await it.let_pass(310, step=2)
        status = (await it.client.get(f"{CRON_JOBS}/tick"))["status"]
        assert len(await _jobs(it)) == 2
        assert status["lastScheduleTime"] <= status["lastSuccessfulTime"]
        await it.client.patch(f"{CRON_JOBS}/tick", {"spec": {"suspend": True}})
        before = await _jobs(it)
        await it.let_pass(130, step=5)
        assert await _jobs(it) == before


@pytest.mark.asyncio
@pytest.mark.parametrize(("policy", "running"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
async def test_concurrency_policies(policy: str, running: int) -> None:
    async with lab() as it:
        await it.client.create(CRON_JOBS, _cron_job(1000, concurrencyPolicy=policy))
        await it.let_pass(200, step=5)
        assert len(await _jobs(it)) == running
        status = (await it.client.get(f"{CRON_JOBS}/tick"))["status"]
        assert len(status["active"]) == running
