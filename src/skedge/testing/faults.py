"""A transport that goes wrong on purpose: the faults of networks, API servers and clocks, by a seed.

    faults = Faults(random.Random(7), rate=0.05)
    client = RestClient(FaultTransport(HttpTransport(config), faults, clock), clock=clock)

Each request belongs to a `Step`; `APPLIES` says which `Fault` can hit which step, and `faults.hits` counts what did.
A watch stays in order within itself, as TCP keeps it; it is different watches and requests that overtake each other.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Final

import msgspec

from skedge.client import aio
from skedge.client.errors import ConnectionFailed, ConnectionLost, RequestTimeout
from skedge.client.http1 import Response
from skedge.client.transport import Stream, Transport
from skedge.clock import Clock


class Step(Enum):
    """What a request is for."""

    LIST = "list"
    WATCH = "watch"
    BIND = "bind"
    PATCH = "patch"
    DELETE = "delete"
    UPDATE = "update"
    EVENT = "event"


class Fault(Enum):
    """What goes wrong with it."""

    DELAY = "delay"  # it is slow on its way there and back
    DROP = "drop"  # the request is lost, or its answer is
    DUPLICATE = "duplicate"  # it arrives twice
    REORDER = "reorder"  # later ones overtake it
    CONFLICT = "409"
    EXPIRED = "410"
    THROTTLED = "429"
    INTERNAL = "500"  # before or after it was carried out
    HALF_OPEN = "half-open"  # the watch is dead, and nobody says so
    TRUNCATED = "truncated"  # the connection breaks in the middle of a chunk
    RESTART = "restart"  # the API server goes away for a while
    CLOCK_JUMP = "clock jump"  # the wall clock is set
    CRASH = "crash"  # our own process dies, before or after the request was carried out


_ALL = frozenset(Step)
_WRITES = frozenset({Step.BIND, Step.PATCH, Step.DELETE, Step.UPDATE, Step.EVENT})

APPLIES: Final[Mapping[Fault, frozenset[Step]]] = {
    Fault.DELAY: _ALL,
    Fault.DROP: _ALL,
    Fault.DUPLICATE: _WRITES - {Step.UPDATE} | {Step.WATCH},
    Fault.REORDER: _WRITES | {Step.WATCH},
    Fault.CONFLICT: frozenset({Step.BIND, Step.PATCH, Step.UPDATE}),
    Fault.EXPIRED: frozenset({Step.LIST, Step.WATCH}),
    Fault.THROTTLED: _ALL,
    Fault.INTERNAL: _ALL,
    Fault.HALF_OPEN: frozenset({Step.WATCH}),
    Fault.TRUNCATED: frozenset({Step.LIST, Step.WATCH}),
    Fault.RESTART: _ALL,
    Fault.CLOCK_JUMP: frozenset({Step.BIND, Step.PATCH, Step.EVENT}),
    Fault.CRASH: _WRITES | {Step.WATCH},
}
_HEAVY: Final = frozenset({Fault.RESTART, Fault.CRASH})
_SHARES: Final[Mapping[Step, float]] = {Step.LIST: 5.0, Step.BIND: 3.0, Step.DELETE: 5.0, Step.UPDATE: 10.0}
"""Steps that are rare are hit more often."""
_LATE: Final = frozenset({Fault.HALF_OPEN, Fault.TRUNCATED, Fault.DUPLICATE, Fault.REORDER, Fault.CRASH})
"""Faults of a watch that is open already."""

_KEEPALIVE_SECONDS: Final = 60.0

_REASONS: Final = {
    409: ("Conflict", "the object has been modified"),
    410: ("Expired", "too old resource version"),
    429: ("TooManyRequests", "too many requests, please try again later"),
    500: ("InternalError", "Internal error occurred: etcdserver: request timed out"),
}


def step_of(method: str, target: str) -> Step | None:
    """What a request is for; None for what no fault hits (discovery, reviews, leases)."""
    path, _, query = target.partition("?")
    parts = path.strip("/").split("/")
    if len(parts) <= (2 if parts[0] == "api" else 3) or "leases" in parts:
        return None
    if method == "GET":
        return Step.WATCH if "watch=true" in query else Step.LIST
    if parts[-1] == "binding":
        return Step.BIND
    if "events" in parts:
        return Step.EVENT
    return {"PATCH": Step.PATCH, "DELETE": Step.DELETE, "PUT": Step.UPDATE}.get(method)


class Faults:
    """Decides by a seed which request meets which fault.

    `rate`: how likely a request meets one at all; each step meets its faults in turn, from `first`. `restart`, `jump`
    and `crash` do to API server, clock and process what has to be done; faults without their callback do not happen.
    Set `on` to False for peace.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        rate: float = 0.05,
        first: int = 0,
        restart: Callable[[float], None] | None = None,
        jump: Callable[[float], None] | None = None,
        crash: Callable[[], None] | None = None,
    ) -> None:
        self.rng = rng
        self.rate = rate
        self.restart, self.jump, self.crash = restart, jump, crash
        self.on = True
        self._turn: Counter[Step] = Counter(dict.fromkeys(Step, first))
        self.hits: Counter[tuple[Fault, Step]] = Counter()
        self.seen: Counter[Step] = Counter()
        """How many requests (and pieces of watches) there were."""
        absent = {
            fault
            for fault, call in ((Fault.RESTART, restart), (Fault.CLOCK_JUMP, jump), (Fault.CRASH, crash))
            if call is None
        }
        self._choices = {
            step: [fault for fault, steps in APPLIES.items() if step in steps and fault not in absent] for step in Step
        }

    def pick(self, step: Step | None, share: float = 1.0) -> Fault | None:
        """The fault that hits a request of this step now, or None; `share` makes it less likely."""
        if step is None:
            return None
        self.seen[step] += 1
        if not self.on or self.rng.random() >= self.rate * share * _SHARES.get(step, 1.0):
            return None
        choices = self._choices[step]
        fault = choices[self._turn[step] % len(choices)]
        self._turn[step] += 1
        if fault in _HEAVY and step not in _SHARES and self.rng.random() < 0.7:
            return None
        return fault

    def hit(self, fault: Fault, step: Step) -> None:
        self.hits[fault, step] += 1

    def answer(self, code: int) -> Response:
        """A refusal; a 429 names a delay."""
        reason, message = _REASONS[code]
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
        headers = {"retry-after": str(self.rng.randint(1, 3))} if code == 429 else {}
        return Response(code, headers, msgspec.json.encode({**body, "message": message}))


class FaultTransport:
    """Any `Transport`, with faults. `alive` is False once its process has crashed: nothing comes out of it any more."""

    def __init__(self, inner: Transport, faults: Faults, clock: Clock) -> None:
        self.host = inner.host
        self._inner = inner
        self._faults = faults
        self._clock = clock
        self._sent = 0
        self._overtaken = asyncio.Event()
        self.alive = True

    async def close(self) -> None:
        await self._inner.close()

    async def pause(self, longest: float) -> None:
        await aio.sleep(self._clock, self._faults.rng.random() * longest)

    # --- requests

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response:
        await self._living()
        step = step_of(method, target)
        fault = self._faults.pick(step)

        async def send() -> Response:
            self._sent += 1
            self._overtaken.set()
            try:
                response = await self._inner.request(method, target, body, content_type, timeout)
            except Exception:  # not a cancellation: whoever gives up does not wait for the dead
                await self._living()
                raise
            await self._living()
            return response

        if fault is None or step is None:
            return await send()
        self._faults.hit(fault, step)
        return await self._strike(fault, send, f"{method} {target.partition('?')[0]}")

    async def _strike(self, fault: Fault, send: Callable[[], Awaitable[Response]], what: str) -> Response:
        faults = self._faults
        first = faults.rng.random() < 0.5  # whether it goes wrong before the request is carried out, or after
        if fault is Fault.DELAY:
            await self.pause(3.0)
            response = await send()
            await self.pause(3.0)
            return response
        if fault is Fault.REORDER:
            await self._be_overtaken()
            return await send()
        if fault is Fault.DUPLICATE:
            response = await send()
            again = await send()
            return response if first else again
        if fault in (Fault.CONFLICT, Fault.EXPIRED, Fault.THROTTLED):
            return faults.answer(int(fault.value))
        if fault is Fault.CLOCK_JUMP:
            assert faults.jump is not None
            faults.jump(faults.rng.uniform(-7200.0, 7200.0))
            return await send()
        if not first:
            await send()
        if fault is Fault.INTERNAL:
            return faults.answer(500)
        if fault is Fault.RESTART:
            assert faults.restart is not None
            faults.restart(faults.rng.random() * 10.0)
        elif fault is Fault.CRASH:
            await self._die()
        if first and fault is Fault.DROP:
            raise ConnectionFailed(f"{what}: cannot connect to {self.host}")
        raise ConnectionLost(f"{what}: {self.host} closed the connection")

    async def _be_overtaken(self) -> None:
        """Waits until another request was sent, or a while if there is none."""
        sent = self._sent
        try:
            async with aio.deadline(self._clock, 2.0):
                while self._sent == sent:
                    self._overtaken.clear()
                    await self._overtaken.wait()
        except TimeoutError:
            pass

    async def _die(self) -> None:
        assert self._faults.crash is not None
        self._faults.crash()
        await self._living()

    async def _living(self) -> None:
        """A dead process sends nothing and learns nothing: whoever asks waits until his task is cancelled."""
        if not self.alive:
            await asyncio.get_running_loop().create_future()

    # --- watches

    @asynccontextmanager
    async def stream(self, target: str, idle_timeout: float) -> AsyncIterator[Stream]:
        await self._living()
        faults, step = self._faults, step_of("GET", target)
        fault = faults.pick(step)
        if fault is not None and step is not None and not (fault in _LATE or faults.rng.random() < 0.5):
            faults.hit(fault, step)
            await self._refuse(fault)
            if fault in (Fault.EXPIRED, Fault.THROTTLED, Fault.INTERNAL):
                yield Refused(faults.answer(int(fault.value)))
                return
            fault = None
        async with self._inner.stream(target, idle_timeout) as inner:
            yield FaultStream(inner, self, faults, step, fault, idle_timeout, self._clock)

    async def _refuse(self, fault: Fault) -> None:
        if fault is Fault.DELAY:
            await self.pause(5.0)
        elif fault is Fault.DROP:
            raise ConnectionFailed(f"cannot connect to {self.host}")
        elif fault is Fault.RESTART:
            assert self._faults.restart is not None
            self._faults.restart(self._faults.rng.random() * 10.0)
            raise ConnectionLost(f"{self.host} closed the connection")


class Refused:
    """A watch that was answered by an error: a stream whose body is there already."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    async def next_chunk(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def read(self) -> bytes:
        return await self.next_chunk()


class FaultStream:
    """An open watch that goes wrong, or has another fault, after a few chunks."""

    def __init__(
        self,
        inner: Stream,
        transport: FaultTransport,
        faults: Faults,
        step: Step | None,
        fault: Fault | None,
        idle_timeout: float,
        clock: Clock,
    ) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner, self._transport, self._faults, self._clock = inner, transport, faults, clock
        self._step, self._fault, self._idle = step, fault, idle_timeout
        self._again = b""
        self._broken = False

    async def read(self) -> bytes:
        return await self._inner.read()

    async def next_chunk(self) -> bytes:
        if self._broken:
            raise ConnectionLost(f"the connection to {self._transport.host} broke")
        if self._again:
            again, self._again = self._again, b""
            return again
        chunk = await self._inner.next_chunk()
        await self._transport._living()
        fault, self._fault = self._fault, None
        if fault is None:
            fault = self._faults.pick(self._step, 0.2)
        if fault is None or self._step is None or not chunk or not self._faults.on:
            return chunk
        self._faults.hit(fault, self._step)
        return await self._strike(fault, chunk)

    async def _strike(self, fault: Fault, chunk: bytes) -> bytes:
        faults, transport = self._faults, self._transport
        if fault in (Fault.DELAY, Fault.REORDER):  # meanwhile other watches and requests go on
            await transport.pause(5.0)
        elif fault is Fault.DUPLICATE:
            self._again = chunk
        elif fault is Fault.HALF_OPEN:
            if faults.rng.random() < 0.75:  # the kernel's probes go unanswered
                await aio.sleep(self._clock, _KEEPALIVE_SECONDS)
                raise ConnectionLost(f"the connection to {transport.host} broke")
            await aio.sleep(self._clock, self._idle)  # a proxy answers them
            raise RequestTimeout(f"{transport.host} did not answer in time")
        elif fault is Fault.TRUNCATED:
            self._broken = True
            return chunk[: faults.rng.randrange(len(chunk))] or chunk[:1]
        elif fault in (Fault.EXPIRED, Fault.THROTTLED, Fault.INTERNAL):
            self._broken = True
            return b'{"type":"ERROR","object":%s}\n' % faults.answer(int(fault.value)).body
        elif fault is Fault.CRASH:
            await transport._die()
        else:  # drop, restart
            if fault is Fault.RESTART:
                assert faults.restart is not None
                faults.restart(faults.rng.random() * 10.0)
            raise ConnectionLost(f"{transport.host} closed the connection")
        return chunk
