"""Events are forgotten an hour after they last happened (the API server's `--event-ttl`)."""

from __future__ import annotations

import msgspec

from skedge.client.errors import Conflict, NotFound
from skedge.controlplane.controllers.base import Controller, Loop
from skedge.controlplane.controllers.kinds import EVENT
from skedge.controlplane.controllers.objects import Meta, epoch
from skedge.controlplane.controllers.owning import together

TTL = 3600.0
PERIOD = 300.0
"""Seconds between two rounds: an event may live that much longer."""
_AT_ONCE = 32
_PAGE = 500


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class _Event(msgspec.Struct, rename="camel"):
    metadata: Meta
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None

    @property
    def last(self) -> float:
        """When it last happened, in epoch seconds."""
        observed = self.series.last_observed_time if self.series is not None else None
        times = (self.last_timestamp, self.event_time, observed, self.metadata.creation_timestamp)
        return max(epoch(each) for each in times)


class _ListMeta(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[_Event] | None = None


class EventExpiry(Controller):
    """Works in rounds, without keys."""

    name = "event-expiry"

    def loops(self) -> list[Loop]:
        return [self.rounds]

    async def rounds(self) -> None:
        """Delete what is too old, again and again."""
        await self.every(PERIOD, self.look)

    async def look(self) -> None:
        """One round, in pages, so that the API server breathes."""
        oldest = self.clock.now() - TTL
        token = ""
        while True:
            params: dict[str, str | int] = {"limit": _PAGE, **({"continue": token} if token else {})}
            page = await self.client.get_as(_Page, EVENT.path(), params)
            expired = [each for each in page.items or () if each.last < oldest]
            for start in range(0, len(expired), _AT_ONCE):
                await together(self._delete(each.metadata) for each in expired[start : start + _AT_ONCE])
            token = page.metadata.continue_
            if not token:
                return

    async def _delete(self, meta: Meta) -> None:
        preconditions = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
        try:
            await self.client.request("DELETE", EVENT.path(meta.namespace, meta.name), body=body)
        except (NotFound, Conflict):
            pass  # gone, or it happened again
