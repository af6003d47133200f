"""Resource claims of pods: made from templates, and no longer reserved for pods that have ended.

    pod names a template ──▶ claim made, owned by the pod ──▶ its name into pod.status.resourceClaimStatuses
    pod ended or gone ──▶ out of claim.status.reservedFor ──nobody left──▶ allocation given back

Upstream: `pkg/controller/resourceclaim/controller.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.client.errors import NotFound
from skedge.client.rest import STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import NAMESPACE, OWNER, Context, Controller, last
from skedge.controlplane.controllers.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from skedge.controlplane.controllers.objects import OwnerRef, Pod, controller_of, key_of, meta_of

JSON = dict[str, Any]

_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
_CLAIM_KEY = "claim:"


class ResourceClaims(Controller):
    """Keys are `namespace/name` of pods, and `claim:namespace/name`. One worker: no claim is made twice."""

    name = "resource-claim"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.pods
        self.claims, self.templates = context.owned(RESOURCE_CLAIM), context.owned(RESOURCE_CLAIM_TEMPLATE)
        self._made: dict[tuple[str, str], str] = {}  # (UID of pod, entry) -> claim, until the informer shows it
        self.watch(self.claims, lambda claim: f"{_CLAIM_KEY}{key_of(claim)}")
        self.templates.add_handler(on_add=lambda template, _: self._template(template))
        self.pods.add_handler(
            on_add=lambda pod, _: self._pod(pod),
            on_update=lambda _, pod: self._pod(pod),
            on_delete=lambda pod: self._gone(last(pod)),
        )

    async def reconcile(self, key: str) -> float | None:
        self.forget(key)
        if key.startswith(_CLAIM_KEY):
            claim = self.claims.store.get(key.removeprefix(_CLAIM_KEY))
            if claim is not None:
                await self._release(claim)
            return None
        pod = self.pods.store.get(key)
        if pod is not None and pod.is_active:
            await self._provide(pod)
        return None

    async def _provide(self, pod: Pod) -> None:
        """Make the claims a pod's templates ask for, and note their names in its status."""
        noted = {each.name for each in pod.status.resource_claim_statuses or ()}
        news = []
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name and entry.name not in noted:
                name = self._known(pod, entry.name)
                if name is None:
                    name = await self._create(pod, entry.name, entry.resource_claim_template_name)
                if name is not None:
                    news.append({"name": entry.name, "resourceClaimName": name})
        if news:
            meta = pod.metadata
            body = {"metadata": {"uid": meta.uid}, "status": {"resourceClaimStatuses": news}}
            path = POD.path(meta.namespace, meta.name, "status")
            await self.client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)

    def _known(self, pod: Pod, entry: str) -> str | None:
        """The claim that was made for an entry before."""
        for claim in self.claims.store.by_index(OWNER, pod.metadata.uid):
            if (claim["metadata"].get("annotations") or {}).get(_POD_CLAIM) == entry:
                return str(claim["metadata"]["name"])
        return self._made.get((pod.metadata.uid, entry))

    async def _create(self, pod: Pod, entry: str, template_name: str) -> str | None:
        meta = pod.metadata
        template = self.templates.store.get(f"{meta.namespace}/{template_name}")
        if template is None:
            return None  # the template's coming will bring us back
        given = template["spec"].get("metadata") or {}
        owner = OwnerRef("v1", "Pod", meta.name, meta.uid, controller=True, block_owner_deletion=True)
        claim_meta: JSON = {
            "generateName": f"{meta.name[:200]}-{entry}-",
            "annotations": {**(given.get("annotations") or {}), _POD_CLAIM: entry},
            "ownerReferences": [owner],
        }
        if given.get("labels"):
            claim_meta["labels"] = given["labels"]
        body = {
            "apiVersion": RESOURCE_CLAIM.api_version,
            "kind": RESOURCE_CLAIM.name,
            "metadata": claim_meta,
            "spec": template["spec"]["spec"],
        }
        created = await self.client.create(RESOURCE_CLAIM.path(meta.namespace), body)
        name: str = created["metadata"]["name"]
        self._made[meta.uid, entry] = name
        return name

    async def _release(self, claim: JSON) -> None:
        """Take pods that have ended out of the reservations; without any left, give the allocation back."""
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        meta = claim["metadata"]
        namespace = meta["namespace"]
        kept = [each for each in reserved if await self._needs(namespace, each)]
        if not kept and self._served(claim):
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": meta["uid"]}}
            await self.client.request("DELETE", RESOURCE_CLAIM.of(claim), body=body)
        if len(kept) == len(reserved):
            return
        changed = {name: value for name, value in status.items() if name != "reservedFor"}
        if kept:
            changed["reservedFor"] = kept
        else:
            changed.pop("allocation", None)
            changed.pop("devices", None)
        await self.update_status(RESOURCE_CLAIM, claim, changed)

    def _served(self, claim: JSON) -> bool:
        """Whether the claim was made for a pod that has ended."""
        if "deletionTimestamp" in claim["metadata"]:
            return False
        ref = controller_of(meta_of(claim))
        pod = self.pods.store.get(f"{claim['metadata']['namespace']}/{ref.name}") if ref is not None else None
        return pod is not None and ref is not None and pod.metadata.uid == ref.uid and pod.is_finished

    async def _needs(self, namespace: str, consumer: JSON) -> bool:
        if consumer.get("resource") != "pods" or consumer.get("apiGroup"):
            return True  # not ours to judge
        pod = self.pods.store.get(f"{namespace}/{consumer.get('name')}")
        if pod is not None and pod.metadata.uid == consumer.get("uid"):
            return not pod.is_finished
        try:
            found = await self.client.get(POD.path(namespace, str(consumer.get("name"))))
        except NotFound:
            return False
        return bool(found["metadata"]["uid"] == consumer.get("uid"))

    # --- who is meant

    def _pod(self, pod: Pod) -> None:
        if not pod.spec.resource_claims:
            return
        if pod.is_finished:
            self._gone(pod)
        elif len(pod.status.resource_claim_statuses or ()) < len(pod.spec.resource_claims):
            self.enqueue(pod.key)

    def _gone(self, pod: Pod) -> None:
        if not pod.spec.resource_claims:
            return
        for entry in pod.spec.resource_claims:
            self._made.pop((pod.metadata.uid, entry.name), None)
        for claim in self.claims.store.by_index(NAMESPACE, pod.metadata.namespace):
            reserved = (claim.get("status") or {}).get("reservedFor") or ()
            if any(each.get("uid") == pod.metadata.uid for each in reserved):
                self.enqueue(f"{_CLAIM_KEY}{key_of(claim)}")

    def _template(self, template: JSON) -> None:
        for pod in self.pods.store.by_index(NAMESPACE, template["metadata"]["namespace"]):
            self._pod(pod)
