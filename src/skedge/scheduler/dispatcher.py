"""Work that waits for the API server: bindings and status patches, many at a time and bounded.

A fixed number of workers takes jobs, so a pod costs no task of its own: those of pods with a higher priority first, and
equal ones in order, so that what is said about one pod stays in order. `has_room` is the backpressure: while too much
is unfinished no pod is popped, so that a high-priority pod never stands behind a wall of decided ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from itertools import count

from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

Job = Callable[[], Awaitable[None]]
"""Sees to what goes wrong itself. One that raises all the same is logged, and costs no worker."""


class Dispatcher:
    """`connections` workers; `has_room` while fewer than `per_connection * connections` bindings are unfinished."""

    def __init__(self, connections: int = 48, per_connection: int = 4) -> None:
        self._connections = connections
        self.limit = connections * per_connection
        self._jobs: list[tuple[int, int, Job, bool]] = []  # a heap: (-priority, ticket, job, whether it is a binding)
        self._tickets = count()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._tasks: dict[asyncio.Task[None], None] = {}  # cancelled in the order they began
        self._working = 0
        self._drained = asyncio.Event()
        self.unfinished_bindings = 0
        self._waiting_apart = 0  # those of them that wait for others: they must not hold up the queue
        self.on_room: Callable[[], None] = lambda: None

    @property
    def has_room(self) -> bool:
        return self.unfinished_bindings - self._waiting_apart < self.limit

    def start(self) -> None:
        """Starts the workers in the running loop."""
        for i in range(self._connections):
            self._spawn(self._work(), f"dispatcher-{i}")

    def bind(self, job: Job, priority: int = 0) -> None:
        """Queues a binding of a pod of this priority."""
        self.unfinished_bindings += 1
        self._put(job, priority, True)

    def call(self, job: Job, priority: int = 0) -> None:
        """Queues any other call, about a pod of this priority."""
        self._put(job, priority, False)

    def wait_apart(self, job: Job) -> None:
        """A binding that may wait long (Permit, PreBind) gets a task of its own, and takes no room: it may be waiting
        for the very pods that are not popped yet."""
        self.unfinished_bindings += 1
        self._waiting_apart += 1
        self._spawn(self._run_apart(job), "binding")

    def apart(self, job: Job, name: str) -> None:
        """Something that goes on for longer than one call and is no binding gets a task of its own."""
        self._spawn(self._run(job), name)

    async def drain(self) -> None:
        """Waits until the workers have nothing to do; tasks of their own are not waited for."""
        while self._jobs or self._working:
            self._drained.clear()
            await self._drained.wait()

    def _put(self, job: Job, priority: int, binding: bool) -> None:
        heappush(self._jobs, (-priority, next(self._tickets), job, binding))
        while self._idle:
            worker = self._idle.popleft()
            if not worker.done():
                worker.set_result(None)
                break

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while self._jobs:
                _, _, job, binding = heappop(self._jobs)
                self._working += 1
                try:
                    await job()
                except Exception as error:
                    log.error(error, "A call broke off")
                finally:
                    self._working -= 1
                    if binding:
                        self._binding_ended()
            if not self._working:
                self._drained.set()
            rest: asyncio.Future[None] = loop.create_future()
            self._idle.append(rest)
            await rest

    def _binding_ended(self) -> None:
        self.unfinished_bindings -= 1
        if self.unfinished_bindings - self._waiting_apart == self.limit - 1:
            self.on_room()

    async def _run(self, job: Job) -> None:
        try:
            await job()
        except Exception as error:
            log.error(error, "A call broke off")

    async def _run_apart(self, job: Job) -> None:
        try:
            await self._run(job)
        finally:
            self.unfinished_bindings -= 1
            self._waiting_apart -= 1

    def _spawn(self, coroutine: Awaitable[None], name: str) -> None:
        task = asyncio.ensure_future(coroutine)
        task.set_name(name)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def close(self) -> None:
        """Ends all workers; unfinished jobs are cancelled."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
