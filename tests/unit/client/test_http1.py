"""The plain HTTP connections: answers cut anywhere or broken, kept and lost connections, waiting in line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skedge.client.http1 import IDLE_SECONDS, BrokenConnection, Connection, Pool, Response

from .fakeapi import settle

REQUEST = b"GET / HTTP/1.1\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire:
    """A transport that only notes what becomes of it."""

    def __init__(self) -> None:
        self.written = b""
        self.ended = ""

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.ended = "aborted"

    def close(self) -> None:
        self.ended = self.ended or "closed"


def connected() -> tuple[Connection, Any]:
    connection, wire = Connection(0), Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]
    return connection, wire


ANSWERS = [
    (OK, 200, b"ok", True),
    (b"HTTP/1.1 201 Created\r\nX: a\r\nconTENT-length:  3\r\n\r\nabc", 201, b"abc", True),
    (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 200, b"", False),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", True),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        200,
        b"abc0123456789",
        True,
    ),
    (b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\nMore: y\r\n\r\n", 500, b"", True),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n", 200, b"\r\n\r\n", True),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("answer", "status", "body", "reusable"), ANSWERS)
async def test_answers_cut_anywhere(answer: bytes, status: int, body: bytes, reusable: bool) -> None:
    """Whole, byte by byte, and in two pieces at every position: the same answer, and nothing before its end."""
    cuts = [[answer], [answer[i : i + 1] for i in range(len(answer))]]
    cuts += [[answer[:i], answer[i:]] for i in range(1, len(answer))]
    for pieces in cuts:
        connection, wire = connected()
        coming = connection.send(REQUEST)
        for piece in pieces[:-1]:
            connection.data_received(piece)
            assert not coming.done()
        connection.data_received(pieces[-1])
        response = await coming
        assert (response.status, response.body, connection.reusable) == (status, body, reusable)
        assert wire.written == REQUEST
        assert wire.ended == ""


@pytest.mark.asyncio
async def test_several_answers_on_one_connection() -> None:
    connection, _ = connected()
    for answer, status, body, reusable in ANSWERS:
        if reusable:
            coming = connection.send(REQUEST)
            connection.data_received(answer)
            assert (await coming) == Response(status, (await coming).headers, body)


@pytest.mark.asyncio
async def test_body_that_ends_with_the_connection() -> None:
    connection, _ = connected()
    coming = connection.send(REQUEST)
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nall of")
    connection.data_received(b" it")
    assert not coming.done()
    connection.connection_lost(None)
    assert (await coming).body == b"all of it"
    assert not connection.reusable


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"SSH-2.0-x\r\n\r\n", "the answer is not HTTP: it begins with 'SSH-2.0-x'"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not HTTP: its length is '-1'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "not HTTP"),
        (b"x" * 70_000, "its head is too long"),
    ],
)
async def test_answers_that_are_no_http(data: bytes, problem: str) -> None:
    connection, wire = connected()
    coming = connection.send(REQUEST)
    connection.data_received(data)
    with pytest.raises(BrokenConnection, match=problem):
        await coming
    assert wire.ended == "aborted"
    assert not connection.reusable


@pytest.mark.asyncio
async def test_more_than_was_asked_for_ends_the_connection() -> None:
    """After an answer, and while nobody waits for one: a later request must never get what was not meant for it."""
    connection, wire = connected()
    coming = connection.send(REQUEST)
    connection.data_received(OK + OK)
    assert (await coming).body == b"ok"
    assert (wire.ended, connection.reusable) == ("aborted", False)
    connection, wire = connected()
    connection.data_received(OK)
    assert (wire.ended, connection.reusable) == ("aborted", False)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("data", "silent"),
    [(b"", True), (b"HTTP/1.1 2", False), (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", False)],
)
async def test_connection_lost_in_the_middle(data: bytes, silent: bool) -> None:
    connection, _ = connected()
    coming = connection.send(REQUEST)
    if data:
        connection.data_received(data)
    connection.connection_lost(None)
    with pytest.raises(BrokenConnection, match="the connection was closed") as caught:
        await coming
    assert caught.value.silent is silent
    with pytest.raises(BrokenConnection):
        await connection.send(REQUEST)


class Server:
    """Answers with `OK` unless told otherwise; counts connections and requests."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.behave: Callable[[int], bytes | None] = lambda n: OK
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                await self.gate.wait()
                answer = self.behave(self.requests)
                if answer is None:
                    return
                writer.write(answer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def pooled(limit: int = 2) -> AsyncIterator[tuple[Server, Pool]]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listening:
        pool = Pool("127.0.0.1", listening.sockets[0].getsockname()[1], limit)
        try:
            yield server, pool
        finally:
            server.gate.set()
            await pool.close()
            for writer in server.writers:
                writer.close()
            while any(not task.done() for task in asyncio.all_tasks() - {asyncio.current_task()}):  # noqa: ASYNC110
                await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_connections_are_kept_and_limited() -> None:
    async with pooled(limit=3) as (server, pool):
        for _ in range(5):
            await pool.request(REQUEST, repeatable=True)
        assert server.connections == 1
        await asyncio.gather(*(pool.request(REQUEST, repeatable=True) for _ in range(20)))
        assert (server.connections, server.requests) == (3, 25)


@pytest.mark.asyncio
async def test_line_is_first_come_first_served() -> None:
    async with pooled(limit=1) as (server, pool):
        order: list[int] = []

        async def ask(n: int) -> None:
            await pool.request(REQUEST, repeatable=True)
            order.append(n)
            if n < 3:
                await ask(n + 10)  # comes back at once, and has to stand at the end of the line

        server.gate.clear()
        tasks = [asyncio.create_task(ask(n)) for n in range(6)]
        await settle()
        tasks[4].cancel()
        server.gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [n for n in order if n < 10] == [0, 1, 2, 3, 5]
        assert len(order) == 8


@pytest.mark.asyncio
async def test_closed_kept_connection() -> None:
    """The server closes a kept connection without answering: reading is repeated, writing is not."""
    async with pooled() as (server, pool):
        server.behave = lambda n: None if n in (2, 5) else OK
        for _ in range(2):
            assert (await pool.request(REQUEST, repeatable=True)).body == b"ok"
        assert server.requests == 3
        await pool.request(REQUEST, repeatable=False)
        with pytest.raises(BrokenConnection):
            await pool.request(REQUEST, repeatable=False)
        assert server.requests == 5
        await pool.request(REQUEST, repeatable=False)


@pytest.mark.asyncio
async def test_new_connection_that_is_closed_is_not_tried_for_ever() -> None:
    async with pooled() as (server, pool):
        server.behave = lambda n: None
        with pytest.raises(BrokenConnection):
            await pool.request(REQUEST, repeatable=True)
        assert server.requests == 1


@pytest.mark.asyncio
async def test_cancelled_request_takes_its_connection_along() -> None:
    """Its answer may still come: nobody else may get it."""
    async with pooled(limit=1) as (server, pool):
        await pool.request(REQUEST, repeatable=True)
        server.gate.clear()
        task = asyncio.create_task(pool.request(REQUEST, repeatable=True))
        waiting = asyncio.create_task(pool.request(REQUEST, repeatable=True))
        await settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.gate.set()
        assert (await waiting).body == b"ok"
        assert server.connections == 2


@pytest.mark.asyncio
async def test_long_idle_connections_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pooled() as (server, pool):
        await pool.request(REQUEST, repeatable=False)
        pool._idle[0].idle_since -= IDLE_SECONDS
        await pool.request(REQUEST, repeatable=False)
        assert server.connections == 2


@pytest.mark.asyncio
async def test_refused_connection_frees_its_place() -> None:
    async with pooled(limit=1) as (_, pool):
        port, pool._port = pool._port, 1
        results = await asyncio.gather(
            *(pool.request(REQUEST, repeatable=True) for _ in range(3)), return_exceptions=True
        )
        assert [type(result) for result in results] == [ConnectionRefusedError] * 3
        pool._port = port
        assert (await pool.request(REQUEST, repeatable=True)).status == 200
