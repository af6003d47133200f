"""Jobs against the real API server, and the text of sets of indexes."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.controlplane.controllers.job_indexes import INDEX, parse_indexes, write_indexes
from skedge.controlplane.controllers.job_per_index import FAILURES, success_message
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


async def end(it: Lab, index: int, phase: str) -> JSON:
    """Ends the running pod of an index; the pod."""

    async def running() -> JSON | None:
        pods = await it.pods(f"{INDEX}={index}")
        return next((pod for pod in pods if pod["status"]["phase"] == "Running"), None)

    pod: JSON = await it.until(running, within=90)
    path = POD.path("default", pod["metadata"]["name"], "status")
    await it.client.patch(path, {"status": {"phase": phase}})
    return pod


FOREVER = {"skedge.io/run-seconds": "100000"}
PARTS = {"completionMode": "Indexed", "parallelism": 4}


@pytest.mark.asyncio
async def test_indexes_fail_one_by_one() -> None:
    async with lab() as it:
        await it.client.create(JOBS, job("parts", FOREVER, completions=3, backoffLimitPerIndex=1, **PARTS))
        for index in (0, 2):
            await end(it, index, "Succeeded")
        first = await end(it, 1, "Failed")
        assert first["metadata"]["annotations"][FAILURES] == "0"
        await it.let_pass(3)
        kept = await it.client.get(POD.path("default", first["metadata"]["name"]))
        assert kept["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
        second = await end(it, 1, "Failed")  # after a pause
        assert second["metadata"]["annotations"][FAILURES] == "1"
        status = await it.until(lambda: ended(it, "parts", "Failed"))
        assert (status["completedIndexes"], status["failedIndexes"], status["failed"]) == ("0,2", "1", 2)
        assert status["conditions"][-1]["reason"] == "FailedIndexes"
        assert not any(pod["metadata"].get("finalizers") for pod in await it.pods())


@pytest.mark.asyncio
async def test_too_many_failed_indexes_and_a_policy_that_gives_up_an_index() -> None:
    async with lab() as it:
        rule = {"action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        policy = {"rules": [rule]}
        spec = {"backoffLimitPerIndex": 5, "maxFailedIndexes": 1, "podFailurePolicy": policy}
        await it.client.create(JOBS, job("parts", FOREVER, completions=4, **spec, **PARTS))
        await it.until(lambda: it.running(4))
        for index in (3, 1):
            pod = await end(it, index, "Running")
            conditions = [*pod["status"]["conditions"], {"type": "DisruptionTarget", "status": "True"}]
            body = {"status": {"phase": "Failed", "conditions": conditions}}
            await it.client.patch(POD.path("default", pod["metadata"]["name"], "status"), body)
        status = await it.until(lambda: ended(it, "parts", "Failed"))
        assert status["failedIndexes"] == "1,3"
        assert status["conditions"][-1]["reason"] == "MaxFailedIndexesExceeded"
        assert (status["failed"], status.get("active", 0)) == (4, 0)


@pytest.mark.asyncio
async def test_success_policy() -> None:
    async with lab() as it:
        rules = {"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 2}]}
        await it.client.create(JOBS, job("parts", FOREVER, completions=4, successPolicy=rules, **PARTS))
        await it.until(lambda: it.running(4))
        for index in (1, 2, 3):
            await end(it, index, "Succeeded")
        status = await it.until(lambda: ended(it, "parts", "Complete"))
        assert [(each["type"], each["reason"], each["message"]) for each in status["conditions"]] == [
            (type, "SuccessPolicy", "Matched rules at index 0") for type in ("SuccessCriteriaMet", "Complete")
        ]
        assert (status["succeeded"], status["completedIndexes"]) == (3, "1-3")


@pytest.mark.parametrize(
    ("rule", "completed", "found"),
    [
        ({"succeededIndexes": "1-2"}, {1}, False),
        ({"succeededIndexes": "1-2"}, {1, 2}, True),
        ({"succeededCount": 2}, {0, 5}, True),
        ({"succeededIndexes": "1-3", "succeededCount": 1}, {0, 4}, False),
    ],
)
def test_rules_of_success(rule: JSON, completed: set[int], found: bool) -> None:
    spec = {"successPolicy": {"rules": [{"succeededIndexes": "9"}, rule]}}
    assert success_message(spec, completed) == ("Matched rules at index 1" if found else "")


@pytest.mark.parametrize(
    ("indexes", "text"),
    [(set(), ""), ({3}, "3"), ({1, 2}, "1-2"), ({0, 2, 3, 4, 9}, "0,2-4,9")],
)
def test_indexes(indexes: set[int], text: str) -> None:
    assert write_indexes(indexes) == text
    assert parse_indexes(text) == indexes
