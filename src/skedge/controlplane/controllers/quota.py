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
from skedge.controlplane.controllers.objects import Pod, key_of
from skedge.controlplane.quantities import format_quantity
from skedge.controlplane.usage import Amounts, add, counted_by, facts_of, in_scope, pod_usage

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
        context.pods.add_handler(on_update=self._ended, on_delete=lambda pod: self._freed(last(pod)))

    def loops(self) -> list[Loop]:
        return [self.resync]

    async def resync(self) -> None:
        """Count everything again from time to time: kinds other than pods are not watched."""
        await self.every(RESYNC, self._all)

    async def _all(self) -> None:
        for quota in self.quotas.store:
            self.enqueue(key_of(quota))

    def _changed(self, old: JSON, new: JSON) -> None:
        if old.get("spec") != new.get("spec"):  # its status changes with every pod that is charged
            self.enqueue(key_of(new))

    def _ended(self, old: Pod, new: Pod) -> None:
        if new.is_finished and not old.is_finished:
            self._freed(new)

    def _freed(self, pod: Pod) -> None:
        for quota in self.quotas.store.by_index(NAMESPACE, pod.metadata.namespace):
            self.queue.add_after(key_of(quota), _PACE)

    async def reconcile(self, key: str) -> float | None:
        self.forget(key)
        quota = self.quotas.store.get(key)
        if quota is None or "deletionTimestamp" in quota["metadata"]:
            return None
        hard: dict[str, str] = (quota.get("spec") or {}).get("hard") or {}
        namespace = quota["metadata"]["namespace"]
        used: Amounts = {}
        pods_counted = False
        for name in hard:
            resource = counted_by(name)
            if resource:
                used[name] = Fraction(await self._number(resource, namespace))
            elif resource is None and not pods_counted:
                pods_counted = True
                used |= await self._of_pods(quota, namespace)
        amounts = {name: format_quantity(used.get(name, Fraction(0))) for name in hard if counted_by(name) != ""}
        await self.update_status(QUOTA, quota, {"hard": hard, "used": amounts} if hard else {})
        return None

    async def _of_pods(self, quota: JSON, namespace: str) -> Amounts:
        total: Amounts = {}
        query: JSON = {"limit": _PAGE}
        while True:
            page = await self.client.get(POD.path(namespace), query)
            for pod in page["items"]:
                if in_scope(quota, facts_of(pod["spec"])):
                    add(total, pod_usage(pod["spec"], pod["status"].get("phase", "")))
            query["continue"] = page["metadata"].get("continue")
            if not query["continue"]:
                return total

    async def _number(self, resource: str, namespace: str) -> int:
        """How many objects of a resource (`deployments.apps`) a namespace has; 0 of one that is not served."""
        if not self._kinds:
            self._kinds = {_qualified(kind): kind for kind in await kept_kinds(self.client)}
        kind = self._kinds.get(resource)
        if kind is None:
            return 0
        page = await self.client.get(kind.path(namespace), {"limit": 1})
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


def _qualified(kind: Kind) -> str:
    group = kind.api_version.rpartition("/")[0]
    return f"{kind.plural}.{group}" if group else kind.plural
