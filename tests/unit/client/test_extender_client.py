"""Extenders over HTTP; ids that begin with a number are those of the list of pitfalls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from skedge.client.extender_client import HttpExtender, connect
from skedge.config.durations import Duration
from skedge.config.types import Extender, ExtenderTLS, ManagedResource
from skedge.framework.ports import ExtenderError, ExtenderFiltered, ExtenderVictims
from skedge.testing.builders import make_pod
from unit.client.tlsserver import Authority, Recorder, recording

POD = make_pod("p").uid("u1").info()
VERBS: dict[str, Any] = {"filter_verb": "f", "prioritize_verb": "p", "preempt_verb": "v", "bind_verb": "b", "weight": 2}


class Bodies:
    def pod(self, pod: Any) -> bytes:
        return msgspec.json.encode({"metadata": {"uid": pod.uid}, "spec": {"unknown": True}})

    def node(self, name: str) -> bytes:
        return msgspec.json.encode({"metadata": {"name": name}, "spec": {"unknown": True}})


class Server:
    """Answers every POST with `reply`; `asked` is what came."""

    def __init__(self, reply: Any, status: int = 200) -> None:
        self.reply = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.status = status
        self.asked: list[tuple[str, Any]] = []
        self.types: list[str] = []

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.asked.append((f"{request.method} {request.path}", await request.json()))
        self.types.append(request.headers["Content-Type"])
        return web.Response(status=self.status, body=self.reply)


@asynccontextmanager
async def asking(reply: Any, status: int = 200, **config: Any) -> AsyncIterator[tuple[HttpExtender, Server]]:
    server = Server(reply, status)
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/x"
    client = HttpExtender(Extender(url_prefix=url, **{**VERBS, **config}), Bodies())
    try:
        yield client, server
    finally:
        await client.close()
        await runner.cleanup()


def text(error: pytest.ExceptionInfo[ExtenderError], client: HttpExtender) -> str:
    return str(error.value).replace(client.name, "URL")


OBJECTS = {"Pod": {"metadata": {"uid": "u1"}, "spec": {"unknown": True}}}
N1 = {"metadata": {"name": "n1"}, "spec": {"unknown": True}}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("by_name", "body"),
    [
        (False, {**OBJECTS, "Nodes": {"metadata": {}, "items": [N1]}, "NodeNames": None}),
        (True, {**OBJECTS, "Nodes": None, "NodeNames": ["n1"]}),
    ],
    ids=["pitfall 137-objects", "pitfall 137-names"],
)
async def test_what_filter_and_prioritize_send(by_name: bool, body: dict[str, Any]) -> None:
    """Field names are Go's; objects are whole."""
    async with asking({}, node_cache_capable=by_name) as (client, server):
        await client.filter(POD, ["n1"])
        server.reply = b"[]"
        assert await client.prioritize(POD, ["n1"]) == {}
    assert server.asked == [("POST /x/f", body), ("POST /x/p", body)]
    assert server.types == ["application/json"] * 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("by_name", "reply", "left"),
    [
        (True, {"NodeNames": ["n2"]}, ExtenderFiltered(["n2"], {}, {}, False)),
        pytest.param(
            True,
            {"nodenames": ["n2"], "FAILEDNODES": {"n1": "no"}},
            ExtenderFiltered(["n2"], {"n1": "no"}, {}, False),
            id="136-any case",
        ),
        (
            False,
            {"Nodes": {"items": [{"metadata": {"name": "n9"}}]}, "FailedAndUnresolvableNodes": {"n1": ""}},
            ExtenderFiltered(["n9"], {}, {"n1": ""}, True),
        ),
        (True, {"Nodes": {"Items": [{"Metadata": {"Name": "n1"}}]}}, ExtenderFiltered(["n1"], {}, {}, True)),
        pytest.param(False, {}, ExtenderFiltered([], {}, {}, False), id="130-neither"),
        pytest.param(False, {"NodeNames": ["n1"]}, ExtenderFiltered([], {}, {}, False), id="130-names unasked for"),
        (False, {"Nodes": {"items": None}}, ExtenderFiltered([], {}, {}, True)),
        (True, {"NodeNames": []}, ExtenderFiltered([], {}, {}, False)),
        (True, None, ExtenderFiltered([], {}, {}, False)),
    ],
)
async def test_what_filter_leaves(by_name: bool, reply: Any, left: ExtenderFiltered) -> None:
    async with asking(reply, node_cache_capable=by_name) as (client, _):
        assert await client.filter(POD, ["n1", "n2"]) == left


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("reply", "status", "message"),
    [
        ({"Error": "cannot"}, 200, "cannot"),
        ({}, 503, "failed f with extender at URL URL/f, code 503"),
        ({}, 201, "failed f with extender at URL URL/f, code 201"),
        pytest.param(
            {"NodeNames": ["n9"]},
            200,
            'extender "URL" claims a filtered node "n9" which is not found in the input node list',
            id="131-unknown node",
        ),
        (b"<html>", 200, "cannot read the reply to f of extender URL: "),
        ({"NodeNames": "n1"}, 200, "the reply to filter of extender URL has 'n1' where a list is expected"),
        ({"NodeNames": [1]}, 200, "the reply to filter of extender URL has '1' where a string is expected"),
        (["n1"], 200, "the reply to filter of extender URL has \"['n1']\" where an object is expected"),
    ],
)
async def test_what_is_wrong_with_filter(reply: Any, status: int, message: str) -> None:
    async with asking(reply, status, node_cache_capable=True) as (client, _):
        with pytest.raises(ExtenderError) as error:
            await client.filter(POD, ["n1"])
        assert text(error, client).startswith(message)


@pytest.mark.asyncio
async def test_prioritize() -> None:
    async with asking([{"Host": "n1", "Score": 7}, {"host": "n2", "score": 99}, {"Host": "n3"}]) as (client, server):
        assert await client.prioritize(POD, ["n1"]) == {"n1": 7, "n2": 99, "n3": 0}
        server.reply = b'[{"Host": "n1", "Score": 1.5}]'
        with pytest.raises(ExtenderError, match=r"has '1\.5' where an integer is expected"):
            await client.prioritize(POD, ["n1"])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("by_name", "sent"),
    [
        (
            False,
            {
                "NodeNameToVictims": {
                    "n1": {
                        "Pods": [{"metadata": {"uid": "v1"}, "spec": {"unknown": True}}],
                        "NumPDBViolations": 1,
                    }
                },
                "NodeNameToMetaVictims": None,
            },
        ),
        (
            True,
            {
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "v1"}], "NumPDBViolations": 1}},
            },
        ),
    ],
)
async def test_preempt(by_name: bool, sent: dict[str, Any]) -> None:
    victim = make_pod("v").uid("v1").node("n1").placed()
    reply = {"NodeNameToMetaVictims": {"n1": {"pods": [{"uid": "v1"}], "numPDBViolations": 1}, "n2": None}}
    async with asking(reply, node_cache_capable=by_name) as (client, server):
        answer = await client.preempt(POD, {"n1": ([victim], 1)})
    assert answer == {"n1": ExtenderVictims(["v1"], 1), "n2": ExtenderVictims([], 0)}
    assert server.asked == [("POST /x/v", {**OBJECTS, **sent})]


@pytest.mark.asyncio
async def test_bind() -> None:
    async with asking({}) as (client, server):
        await client.bind(POD, "n1")
        server.reply = b'{"error": "taken"}'
        with pytest.raises(ExtenderError, match=r"^taken$"):
            await client.bind(POD, "n1")
    sent = {"PodName": "p", "PodNamespace": "default", "PodUID": "u1", "Node": "n1"}
    assert server.asked == [("POST /x/b", sent)] * 2


@pytest.mark.asyncio
async def test_bind_waits_until_it_may() -> None:
    """An extender that binds makes a change in our name: not without the lease."""
    gate = asyncio.Event()

    async def may_bind() -> None:
        await gate.wait()

    async with asking({}) as (client, server):
        client._may_bind = may_bind
        binding = asyncio.create_task(client.bind(POD, "n1"))
        await client.filter(POD, ["n1"])
        assert [what for what, _ in server.asked] == ["POST /x/f"]
        gate.set()
        await binding
        assert [what for what, _ in server.asked] == ["POST /x/f", "POST /x/b"]


@pytest.mark.asyncio
async def test_a_server_that_is_not_there() -> None:
    client = HttpExtender(Extender(url_prefix="http://127.0.0.1:1/", **VERBS), Bodies())
    with pytest.raises(ExtenderError, match=r'^Post "http://127.0.0.1:1/f": '):
        await client.filter(POD, ["n1"])
    await client.close()


@pytest.mark.asyncio
async def test_a_server_that_does_not_answer_in_time() -> None:
    silent: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda reader, writer: silent.append(writer), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = HttpExtender(Extender(url_prefix=url, http_timeout=Duration.of(0.05), **VERBS), Bodies())
    with pytest.raises(ExtenderError, match=r'/f": no answer within 0\.05 s$'):
        await client.filter(POD, ["n1"])
    await client.close()
    for writer in silent:
        writer.close()
    server.close()
    await server.wait_closed()


def test_what_an_extender_can_do() -> None:
    managed = [ManagedResource("example.com/gpu")]
    config = Extender(url_prefix="http://x/", weight=3, ignorable=True, managed_resources=managed)
    client = HttpExtender(config, Bodies())
    assert (client.filters, client.prioritizes, client.preempts, client.binds) == (False,) * 4
    assert (client.weight, client.ignorable) == (0, True)
    assert client.managed_resources == {"example.com/gpu"}


# --- TLS --------------------------------------------------------------------------------------------------------------


async def _asked(recorder: Recorder, **config: Any) -> None:
    recorder.answer = lambda seen: (200, {"NodeNames": []})
    client = HttpExtender(Extender(url_prefix=recorder.url, node_cache_capable=True, **VERBS, **config), Bodies())
    try:
        await client.filter(POD, ["n1"])
    finally:
        await client.close()


TLS: list[tuple[str, Callable[[Path, Authority], dict[str, Any]], str, str]] = [
    ("ca data", lambda path, ca: {"tls_config": ExtenderTLS(ca_data=ca.pem)}, "", ""),
    ("ca file", lambda path, ca: {"tls_config": ExtenderTLS(ca_file=str(path / "ca.pem"))}, "", ""),
    ("insecure", lambda path, ca: {"tls_config": ExtenderTLS(insecure=True)}, "", ""),
    ("https without a CA: any certificate", lambda path, ca: {"enable_https": True}, "", ""),
    ("no trust", lambda path, ca: {}, "", "certificate verify failed"),
    (
        "https with a CA that is another",
        lambda path, ca: {"enable_https": True, "tls_config": ExtenderTLS(ca_data=Authority().pem)},
        "",
        "certificate verify failed",
    ),
    (
        "client certificate",
        lambda path, ca: {
            "tls_config": ExtenderTLS(ca_data=ca.pem, cert_data=(pair := ca.issue("scheduler")).cert, key_data=pair.key)
        },
        "scheduler",
        "",
    ),
    (
        "another name",
        lambda path, ca: {"tls_config": ExtenderTLS(ca_data=ca.pem, server_name="elsewhere")},
        "",
        "not valid for 'elsewhere'",
    ),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("config", "user", "message"), [each[1:] for each in TLS], ids=[each[0] for each in TLS])
async def test_tls(
    tmp_path: Path, config: Callable[[Path, Authority], dict[str, Any]], user: str, message: str
) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    async with recording(tmp_path, authority) as recorder:
        if message:
            with pytest.raises(ExtenderError, match=message):
                await _asked(recorder, **config(tmp_path, authority))
        else:
            await _asked(recorder, **config(tmp_path, authority))
            assert [seen.user for seen in recorder.seen] == [user]


def test_tls_files_that_are_not_there() -> None:
    config = Extender(url_prefix="https://x", tls_config=ExtenderTLS(ca_file="/nowhere/ca.pem"))
    with pytest.raises(ValueError, match=r"^extenders\[1\]\.tlsConfig\.caFile: /nowhere/ca\.pem: no such file"):
        connect([Extender(url_prefix="http://y"), config], Bodies())


def test_tls_data_that_is_no_certificate() -> None:
    config = Extender(url_prefix="https://x", tls_config=ExtenderTLS(ca_data=b"rubbish"))
    with pytest.raises(ValueError, match=r"^extenders\[0\]\.tlsConfig\.caData: holds no usable PEM certificate"):
        connect([config], Bodies())
