"""Generic ephemeral volumes: a claim that comes and goes with its pod. Upstream: `pkg/controller/volume/ephemeral`."""

from __future__ import annotations

from typing import Any

from skedge.client.errors import AlreadyExists
from skedge.controlplane.controllers.base import Context, Controller
from skedge.controlplane.controllers.kinds import CLAIM, POD
from skedge.controlplane.controllers.objects import Pod, owner_reference

JSON = dict[str, Any]


class EphemeralVolumes(Controller):
    """Keys are pods that have such a volume."""

    name = "ephemeral-volume"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.pods
        self.pods.add_handler(on_add=lambda pod, _: self._pod(pod))

    def _pod(self, pod: Pod) -> None:
        if pod.is_active and any(volume.ephemeral is not None for volume in pod.spec.volumes or ()):
            self.enqueue(pod.key)

    async def reconcile(self, key: str) -> float | None:
        self.forget(key)
        if key not in self.pods.store:
            return None
        namespace, _, name = key.partition("/")
        pod = await self.client.get(POD.path(namespace, name))
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            if template is not None:
                await self._create(pod, f"{name}-{volume['name']}", template)
        return None

    async def _create(self, pod: JSON, name: str, template: JSON) -> None:
        namespace, given = pod["metadata"]["namespace"], template.get("metadata") or {}
        meta: JSON = {"name": name, "ownerReferences": [owner_reference(pod, "v1", "Pod")]}
        meta |= {field: given[field] for field in ("labels", "annotations") if given.get(field)}
        body = {"apiVersion": CLAIM.api_version, "kind": CLAIM.name, "metadata": meta, "spec": template["spec"]}
        try:
            await self.client.request("POST", CLAIM.path(namespace), body=body)
        except AlreadyExists:
            found = await self.client.get(CLAIM.path(namespace, name))
            uid = pod["metadata"]["uid"]
            if not any(ref.get("uid") == uid for ref in found["metadata"].get("ownerReferences") or ()):
                text = f'PVC "{namespace}/{name}" was not created for pod "{namespace}/{pod["metadata"]["name"]}" '
                self.event(pod, POD, "Warning", "EphemeralVolumeConflict", text + "(pod is not owner)")
