"""kubectl itself against the server: the recorded command lines and a longer story."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from plane import Client, running
from skedge.clock import RealClock
from wire_replay import DATA, Replay, embedded

pytestmark = pytest.mark.asyncio

KUBECTL = str(Path(sys.executable).with_name("kubectl"))

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: nginx, resources: {requests: {cpu: 250m, memory: 64Mi}}}
"""
SOLO = """---
apiVersion: v1
kind: Pod
metadata: {name: solo}
spec:
  containers:
  - {name: c, image: nginx}
"""
FILES = {
    "dep.yaml": DEPLOYMENT + SOLO,
    "dep2.yaml": DEPLOYMENT.replace("250m", "300m").replace("replicas: 3", "replicas: 5"),
    "typo.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: typo}\nspec: {containerz: []}\n",
}


class Kubectl:
    """Runs command lines against one server."""

    def __init__(self, url: str, home: Path) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
            "current-context": "x",
        }
        (home / "config").write_text(json.dumps(config))
        for name, text in FILES.items():
            (home / name).write_text(text)
        self._home = home
        self._environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(home / "config")}

    async def run(self, line: str) -> tuple[int, str]:
        """Exit code and output (both streams) of a shell line that begins with kubectl."""
        command = line.replace("kubectl", KUBECTL, 1)
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self._home,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), 30)
        return process.returncode or 0, output.decode()


# --- the recorded command lines -------------------------------------------------------------------------------------

# Not compared: they print versions, every kind of a real server, prose, or wait for several seconds in vain.
SKIPPED = {
    "kubectl version": "versions",
    "kubectl cluster-info": "address, colours",
    "kubectl api-resources": "kinds of a real server",
    "kubectl api-versions": "kinds of a real server",
    "kubectl explain pod.spec.affinity": "prose",
    "kubectl config view": "asks no server",
    "kubectl get events": "events of another program",
    "kubectl events": "events of another program",
    "kubectl get pods -w --request-timeout=2s": "ended by the recorder",
    "kubectl wait --for=condition=PodScheduled pod/solo --timeout=2s": "waits",
    "kubectl rollout status deploy/web --timeout=2s": "waits",
    "kubectl drain n1 --ignore-daemonsets --force --timeout=3s": "waits",
}


def _plain(text: str) -> list[str]:
    """Output without what differs between runs and between kubectl 1.32 and later ones."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*( \+0000|Z)?", "<time>", text)
    text = re.sub(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "<time>", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<uid>", text)
    text = re.sub(r'resourceVersion: "\d+"', "resourceVersion: <n>", text)
    text = re.sub(r"\bgen-[a-z0-9]{5}\b", "gen-xxxxx", text)
    text = re.sub(r"(?:\S*/)?(?:LIVE|MERGED)(?:-\d+)?/", "DIFF/", text)
    text = re.sub(r'"? deleted from \w+ namespace', '" deleted', text)
    text = re.sub(r"\b(\d+[ydhms])+\b", "<age>", text)
    text = text.replace("Kube-Proxy Version:", "").replace("error: unable to upgrade connection: ", "")
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    return [
        line
        for line in lines
        if line and "openshift" not in line and "apiserver-" not in line and set(line) != {"-", " "}
    ]


# Command lines whose output differs still, with the reason.
EXPECTED = {"kubectl exec solo -- ls": "kubectl 1.36 asks for a WebSocket, and prints the message of a refusal alone"}


async def test_recorded_command_lines(tmp_path: Path) -> None:
    with gzip.open(DATA / "kubectl-commands.json.gz", "rt") as file:
        commands: list[dict[str, Any]] = json.load(file)
    replay = Replay(("objects", "scheduling", "watch"))
    differing: dict[str, str] = {}
    async with embedded() as plane:
        await replay.run(plane.url)
        plane.access.enforced = False  # kubectl sends no token over plain HTTP
        kubectl = Kubectl(plane.url, tmp_path)
        for command in commands:
            line = command["command"]
            if line in SKIPPED:
                continue
            code, output = await kubectl.run(line)
            wanted, found = _plain(command["output"]), _plain(output)
            if code != command["exit"] and not line.startswith("kubectl exec"):
                differing[line] = f"exit {code}, expected {command['exit']}: {output[:300]}"
            elif sorted(wanted) != sorted(found):
                missing = [x for x in wanted if x not in found]
                extra = [x for x in found if x not in wanted]
                differing[line] = f"missing {missing}, extra {extra}"
    surprises = {line: what for line, what in differing.items() if line not in EXPECTED}
    assert not surprises, "\n".join(f"{line}\n    {what}" for line, what in surprises.items())
    assert not [line for line in EXPECTED if line not in differing]


# --- a story --------------------------------------------------------------------------------------------------------


async def _phase(c: Client, namespace: str, name: str) -> None:
    """What a node would do with a bound pod."""
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    await c.ok("PATCH", path, status, "application/strategic-merge-patch+json")


async def test_a_day_with_kubectl(tmp_path: Path) -> None:
    async with running(clock=RealClock()) as c:
        kubectl = Kubectl(c.plane.url, tmp_path)

        async def ok(line: str, *words: str) -> str:
            code, output = await kubectl.run(line)
            assert code == 0, f"{line}: {output}"
            for word in words:
                assert word in output, f"{line}: {output}"
            return output

        for i in (1, 2):
            capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            status = {"capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
            meta = {"name": f"n{i}"}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
            await c.ok("POST", "/api/v1/nodes", node)
        await ok("kubectl create ns team", "namespace/team created")
        await ok("kubectl create deployment api --image=nginx --replicas=2 -n team", "created")
        await ok("kubectl create configmap conf --from-literal=a=b -n team", "created")
        await ok("kubectl create secret generic key --from-literal=x=y -n team", "created")
        await ok("kubectl get secret key -n team -o jsonpath={.data.x}", "eQ==")
        await ok("kubectl create job once --image=busybox -n team", "created")
        await ok("kubectl create cronjob often --image=busybox --schedule='*/5 * * * *' -n team", "created")
        await ok("kubectl create service clusterip svc --tcp=80:80 -n team", "created")
        await ok("kubectl create quota q --hard=pods=10 -n team", "created")
        await ok("kubectl create role r --verb=get --resource=pods -n team", "created")
        await ok("kubectl create rolebinding rb --role=r --user=jane -n team", "created")
        await ok("kubectl create priorityclass crit --value=1000", "created")
        await ok("kubectl get all,cm,quota,priorityclass -n team", "deployment.apps/api", "job.batch/once", "crit")
        await ok("kubectl scale deploy api --replicas=4 -n team", "scaled")
        await ok("kubectl set image deploy api nginx=nginx:2 -n team", "image updated")
        await ok("kubectl rollout restart deploy api -n team", "restarted")
        await ok("kubectl get deploy api -n team -o jsonpath={.spec.replicas}", "4")
        await ok("kubectl autoscale --help", "Usage")
        await ok("kubectl run one --image=nginx --labels=app=one -n team", "pod/one created")
        await ok("kubectl expose pod one --port=80 -n team", "exposed")
        await ok("kubectl describe pod one -n team", "Status:", "Pending")
        assert (await c.bind("one", "n1", "team"))[0] == 201
        await _phase(c, "team", "one")
        await ok("kubectl get pods -n team -o wide", "Running", "n1")
        await ok("kubectl wait --for=condition=Ready pod/one -n team --timeout=5s", "condition met")
        await ok("kubectl wait --for=jsonpath={.status.phase}=Running pod/one -n team --timeout=5s", "condition met")
        await ok("kubectl label pod one -n team tier=gold", "labeled")
        await ok("kubectl get pods -n team -l tier=gold --show-labels", "tier=gold")
        await ok("kubectl taint node n2 a=b:NoExecute", "tainted")
        await ok("kubectl describe node n1", "one")
        await ok("kubectl cordon n1", "cordoned")
        await ok("kubectl get nodes", "SchedulingDisabled")
        code, output = await kubectl.run("kubectl drain n1 --force --timeout=1s")
        assert "evicting pod team/one" in output
        assert code == 1
        await ok("kubectl delete pod one -n team --grace-period=0 --force", "force deleted")
        await ok("kubectl uncordon n1", "uncordoned")
        await ok("kubectl delete deploy,job,svc --all -n team", "deleted")
        await ok("kubectl auth can-i delete nodes", "yes")
        await ok("kubectl apply --server-side -f dep.yaml", "serverside-applied")
        await ok("kubectl replace -f dep2.yaml", "replaced")
        await ok("kubectl get -f dep2.yaml -o name", "deployment.apps/web")
        await ok("kubectl delete -f dep.yaml", "deleted")
