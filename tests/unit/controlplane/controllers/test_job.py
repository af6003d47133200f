"""Jobs against the real API server, and the text of sets of indexes."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.job_indexes import INDEX, parse_indexes, write_indexes
from skedge.controlplane.controllers.kinds import JOB, POD
from unit.controlplane.controllers.support import Lab, lab

JOBS = JOB.path("default")
JSON = dict[str, Any]


def job(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> JSON:
    containers = [{"name": "c", "image": "work"}]
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": containers},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


async def ended(it: Lab, name: str, type: str) -> JSON | None:
    """The status of a job once it has this condition."""
    status: JSON = (await it.client.get(f"{JOBS}/{name}"))["status"]
    return status if any(each["type"] == type for each in status.get("conditions", ())) else None


@pytest.mark.asyncio
async def test_completions_and_parallelism() -> None:
    async with lab() as it:
        await it.client.create(JOBS, job("sum", completions=5, parallelism=2))
        most = 0

        async def done() -> JSON | None:
            nonlocal most
            pods = await it.pods()
            most = max(most, sum(pod["status"]["phase"] not in ("Succeeded", "Failed") for pod in pods))
            return await ended(it, "sum", "Complete")

        status = await it.until(done)
        assert status["succeeded"] == 5
        assert "uncountedTerminatedPods" in status
        assert not any(status["uncountedTerminatedPods"].values())
        assert most == 2
        pods = await it.pods()
        assert len(pods) == 5
        assert not any(pod["metadata"].get("finalizers") for pod in pods)
        assert "condition met" in await it.kubectl("wait", "--for=condition=complete", "job/sum")
        assert (await it.kubectl("get", "job", "sum")).splitlines()[1].split()[:3] == ["sum", "Complete", "5/5"]
        await it.kubectl("delete", "job", "sum")

        async def empty() -> bool:
            return not await it.pods()

        await it.until(empty)


@pytest.mark.asyncio
async def test_indexed() -> None:
    async with lab() as it:
        await it.client.create(JOBS, job("parts", completions=4, parallelism=4, completionMode="Indexed"))
        status = await it.until(lambda: ended(it, "parts", "Complete"))
        assert status["completedIndexes"] == "0-3"
        pods = await it.pods()
        assert sorted(pod["metadata"]["annotations"][INDEX] for pod in pods) == ["0", "1", "2", "3"]
        assert pods[0]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


@pytest.mark.asyncio
async def test_backoff_limit() -> None:
    async with lab() as it:
        await it.client.create(JOBS, job("bad", {"skedge.io/exit-code": "1"}, backoffLimit=2))
        status = await it.until(lambda: ended(it, "bad", "Failed"), within=200, step=1)
        assert status["failed"] == 3
        failed = next(each for each in status["conditions"] if each["type"] == "Failed")
        assert failed["reason"] == "BackoffLimitExceeded"


@pytest.mark.asyncio
async def test_failure_policy() -> None:
    """One rule ends the job at the first failure, another lets failures pass."""
    async with lab() as it:
        codes = {"onExitCodes": {"operator": "In", "values": [1]}}
        ends = {"rules": [{"action": "FailJob", **codes}]}
        passes = {"rules": [{"action": "Ignore", **codes}]}
        bad = {"skedge.io/exit-code": "1"}
        await it.client.create(JOBS, job("ends", bad, podFailurePolicy=ends))
        await it.client.create(JOBS, job("passes", bad, podFailurePolicy=passes, backoffLimit=0))
        status = await it.until(lambda: ended(it, "ends", "Failed"), step=1)
        failed = next(each for each in status["conditions"] if each["type"] == "Failed")
        assert failed["reason"] == "PodFailurePolicy"
        assert failed["message"].endswith("failed with exit code 1 matching FailJob rule at index 0")
        await it.let_pass(30, step=1)
        assert len(await it.pods("job-name=passes")) > 1
        assert await ended(it, "passes", "Failed") is None


@pytest.mark.asyncio
async def test_deadline_and_time_to_live() -> None:
    async with lab() as it:
        slow = job("slow", {"skedge.io/run-seconds": "500"}, activeDeadlineSeconds=20, ttlSecondsAfterFinished=30)
        await it.client.create(JOBS, slow)
        status = await it.until(lambda: ended(it, "slow", "Failed"), step=1)
        assert status["conditions"][-1]["reason"] == "DeadlineExceeded"
        await it.until(lambda: it.gone(f"{JOBS}/slow"), step=2)


@pytest.mark.asyncio
async def test_suspended_jobs_have_no_pods_and_deleted_pods_are_replaced() -> None:
    async with lab() as it:
        long = job("long", {"skedge.io/run-seconds": "20"}, suspend=True)
        await it.client.create(JOBS, long)
        await it.let_pass(3)
        assert not await it.pods()
        await it.client.patch(f"{JOBS}/long", {"spec": {"suspend": False}})
        await it.until(lambda: it.running(1))
        await it.client.delete(POD.path("default", (await it.pods())[0]["metadata"]["name"]))
        status = await it.until(lambda: ended(it, "long", "Complete"), within=120, step=1)
        assert (status["succeeded"], status["failed"]) == (1, 1)


@pytest.mark.parametrize(
    ("indexes", "text"),
    [(set(), ""), ({3}, "3"), ({1, 2}, "1-2"), ({0, 2, 3, 4, 9}, "0,2-4,9")],
)
def test_indexes(indexes: set[int], text: str) -> None:
    assert write_indexes(indexes) == text
    assert parse_indexes(text) == indexes
