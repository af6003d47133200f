"""Requests made to break things: each is served or refused with a reason, none ends in an error nobody foresaw."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from plane import APPLY, MERGE, PODS, STRATEGIC, node, pod, running

pytestmark = pytest.mark.asyncio

JSON = dict[str, Any]
UNFORESEEN = "Internal error occurred"  # upstream, too, answers 500 to some bad patches and bindings, but with reasons
ODD: list[Any] = [
    None,
    "",
    "x",
    0,
    -1,
    1.5,
    True,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"a": None},
    {"": ""},
    1 << 62,
    "é\u0000",
    {"a": {"b": []}},
]
DEPLOYMENT: JSON = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"a": "b"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
FULL_POD = pod(
    "p",
    nodeSelector={"a": "b"},
    tolerations=[{"key": "k", "operator": "Exists"}],
    schedulingGates=[{"name": "g"}],
    topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
    affinity={
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z", "labelSelector": {}}]}
    },
    volumes=[{"name": "v", "emptyDir": {}}],
)
EVENT: JSON = {
    "metadata": {"name": "e"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "s",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
    "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
}
BINDING: JSON = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
POSTS: list[tuple[str, JSON]] = [
    (PODS, FULL_POD),
    ("/api/v1/nodes", node("n")),
    ("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT),
    ("/apis/events.k8s.io/v1/namespaces/default/events", EVENT),
    (f"{PODS}/p/binding", BINDING),
    (f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 1}}),
    (
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {"spec": {"user": "u", "resourceAttributes": {"verb": "get"}}},
    ),
]


def _spoilt(value: Any, rng: random.Random) -> Any:
    """A copy with one value somewhere replaced by something odd."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        return {**value, key: _spoilt(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], _spoilt(value[at], rng), *value[at + 1 :]]
    return rng.choice(ODD)


async def test_spoilt_objects() -> None:
    rng = random.Random(5)
    async with running() as c:
        for path, body in POSTS:
            for _ in range(80):
                sent = _spoilt(body, rng)
                code, answer = await c.send("POST", path, json.dumps(sent))
                assert code < 500 or not answer["message"].startswith(UNFORESEEN), (path, sent, answer)
                if code == 201 and not path.endswith("binding"):
                    name = answer.get("metadata", {}).get("name")
                    if name:
                        await c.send("DELETE", f"{path}/{name}?gracePeriodSeconds=0")


async def test_spoilt_patches() -> None:
    rng = random.Random(6)
    async with running() as c:
        await c.ok("POST", PODS, FULL_POD)
        await c.ok("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
        paths = (f"{PODS}/p", f"{PODS}/p/status", "/apis/apps/v1/namespaces/default/deployments/d")
        for path in (*paths, f"{paths[2]}/scale"):
            body = FULL_POD if "pods" in path else DEPLOYMENT
            for kind in (MERGE, STRATEGIC, f"{APPLY}", "application/json-patch+json"):
                for _ in range(25):
                    sent: Any = _spoilt({k: v for k, v in body.items() if k != "apiVersion"}, rng)
                    if kind.startswith("application/json-patch"):
                        sent = [
                            {"op": "replace", "path": rng.choice(["/spec", "/metadata/labels", "/x"]), "value": sent}
                        ]
                    query = "?fieldManager=m&force=true" if kind == APPLY else ""
                    code, answer = await c.send("PATCH", f"{path}{query}", json.dumps(sent), kind)
                    assert code < 500 or not answer["message"].startswith(UNFORESEEN), (path, kind, sent, answer)


@pytest.mark.parametrize(
    "data",
    [
        b"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n",
        b"metadata: {name: n}\nspec: {unschedulable: .inf}\n",
        b"metadata: {name: n, generation: .nan}\n",
        b"- 1\n",
        b"\x00",
        b"!!python/object/apply:os.system ['true']",
        b"metadata: {name: !!binary aGk=}\n",
        b"[" * 5000,
    ],
)
async def test_hostile_yaml(data: bytes) -> None:
    async with running() as c:
        code, answer = await c.send("POST", "/api/v1/nodes", data, "application/yaml")
        assert code in (400, 422), answer


async def test_deep_json() -> None:
    async with running() as c:
        code, _ = await c.send("POST", "/api/v1/nodes", b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
        assert code == 400


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "/api//v1",
        "/api/v1/namespaces//pods",
        "/api/v1/namespaces/%00/pods",
        "/api/v1/namespaces/a%2Fb/pods/..%2f..",
        "/api/v1/namespaces/default/pods?limit=-5&continue=&timeoutSeconds=-1",
        "/api/v1/pods?continue=e30",
        "/api/v1/pods?continue=eyJ2IjoxfQ",
        "/api/v1/pods?labelSelector=%FF%00",
        "/api/v1/pods?fieldSelector=,,,=,",
        "/api/v1/pods?resourceVersion=99999999999999999999999",
        "/api/v1/watch",
        "/apis/apps/v1/namespaces",
        "/api/v1/namespaces/default/pods/x/status/y",
        "/openapi/v3/../../etc",
    ],
)
async def test_odd_paths(path: str) -> None:
    async with running() as c, c.session.get(path) as answer:
        assert answer.status < 500 or answer.status == 504, await answer.text()
