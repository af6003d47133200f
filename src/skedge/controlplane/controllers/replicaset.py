"""Replica sets and replication controllers: as many pods of one template as asked for.

Upstream: `pkg/controller/replicaset/{replica_set.go,replica_set_utils.go}`, `pkg/controller/replication`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from skedge.api.labels import Selector, from_set
from skedge.client.errors import ApiError, one_line
from skedge.controlplane.controllers.base import OWNER
from skedge.controlplane.controllers.kinds import REPLICA_SET, REPLICATION_CONTROLLER
from skedge.controlplane.controllers.objects import Pod, epoch, set_condition
from skedge.controlplane.controllers.owning import BURST, PodOwner, matcher, selector_of

JSON = dict[str, Any]

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets(PodOwner):
    name = "replicaset"
    kind = REPLICA_SET

    def selector(self, obj: JSON) -> Selector:
        return selector_of(obj)

    async def sync(self, key: str, obj: JSON) -> float | None:
        pods = await self.claimed(obj, self.selector(obj))
        active = [pod for pod in pods if pod.is_active]
        failure: ApiError | None = None
        if self.expectations.met(key) and "deletionTimestamp" not in obj["metadata"]:
            try:
                await self._manage(key, obj, active)
            except ApiError as error:
                failure = error
        again = await self._report(obj, pods, failure)
        if failure is not None:
            raise failure
        return again

    async def _manage(self, key: str, obj: JSON, active: list[Pod]) -> None:
        missing = obj["spec"].get("replicas", 1) - len(active)
        if missing > 0:
            body = self.pod_body(obj, obj["spec"]["template"])
            await self.create_pods(key, obj, [body] * min(missing, BURST))
        elif missing < 0:
            await self.delete_pods(key, obj, self._surplus(obj, active, min(-missing, BURST)))

    def _surplus(self, obj: JSON, active: list[Pod], count: int) -> list[Pod]:
        """The pods that are missed least: not placed, not running, not ready, cheap, crowded on a node, young."""
        if count >= len(active):
            return active
        crowd = Counter(pod.spec.node_name for pod in self._siblings(obj, active) if pod.is_active)
        return sorted(active, key=lambda pod: _worth(pod, crowd[pod.spec.node_name]))[:count]

    def _siblings(self, obj: JSON, active: list[Pod]) -> list[Pod]:
        """The pods of all replica sets with the same owner: during a rollout crowding is judged over them together."""
        owners = [ref for ref in obj["metadata"].get("ownerReferences") or () if ref.get("controller")]
        if not owners:
            return active
        related = self.objects.store.by_index(OWNER, owners[0]["uid"])
        return [pod for each in related for pod in self.pods.store.by_index(OWNER, each["metadata"]["uid"])]

    async def _report(self, obj: JSON, pods: list[Pod], failure: ApiError | None) -> float | None:
        spec, old = obj["spec"], obj.get("status") or {}
        delay, now = spec.get("minReadySeconds", 0), self.clock.now()
        matches = matcher(from_set(spec["template"].get("metadata", {}).get("labels")))
        labelled = ready = available = active = terminating = 0
        next_look: float | None = None
        for pod in pods:
            if not pod.is_active:
                terminating += not pod.is_finished
                continue
            active += 1
            labelled += matches(pod.metadata.labels)
            at = pod.available_at(delay)
            if at is None:
                continue
            ready += 1
            if at <= now:
                available += 1
            elif next_look is None or at < next_look:
                next_look = at
        counts = {
            "replicas": active,
            "fullyLabeledReplicas": labelled,
            "readyReplicas": ready,
            "availableReplicas": available,
            "observedGeneration": obj["metadata"].get("generation", 0),
        }
        status: JSON = {name: count for name, count in counts.items() if count or name == "replicas"}
        if self.kind is REPLICA_SET:
            status["terminatingReplicas"] = terminating
        conditions = [each for each in old.get("conditions") or () if each["type"] != "ReplicaFailure"]
        if failure is not None:
            reason = "FailedCreate" if active < spec.get("replicas", 1) else "FailedDelete"
            condition = {"type": "ReplicaFailure", "status": "True", "reason": reason, "message": one_line(failure)}
            conditions = set_condition(list(old.get("conditions") or ()), condition, self.context.timestamp())
        if conditions:
            status["conditions"] = conditions
        await self.update_status(self.kind, obj, status)
        return None if next_look is None else next_look - now


class ReplicationControllers(ReplicaSets):
    """The same with a plain map as selector."""

    name = "replication"
    kind = REPLICATION_CONTROLLER

    def selector(self, obj: JSON) -> Selector:
        return from_set(obj["spec"].get("selector"))


def _worth(pod: Pod, crowd: int) -> tuple[Any, ...]:
    """Sort key: what is deleted first is smallest (`ActivePodsWithRanks`)."""
    ready = pod.condition("Ready")
    is_ready = ready is not None and ready.status == "True"
    restarts = max((each.restart_count for each in pod.status.container_statuses or ()), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 1),
        is_ready,
        deletion_cost(pod),
        -crowd,
        -epoch(ready.last_transition_time) if is_ready and ready is not None else 0.0,
        -restarts,
        -epoch(pod.metadata.creation_timestamp),
    )


def deletion_cost(pod: Pod) -> int:
    """The annotation `controller.kubernetes.io/pod-deletion-cost`; 0 where there is none or it is no number."""
    text = (pod.metadata.annotations or {}).get(_DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0
