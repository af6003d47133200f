"""Plays stages: waits their delays, then makes the change they ask for. One patch a stage, from a few workers.

object changes ──▶ consider: which stage matches? ──delay──▶ play: still the one? ──▶ PATCH status / DELETE
                        ▲                                                                  │
                        └──────────────────────── the watch shows the change ──────────────┘
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from skedge.client.errors import Conflict, NotFound
from skedge.client.workqueue import RateLimit, WorkQueue
from skedge.clock import Clock
from skedge.controlplane.nodes.stages import Stage

T = TypeVar("T")


class Player(Generic[T]):
    """`get` finds an object by key, `act` makes a stage's change. `consider` every change of an object."""

    def __init__(
        self,
        stages: Sequence[Stage[T]],
        get: Callable[[str], T | None],
        act: Callable[[Stage[T], T], Awaitable[None]],
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._stages, self._get, self._act = stages, get, act
        self._clock, self._rng = clock, rng
        self._next: dict[str, tuple[Stage[T], float]] = {}
        limit: RateLimit[str] = RateLimit(clock, maximum=30.0, qps=1000.0, burst=1000)
        self._queue: WorkQueue[str] = WorkQueue(clock=clock, rate_limit=limit)

    def __len__(self) -> int:
        """Stages that wait to be played."""
        return len(self._next)

    def consider(self, key: str, obj: T) -> None:
        """Choose what happens next to an object; what was chosen before stays, while it matches."""
        chosen = self._next.get(key)
        if chosen is not None and chosen[0].matches(obj):
            return
        matching = [stage for stage in self._stages if stage.matches(obj)]
        if not matching:
            self._next.pop(key, None)
            return
        stage = matching[0]
        if len(matching) > 1:
            stage = self._rng.choices(matching, [each.weight for each in matching])[0]
        delay = stage.delay(obj, self._rng)
        self._next[key] = stage, self._clock.monotonic() + delay
        self._queue.add_after(key, delay)

    def forget(self, key: str) -> None:
        """The object is gone."""
        self._next.pop(key, None)

    async def run(self, workers: int = 16) -> None:
        """Play until cancelled."""
        await self._queue.run(self._play, workers=workers)

    async def _play(self, key: str) -> None:
        chosen = self._next.get(key)
        if chosen is None:
            return
        stage, due = chosen
        early = due - self._clock.monotonic()
        if early > 1e-6:  # the delay of a stage that no longer counts
            self._queue.add_after(key, early)
            return
        obj = self._get(key)
        if obj is None:
            self._next.pop(key, None)
            return
        if stage.matches(obj):
            try:
                await self._act(stage, obj)
            except (NotFound, Conflict):
                pass  # replaced or gone: its news are on their way
        if self._next.get(key) is chosen:
            del self._next[key]
            present = self._get(key)
            if present is not None and present is not obj:
                self.consider(key, present)
