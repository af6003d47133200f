"""Quotas: `status` says what is allowed and what is used.

The server charges new objects itself; here is counted again what ended or went. Upstream:
`pkg/controller/resourcequota/resource_quota_controller.go`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from skedge.controlplane.controllers.base import NAMESPACE, Context, Controller, Loop, last
from skedge.controlplane.controllers.discovery import kept_kinds
from skedge.controlplane.controllers.kinds import POD, QUOTA, Kind
from skedge.controlplane.controllers.objects import Pod, key_of, meta_of
from skedge.controlplane.quantities import format_quantity
from skedge.controlplane.usage import MEASURES, Amounts, add, counted_by, in_scope, measured

JSON = dict[str, Any]

RESYNC = 300.0
_PAGE = 500
_PACE = 1.0
"""Seconds between two counts of a namespace in which pods end one after another."""


class Quotas(Controller):
    name = "resource-quota"
    workers = 2

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.quotas = context.owned(QUOTA)
        self._kinds: dict[str, Kind] = {}
        self.quotas.add_handler(on_add=lambda quota, _: self.enqueue(key_of(quota)), on_update=self._changed)
        context.pods.add_handler(on_update=self._ended, on_delete=lambda pod: self._freed(last(pod).metadata.namespace))
        self._followed = {POD}

    def loops(self) -> list[Loop]:
        return [self.resync]

    async def resync(self) -> None:
        """Count everything again from time to time, as upstream does."""
        await self.every(RESYNC, self._all)

    async def _all(self) -> None:
        for quota in self.quotas.store:
            self.enqueue(key_of(quota))

    def _changed(self, old: JSON, new: JSON) -> None:
        if old.get("spec") != new.get("spec"):  # its status changes with every pod that is charged
            self.enqueue(key_of(new))

    def _ended(self, old: Pod, new: Pod) -> None:
        if new.is_finished and not old.is_finished:
            self._freed(new.metadata.namespace)

    def _freed(self, namespace: str) -> None:
        for quota in self.quotas.store.by_index(NAMESPACE, namespace):
            self.queue.add_after(key_of(quota), _PACE)

    def _follow(self, kind: Kind) -> None:
        """Count again when objects of a kind go, or ask for less."""
        if kind in self._followed:
            return
        self._followed.add(kind)

        def freed(obj: Any) -> None:
            self._freed(meta_of(obj).namespace)

        changes = (lambda _, obj: freed(obj)) if _qualified(kind) in MEASURES else None
        self.context.any_informer(kind).add_handler(on_update=changes, on_delete=lambda obj: freed(last(obj)))
        self.context.factory.start()

    async def reconcile(self, key: str) -> float | None:
        self.forget(key)
        quota = self.quotas.store.get(key)
        if quota is None or "deletionTimestamp" in quota["metadata"]:
            return None
        hard: dict[str, str] = (quota.get("spec") or {}).get("hard") or {}
        namespace = quota["metadata"]["namespace"]
        used: Amounts = {}
        for resource in dict.fromkeys(map(counted_by, hard)):
            kind = await self._kind(resource)
            if kind is None:
                continue
            self._follow(kind)
            if resource in MEASURES:
                used |= await self._sum(kind, resource, quota, namespace)
            else:
                number = Fraction(await self._number(kind, namespace))
                used |= {name: number for name in hard if counted_by(name) == resource}
        amounts = {name: format_quantity(used.get(name, Fraction(0)), hard[name]) for name in hard if counted_by(name)}
        await self.update_status(QUOTA, quota, {"hard": hard, "used": amounts} if hard else {})
        return None

    async def _sum(self, kind: Kind, resource: str, quota: JSON, namespace: str) -> Amounts:
        total: Amounts = {}
        query: JSON = {"limit": _PAGE}
        while True:
            page = await self.client.get(kind.path(namespace), query)
            for obj in page["items"]:
                facts, amounts = measured(resource, obj)
                if in_scope(quota, facts):
                    add(total, amounts)
            query["continue"] = page["metadata"].get("continue")
            if not query["continue"]:
                return total

    async def _kind(self, resource: str) -> Kind | None:
        """The kind of a resource (`deployments.apps`); None of one that is not served."""
        if not self._kinds:
            self._kinds = {_qualified(kind): kind for kind in await kept_kinds(self.client) if kind.namespaced}
        return self._kinds.get(resource)

    async def _number(self, kind: Kind, namespace: str) -> int:
        """How many objects of a kind a namespace has."""
        page = await self.client.get(kind.path(namespace), {"limit": 1})
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


def _qualified(kind: Kind) -> str:
    group = kind.api_version.rpartition("/")[0]
    return f"{kind.plural}.{group}" if group else kind.plural
