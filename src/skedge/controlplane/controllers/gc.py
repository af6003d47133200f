"""Owner references: what is owned by nothing that lives is deleted; foreground deletion and orphaning.

    owner gone ──▶ its dependents: another owner lives? ── yes ──▶ the reference is taken out
                                          └── no ──▶ deleted
    owner going, finalizer foregroundDeletion ──▶ dependents deleted first; none blocks any more ──▶ finalizer taken out
    owner going, finalizer orphan ──▶ references to it taken out of its dependents ──▶ finalizer taken out

Upstream: `pkg/controller/garbagecollector/{garbagecollector,graph_builder}.go`.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from skedge.client import aio
from skedge.client.errors import ClientError, NotFound, one_line
from skedge.client.rest import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import Context, Controller, last
from skedge.controlplane.controllers.discovery import kept_kinds
from skedge.controlplane.controllers.kinds import EVENT, Kind
from skedge.controlplane.controllers.objects import Meta, Owned, OwnerRef, meta_of
from skedge.controlplane.controllers.owning import together

log = logging.getLogger(__name__)

JSON = dict[str, Any]

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class _Item(NamedTuple):
    kind: Kind
    meta: Meta

    @property
    def path(self) -> str:
        return self.kind.path(self.meta.namespace, self.meta.name)

    def is_going(self, finalizer: str) -> bool:
        """Whether it is being deleted and waits for what this finalizer stands for."""
        return self.meta.deletion_timestamp is not None and finalizer in (self.meta.finalizers or ())


class GarbageCollector(Controller):
    """Keys are UIDs."""

    name = "garbage"
    workers = 16

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._items: dict[str, _Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._ready = False

    async def run(self) -> None:
        await self.context.factory.wait_for_sync()
        for kind in await self._served():
            if kind != EVENT:
                self._kinds[kind.api_version, kind.name] = kind
                self._follow(kind)
        self.context.factory.start()
        await self.context.factory.wait_for_sync()
        self._ready = True
        for uid, item in self._items.items():
            self._judge(uid, item)
        await super().run()

    async def _served(self) -> list[Kind]:
        """Asks until the server answers."""
        while True:
            try:
                return await kept_kinds(self.client)
            except ClientError as error:
                log.warning("garbage: the kinds of the server are not known yet: %s", one_line(error))
                await aio.sleep(self.clock, 1.0)

    def _follow(self, kind: Kind) -> None:
        self.context.any_informer(kind).add_handler(
            on_add=lambda obj, _: self._seen(_Item(kind, meta_of(obj))),
            on_update=lambda _, obj: self._seen(_Item(kind, meta_of(obj))),
            on_delete=lambda obj: self._gone(meta_of(last(obj))),
        )

    # --- the graph

    def _seen(self, item: _Item) -> None:
        uid, old = item.meta.uid, self._items.get(item.meta.uid)
        self._items[uid] = item
        refs = item.meta.owner_references or ()
        before = old.meta.owner_references or () if old is not None else ()
        if refs != before:
            for ref in before:
                self._unlink(ref.uid, uid)
            for ref in refs:
                self._dependents.setdefault(ref.uid, {})[uid] = None
        if self._ready:
            self._judge(uid, item)

    def _judge(self, uid: str, item: _Item) -> None:
        """Enqueue an object if there may be something to do about it."""
        if item.is_going(ORPHAN) or item.is_going(FOREGROUND):
            self.enqueue(uid)
        elif item.meta.deletion_timestamp is None:
            for ref in item.meta.owner_references or ():
                owner = self._items.get(ref.uid)
                if owner is None or owner.is_going(FOREGROUND):
                    self.enqueue(uid)
                    return

    def _gone(self, meta: Meta) -> None:
        item = self._items.pop(meta.uid, None)
        self.forget(meta.uid)
        for dependent in self._dependents.get(meta.uid, ()):
            self.enqueue(dependent)
        for ref in (item.meta.owner_references or ()) if item is not None else ():
            self._unlink(ref.uid, meta.uid)
            owner = self._items.get(ref.uid)
            if owner is not None and owner.is_going(FOREGROUND):
                self.enqueue(ref.uid)

    def _unlink(self, owner: str, dependent: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.pop(dependent, None)
            if not dependents:
                del self._dependents[owner]

    # --- what is done

    async def reconcile(self, key: str) -> float | None:
        item = self._items.get(key)
        if item is None:
            self.forget(key)
        elif item.is_going(ORPHAN):
            await self._orphan(item)
        elif item.is_going(FOREGROUND):
            await self._wait_for_dependents(item)
        elif item.meta.deletion_timestamp is None and item.meta.owner_references:
            await self._keep_or_delete(item)
        return None

    async def _keep_or_delete(self, item: _Item) -> None:
        lives = False
        useless: list[str] = []
        waiting = False
        for ref in item.meta.owner_references or ():
            owner = self._items.get(ref.uid)
            if owner is None and not await self._exists(ref, item.meta.namespace):
                useless.append(ref.uid)
            elif owner is not None and owner.is_going(FOREGROUND):
                waiting = True
                useless.append(ref.uid)
            else:
                lives = True
        if lives:
            if useless:
                await self._remove_references(item, useless)
            return
        finalizers = item.meta.finalizers or ()
        if (waiting and self._dependents.get(item.meta.uid)) or FOREGROUND in finalizers:
            policy = "Foreground"
        else:
            policy = "Orphan" if ORPHAN in finalizers else "Background"
        preconditions = {"uid": item.meta.uid, "resourceVersion": item.meta.resource_version}
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": policy,
            "preconditions": preconditions,
        }
        await self.client.request("DELETE", item.path, body=body)

    async def _exists(self, ref: OwnerRef, namespace: str) -> bool:
        """Asks the server; an owner of a kind nobody knows counts as living."""
        kind = self._kinds.get((ref.api_version, ref.kind))
        if kind is None:
            return True
        try:
            found = await self.client.get_as(Owned, kind.path(namespace, ref.name))
        except NotFound:
            return False
        return found.metadata.uid == ref.uid

    async def _wait_for_dependents(self, item: _Item) -> None:
        blocking = False
        for uid in [*self._dependents.get(item.meta.uid, ())]:
            dependent = self._items[uid]
            self._judge(uid, dependent)
            refs = dependent.meta.owner_references or ()
            blocking |= any(ref.uid == item.meta.uid and ref.block_owner_deletion for ref in refs)
        if not blocking:
            await self._remove_finalizer(item, FOREGROUND)

    async def _orphan(self, item: _Item) -> None:
        dependents = [self._items[uid] for uid in self._dependents.get(item.meta.uid, ())]
        await together(self._remove_references(each, [item.meta.uid]) for each in dependents)
        await self._remove_finalizer(item, ORPHAN)

    async def _remove_references(self, item: _Item, uids: list[str]) -> None:
        refs: list[JSON] = [{"$patch": "delete", "uid": uid} for uid in uids]
        body = {"metadata": {"uid": item.meta.uid, "ownerReferences": refs}}
        try:
            await self.client.request("PATCH", item.path, body=body, content_type=STRATEGIC_MERGE_PATCH)
        except NotFound:
            pass

    async def _remove_finalizer(self, item: _Item, finalizer: str) -> None:
        meta = item.meta
        kept = [each for each in meta.finalizers or () if each != finalizer]
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": kept}}
        await self.client.request("PATCH", item.path, body=body, content_type=MERGE_PATCH)
