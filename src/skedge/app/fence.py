"""No change is sent to the API server while the lease may be somebody else's.

A process that was stopped for a while (SIGSTOP, a long pause of its machine) finds its loop full of work that was
decided before. The fence is asked at the last moment, just before a request that changes something is written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from skedge.client import aio
from skedge.client.clientconfig import ClientConfig
from skedge.client.http1 import NotAllowed, Response
from skedge.client.transport import DEFAULT_CONNECTIONS, HttpTransport
from skedge.clock import Clock

_LOOK_AGAIN: Final = 0.05


async def opened(open: Callable[[], bool], clock: Clock) -> None:
    """Waits until `open` says yes; at once if it does."""
    while not open():
        await aio.sleep(clock, _LOOK_AGAIN)


class FencedTransport(HttpTransport):
    """Holds changes back while `open` says no: until the lease was renewed, or the process has ended."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        open: Callable[[], bool],
        clock: Clock,
        user_agent: str,
        connections: int = DEFAULT_CONNECTIONS,
    ) -> None:
        super().__init__(config, user_agent=user_agent, connections=connections, clock=clock, may_send=open)
        self._open, self._fence_clock = open, clock

    async def request(
        self, method: str, target: str, body: bytes | None = None, content_type: str = "", timeout: float | None = None
    ) -> Response:
        while True:
            if method != "GET":
                await opened(self._open, self._fence_clock)
            # Credentials, a turn and a connection may have to be waited for: it is asked again when there is one.
            with suppress(NotAllowed):
                return await super().request(method, target, body, content_type, timeout)
