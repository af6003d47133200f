"""A working day with kubectl, on every control plane: deploy, label, taint, drain, look why, scale, tidy up."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from stories.clusters import BACKENDS, cluster

KUBECTL = str(Path(sys.executable).with_name("kubectl"))
MANIFEST = """
apiVersion: v1
kind: Service
metadata: {name: api}
spec: {selector: {app: api}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: api}
spec: {maxUnavailable: 50%, selector: {matchLabels: {app: api}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 4
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {disk: ssd}
      containers:
        - {name: c, image: nginx, resources: {requests: {cpu: 100m, memory: 64Mi}}}
"""
HUGE = """
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  containers:
    - {name: c, image: nginx, resources: {requests: {cpu: "1000"}}}
"""


class Kubectl:
    """Runs lines as one would type them."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    async def __call__(self, line: str, stdin: str = "", *, code: int = 0) -> str:
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *shlex.split(line),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
        )
        try:
            async with asyncio.timeout(60):
                output, _ = await process.communicate(stdin.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = output.decode()
        assert process.returncode == code, f"kubectl {line}\n{text}"
        return text

    async def nodes_of(self, app: str) -> list[str]:
        """Where the pods of an app are."""
        listed = json.loads(await self(f"get pods -l app={app} -o json"))
        return [
            pod["spec"].get("nodeName", "") for pod in listed["items"] if "deletionTimestamp" not in pod["metadata"]
        ]


@pytest.mark.asyncio
@pytest.mark.timeout(180)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_day(backend: str, tmp_path: Path) -> None:
    async with cluster(backend, 4, tmp_path) as (kubeconfig, scheduler):
        kubectl = Kubectl(kubeconfig, tmp_path)
        names = (await kubectl("get nodes -o name")).split()
        assert len(names) == 4
        first, second, third, fourth = (name.removeprefix("node/") for name in names)

        # Deploy, by hand and from a file.
        assert "deployment.apps/web created" in await kubectl("create deployment web --image=nginx --replicas=6")
        assert "successfully rolled out" in await kubectl("rollout status deployment/web --timeout=40s")
        assert len(set(await kubectl.nodes_of("web"))) == 4, "spread"

        # A file whose pods want a label that no node has yet.
        assert (await kubectl("apply -f -", MANIFEST)).count(" created") == 3
        await kubectl("wait --for=condition=PodScheduled=false pod -l app=api --timeout=20s")
        assert await kubectl.nodes_of("api") == [""] * 4
        await kubectl(f"label node {first} {second} disk=ssd")
        await kubectl("rollout status deployment/api --timeout=40s")
        assert set(await kubectl.nodes_of("api")) <= {first, second}, "the first label woke them"
        assert "unchanged" in await kubectl("apply -f -", MANIFEST)

        # Drained: its pods go, elsewhere; nothing comes until it is uncordoned.
        drained = await kubectl(f"drain {first} --ignore-daemonsets --delete-emptydir-data --force --timeout=60s")
        assert f"node/{first} cordoned" in drained
        assert f"node/{first} drained" in drained
        assert "SchedulingDisabled" in await kubectl(f"get node {first}")
        for app in ("web", "api"):
            await kubectl(f"rollout status deployment/{app} --timeout=40s")
            assert first not in await kubectl.nodes_of(app)
        assert set(await kubectl.nodes_of("api")) == {second}
        await kubectl("scale deployment/web --replicas=9")
        await kubectl("rollout status deployment/web --timeout=40s")
        assert first not in await kubectl.nodes_of("web")
        await kubectl(f"uncordon {first}")

        # Tainted: those that are there stay, new ones go elsewhere; evicted by the stronger effect.
        await kubectl(f"taint node {third} dedicated=gpu:NoSchedule")
        before = (await kubectl.nodes_of("web")).count(third)
        await kubectl(f"cordon {fourth}")
        await kubectl("scale deployment/web --replicas=15")
        await kubectl("rollout status deployment/web --timeout=40s")
        after = await kubectl.nodes_of("web")
        assert after.count(third) == before > 0
        assert len(after) == 15
        await kubectl(f"uncordon {fourth}")
        await kubectl(f"taint node {third} dedicated-")

        # Why is it pending?
        await kubectl("apply -f -", HUGE)
        await kubectl("wait --for=condition=PodScheduled=false pod/huge --timeout=20s")
        described = ""
        async with asyncio.timeout(20):
            while "FailedScheduling" not in described:  # the event comes a moment after the condition
                described = await kubectl("describe pod huge")
        why = "0/4 nodes are available: 4 Insufficient cpu."
        assert why in described
        assert "Warning  FailedScheduling" in described
        assert "default-scheduler" in described
        condition = 'jsonpath={.status.conditions[?(@.type==\\"PodScheduled\\")].message}'
        assert why in await kubectl(f'get pod huge -o "{condition}"')
        assert "huge" in await kubectl("get events --field-selector reason=FailedScheduling")
        assert "Pending" in await kubectl("get pod huge")
        await kubectl("delete pod huge --timeout=20s")

        # A new version, back again.
        await kubectl("set image deployment/web nginx=nginx:2")
        await kubectl("rollout status deployment/web --timeout=60s")
        assert "nginx:2" in await kubectl("get deployment web -o wide")
        await kubectl("rollout undo deployment/web")
        await kubectl("rollout status deployment/web --timeout=60s")

        # Down, and away with everything below it.
        await kubectl("scale deployment/web --replicas=2")
        await kubectl("rollout status deployment/web --timeout=40s")
        await kubectl("delete deployment web api --cascade=foreground --timeout=60s")
        await kubectl("delete service,pdb api --timeout=20s")
        await kubectl("wait --for=delete pod -l app=web --timeout=60s")
        assert (await kubectl("get deployments,replicasets,pods,pdb")).startswith("No resources found")
        log = scheduler.text
    assert "Traceback" not in log
    assert "\nE" not in log
