"""Namespaces that are being deleted: everything in them goes, then they do.

Upstream: `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.client.errors import NotFound
from skedge.controlplane.controllers.base import Context, Controller
from skedge.controlplane.controllers.discovery import kept_kinds
from skedge.controlplane.controllers.kinds import EVENT, NAMESPACE, Kind
from skedge.controlplane.controllers.objects import key_of

JSON = dict[str, Any]

_FINALIZER = "kubernetes"
_AGAIN = 1.0
"""Seconds until a namespace that still holds something is looked at again."""


class Namespaces(Controller):
    name = "namespace"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.objects = context.owned(NAMESPACE)
        self.watch(self.objects, key_of)
        self._kinds: list[Kind] = []

    async def reconcile(self, key: str) -> float | None:
        obj = self.objects.store.get(key)
        if obj is None:
            self.forget(key)
            return None
        finalizers = obj["spec"].get("finalizers") or []
        if "deletionTimestamp" not in obj["metadata"] or _FINALIZER not in finalizers:
            return None
        if not self._kinds:
            kinds = [kind for kind in await kept_kinds(self.client) if kind.namespaced]
            self._kinds = sorted(kinds, key=lambda kind: kind == EVENT)  # what the others' end causes goes last
        left = False
        for kind in self._kinds:
            left |= await self._empty(kind, key)
        if left:
            return _AGAIN
        body = {**obj, "spec": {**obj["spec"], "finalizers": [each for each in finalizers if each != _FINALIZER]}}
        try:
            await self.client.request("PUT", NAMESPACE.path(name=key, subresource="finalize"), body=body)
        except NotFound:
            pass
        return None

    async def _empty(self, kind: Kind, namespace: str) -> bool:
        """Delete what there is of a kind; whether there is still something."""
        path = kind.path(namespace)
        if not (await self.client.get(path, {"limit": 1})).get("items"):
            return False
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        await self.client.request("DELETE", path, body=body)
        return bool((await self.client.get(path, {"limit": 1})).get("items"))
