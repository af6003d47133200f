"""Volumes and claims as they are watched and written back: whole, though the scheduler reads only a part of them.

Upstream: `plugins/volumebinding/binder.go` (bindAPIUpdate).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

import msgspec

from skedge.api.decode import KINDS
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.api.whole import Json, Whole
from skedge.client import aio
from skedge.client.informer import Informer
from skedge.client.rest import RestClient
from skedge.client.watch import Resource
from skedge.clock import Clock

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Json).decode


class Kept(Generic[T]):
    """What an informer holds of an object: the struct, and all of its JSON while we may still write it."""

    __slots__ = ("body", "view")

    def __init__(self, view: T, body: bytes) -> None:
        self.view = view
        self.body = body


class ChangedMeanwhile(Exception):
    """The object is not at the version that a change was made for."""


def _keep_volume(raw: Json) -> Kept[PersistentVolume]:
    view = msgspec.convert(raw, PersistentVolume)
    return Kept(view, b"" if view.status.phase == "Bound" else _encode(raw))


def _keep_claim(raw: Json) -> Kept[PersistentVolumeClaim]:
    view = msgspec.convert(raw, PersistentVolumeClaim)
    return Kept(view, b"" if view.status.phase == "Bound" else _encode(raw))


WRITTEN: Final[Mapping[str, Resource[Kept[Any]]]] = {
    "PersistentVolume": Resource(KINDS["PersistentVolume"].path(), dict, transform=_keep_volume),
    "PersistentVolumeClaim": Resource(KINDS["PersistentVolumeClaim"].path(), dict, transform=_keep_claim),
}
"""By kind: what we watch in order to write it."""


class RestObjects:
    """PUTs objects: the JSON that the informer holds, with a change."""

    def __init__(self, client: RestClient, informers: Mapping[str, Informer[Kept[Any]]], clock: Clock) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock

    async def update(self, kind: str, obj: Any, change: Callable[[Json], None]) -> Any:
        info, meta = KINDS[kind], obj.metadata
        kept = self._informers[kind].store.get(f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name)
        if kept is None or not kept.body or kept.view.metadata.resource_version != meta.resource_version:
            raise ChangedMeanwhile(
                f'Operation cannot be fulfilled on {info.plural} "{meta.name}": the object has been modified; '
                "please apply your changes to the latest version and try again"
            )
        changed: Whole[Any] = Whole(info, _decode(kept.body)).changed(change)
        answer = await self._client.request("PUT", info.path(meta.namespace, meta.name), body=changed.encode())
        return msgspec.json.decode(answer, type=info.struct)

    def signal(self) -> ClockSignal:
        return ClockSignal(self._clock)


class ClockSignal:
    """Wakes one waiter, in the time of a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Returns when `set` was called since the last wait, at the latest after so many seconds."""
        with suppress(TimeoutError):
            async with aio.deadline(self._clock, seconds):
                await self._event.wait()
        self._event.clear()
