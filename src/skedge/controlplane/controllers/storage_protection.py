"""Claims, volumes and volume attributes classes that are being deleted stay while they are used.

Admission gives each a finalizer; it is taken off a claim that no pod on a node has, a volume that is not bound, a class
that no claim or volume names. Upstream: `pkg/controller/volume/{pvc,pv,vac}protection`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from skedge.client.informer import Informer
from skedge.controlplane.controllers.base import Context, Controller, last
from skedge.controlplane.controllers.kinds import ATTRIBUTES_CLASS, CLAIM, VOLUME, Kind
from skedge.controlplane.controllers.objects import Pod, key_of

JSON = dict[str, Any]

_USERS, _ATTRIBUTES = "claims", "attributes"


class _Protected(NamedTuple):
    """A kind that is protected: where its objects are, and its finalizer."""

    kind: Kind
    objects: Informer[JSON]
    finalizer: str


class StorageProtection(Controller):
    """Keys are `plural:KEY`."""

    name = "storage-protection"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.pods
        self.pods.add_indexer(_USERS, _claims_of)
        finalizers = {CLAIM: "pvc-protection", VOLUME: "pv-protection", ATTRIBUTES_CLASS: "vac-protection"}
        self._protected = {
            kind.plural: _Protected(kind, context.owned(kind), f"kubernetes.io/{name}")
            for kind, name in finalizers.items()
        }
        for each in self._protected.values():
            self.watch(each.objects, lambda obj, each=each: self._key(each, obj))  # type: ignore[misc]
        self._claims, self._volumes, self._classes = (each.objects for each in self._protected.values())
        for users in (self._claims, self._volumes):
            users.add_indexer(_ATTRIBUTES, _classes_of)
            users.add_handler(
                on_update=lambda old, _: self._let_go(self._classes, _classes_of(old)),
                on_delete=lambda obj: self._let_go(self._classes, _classes_of(last(obj))),
            )
        self.pods.add_handler(on_update=lambda _, pod: self._pod_going(pod), on_delete=lambda pod: self._pod_gone(pod))

    async def reconcile(self, key: str) -> float | None:
        plural, _, name = key.partition(":")
        kind, objects, finalizer = self._protected[plural]
        obj = objects.store.get(name)
        if obj is not None and finalizer in _ends(obj) and not self._is_used(kind, name, obj):
            meta = obj["metadata"]
            kept = [each for each in meta["finalizers"] if each != finalizer]
            body = {**obj, "metadata": {**meta, "finalizers": kept}}
            await self.client.request("PUT", kind.of(obj), body=body)
        self.forget(key)
        return None

    def _is_used(self, kind: Kind, name: str, obj: JSON) -> bool:
        if kind is CLAIM:
            return bool(self.pods.store.by_index(_USERS, name))
        if kind is VOLUME:
            return bool((obj.get("status") or {}).get("phase") == "Bound")
        return any(each.store.by_index(_ATTRIBUTES, name) for each in (self._claims, self._volumes))

    def _pod_going(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._let_go(self._claims, _claims_of(pod))

    def _pod_gone(self, pod: Any) -> None:
        self._let_go(self._claims, _named_by(last(pod)))

    def _let_go(self, objects: Informer[JSON], keys: list[str]) -> None:
        """Something that named these does so no longer, perhaps."""
        each = next(each for each in self._protected.values() if each.objects is objects)
        for key in keys:
            obj = objects.store.get(key)
            if obj is not None and (found := self._key(each, obj)):
                self.enqueue(found)

    def _key(self, protected: _Protected, obj: JSON) -> str | None:
        return f"{protected.kind.plural}:{key_of(obj)}" if protected.finalizer in _ends(obj) else None


def _ends(obj: JSON) -> list[str]:
    """The finalizers that an object waits for."""
    meta = obj["metadata"]
    return (meta.get("finalizers") or []) if "deletionTimestamp" in meta else []


def _claims_of(pod: Pod) -> list[str]:
    """Keys of the claims a pod uses: no kubelet knows of one that has no node."""
    return _named_by(pod) if pod.spec.node_name else []


def _named_by(pod: Pod) -> list[str]:
    meta, found = pod.metadata, []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(f"{meta.namespace}/{volume.persistent_volume_claim.claim_name}")
        elif volume.ephemeral is not None:
            found.append(f"{meta.namespace}/{meta.name}-{volume.name}")
    return found


def _classes_of(user: JSON) -> list[str]:
    """The attributes classes a claim or a volume names."""
    spec, status = user["spec"], user.get("status") or {}
    modifying = status.get("modifyVolumeStatus") or {}
    named = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        modifying.get("targetVolumeAttributesClassName"),
    )
    return list({name for name in named if name})
