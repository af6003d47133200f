"""The clients of one process, alike in all but their name, their fence and their purpose."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skedge.app.fence import FencedTransport, opened
from skedge.client import aio
from skedge.client.clientconfig import ClientConfig
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.errors import (
    CertificateError,
    ClientError,
    Forbidden,
    KubeconfigError,
    NotFound,
    Unauthorized,
    one_line,
)
from skedge.client.events import EventBroadcaster
from skedge.client.hooks import ClientHooks
from skedge.client.limiter import rate_limiter
from skedge.client.rest import RestClient
from skedge.client.transport import HttpTransport, Transport
from skedge.clock import Clock
from skedge.config.types import ClientConnection
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

_EVENTS_V1: Final = "/apis/events.k8s.io/v1"


@dataclass(frozen=True)
class Clients:
    """Makes clients; each has its own connections and its own rate limit, as in the reference.

    `agent`: the beginning of their User-Agent. `may_write`: asked before a fenced client sends a change; None where
    nothing is fenced. `transport` makes what requests are sent by, if not HTTP to the server of `config`.
    """

    config: ClientConfig
    connection: ClientConnection
    agent: str
    connections: int
    clock: Clock
    rng: random.Random
    hooks: ClientHooks
    may_write: Callable[[], bool] | None = None
    transport: Callable[[], Transport] | None = None

    def __post_init__(self) -> None:
        rate_limiter(self.connection.qps, self.connection.burst)  # its ValueError before anything is opened

    def make(self, name: str, *, fenced: bool = False, timeout: float | None = None) -> RestClient:
        """A client whose User-Agent ends in `name`; to be made on the loop, and closed."""
        return RestClient(
            self._transport(f"{self.agent}/{name}", fenced),
            qps=self.connection.qps,
            burst=self.connection.burst,
            timeout=timeout,
            clock=self.clock,
            rng=self.rng,
            hooks=self.hooks,
        )

    async def may_change(self) -> None:
        """Waits until a change may be sent, for those who send it by other means than our clients."""
        if self.may_write is not None:
            await opened(self.may_write, self.clock)

    def _transport(self, agent: str, fenced: bool) -> Transport:
        if self.transport is not None:
            return self.transport()
        if not fenced or self.may_write is None:
            return HttpTransport(self.config, user_agent=agent, connections=self.connections, clock=self.clock)
        return FencedTransport(
            self.config, open=self.may_write, clock=self.clock, user_agent=agent, connections=self.connections
        )

    async def event_broadcaster(self, client: RestClient) -> EventBroadcaster | CoreEventBroadcaster:
        """By the newest API that the server has. A server that is down is waited for, one line a try; credentials and
        certificates that are wrong now stay wrong, and are raised."""
        backoff = aio.Backoff(self.clock, self.rng)
        while True:
            try:
                await client.request("GET", _EVENTS_V1)
            except Unauthorized as error:
                raise KubeconfigError(f"the API server does not accept our credentials: {one_line(error)}") from error
            except (CertificateError, KubeconfigError):
                raise
            except (NotFound, Forbidden):
                return CoreEventBroadcaster(client)
            except ClientError as error:
                log.error(one_line(error), "The API server does not answer, trying again")
                await aio.sleep(self.clock, backoff.next())
            else:
                return EventBroadcaster(client, workers=self.connections // 2)
