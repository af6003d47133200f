"""Stateful sets: pods with a number, a name that stays and claims of their own, made and replaced in order.

    ordinal 0 ──ready──▶ 1 ──ready──▶ 2 ...        scaling down and updates go from the highest ordinal to the lowest

One step is made a round (`OrderedReady`), or all that are possible (`Parallel`). Upstream:
`pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go`.
"""

from __future__ import annotations

import re
from typing import Any

from skedge.client.errors import AlreadyExists, NotFound
from skedge.client.rest import STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import Context
from skedge.controlplane.controllers.history import HASH, History, template_of
from skedge.controlplane.controllers.kinds import CLAIM, POD, STATEFUL_SET
from skedge.controlplane.controllers.objects import Pod, owner_reference
from skedge.controlplane.controllers.owning import PodOwner, delete_pod, selector_of
from skedge.controlplane.controllers.revisions import scaled

JSON = dict[str, Any]

_ORDINAL = re.compile(r"(.+)-([0-9]+)")


class StatefulSets(PodOwner):
    name = "statefulset"
    kind = STATEFUL_SET

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.history = History(self, context)

    async def sync(self, key: str, obj: JSON) -> float | None:
        selector = selector_of(obj)
        pods = {
            ordinal: pod for pod in await self.claimed(obj, selector) if (ordinal := _ordinal(obj, pod)) is not None
        }
        update, earlier = await self.history.of(obj, selector)
        name = (obj.get("status") or {}).get("currentRevision", "")
        current = next((each for each in earlier if each["metadata"]["name"] == name), update)
        round_ = _Round(self, obj, pods, current, update)
        if "deletionTimestamp" not in obj["metadata"]:
            await round_.work()
            live = {current["metadata"]["name"], *(_revision(pod) for pod in pods.values())}
            await self.history.clean_up(obj, earlier, live)
        await self.update_status(self.kind, obj, round_.status())
        return round_.again


class _Round:
    """One look at one stateful set."""

    def __init__(self, controller: StatefulSets, obj: JSON, pods: dict[int, Pod], current: JSON, update: JSON) -> None:
        self._controller, self._client, self._obj = controller, controller.client, obj
        self._pods, self._current, self._update = pods, current, update
        spec = obj["spec"]
        self._start = (spec.get("ordinals") or {}).get("start", 0)
        self._wanted = range(self._start, self._start + spec.get("replicas", 1))
        self._ordered = spec.get("podManagementPolicy") != "Parallel"
        self._delay, self._now = spec.get("minReadySeconds", 0), controller.clock.now()
        self.again: float | None = None

    async def work(self) -> None:
        """Make the next step, or all possible ones."""
        for ordinal in self._wanted:
            if await self._keep(ordinal) and self._ordered:
                return
        condemned = sorted((each for each in self._pods if each not in self._wanted), reverse=True)
        for ordinal in condemned:
            if await self._dismiss(ordinal, condemned) and self._ordered:
                return
        await self._roll()

    async def _keep(self, ordinal: int) -> bool:
        """Have the pod of an ordinal; whether that takes some more time."""
        pod = self._pods.get(ordinal)
        if pod is not None and pod.is_finished:
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
            return True
        if pod is None:
            await self._create(ordinal)
            return True
        return pod.metadata.deletion_timestamp is not None or not self._is_available(pod)

    async def _dismiss(self, ordinal: int, condemned: list[int]) -> bool:
        """Delete a pod beyond the wanted number, when those below are well; whether there is something to wait for."""
        pod = self._pods[ordinal]
        if pod.metadata.deletion_timestamp is not None:
            return True
        if self._ordered and not pod.is_ready:
            well = (self._is_available(self._pods[each]) for each in (*self._wanted, *condemned) if each < ordinal)
            if not all(well):
                return True
        if self._policy("whenScaled") == "Delete":
            await self._give_claims(pod)
        await self._delete(pod)
        return True

    async def _roll(self) -> None:
        """Replace pods of another revision, from the highest ordinal down to the partition."""
        strategy = self._obj["spec"].get("updateStrategy") or {}
        if strategy.get("type") != "RollingUpdate":
            return
        rolling = strategy.get("rollingUpdate") or {}
        room = max(1, scaled(rolling.get("maxUnavailable", 1), len(self._wanted), up=True))
        least = self._start + (rolling.get("partition") or 0)
        missing = sum(not self._is_available(self._pods[each]) for each in self._wanted if each in self._pods)
        for ordinal in reversed(self._wanted):
            pod = self._pods.get(ordinal)
            if ordinal < least or pod is None or missing >= room:
                return
            if _revision(pod) != self._update["metadata"]["name"] and pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
                missing += self._is_available(pod)

    # --- pods and claims

    async def _create(self, ordinal: int) -> None:
        obj, meta = self._obj, self._obj["metadata"]
        revision = self._current if self._is_of_current(ordinal) else self._update
        template, name = template_of(revision), f"{meta['name']}-{ordinal}"
        claims = {each["metadata"]["name"]: f"{each['metadata']['name']}-{name}" for each in self._claim_templates()}
        for each in self._claim_templates():
            await self._create_claim(each, claims[each["metadata"]["name"]])
        volumes = [each for each in template["spec"].get("volumes") or () if each["name"] not in claims]
        volumes += [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        labels = {
            HASH: revision["metadata"]["name"],
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
        }
        spec: JSON = {"hostname": name}
        if obj["spec"].get("serviceName"):
            spec["subdomain"] = obj["spec"]["serviceName"]
        if volumes:
            spec["volumes"] = volumes
        body = self._controller.pod_body(obj, template, name=name, change={"labels": labels, "spec": spec})
        await self._client.request("POST", POD.path(meta["namespace"]), body=body)
        text = f"create Pod {name} in StatefulSet {meta['name']} successful"
        self._controller.event(obj, STATEFUL_SET, "Normal", "SuccessfulCreate", text)

    def _is_of_current(self, ordinal: int) -> bool:
        """Whether a new pod is still to be of the current revision, not of the one being rolled out."""
        strategy = self._obj["spec"].get("updateStrategy") or {}
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        if strategy.get("type") != "RollingUpdate":
            return False
        if partition:
            return bool(ordinal < self._start + partition)
        name = self._current["metadata"]["name"]
        current = sum(_revision(pod) == name for pod in self._pods.values() if pod.is_active)
        return bool(ordinal < self._start + current)

    async def _create_claim(self, template: JSON, name: str) -> None:
        meta = self._obj["metadata"]
        given = template["metadata"]
        labels = {**(given.get("labels") or {}), **(self._obj["spec"]["selector"].get("matchLabels") or {})}
        body: JSON = {
            "apiVersion": CLAIM.api_version,
            "kind": CLAIM.name,
            "metadata": {"name": name, "namespace": meta["namespace"], "labels": labels},
            "spec": template["spec"],
        }
        if given.get("annotations"):
            body["metadata"]["annotations"] = given["annotations"]
        if self._policy("whenDeleted") == "Delete":
            reference = owner_reference(self._obj, STATEFUL_SET.api_version, STATEFUL_SET.name)
            body["metadata"]["ownerReferences"] = [reference]
        try:
            await self._client.request("POST", CLAIM.path(meta["namespace"]), body=body)
        except AlreadyExists:
            return  # of a former pod of this number: its data stay
        text = f"create Claim {name} in StatefulSet {meta['name']} success"
        self._controller.event(self._obj, STATEFUL_SET, "Normal", "SuccessfulCreate", text)

    async def _give_claims(self, pod: Pod) -> None:
        """Let the claims of a pod go when it goes."""
        meta = pod.metadata
        reference = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        for each in self._claim_templates():
            path = CLAIM.path(meta.namespace, f"{each['metadata']['name']}-{meta.name}")
            body = {"metadata": {"ownerReferences": [reference]}}
            try:
                await self._client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
            except NotFound:
                pass

    async def _delete(self, pod: Pod) -> None:
        try:
            await delete_pod(self._controller, pod)
        except NotFound:
            return
        text = f"delete Pod {pod.metadata.name} in StatefulSet {self._obj['metadata']['name']} successful"
        self._controller.event(self._obj, STATEFUL_SET, "Normal", "SuccessfulDelete", text)

    def _claim_templates(self) -> list[JSON]:
        return self._obj["spec"].get("volumeClaimTemplates") or []

    def _policy(self, when: str) -> str:
        return str((self._obj["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when, "Retain"))

    # --- status

    def _is_available(self, pod: Pod | None) -> bool:
        """Running, ready for long enough, and staying; notes when to look again."""
        if pod is None or pod.metadata.deletion_timestamp is not None or pod.status.phase != "Running":
            return False
        at = pod.available_at(self._delay)
        if at is not None and at > self._now:
            self.again = at - self._now if self.again is None else min(self.again, at - self._now)
        return at is not None and at <= self._now

    def status(self) -> JSON:
        """What is to be reported of the pods as they were at the start of the round."""
        obj, update = self._obj, self._update["metadata"]["name"]
        current = self._current["metadata"]["name"]
        pods = [pod for pod in self._pods.values() if not pod.is_finished]
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        counts = {
            "observedGeneration": obj["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": sum(pod.is_ready for pod in pods),
            "currentReplicas": sum(_revision(pod) == current for pod in staying),
            "updatedReplicas": sum(_revision(pod) == update for pod in staying),
            "availableReplicas": sum(map(self._is_available, pods)),
        }
        done = counts["updatedReplicas"] == counts["replicas"] == counts["readyReplicas"] == len(self._wanted)
        if done and (obj["spec"].get("updateStrategy") or {}).get("type") == "RollingUpdate":
            current, counts["currentReplicas"] = update, counts["updatedReplicas"]
        required = ("replicas", "availableReplicas")
        status: JSON = {name: count for name, count in counts.items() if count or name in required}
        collisions = (obj.get("status") or {}).get("collisionCount", 0)
        return {**status, "currentRevision": current, "updateRevision": update, "collisionCount": collisions}


def _ordinal(obj: JSON, pod: Pod) -> int | None:
    match = _ORDINAL.fullmatch(pod.metadata.name)
    return int(match[2]) if match is not None and match[1] == obj["metadata"]["name"] else None


def _revision(pod: Pod) -> str:
    return (pod.metadata.labels or {}).get(HASH, "")
