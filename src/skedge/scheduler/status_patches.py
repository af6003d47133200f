"""What is said about pods in their status, in order. Upstream: `schedule_one.go` (updatePod), where cycles wait for it.

On two connections an older patch of a pod might arrive last, and stay: so one patch of a pod is under way at a time.
What is said meanwhile becomes one patch, made when it is its turn against what the pod says by then, seen by the
informer or not; a binding waits for the patch under way, and what was still to be said about the pod's pending is
dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from skedge.api.core import PodCondition
from skedge.clock import Clock
from skedge.framework.ports import Ports
from skedge.scheduler.dispatcher import Dispatcher
from skedge.scheduler.pod_status import status_patch
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)


_SENT: Final = "status-patches/sent"
"""What was sent about a pod is kept with the informer's object, until another takes its place."""


class _Said(NamedTuple):
    """What a status is to say, or says; None where nothing changes."""

    condition: PodCondition | None
    nominate: str | None

    def after(self, earlier: _Said | None) -> _Said:
        """Both as one."""
        if earlier is None:
            return self
        return _Said(
            earlier.condition if self.condition is None else self.condition,
            earlier.nominate if self.nominate is None else self.nominate,
        )


class _Wish(NamedTuple):
    """What the status of a pod is to say from some time on, and who waits until it does."""

    pod: PodInfo | PlacedPod
    said: _Said
    time: float
    waiters: tuple[asyncio.Future[None], ...] = ()

    def after(self, earlier: _Wish) -> _Wish:
        """Both as one; a pod as others see it, placed where it was promised room, says less of its conditions."""
        pod = self.pod if isinstance(self.pod, PodInfo) else earlier.pod
        return _Wish(pod, self.said.after(earlier.said), self.time, earlier.waiters + self.waiters)

    def patch(self, sent: _Said | None) -> dict[str, Any] | None:
        """The patch of what the pod says, or will have said once what was sent is seen."""
        conditions: Sequence[PodCondition] = self.pod.conditions
        nominated = self.pod.nominated_node_name
        if sent is not None:
            conditions = _with(conditions, sent.condition)
            nominated = nominated if sent.nominate is None else sent.nominate
        return status_patch(conditions, nominated, self.said.condition, self.said.nominate, self.time)

    def answer(self, error: Exception | None) -> None:
        for waiter in self.waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


def _with(conditions: Sequence[PodCondition], new: PodCondition | None) -> Sequence[PodCondition]:
    if new is None:
        return conditions
    if any(old.type == new.type for old in conditions):
        return tuple(new if old.type == new.type else old for old in conditions)
    return (*conditions, new)


class _Line:
    """What is under way and what comes next for one pod."""

    __slots__ = ("over", "sent", "started", "wish")

    def __init__(self, wish: _Wish, sent: _Said | None) -> None:
        self.wish: _Wish | None = wish
        self.sent = sent
        self.started = False  # its job in the dispatcher
        self.over: asyncio.Future[None] | None = None  # for whoever waits until nothing is under way


class StatusPatches:
    """Sends them through the dispatcher, so that they are bounded with all other calls."""

    def __init__(self, ports: Ports, dispatcher: Dispatcher, clock: Clock) -> None:
        self._ports = ports
        self._dispatcher = dispatcher
        self._clock = clock
        self._lines: dict[str, _Line] = {}  # by the pod's UID

    def __len__(self) -> int:
        """Of how many pods something is under way or still to be sent."""
        return len(self._lines)

    def tell(self, pod: PodInfo | PlacedPod, condition: PodCondition | None, nominate: str | None) -> None:
        """Has the status say this when a connection is free; a failure is logged.

        `condition` comes without transition time; `nominate`: a node, "" to clear, None to leave alone.
        """
        self._put(_Wish(pod, _Said(condition, nominate), self._clock.now()))

    async def nominate(self, pod: PodInfo | PlacedPod, node_name: str) -> None:
        """Has the status name this node ("" for none), and waits for it. Raises PodGone, or what went wrong."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(_Wish(pod, _Said(None, node_name), self._clock.now(), (told,)))
        await told

    async def settle(self, uid: str) -> None:
        """Before a pod is bound: waits for the patch under way, and drops what was still to be said.

        A job that has not started is not waited for: whoever waits may hold the worker it needs.
        """
        line = self._lines.get(uid)
        if line is None:
            return
        if line.wish is not None:
            line.wish.answer(None)
            line.wish = None
        if not line.started:
            del self._lines[uid]
            return
        if line.over is None:
            line.over = asyncio.get_running_loop().create_future()
        await asyncio.shield(line.over)

    def _put(self, wish: _Wish) -> None:
        line = self._lines.get(wish.pod.uid)
        if line is not None:
            line.wish = wish if line.wish is None else wish.after(line.wish)
            return
        sent = wish.pod.cached(_SENT) if isinstance(wish.pod, PodInfo) else None
        if wish.patch(sent) is None:
            wish.answer(None)
        else:
            line = self._lines[wish.pod.uid] = _Line(wish, sent)
            self._dispatcher.call(partial(self._send, line, wish.pod.uid), wish.pod.priority)

    async def _send(self, line: _Line, uid: str) -> None:
        if line.wish is None:  # dropped before its turn came
            return
        line.started = True
        try:
            while (wish := line.wish) is not None:
                line.wish = None
                await self._patch(line, wish)
        finally:
            del self._lines[uid]
            if line.over is not None:
                line.over.set_result(None)

    async def _patch(self, line: _Line, wish: _Wish) -> None:
        patch = wish.patch(line.sent)
        if patch is not None:
            try:
                await self._ports.patcher.patch_status(wish.pod, patch)
            except Exception as error:
                if wish.said.condition is not None or not wish.waiters:
                    log.error(error, "Error updating pod", pod=wish.pod.key)
                wish.answer(error)
                return
        line.sent = wish.said.after(line.sent)
        if isinstance(wish.pod, PodInfo):
            wish.pod.cache(_SENT, line.sent)
        wish.answer(None)
