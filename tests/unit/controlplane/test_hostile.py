"""Requests made to break things: each is served or refused with a reason, none ends in an error nobody foresaw."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from plane import APPLY, MERGE, PODS, STRATEGIC, node, pod, running
from skedge.controlplane import api, writing
from skedge.controlplane.request import parse

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


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /api/v1/pods HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
        b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    ],
)
async def test_garbage_is_answered_or_cut_off_without_a_word_in_the_log(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as c:
        reader, writer = await asyncio.open_connection("127.0.0.1", c.plane.port)
        writer.write(data)
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 5)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
        writer.close()
        assert (await c.send("GET", "/readyz"))[0] == 200
    assert caplog.text == ""


async def test_a_body_that_never_ends_is_cut_off() -> None:
    async with running() as c:
        reader, writer = await asyncio.open_connection("127.0.0.1", c.plane.port)
        writer.write(b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"[" * 0x10000 + b"\r\n"
        sent = 0
        try:
            while sent < 1_000:
                writer.write(piece)
                await writer.drain()
                sent += 1
                await asyncio.sleep(0)
        except ConnectionError:
            pass
        assert sent < 1_000 or (await reader.read(200)).startswith(b"HTTP/1.1 413")
        writer.close()
        assert (await c.send("GET", "/readyz"))[0] == 200


async def test_long_yaml_is_read_elsewhere() -> None:
    async with running() as c:
        lines = "".join(f"  k{i}: v{i}\n" for i in range(4_000))
        configmaps = "/api/v1/namespaces/default/configmaps"
        code, made = await c.send("POST", configmaps, f"metadata: {{name: y}}\ndata:\n{lines}", "application/yaml")
        assert (code, len(made["data"])) == (201, 4_000)
        code, answer = await c.send("POST", configmaps, f"data:\n{lines}  : : [", "application/yaml")
        assert code == 400
        assert "must be of type ConfigMap" in answer["message"]
        applied = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: y}}\ndata:\n{lines}"
        code, made = await c.send("PATCH", f"{configmaps}/y?fieldManager=m&force=true", applied, APPLY)
        assert (code, len(made["data"])) == (200, 4_000)
        code, answer = await c.send("PATCH", f"{configmaps}/y?fieldManager=m", f"{applied}  : : [", APPLY)
        assert code == 400
        assert answer["message"].startswith("error decoding YAML: error converting YAML to JSON: yaml: ")


def _long_pod(count: int) -> JSON:
    return pod("long", containers=[{"name": f"c{i}", "image": "i"} for i in range(count)])


async def test_long_writes_are_prepared_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the walk over a long object, be it long in the body or where it is stored."""
    seen: list[tuple[str, bool]] = []
    here = threading.current_thread()

    def watched(verb: str) -> Callable[..., writing.Write]:
        write = api._WRITES[verb]

        def run(*arguments: Any) -> writing.Write:
            seen.append((verb, threading.current_thread() is here))
            return write(*arguments)

        return run

    for verb in list(api._WRITES):
        monkeypatch.setitem(api._WRITES, verb, watched(verb))
    async with running() as c:
        await c.ok("POST", PODS, pod("short"))
        long = await c.ok("POST", PODS, _long_pod(2_000))
        await c.ok("PATCH", f"{PODS}/long", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        await c.ok("PATCH", f"{PODS}/long/status", {"status": {"phase": "Running"}}, MERGE)
        await c.ok("PUT", f"{PODS}/long", {**long, "metadata": {"name": "long"}})
        await c.ok("PATCH", f"{PODS}/short", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    beside = [("create", False), ("patch", False), ("patch", False), ("update", False)]
    assert seen == [("create", True), *beside, ("patch", True)]


async def test_a_write_overtaken_meanwhile_is_prepared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    patch, tries = api._WRITES["patch"], 0
    overtaking = 1

    async with running() as c:

        async def overtake() -> None:
            change = {"metadata": {"annotations": {"n": f"{tries} of {overtaking}"}}}
            target = parse("PATCH", f"{PODS}/long".strip("/").split("/"), {})
            assert target is not None
            patch(c.plane.cluster, target, writing.Body(json.dumps(change).encode(), MERGE, ""))()

        def slow(*arguments: Any) -> writing.Write:
            nonlocal tries
            tries += 1
            prepared = patch(*arguments)
            if tries <= overtaking:
                asyncio.run_coroutine_threadsafe(overtake(), loop).result()
            return prepared

        await c.ok("POST", PODS, _long_pod(2_000))
        monkeypatch.setitem(api._WRITES, "patch", slow)
        found = await c.ok("PATCH", f"{PODS}/long", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        assert (tries, found["metadata"]["labels"]["a"], found["metadata"]["annotations"]) == (2, "b", {"n": "1 of 1"})
        tries, overtaking = 0, 100
        code, answer = await c.send("PATCH", f"{PODS}/long", {"metadata": {"labels": {"a": "c"}}}, MERGE)
        assert (code, answer["reason"]) == (409, "Conflict")


async def test_huge_objects_are_refused() -> None:
    async with running() as c:
        code, answer = await c.send("POST", PODS, _long_pod(12_000))
        assert (code, answer["message"]) == (500, "etcdserver: request is too large")
        assert (await c.send("GET", f"{PODS}/long"))[0] == 404


async def test_long_lists_are_compared_in_one_go() -> None:
    """Each toleration, finalizer or line compared with each other takes minutes here."""
    tolerations = [{"key": f"k{i}", "operator": "Exists"} for i in range(12_000)]
    finalizers = [f"a.io/f{i}" for i in range(12_000)]
    async with running() as c:
        body = pod("p", tolerations=tolerations)
        await c.ok("POST", PODS, {**body, "metadata": {"name": "p", "finalizers": finalizers}})
        more = {"spec": {"tolerations": [*tolerations, {"key": "z", "operator": "Exists"}]}}
        await c.ok("DELETE", f"{PODS}/p")
        await c.ok("PATCH", f"{PODS}/p", {"metadata": {"finalizers": finalizers[1:]}}, MERGE)
        code, answer = await c.send("PATCH", f"{PODS}/p", more, MERGE)
        assert code == 422  # those that admission adds would go
        assert answer["message"].endswith("existing toleration can not be modified except its tolerationSeconds")
        code, answer = await c.send("PATCH", f"{PODS}/p", {"spec": {"nodeName": "n"}}, MERGE)
        assert (code, len(answer["message"]) < 1_000) == (422, True)


async def test_copies_do_not_add_up_without_end() -> None:
    async with running() as c:
        await c.ok("POST", PODS, pod("p"))
        start = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 100}}]
        double = [
            {"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/{i}"} for i in range(60)
        ]
        code, answer = await c.send("PATCH", f"{PODS}/p", start + double, "application/json-patch+json")
        assert (code, answer["reason"]) == (422, "Invalid")


async def test_long_lists_in_every_shape() -> None:
    """Put together in pieces they are what they would be at once."""
    async with running() as c:
        for i in range(120):
            await c.ok("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"m{i:03}"}})
        path = "/api/v1/namespaces/default/configmaps"
        names = [f"m{i:03}" for i in range(120)]
        assert [each["metadata"]["name"] for each in (await c.ok("GET", path))["items"]] == names
        for shape, rows in (("Table", "rows"), ("PartialObjectMetadataList", "items")):
            code, answer = await c.send("GET", path, Accept=f"application/json;as={shape};v=v1;g=meta.k8s.io")
            found = [(row["object"] if rows == "rows" else row)["metadata"]["name"] for row in answer[rows]]
            assert (code, found) == (200, names)
        _, text = await c.send("GET", path, Accept="application/yaml")
        assert text.count("- metadata:\n") == 120
        gone = await c.ok("DELETE", path)
        assert [each["metadata"]["name"] for each in gone["items"]] == names
        assert (await c.ok("GET", path))["items"] == []
