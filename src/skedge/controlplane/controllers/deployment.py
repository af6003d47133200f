"""Deployments: one replica set a template, replaced step by step or all at once, with a history to go back to.

What replica sets should have is worked out in rollout.py, what the status says in deployment_status.py. Upstream:
`pkg/controller/deployment/{deployment_controller,sync,rolling,recreate,progress}.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.client.errors import AlreadyExists, NotFound
from skedge.client.rest import decode
from skedge.controlplane.controllers import deployment_status as report
from skedge.controlplane.controllers import rollout
from skedge.controlplane.controllers.base import NAMESPACE, OWNER, Context, Controller, Outdated
from skedge.controlplane.controllers.kinds import DEPLOYMENT, REPLICA_SET
from skedge.controlplane.controllers.objects import Meta, Pod, key_of, meta_of, owner_reference
from skedge.controlplane.controllers.owning import claim, selector_of
from skedge.controlplane.controllers.revisions import number, template_hash
from skedge.controlplane.controllers.rollout import DESIRED, HASH_LABEL, MAXIMUM, REVISION

JSON = dict[str, Any]

_HISTORY = "deployment.kubernetes.io/revision-history"
_NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    _HISTORY,
    DESIRED,
    MAXIMUM,
}


class Deployments(Controller):
    name = "deployment"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.objects = context.owned(DEPLOYMENT)
        self.sets = context.owned(REPLICA_SET)
        self.pods = context.pods
        self.watch(self.objects, key_of)
        self.watch(self.sets, lambda obj: self._owner_key(meta_of(obj)))
        self.sets.add_handler(on_add=lambda obj, _: self._orphan(obj))
        self.watch(self.pods, self._deployment_waiting_for)

    async def reconcile(self, key: str) -> float | None:
        obj = self.objects.store.get(key)
        if obj is None:
            self.forget(key)
            return None
        sets = await claim(self, DEPLOYMENT, obj, selector_of(obj), self.sets, REPLICA_SET)
        if "deletionTimestamp" in obj["metadata"]:
            return await self._report(obj, *rollout.split(obj, sets))
        spec = obj["spec"]
        if spec.get("paused") or rollout.is_scaling(obj, sets):
            return await self._scale_only(obj, sets)
        if spec.get("strategy", {}).get("type") == "Recreate":
            return await self._recreate(obj, sets)
        return await self._roll(obj, sets)

    # --- strategies

    async def _scale_only(self, obj: JSON, sets: list[JSON]) -> float | None:
        new, old = rollout.split(obj, sets)
        if new is not None:
            new, obj = await self._renumber(obj, new, old)
        for each, size in rollout.proportional(obj, new, old):
            await self._resize(obj, each, size)
        if obj["spec"].get("paused") and not [each for each in old if rollout.wanted(each)]:
            await self._clean_up(obj, old)
        return await self._report(obj, new, old)

    async def _recreate(self, obj: JSON, sets: list[JSON]) -> float | None:
        new, old = rollout.split(obj, sets)
        going = [each for each in old if rollout.wanted(each)]
        if going:
            for each in going:
                await self._resize(obj, each, 0)
            return await self._report(obj, new, old)
        if any(not pod.is_finished for each in old for pod in self._pods_of(each)):
            return await self._report(obj, new, old)
        new, obj, created = await self._new_set(obj, new, old)
        await self._resize(obj, new, rollout.size_of(obj))
        if report.is_complete(obj, obj.get("status") or {}):
            await self._clean_up(obj, old)
        return await self._report(obj, new, old, created)

    async def _roll(self, obj: JSON, sets: list[JSON]) -> float | None:
        new, old = rollout.split(obj, sets)
        new, obj, created = await self._new_set(obj, new, old)
        size = rollout.new_size(obj, new, old)
        if size != rollout.wanted(new):
            await self._resize(obj, new, size)
            return await self._report(obj, new, old, created)
        shrunk = rollout.shrink(obj, new, old)
        for each, size in shrunk:
            await self._resize(obj, each, size)
        if not shrunk and report.is_complete(obj, obj.get("status") or {}):
            await self._clean_up(obj, old)
        return await self._report(obj, new, old, created)

    # --- replica sets

    async def _new_set(self, obj: JSON, new: JSON | None, old: list[JSON]) -> tuple[JSON, JSON, bool]:
        """The replica set of the present template, the deployment as it is then, and whether the set was made now."""
        if new is not None:
            return *await self._renumber(obj, new, old), False
        meta, spec = obj["metadata"], obj["spec"]
        collisions = (obj.get("status") or {}).get("collisionCount", 0)
        digest = template_hash(spec["template"], collisions)
        template = {**spec["template"], "metadata": dict(spec["template"].get("metadata") or {})}
        template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), HASH_LABEL: digest}
        selector = dict(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
        size, revision = rollout.new_size(obj, None, old), str(rollout.highest_revision(old) + 1)
        replica_set: JSON = {
            "apiVersion": REPLICA_SET.api_version,
            "kind": REPLICA_SET.name,
            "metadata": {
                "name": f"{meta['name']}-{digest}",
                "namespace": meta["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": {**_copied(meta), REVISION: revision, **rollout.size_annotations(obj)},
                "ownerReferences": [owner_reference(obj, DEPLOYMENT.api_version, DEPLOYMENT.name)],
            },
            "spec": {"replicas": size, "selector": selector, "template": template},
        }
        if spec.get("minReadySeconds"):
            replica_set["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        try:
            created: JSON = await self.client.create(REPLICA_SET.path(meta["namespace"]), replica_set)
        except AlreadyExists:
            created = await self._existing(obj, replica_set)
        else:
            self._told_scaling(obj, created, 0, size)
        return created, await self._set_revision(obj, revision), True

    async def _existing(self, obj: JSON, wanted: JSON) -> JSON:
        """The set of this name, if it is ours (our informer is behind); else note the collision, for another name."""
        found: JSON = await self.client.get(REPLICA_SET.of(wanted))
        refs = found["metadata"].get("ownerReferences") or ()
        ours = any(ref.get("controller") and ref.get("uid") == obj["metadata"]["uid"] for ref in refs)
        if ours and rollout.same_template(found["spec"]["template"], obj["spec"]["template"]):
            return found
        status = dict(obj.get("status") or {})
        status["collisionCount"] = status.get("collisionCount", 0) + 1
        await self.update_status(DEPLOYMENT, obj, status)
        raise Outdated(f"the name {wanted['metadata']['name']} is taken")

    async def _renumber(self, obj: JSON, new: JSON, old: list[JSON]) -> tuple[JSON, JSON]:
        """Give the present set the highest revision, and the deployment's annotations."""
        meta = new["metadata"]
        annotations = meta.get("annotations") or {}
        wanted = {**annotations, **_copied(obj["metadata"])}
        present, highest = number(annotations.get(REVISION)), rollout.highest_revision(old) + 1
        if present < highest:
            if present:
                past = annotations.get(_HISTORY)
                wanted[_HISTORY] = f"{past},{present}" if past else str(present)
            wanted[REVISION] = str(highest)
        ready = obj["spec"].get("minReadySeconds", 0)
        if wanted != annotations or new["spec"].get("minReadySeconds", 0) != ready:
            body = {
                **new,
                "metadata": {**meta, "annotations": wanted},
                "spec": {**new["spec"], "minReadySeconds": ready},
            }
            new = decode(await self.client.request("PUT", REPLICA_SET.of(new), body=body))
        return new, await self._set_revision(obj, wanted.get(REVISION, "1"))

    async def _set_revision(self, obj: JSON, revision: str) -> JSON:
        if (obj["metadata"].get("annotations") or {}).get(REVISION) == revision:
            return obj
        patch = {"metadata": {"annotations": {REVISION: revision}}}
        patched: JSON = await self.client.patch(DEPLOYMENT.of(obj), patch)
        return patched

    async def _resize(self, obj: JSON, replica_set: JSON, size: int) -> None:
        """Set a replica set's size, and what the deployment's size was then."""
        meta, before = replica_set["metadata"], rollout.wanted(replica_set)
        annotations = {**(meta.get("annotations") or {}), **rollout.size_annotations(obj)}
        if size == before and annotations == meta.get("annotations"):
            return
        body = {
            **replica_set,
            "metadata": {**meta, "annotations": annotations},
            "spec": {**replica_set["spec"], "replicas": size},
        }
        await self.client.request("PUT", REPLICA_SET.of(replica_set), body=body)
        if size != before:
            self._told_scaling(obj, replica_set, before, size)

    def _told_scaling(self, obj: JSON, replica_set: JSON, before: int, size: int) -> None:
        verb = "up" if size > before else "down"
        text = f"Scaled {verb} replica set {replica_set['metadata']['name']} from {before} to {size}"
        if size != before:
            self.event(obj, DEPLOYMENT, "Normal", "ScalingReplicaSet", text)

    async def _clean_up(self, obj: JSON, old: list[JSON]) -> None:
        """Delete the oldest empty sets beyond the history limit."""
        empty = [each for each in old if rollout.is_empty(each) and "deletionTimestamp" not in each["metadata"]]
        surplus = len(empty) - obj["spec"].get("revisionHistoryLimit", 10)
        if surplus <= 0:
            return
        empty.sort(key=lambda each: number((each["metadata"].get("annotations") or {}).get(REVISION)))
        for each in empty[:surplus]:
            try:
                await self.client.request("DELETE", REPLICA_SET.of(each))
            except NotFound:
                pass

    # --- status

    async def _report(self, obj: JSON, new: JSON | None, old: list[JSON], created: bool = False) -> float | None:
        timestamp = self.context.timestamp()
        status, again = report.status(obj, new, old, created=created, timestamp=timestamp, now=self.clock.now())
        await self.update_status(DEPLOYMENT, obj, status)
        return again

    # --- who is meant

    def _owner_key(self, meta: Meta) -> str | None:
        for ref in meta.owner_references or ():
            if ref.controller:
                return f"{meta.namespace}/{ref.name}" if ref.kind == DEPLOYMENT.name else None
        return None

    def _orphan(self, replica_set: JSON) -> None:
        meta = replica_set["metadata"]
        if meta.get("ownerReferences"):
            return
        for obj in self.objects.store.by_index(NAMESPACE, meta["namespace"]):
            if selector_of(obj).matches(meta.get("labels")):
                self.enqueue(key_of(obj))

    def _deployment_waiting_for(self, pod: Pod) -> str | None:
        """The deployment that waits for this pod to go before it makes new ones."""
        ref = pod.controller
        if ref is None or ref.kind != REPLICA_SET.name:
            return None
        replica_set = self.sets.store.get(f"{pod.metadata.namespace}/{ref.name}")
        key = None if replica_set is None else self._owner_key(meta_of(replica_set))
        obj = None if key is None else self.objects.store.get(key)
        recreates = obj is not None and obj["spec"].get("strategy", {}).get("type") == "Recreate"
        return key if recreates else None

    def _pods_of(self, replica_set: JSON) -> list[Pod]:
        return self.pods.store.by_index(OWNER, replica_set["metadata"]["uid"])


def _copied(meta: JSON) -> JSON:
    """The annotations of a deployment that its replica sets carry too."""
    return {name: text for name, text in (meta.get("annotations") or {}).items() if name not in _NOT_COPIED}
