"""A leader that is asked to end: what it has bound is told, the lease is free, and the log has it all."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from e2e import servers
from e2e.command import kubeconfig, scheduler
from ha.test_three_replicas import PODS, node, pod

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE_EVENTS = "/api/v1/namespaces/kube-system/events"


@pytest.mark.asyncio
async def test_end_in_the_middle_of_work(tmp_path: Path) -> None:
    async with servers.running("embedded") as url, servers.operator(url) as operator:
        path = kubeconfig(tmp_path, url, servers.SCHEDULER)
        for i in range(10):
            await operator.send("POST", "/api/v1/nodes", node(i))
        rates = ("--kube-api-qps=500", "--kube-api-burst=1000")
        async with scheduler(f"--kubeconfig={path}", "--secure-port=0", "-v=3", *rates) as command:
            await command.says("Successfully acquired lease")
            for i in range(60):
                await operator.send("POST", PODS, pod(i))
            command.send(signal.SIGTERM)
            assert await command.ended() == 0
            log = command.text
        pods = (await operator.send("GET", PODS))["items"]
        events = (await operator.send("GET", EVENTS))["items"]
        of_lease = (await operator.send("GET", LEASE_EVENTS))["items"]
    bound = {each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")}
    assert bound
    told = {each["regarding"]["name"] for each in events if each["reason"] == "Scheduled"}
    assert told == bound
    echoed = set(re.findall(r'"Event occurred" object="?default/(\w+)"? .*reason="?Scheduled', log))
    assert echoed == bound
    ends = [each["message"].partition(" ")[2] for each in of_lease if each["reason"] == "LeaderElection"]
    assert ends == ["became leader"]
