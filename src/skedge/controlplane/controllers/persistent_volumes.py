"""Claims and volumes: who is bound to whom, volumes made on demand, and what becomes of released ones.

    claim: Pending ──volume found──▶ volume.claimRef ──▶ claim.volumeName ──▶ Bound ──volume gone──▶ Lost
              │ class waits for a consumer: the scheduler's choice (selected-node, or a volume's claimRef) comes first
              └─no volume, class has a provisioner──▶ volume made for the claim
    volume: Available ──▶ Bound ──claim gone──▶ Released ──Delete──▶ gone

Upstream: `pkg/controller/volume/persistentvolume/{pv_controller,index}.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skedge.client.errors import AlreadyExists, NotFound
from skedge.client.rest import decode
from skedge.controlplane.controllers.base import Context, Controller, Outdated
from skedge.controlplane.controllers.kinds import CLAIM, NODES, STORAGE_CLASS, VOLUME
from skedge.controlplane.controllers.objects import key_of
from skedge.controlplane.controllers.provisioning import PROVISIONER, new_volume
from skedge.controlplane.controllers.volume_match import best_match, fits

JSON = dict[str, Any]

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_VOLUME_KEY = "volume:"


class PersistentVolumes(Controller):
    """Keys are `namespace/name` of claims and `volume:NAME`; one worker, so that no volume is given twice."""

    name = "persistentvolume"
    workers = 1

    def __init__(self, context: Context, provisioners: frozenset[str] = frozenset({PROVISIONER})) -> None:
        """`provisioners` are those whose volumes are made here; claims of others wait for somebody else."""
        super().__init__(context)
        self._provisioners = provisioners
        self.claims, self.volumes = context.owned(CLAIM), context.owned(VOLUME)
        self.classes, self.nodes = context.owned(STORAGE_CLASS), context.informer(NODES)
        self.watch(self.claims, key_of)
        self.watch(self.claims, lambda claim: _volume_key(claim["spec"].get("volumeName", "")))
        self.watch(self.volumes, lambda volume: _volume_key(volume["metadata"]["name"]))
        self.watch(self.volumes, _claim_key)
        self.volumes.add_handler(
            on_add=lambda volume, _: self._freed(None, volume), on_update=lambda old, new: self._freed(old, new)
        )
        self.classes.add_handler(on_add=lambda *_: self._pending())

    async def reconcile(self, key: str) -> float | None:
        if key.startswith(_VOLUME_KEY):
            name = key.removeprefix(_VOLUME_KEY)
            volume = self.volumes.store.get(name)
            if volume is not None:
                await self._sync_volume(volume)
        else:
            claim = self.claims.store.get(key)
            if claim is not None:
                await self._sync_claim(claim)
        self.forget(key)
        return None

    # --- claims

    async def _sync_claim(self, claim: JSON) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        if "deletionTimestamp" in meta:
            return
        annotations = meta.get("annotations") or {}
        name = spec.get("volumeName", "")
        if BIND_COMPLETED in annotations:
            volume = self.volumes.store.get(name) if name else None
            if volume is None or (ref := volume["spec"].get("claimRef")) is None or ref.get("uid") != meta["uid"]:
                if volume is not None and volume["spec"].get("claimRef") is None:
                    await self._bind(claim, volume)
                    return
                await self._set_phase(CLAIM, claim, {"phase": "Lost"}, keep=False)
                return
            await self._bind(claim, volume)
            return
        if name:
            await self._take_named(claim, name)
            return
        volume = self._match(claim)
        if volume is not None:
            await self._bind(claim, volume)
        else:
            await self._provision(claim)

    async def _take_named(self, claim: JSON, name: str) -> None:
        """The claim asks for one volume by name."""
        volume = self.volumes.store.get(name)
        ref = volume["spec"].get("claimRef") if volume is not None else None
        if volume is None or (ref is not None and not _refers(ref, claim)):
            await self._set_phase(CLAIM, claim, {"phase": "Pending"})
        elif fits(claim, volume):
            await self._bind(claim, volume)
        else:
            self.event(claim, CLAIM, "Warning", "VolumeMismatch", "Cannot bind to requested volume")

    def _match(self, claim: JSON) -> JSON | None:
        """The volume to bind: one reserved for the claim, else the smallest that fits; none while a consumer is
        waited for."""
        volumes = [each for each in self.volumes.store if "deletionTimestamp" not in each["metadata"]]
        reserved = [each for each in volumes if _refers(each["spec"].get("claimRef"), claim)]
        if reserved:
            return reserved[0]
        if self._waits(claim):
            return None
        return best_match(claim, [each for each in volumes if each["spec"].get("claimRef") is None])

    def _waits(self, claim: JSON) -> bool:
        storage_class = self.classes.store.get(claim["spec"].get("storageClassName") or "")
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    async def _bind(self, claim: JSON, volume: JSON) -> None:
        """Make claim and volume refer to each other, and both Bound; each step only where it is missing."""
        meta, spec = claim["metadata"], volume["spec"]
        ref = spec.get("claimRef")
        if ref is None or ref.get("uid") != meta["uid"]:
            reserved = ref is not None
            wanted = {"kind": CLAIM.name, "apiVersion": "v1", "namespace": meta["namespace"], "name": meta["name"]}
            wanted |= {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
            mark = {} if reserved else {BOUND_BY_CONTROLLER: "yes"}
            body = _annotated(volume, mark)
            body["spec"] = {**spec, "claimRef": wanted}
            volume = await self._put(VOLUME.of(volume), body)
        volume = await self._set_phase(VOLUME, volume, {"phase": "Bound"})
        annotations = meta.get("annotations") or {}
        name = volume["metadata"]["name"]
        if claim["spec"].get("volumeName") != name or BIND_COMPLETED not in annotations:
            mark = {BIND_COMPLETED: "yes"}
            if not claim["spec"].get("volumeName"):
                mark[BOUND_BY_CONTROLLER] = "yes"
            body = _annotated(claim, mark)
            body["spec"] = {**claim["spec"], "volumeName": name}
            claim = await self._put(CLAIM.of(claim), body)
        status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["capacity"]}
        await self._set_phase(CLAIM, claim, status)

    async def _provision(self, claim: JSON) -> None:
        """Have a volume made, when the class says by whom and a consumer need not be waited for."""
        name = claim["spec"].get("storageClassName") or ""
        storage_class = self.classes.store.get(name)
        if storage_class is None:
            if name:
                text = f'storageclass.storage.k8s.io "{name}" not found'
                self.event(claim, CLAIM, "Warning", "ProvisioningFailed", text)
            else:
                text = "no persistent volumes available for this claim and no storage class is set"
                self.event(claim, CLAIM, "Normal", "FailedBinding", text)
            return
        annotations = claim["metadata"].get("annotations") or {}
        node = None
        if self._waits(claim):
            if SELECTED_NODE not in annotations:
                text = "waiting for first consumer to be created before binding"
                self.event(claim, CLAIM, "Normal", "WaitForFirstConsumer", text)
                return
            node = self.nodes.store.get(annotations[SELECTED_NODE])
        provisioner = storage_class["provisioner"]
        if provisioner == _NO_PROVISIONER:
            return
        if annotations.get(_STORAGE_PROVISIONER) != provisioner:
            mark = {_STORAGE_PROVISIONER: provisioner, f"volume.beta.{_STORAGE_PROVISIONER[7:]}": provisioner}
            claim = await self._put(CLAIM.of(claim), _annotated(claim, mark))
        if provisioner not in self._provisioners:
            text = f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually "
            text += "by the system administrator. If volume creation is delayed, please verify that the provisioner is "
            self.event(claim, CLAIM, "Normal", "ExternalProvisioning", text + "running and correctly registered.")
            return
        volume = new_volume(claim, storage_class, node)
        try:
            created = await self.client.create(VOLUME.path(), volume)
        except AlreadyExists:
            raise Outdated("the volume was made before") from None
        text = f"Successfully provisioned volume {volume['metadata']['name']}"
        self.event(claim, CLAIM, "Normal", "ProvisioningSucceeded", text)
        await self._bind(claim, created)

    # --- volumes

    async def _sync_volume(self, volume: JSON) -> None:
        ref = volume["spec"].get("claimRef")
        if "deletionTimestamp" in volume["metadata"]:
            if ref is not None and ref.get("uid") and self._claim_of(ref) is None:
                await self._release(volume)
            return
        if ref is None or not ref.get("uid"):
            await self._set_phase(VOLUME, volume, {"phase": "Available"})
            return
        claim = self._claim_of(ref)
        if claim is not None:
            if claim["spec"].get("volumeName") == volume["metadata"]["name"]:
                await self._bind(claim, volume)
            return  # the claim's own round binds it
        if not await self._is_gone(ref):
            return
        await self._release(volume)

    def _claim_of(self, ref: JSON) -> JSON | None:
        claim = self.claims.store.get(f"{ref.get('namespace')}/{ref.get('name')}")
        return claim if claim is not None and claim["metadata"]["uid"] == ref.get("uid") else None

    async def _is_gone(self, ref: JSON) -> bool:
        """Asks the server: the informer may be behind a claim that is new."""
        try:
            found = await self.client.get(CLAIM.path(ref.get("namespace", ""), ref.get("name", "")))
        except NotFound:
            return True
        return bool(found["metadata"]["uid"] != ref.get("uid"))

    async def _release(self, volume: JSON) -> None:
        """The claim is gone: keep the volume for an administrator, or delete it."""
        volume = await self._set_phase(VOLUME, volume, {"phase": "Released"})
        spec = volume["spec"]
        maker = (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY)
        if spec.get("persistentVolumeReclaimPolicy") != "Delete" or maker not in self._provisioners:
            return
        if "deletionTimestamp" not in volume["metadata"]:
            await self.client.request("DELETE", VOLUME.of(volume))

    # --- writing

    async def _put(self, path: str, body: JSON) -> JSON:
        answer: JSON = decode(await self.client.request("PUT", path, body=body))
        return answer

    async def _set_phase(self, kind: Any, obj: JSON, status: JSON, *, keep: bool = True) -> JSON:
        """Write a status if it is news (with `keep`: over the other fields of the present one); the object then."""
        before = obj.get("status") or {}
        wanted = {**before, **status} if keep else status
        if wanted == before:
            return obj
        return await self._put(kind.of(obj, "status"), {**obj, "status": wanted})

    # --- who is meant

    def _freed(self, old: JSON | None, new: JSON) -> None:
        """A volume nobody has may be what a pending claim waits for."""
        if new["spec"].get("claimRef") is None and (old is None or old["spec"].get("claimRef") is not None):
            self._pending()

    def _pending(self) -> None:
        for claim in self.claims.store:
            if (claim.get("status") or {}).get("phase") == "Pending":
                self.enqueue(key_of(claim))


def with_provisioners(provisioners: frozenset[str]) -> Callable[[Context], PersistentVolumes]:
    """The controller for other provisioners than the fake one."""
    return lambda context: PersistentVolumes(context, provisioners)


def _volume_key(name: str) -> str | None:
    return f"{_VOLUME_KEY}{name}" if name else None


def _claim_key(volume: JSON) -> str | None:
    ref = volume["spec"].get("claimRef")
    return f"{ref.get('namespace')}/{ref.get('name')}" if ref else None


def _refers(ref: JSON | None, claim: JSON) -> bool:
    """Whether a volume's reference means the claim; one without UID was made by an administrator."""
    meta = claim["metadata"]
    if ref is None or (ref.get("namespace"), ref.get("name")) != (meta["namespace"], meta["name"]):
        return False
    return ref.get("uid", "") in ("", meta["uid"])


def _annotated(obj: JSON, annotations: dict[str, str]) -> JSON:
    meta = obj["metadata"]
    if not annotations:
        return dict(obj)
    return {**obj, "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), **annotations}}}
