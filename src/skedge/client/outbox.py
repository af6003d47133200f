"""Sends what may wait (events) from a bounded number of tasks, holding on while the server cannot be reached."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from skedge.client import aio
from skedge.client.errors import ApiError, ClientError, one_line
from skedge.client.rest import RestClient
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

MAX_TRIES = 12
RETRY_SECONDS = 10.0
BACKLOG = 100_000
"""Letters that may wait for the server; further ones are dropped."""


class Letter(Protocol):
    """Something to send."""

    async def send(self) -> None:
        """Send it once. Raises `TryAgain` or a transport's error to be called again, `ApiError` to be given up."""
        ...

    def ended(self, sent: bool) -> None:
        """It was sent, or given up."""
        ...


class TryAgain(ClientError):
    """The server refused for a reason that passes."""


class Full:
    """Says once that there is no room, not for every event that is lost; again after it was `over`."""

    def __init__(self) -> None:
        self._said = False

    def say(self) -> None:
        if not self._said:
            self._said = True
            log.error(None, "Unable to record event: too many queued events, dropping events")

    def over(self) -> None:
        self._said = False


class Outbox:
    """`post` letters, never waiting; `workers` tasks send them between `start` and `stop`.

    A letter the server refuses is logged and given up; one that does not get through is tried 12 times, 10 s apart.
    """

    def __init__(self, client: RestClient, *, workers: int = 8, first_delay_random: bool = False) -> None:
        """`first_delay_random`: the first retry comes after 0 to 10 s (core/v1), not 10 to 12.5 (events.k8s.io)."""
        self._clock, self._rng = client.clock, client.rng
        self._workers, self._first_delay_random = workers, first_delay_random
        self._letters: deque[tuple[Letter, int]] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._idle_workers: deque[asyncio.Future[None]] = deque()
        self._waiters: list[asyncio.Future[None]] = []
        self._sending = 0
        self.dropped = 0
        self.full = Full()

    def __len__(self) -> int:
        """Letters that wait or are being sent."""
        return len(self._letters) + self._sending

    def post(self, letter: Letter, tries: int = MAX_TRIES) -> bool:
        """Have `letter` sent; False if it was dropped because too many wait."""
        if len(self._letters) >= BACKLOG:
            self.dropped += 1
            self.full.say()
            return False
        self._letters.append((letter, tries))
        while self._idle_workers:
            worker = self._idle_workers.popleft()
            if not worker.done():
                worker.set_result(None)
                break
        return True

    def start(self) -> None:
        for i in range(self._workers):
            self._tasks.append(asyncio.create_task(self._work(), name=f"outbox {i}"))

    async def stop(self, grace: float = 0.0) -> None:
        """End the tasks, after up to `grace` seconds for what still waits."""
        try:
            if grace > 0:
                async with aio.deadline(self._clock, grace):
                    await self.flush()
        except TimeoutError:
            pass
        finally:
            if len(self):
                log.warning("Events were not sent", number=len(self))
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._tasks.clear()

    async def flush(self) -> None:
        """Wait until everything is sent or given up."""
        while len(self):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    async def _work(self) -> None:
        while True:
            while not self._letters:
                idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._idle_workers.append(idle)
                await idle
            letter, tries = self._letters.popleft()
            self._sending += 1
            if not self._letters:
                self.full.over()
            try:
                letter.ended(await self._send(letter, tries))
            except Exception as error:  # a letter that cannot be written must not end the worker
                log.error(one_line(error), "Event dropped")
                letter.ended(False)
            finally:
                self._sending -= 1
                if not len(self):
                    for waiter in self._waiters:
                        if not waiter.done():
                            waiter.set_result(None)
                    self._waiters.clear()

    async def _send(self, letter: Letter, tries: int) -> bool:
        for attempt in range(1, tries + 1):
            try:
                await letter.send()
                return True
            except ApiError as error:
                log.error(one_line(error), "Server rejected event (will not retry!)")
                return False
            except ClientError as error:
                if attempt == tries:
                    log.error(one_line(error), "Unable to write event (retry limit exceeded!)")
                    return False
                log.warning("Unable to write event (may retry after sleeping)", err=one_line(error))
            if not self._first_delay_random:
                delay = aio.jitter(RETRY_SECONDS, 0.25, self._rng)
            else:
                delay = RETRY_SECONDS * (self._rng.random() if attempt == 1 else 1.0)
            await aio.sleep(self._clock, delay)
        return False
