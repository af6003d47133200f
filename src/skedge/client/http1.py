"""Plain HTTP/1.1 requests over a pool of kept connections: what bindings and events, sent by the thousand, need.

One request at a time on a connection, the answer read whole. Three times cheaper than a general client library; what it
does not do (streams, proxies) is left to that. Raises `OSError` from connecting, `BrokenConnection` after that.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

CONNECT_TIMEOUT = 30.0
IDLE_SECONDS = 60.0
"""A connection that was not used for this long is not trusted to be alive."""
_TCP_OPTIONS = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))
_MAX_HEAD = 1 << 16
_FRAMING = re.compile(r"\r\n(connection|content-length|transfer-encoding):([^\r]*)")
"""In lower case: the headers that say where an answer ends, and whether another may follow on the connection."""


class Headers(Mapping[str, str]):
    """The headers of an answer, by name in lower case; taken apart when somebody looks, which hardly anybody does."""

    __slots__ = ("_head", "_parsed")

    def __init__(self, head: str = "") -> None:
        self._head = head
        self._parsed: dict[str, str] | None = None

    def _by_name(self) -> dict[str, str]:
        if self._parsed is None:
            lines = (line.partition(":") for line in self._head.split("\r\n")[1:])
            self._parsed = {name.lower(): value.strip() for name, _, value in lines}
        return self._parsed

    def __getitem__(self, name: str) -> str:
        return self._by_name()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name())

    def __len__(self) -> int:
        return len(self._by_name())


@dataclass(slots=True)
class Response:
    """A complete answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NotAllowed(Exception):
    """`may_send` said no; nothing was written."""


class BrokenConnection(Exception):
    """The connection ended, or what came over it is not HTTP. `silent` if not a byte of an answer had come."""

    def __init__(self, problem: str, *, silent: bool = False) -> None:
        super().__init__(problem)
        self.silent = silent


def keepalive_socket(address: tuple[object, ...]) -> socket.socket:
    """A TCP socket for an entry of `getaddrinfo` that notices in about a minute, without data flowing, a peer gone."""
    family, kind, protocol = address[0], address[1], address[2]
    assert isinstance(family, int)
    assert isinstance(kind, int)
    assert isinstance(protocol, int)
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _TCP_OPTIONS:
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


class Connection(asyncio.Protocol):
    """One connection: `send` a request, await the answer, again while `reusable`."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.reusable = True
        self.used = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._buffer = bytearray()
        self._status = 0
        self._headers = Headers()
        self._length = -1  # of the body; -1 while the head is read, -2 chunked, -3 until the connection ends
        self._chunks: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        self._transport = None
        answer = self._answer
        if answer is None or answer.done():
            return
        if self._length == -3 and exc is None:
            self._finish(bytes(self._buffer))
            return
        silent = self._length == -1 and not self._buffer
        problem = BrokenConnection("the connection was closed" if exc is None else str(exc), silent=silent)
        problem.__cause__ = exc
        answer.set_exception(problem)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.abort()  # nobody asked
            return
        try:
            end = -1 if self._buffer or self._length != -1 else data.find(b"\r\n\r\n")
            if end >= 0:  # most answers come in one piece
                self._read_head(data[:end].decode("latin-1"))
                data = data[end + 4 :]
                if self._length == len(data):
                    self._finish(data)
                    return
            self._buffer += data
            self._read()
        except (ValueError, IndexError) as error:
            self._fail(f"the answer is not HTTP: {error}")

    def send(self, data: bytes) -> asyncio.Future[Response]:
        """Write a request; the answer to come. The connection is not reusable until it came."""
        self._answer = answer = asyncio.get_running_loop().create_future()
        if self._transport is None:
            answer.set_exception(BrokenConnection("the connection was closed", silent=True))
        else:
            self._transport.write(data)
        return answer

    def abort(self) -> None:
        """Drop the connection at once."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End the connection in order."""
        self.reusable = False
        if self._transport is not None:
            self._transport.close()

    def _fail(self, problem: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(BrokenConnection(problem))
        self.abort()

    def _read(self) -> None:
        """Go as far as the buffer allows."""
        buffer = self._buffer
        while self._length == -1:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(buffer) > _MAX_HEAD:
                    raise ValueError("its head is too long")
                return
            head = bytes(buffer[:end])
            del buffer[: end + 4]
            self._read_head(head.decode("latin-1"))
        if self._length == -2:
            self._read_chunks(buffer)
        elif self._length >= 0 and len(buffer) >= self._length:
            body = bytes(buffer[: self._length])
            del buffer[: self._length]
            self._finish(body)

    def _read_head(self, head: str) -> None:
        version, space, code = head[:8], head[8:9], head[9:12]
        if not version.startswith("HTTP/1.") or space != " ":
            raise ValueError(f"it begins with {head[:20]!r}")
        self._status = status = int(code)
        if status < 200:
            return  # an interim answer: the real one follows
        self._headers = Headers(head)
        framing = dict(_FRAMING.findall(head.lower()))
        connection = framing.get("connection", "")
        self.reusable = "close" not in connection and (version != "HTTP/1.0" or "keep-alive" in connection)
        if status in (204, 304):
            self._length = 0
        elif "chunked" in framing.get("transfer-encoding", ""):
            self._length = -2
        elif (length := framing.get("content-length")) is not None:
            length = length.strip()
            if not length.isdigit():
                raise ValueError(f"its length is {length[:20]!r}")
            self._length = int(length)
        else:
            self._length = -3

    def _read_chunks(self, buffer: bytearray) -> None:
        while True:
            end = buffer.find(b"\r\n")
            if end < 0:
                return
            size = int(bytes(buffer[:end]).partition(b";")[0], 16)
            if size == 0:
                # The end, perhaps after trailers: an empty line.
                if buffer[end : end + 4] == b"\r\n\r\n":
                    del buffer[: end + 4]
                elif (last := buffer.find(b"\r\n\r\n", end)) >= 0:
                    del buffer[: last + 4]
                else:
                    return
                self._finish(b"".join(self._chunks))
                return
            if len(buffer) < end + size + 4:
                return
            self._chunks.append(bytes(buffer[end + 2 : end + 2 + size]))
            del buffer[: end + size + 4]

    def _finish(self, body: bytes) -> None:
        if self._buffer and self._length != -3:
            self.abort()  # more than was asked for
        answer, self._answer = self._answer, None
        self._length, self._chunks = -1, []
        if answer is not None and not answer.done():
            answer.set_result(Response(self._status, self._headers, body))


class Pool:
    """Up to `limit` connections to one server. Requests beyond that wait in line."""

    def __init__(self, host: str, port: int, limit: int) -> None:
        self._host, self._port, self._limit = host, port, limit
        self._ssl: ssl.SSLContext | None = None
        self._server_name: str | None = None
        self._generation = 0
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._connecting = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._loop = asyncio.get_running_loop()

    def use_tls(self, context: ssl.SSLContext, server_name: str) -> None:
        """Connect with this context from now on; present connections end with their current request."""
        self._ssl, self._server_name = context, server_name
        self._generation += 1
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def request(self, data: bytes, *, repeatable: bool, may_send: Callable[[], bool] | None = None) -> Response:
        """Send a whole request. A `repeatable` one is sent again if a kept connection turns out to be closed.

        `may_send` is asked when there is a connection, just before the request is written. Raises NotAllowed.
        """
        while True:
            connection = self._take() or await self._wait_for_one()
            if may_send is not None and not may_send():
                self._put_back(connection)
                raise NotAllowed
            kept = connection.used
            connection.used = True
            try:
                response = await connection.send(data)
            except BrokenConnection as error:
                self._put_back(connection)
                if repeatable and kept and error.silent:
                    continue
                raise
            except BaseException:
                connection.abort()
                self._put_back(connection)
                raise
            self._put_back(connection)
            return response

    async def close(self) -> None:
        for connection in (*self._idle, *self._busy):
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)

    def _take(self) -> Connection | None:
        """A kept connection that is still good."""
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and self._loop.time() - connection.idle_since < IDLE_SECONDS:
                self._busy.add(connection)
                return connection
            connection.close()
        return None

    async def _wait_for_one(self) -> Connection:
        put = self._waiting.append
        while len(self._busy) + self._connecting >= self._limit:
            turn: asyncio.Future[None] = self._loop.create_future()
            put(turn)
            put = self._waiting.appendleft  # who is overtaken between waking and running keeps his place
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._next()  # our turn goes to the next in line
                raise
            if (kept := self._take()) is not None:
                return kept
        self._connecting += 1
        try:
            connection = await self._connect()
        except BaseException:
            self._connecting -= 1
            self._next()
            raise
        self._connecting -= 1
        self._busy.add(connection)
        return connection

    def _put_back(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if connection.reusable and connection.generation == self._generation:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
        else:
            connection.close()
        self._next()

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _connect(self) -> Connection:
        """A new connection to the first address that answers. Raises OSError, or TimeoutError."""
        generation = self._generation
        async with asyncio.timeout(CONNECT_TIMEOUT):
            addresses = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            failure: OSError | None = None
            for address in addresses:
                sock = keepalive_socket(address)
                try:
                    sock.setblocking(False)
                    await self._loop.sock_connect(sock, address[4])
                    _, connection = await self._loop.create_connection(
                        lambda: Connection(generation),
                        sock=sock,
                        ssl=self._ssl,
                        server_hostname=self._server_name if self._ssl is not None else None,
                    )
                    return connection
                except ssl.SSLError:
                    sock.close()
                    raise
                except OSError as error:
                    sock.close()
                    failure = failure or error
                except BaseException:
                    sock.close()
                    raise
        raise failure or OSError(f"{self._host} has no address")
