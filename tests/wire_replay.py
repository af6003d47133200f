"""Replays recorded exchanges with kube-apiserver against the embedded one, and says what differs.

Recordings lie in `tests/data/wire` (without prose and managedFields). What differs from run to run is not compared:
times, UIDs, resourceVersions, managedFields, generated suffixes, continue tokens, hashes, addresses. UIDs, versions and
generated names that a later request mentions are translated to those of this run.

`SKEDGE_WIRE_SERVER=https://...` replays against a fresh server of somebody else that knows the tokens of `TOKENS` (the
embedded one remembers nothing of an earlier run, others may); with `KUBEBUILDER_ASSETS` test_wire.py starts a real one.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from skedge.controlplane import kinds
from skedge.controlplane.access import Access, User
from skedge.controlplane.server import ControlPlane

DATA = Path(__file__).parent / "data" / "wire"
EXTERNAL = os.environ.get("SKEDGE_WIRE_SERVER", "")
FILES = ("discovery", "objects", "scheduling", "watch", "kubectl")
TOKENS = {
    "admintoken": User("admin", ("system:masters",)),
    "schedtoken": User("system:kube-scheduler"),
    "plaintoken": User("jane", ("readers",)),
}

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"(\d+[ydhms])+")
_DROPPED = ("uid", "resourceVersion", "managedFields", "continue", "selfLink", "serverAddress", "targetPort")


def load(name: str) -> list[dict[str, Any]]:
    """The steps of a recording."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def comparable(value: Any, key: str = "") -> Any:
    """A JSON value with everything blanked that differs between runs."""
    if isinstance(value, dict):
        if "versions" in value and "metadata" in value:  # aggregated discovery: versions of a group we serve
            served = kinds.GROUPS.get(value["metadata"].get("name", ""), {})
            versions = [v for v in value["versions"] if v["version"] in served]
            versions = [
                {**v, "resources": [r for r in v["resources"] if r["resource"] in served[v["version"]]]}
                for v in versions
            ]
            value = {**value, "versions": versions}
        if "subresources" in value:
            subs = [s for s in value["subresources"] if s["subresource"] not in _FOREIGN_SUBRESOURCES]
            value = {k: v for k, v in value.items() if k != "subresources"} | ({"subresources": subs} if subs else {})
        return {k: comparable(v, k) for k, v in value.items() if k not in _DROPPED}
    if isinstance(value, list):
        if key in ("items", "rows", "resources", "groups"):
            value = [item for item in value if _ours(item)]
        if key == "cells":
            return ["<age>" if isinstance(c, str) and _AGE.fullmatch(c) else comparable(c) for c in value]
        if key == "versions" and value and isinstance(value[0], dict):
            value = [v for v in value if _served_version(v)]
        return [comparable(item) for item in value]
    if isinstance(value, str):
        if key == "description":
            return ""
        value = _UID.sub("<uid>", _TIME.sub("<time>", value))
        value = re.sub(r"current: \d+", "current: <n>", value)
        return re.sub(r"\bgen-[a-z0-9]{5}\b", "gen-<x>", value)
    return value


_FOREIGN_SUBRESOURCES = ("attach", "portforward", "proxy", "resize", "token")
_PLURALS = {r.plural for r in kinds.RESOURCES}


def _served_version(entry: dict[str, Any]) -> bool:
    text = entry.get("groupVersion") or entry.get("version", "")
    if "/" in text:
        group, _, version = text.partition("/")
        return version in kinds.GROUPS.get(group, {})
    if "resources" in entry:
        entry["resources"] = [r for r in entry["resources"] if _ours(r)]
        return bool(entry["resources"])
    return True


def _ours(item: Any) -> bool:
    """Whether an item of a list is about something this server has too."""
    if not isinstance(item, dict):
        return True
    if "verbs" in item:  # discovery
        name = item.get("name") or item.get("resource")
        plural, _, sub = name.partition("/")
        return plural in _PLURALS and sub not in _FOREIGN_SUBRESOURCES
    if "preferredVersion" in item:
        return item["name"] in kinds.GROUPS
    if "versions" in item:
        return (item.get("metadata") or {}).get("name", "") in kinds.GROUPS
    meta = (item.get("object") or item).get("metadata") or {}
    text = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
    return "openshift" not in text and not meta.get("name", "").startswith("apiserver-")


def difference(expected: Any, found: Any, path: str = "") -> list[str]:
    """Where two JSON values differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        out = []
        for key in sorted(expected.keys() | found.keys()):
            if key not in found:
                out.append(f"{path}.{key}: missing, expected {json.dumps(expected[key])[:200]}")
            elif key not in expected:
                out.append(f"{path}.{key}: unexpected {json.dumps(found[key])[:200]}")
            else:
                out.extend(difference(expected[key], found[key], f"{path}.{key}"))
        return out
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            d for i, (e, f) in enumerate(zip(expected, found, strict=True)) for d in difference(e, f, f"{path}[{i}]")
        ]
    if expected == found:
        return []
    return [f"{path}: expected {json.dumps(expected)[:400]}, got {json.dumps(found)[:400]}"]


@dataclass
class Names:
    """Recorded identifiers and what they are in this run."""

    uids: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)

    def learn(self, recorded: Any, found: Any) -> None:
        if isinstance(recorded, dict) and isinstance(found, dict):
            for key, value in recorded.items():
                if key == "uid" and isinstance(found.get(key), str):
                    self.uids[value] = found[key]
                elif key == "resourceVersion" and isinstance(found.get(key), str):
                    self.versions[value] = found[key]
                elif key == "continue" or (key == "name" and str(value).startswith("gen-")):
                    self.other[value] = found.get(key, value)
                elif key in found:
                    self.learn(value, found[key])
        elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
            for one, other in zip(recorded, found, strict=True):
                self.learn(one, other)

    def text(self, text: str) -> str:
        """A path or body with identifiers of this run."""
        for known, ours in (*self.uids.items(), *self.other.items()):
            text = text.replace(known, ours)

        def version(match: re.Match[str]) -> str:
            return match.group(1) + self.versions.get(match.group(2), match.group(2)) + match.group(3)

        text = re.sub(r"(resourceVersion=)(\d{2,6})(&|$)", version, text)
        text = re.sub(r'("/metadata/resourceVersion","value":")(\d{2,6})(")', version, text)
        return re.sub(r'("resourceVersion": ?")(\d{2,6})(")', version, text)


class Replay:
    """One run over all recordings in order, on one server."""

    def __init__(self, files: tuple[str, ...] = FILES) -> None:
        self.files = files
        self.names = Names()
        self.problems: dict[str, dict[str, list[str]]] = {name: {} for name in files}

    async def run(self, url: str) -> None:
        """Replay all files on a fresh server."""
        async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=False)) as session:
            self.session = session
            for name in self.files:
                await getattr(self, f"before_{name}", _nothing)()
                seen: dict[int, int] = {}
                for step in load(name):
                    count = seen[step["step"]] = seen.get(step["step"], 0) + 1
                    key = f"{step['step']}" if count == 1 else f"{step['step']}/{count}"
                    self.problems[name][key] = await self.step(name, step)

    async def step(self, file: str, step: dict[str, Any]) -> list[str]:
        """Send one request and compare the answer."""
        request, response = step["request"], step["response"]
        headers = dict(request["headers"])
        if "Authorization" in headers:
            headers["Authorization"] = headers["Authorization"].replace("<", "").replace(">", "")
        elif file == "kubectl":
            headers["Authorization"] = "Bearer admintoken"
        path, body = request["path"], request.get("body")
        body = fix_body(file, step["step"], body, self.names)
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        if file == "kubectl" and isinstance(body, str) and body.startswith("k8s"):
            body = json.dumps(PROTOBUF_BODIES[step["step"]])
            headers["Content-Type"] = "application/json"
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = self.names.text(body).encode()
        path = shorter(self.names.text(path))
        if "watch" in path:
            return await self.watch(path, headers, response)
        async with self.session.request(request["method"], path, data=body, headers=headers) as answer:
            data = await answer.read()
            problems = (
                []
                if answer.status == response["status"]
                else [f"status: expected {response['status']}, got {answer.status}: {data[:300]!r}"]
            )
            for name in ("Warning", "Retry-After", "Content-Type"):
                wanted, found = response["headers"].get(name), answer.headers.get(name)
                if wanted and "protobuf" not in wanted and wanted != found and "openapi" not in path:
                    problems.append(f"header {name}: expected {wanted}, got {found}")
            if "body" in response and isinstance(response["body"], dict) and "/openapi" not in path:
                found = json.loads(data) if data else None
                self.names.learn(response["body"], found)
                problems += difference(comparable(response["body"]), comparable(found))
            elif "text" in response and not re.match(r"<\d+ bytes", response["text"]):
                wanted, found = blank(response["text"]), blank(data.decode())
                if wanted != found:
                    problems.append(f"text: expected {wanted!r}, got {found!r}")
            return problems

    async def watch(self, path: str, headers: dict[str, str], response: dict[str, Any]) -> list[str]:
        """Read as many events of a watch as were recorded."""
        wanted = [event for event in response.get("stream") or [] if isinstance(event, dict)]
        async with self.session.get(path, headers=headers) as answer:
            problems = (
                []
                if answer.status == response["status"]
                else [f"status: expected {response['status']}, got {answer.status}"]
            )
            if "stream" not in response:  # kubectl's watches: their events were not recorded
                return problems
            found: list[Any] = []
            buffer = b""
            with suppress(TimeoutError):  # one that is to stay silent is listened to for a moment
                async with asyncio.timeout(5 if wanted else 0.1):
                    async for chunk in answer.content.iter_any():
                        buffer += chunk
                        *lines, buffer = buffer.split(b"\n")
                        found += [json.loads(line) for line in lines]
                        if len(found) >= len(wanted):
                            break
            if buffer.strip():
                found.append(json.loads(buffer))
        if not any(event["type"] == "BOOKMARK" for event in wanted if "type" in event):
            found = [event for event in found if event.get("type") != "BOOKMARK"]
        return problems + difference(comparable(wanted), comparable(found))

    # --- steps that were not recorded

    async def _send(self, method: str, path: str, body: Any, content_type: str = "application/json") -> Any:
        headers = {"Content-Type": content_type, "Authorization": "Bearer admintoken"}
        async with self.session.request(method, path, data=json.dumps(body).encode(), headers=headers) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def before_scheduling(self) -> None:
        merge = "application/merge-patch+json"
        await self._send("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": None}}, merge)

    async def before_watch(self) -> None:
        pods = "/api/v1/namespaces/rec/pods"
        for i in range(3):
            await self._send("POST", pods, {**POD, "metadata": {"name": f"w{i}", "labels": {"app": "x"}}})
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "w0"}, "target": target}
        await self._send("POST", f"{pods}/w0/binding", binding)
        merge = "application/merge-patch+json"
        await self._send("PATCH", f"{pods}/w1", {"metadata": {"labels": {"app": "y"}}}, merge)
        await self._send("DELETE", f"{pods}/w2", {"gracePeriodSeconds": 0})


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "pause",
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "100m", "memory": "0.5Gi"}, "limits": {"cpu": "1"}},
            }
        ]
    },
}

# what kubectl sent as protobuf, whose bytes the recording does not hold
PROTOBUF_BODIES: dict[int, Any] = {
    87: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}},
    88: {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "crit"},
        "value": 100000,
        "preemptionPolicy": "PreemptLowerPriority",
    },
    89: {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    131: {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}},
    },
}


async def _nothing() -> None:
    return None


def fix_body(file: str, step: int, body: Any, names: Names) -> Any:
    """The bodies of the recorded PUTs of a node show their last state; the labels say what each one sent."""
    if file == "objects" and step in (59, 60, 61, 62, 64):
        meta = {**body["metadata"], "name": "n1"}
        meta.pop("uid", None)
        meta["resourceVersion"] = "223" if step in (59, 60) else ""
        if step == 62:
            meta["uid"] = "bad"
        if step == 64:
            meta["name"] = "other"
        return {**body, "metadata": meta}
    if file == "scheduling" and step in (26, 27):
        return {**body, "metadata": {**body["metadata"], "resourceVersion": "259"}}
    return body


def shorter(path: str) -> str:
    """Watches end after a second here; the recorded ones waited up to seventy."""
    return re.sub(
        r"timeoutSeconds=\d+", "timeoutSeconds=1", re.sub(r"timeout=2s&watch=true", "timeoutSeconds=1&watch=true", path)
    )


def blank(text: str) -> str:
    text = re.sub(r'(uid: |resourceVersion: )"?[\w-]+"?', r"\1<x>", _TIME.sub("<time>", text))
    return re.sub(r"  managedFields:\n(  [- ].*\n)*", "", text)


@asynccontextmanager
async def embedded() -> AsyncIterator[ControlPlane]:
    """A fresh embedded server."""
    plane = ControlPlane(access=Access(TOKENS), rng=random.Random(1), bookmark_interval=0.3)
    await plane.start()
    try:
        yield plane
    finally:
        await plane.stop()


@asynccontextmanager
async def _embedded_url() -> AsyncIterator[str]:
    async with embedded() as plane:
        yield plane.url


@asynccontextmanager
async def of_somebody_else() -> AsyncIterator[str]:
    """The URL that the environment names."""
    yield EXTERNAL


def replay(server: Callable[[], AbstractAsyncContextManager[str]] | None = None) -> dict[str, dict[str, list[str]]]:
    """Problems of every step: file -> step -> differences. By default on the embedded server, or the one named."""
    run = Replay()

    async def all_files() -> None:
        async with (server or (of_somebody_else if EXTERNAL else _embedded_url))() as url:
            await run.run(url)

    asyncio.run(all_files())
    return run.problems


if __name__ == "__main__":
    for name, steps in replay().items():
        bad = {key: found for key, found in steps.items() if found}
        print(f"{name}: {len(steps) - len(bad)} of {len(steps)}")
        for key, found in bad.items():
            print(f"  {key}:")
            for line in found[:6]:
                print(f"      {line}")
