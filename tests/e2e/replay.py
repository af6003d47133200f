"""The recorded scenarios once more, with our scheduler: a process over HTTP, the operator's deeds in their order.

After each deed we wait for as many requests as were recorded, and a little longer for those that must not come. Before
the end every endpoint is asked, as every user.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from e2e import endpoints, recording, servers
from e2e.endpoints import Answered
from e2e.proxy import Answer, Recorded, RecordingProxy
from e2e.recording import Step
from skedge.app.metrics import build_metrics
from skedge.app.process import SchedulerProcess
from skedge.app.serving import ServingSettings
from skedge.config.complete import complete
from skedge.config.gates import FeatureGates
from skedge.config.options import parse_options
from skedge.scheduler.auditor import Auditor
from skedge.serving.server import Listen

STEPS = recording.load()
SCENARIOS = recording.scenarios(STEPS)
PATIENCE = 4.0
"""Seconds to wait for requests that were recorded."""
SETTLE = 0.08
"""Seconds after which nothing more is expected."""


class AsRecorded(random.Random):
    """Chooses what the recorded run chose: the first of equally good nodes, and the delimiters of flagz and statusz."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0

    def choice(self, seq: Any) -> Any:
        return "=" if self._delimiters.pop() == "flagz" else " "

    def seed(self, *args: Any, **kwargs: Any) -> None:
        self._delimiters = ["statusz", "flagz"]
        super().seed(*args, **kwargs)


class Run(NamedTuple):
    """What our scheduler did: requests by scenario, and what is left."""

    backend: str
    requests: dict[str, list[Step]]
    left: dict[str, Any]
    exit_status: int
    answers: dict[str, Answered]
    findings: list[str]
    """What an audit found at the end."""


async def replay(backend: str) -> Run:
    async with (
        servers.running(backend) as url,
        servers.operator(url) as operator,
        RecordingProxy(url) as proxy,
    ):
        found: dict[str, list[Step]] = {}
        proxy.answer = failing_once()
        user = servers.as_user(proxy.url, servers.SCHEDULER)
        options = parse_options(endpoints.FLAGS)
        process = SchedulerProcess(
            complete(options, lambda _: endpoints.configuration()).config,
            user,
            metrics=build_metrics(options, FeatureGates(), _no_file),
            serving=ServingSettings(listen=Listen("127.0.0.1", 0), authentication=user, authorization=user),
            flags=dict(options.lines()),
            rng=AsRecorded(1),
        )
        answers: dict[str, Answered] = {}
        findings: list[str] = []
        task: asyncio.Task[int] | None = None
        exit_status = -1
        try:
            for scenario, steps in SCENARIOS.items():
                begin = len(proxy.requests)
                for deeds, requests in recording.segments(steps):
                    before = len(proxy.requests)
                    for deed in deeds:
                        await operator.send(deed.method, deed.path, deed.body, deed.content_type)
                        await asyncio.sleep(SETTLE if task is not None else 0)
                    if task is None:
                        task = asyncio.create_task(process.run())
                    elif scenario == "shutdown":
                        assert process.serving is not None
                        answers = await endpoints.ask(process.serving.ports["https"])
                        findings = audit(process)
                        begin = before = len(proxy.requests)
                        process.stop()
                        exit_status = await task
                    await arrived(proxy, before, scenario, requests)
                found[scenario] = as_steps(scenario, proxy.requests[begin:])
        finally:
            process.stop()
            if task is not None:
                await task
        return Run(backend, found, await left(operator), exit_status, answers, findings)


def audit(process: SchedulerProcess) -> list[str]:
    scheduler, watches = process.scheduler, process.watches
    assert scheduler is not None
    assert watches is not None
    return [str(each) for each in Auditor(scheduler, watches.pods.store, watches.nodes.store).detect()]


def _no_file(path: str) -> bytes:
    raise FileNotFoundError(path)


def failing_once() -> Any:
    """Answers the first binding of the pod `bindfail` with an error, as in the recording."""
    failed = False

    def answer(request: Recorded) -> Answer | None:
        nonlocal failed
        if failed or not request.path.endswith("/pods/bindfail/binding"):
            return None
        failed = True
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "injected"}
        return 500, status | {"reason": "InternalError", "code": 500}

    return answer


async def arrived(proxy: RecordingProxy, before: int, scenario: str, expected: Sequence[Step]) -> None:
    """Waits until every subject has as many requests as were recorded, and then a little."""
    wanted = {name: len(each) for name, each in recording.by_subject(expected).items()}
    if scenario == "start":
        wanted = dict.fromkeys(wanted, 1)
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while (left := deadline - asyncio.get_running_loop().time()) > 0:
        found = recording.by_subject(as_steps(scenario, proxy.requests[before:]))
        if all(len(found.get(name, ())) >= number for name, number in wanted.items()):
            break
        await proxy.arrival(left)
    await asyncio.sleep(SETTLE)


def as_steps(scenario: str, requests: Sequence[Recorded]) -> list[Step]:
    return [Step(scenario, False, each.method, each.path, each.body, agent=each.agent) for each in requests]


async def left(operator: servers.Operator) -> dict[str, Any]:
    """Events and pods of the namespace, as they were recorded."""
    events = (await operator.send("GET", "/apis/events.k8s.io/v1/namespaces/sw/events"))["items"]
    pods = (await operator.send("GET", "/api/v1/namespaces/sw/pods"))["items"]
    return {
        "events": [
            {key: value for key, value in each.items() if key not in ("metadata", "kind", "apiVersion")}
            | {"name": each["metadata"]["name"]}
            for each in events
        ],
        "pods": [
            {
                "name": each["metadata"]["name"],
                "nodeName": each["spec"].get("nodeName"),
                "status": each["status"],
            }
            for each in pods
        ],
    }
