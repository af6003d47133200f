"""Disruption budgets: how many of the selected pods may be evicted now.

Upstream: `pkg/controller/disruption/disruption.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.api.labels import Selector
from skedge.client.informer import Informer
from skedge.controlplane.controllers.base import NAMESPACE, Context, Controller, last
from skedge.controlplane.controllers.kinds import (
    BUDGET,
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from skedge.controlplane.controllers.objects import OwnerRef, Pod, controller_of, epoch, key_of, meta_of, set_condition
from skedge.controlplane.controllers.owning import selector_of
from skedge.controlplane.controllers.revisions import scaled

JSON = dict[str, Any]

_EVICTED_FOR = 120.0
"""Seconds for which an evicted pod counts as going although it is still there."""


class _NoScale(Exception):
    """The pods have no controller that says how many there should be."""


class DisruptionBudgets(Controller):
    name = "disruption"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.objects, self.pods = context.owned(BUDGET), context.pods
        kinds = (REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, DEPLOYMENT)
        self._scales: dict[tuple[str, str], tuple[Kind, Informer[JSON]]] = {
            (kind.api_version, kind.name): (kind, context.owned(kind)) for kind in kinds
        }
        self.watch(self.objects, key_of)
        self.pods.add_handler(
            on_add=lambda pod, _: self._pod(pod),
            on_update=self._changed,
            on_delete=lambda pod: self._pod(last(pod)),
        )
        for _, informer in self._scales.values():
            informer.add_handler(on_update=self._resized)

    async def reconcile(self, key: str) -> float | None:
        obj = self.objects.store.get(key)
        if obj is None:
            self.forget(key)
            return None
        selector, now = selector_of(obj), self.clock.now()
        pods = self._pods(obj, selector)
        status = dict(obj.get("status") or {})
        present = {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None}
        evicted = {
            name: time
            for name, time in (status.get("disruptedPods") or {}).items()
            if name in present and epoch(time) + _EVICTED_FOR > now
        }
        healthy = sum(pod.is_ready and pod.metadata.name in present - evicted.keys() for pod in pods)
        status["observedGeneration"] = obj["metadata"].get("generation", 0)
        try:
            expected, desired = self._bounds(obj["spec"], pods)
        except _NoScale as error:
            self.event(obj, BUDGET, "Warning", "CalculateExpectedPodCountFailed", str(error))
            status["disruptionsAllowed"] = 0
            self._condition(status, "False", "SyncFailed", str(error))
        else:
            allowed = max(0, healthy - desired) if expected > 0 else 0
            status |= {
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "expectedPods": expected,
                "disruptionsAllowed": allowed,
            }
            verdict = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
            self._condition(status, *verdict, "")
        status.pop("disruptedPods", None)
        if evicted:
            status["disruptedPods"] = evicted
        await self.update_status(BUDGET, obj, status)
        ends = [epoch(time) + _EVICTED_FOR - now for time in evicted.values()]
        return min(ends) + 1.0 if ends else None

    def _condition(self, status: JSON, on: str, reason: str, message: str) -> None:
        generation = status.get("observedGeneration", 0)
        old = list(status.get("conditions") or ())
        condition = {"type": "DisruptionAllowed", "status": on, "reason": reason, "message": message}
        condition["observedGeneration"] = generation
        status["conditions"] = set_condition(old, condition, self.context.timestamp())

    def _pods(self, obj: JSON, selector: Selector) -> list[Pod]:
        """The pods a budget is about; finished ones are of no interest."""
        found = self.pods.store.by_index(NAMESPACE, obj["metadata"]["namespace"])
        return [pod for pod in found if not pod.is_finished and selector.matches(pod.metadata.labels)]

    def _bounds(self, spec: JSON, pods: list[Pod]) -> tuple[int, int]:
        """How many pods there should be, and how many of them have to be healthy."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is not None:
            expected = self._scale(pods)
            return expected, max(0, expected - scaled(most, expected, up=True))
        if isinstance(least, int):
            return len(pods), least
        expected = self._scale(pods)
        return expected, scaled(least, expected, up=True)

    def _scale(self, pods: list[Pod]) -> int:
        """The sizes of the pods' controllers, each counted once."""
        sizes: dict[str, int] = {}
        for pod in pods:
            ref = pod.controller
            if ref is None:
                raise _NoScale(f'found no controller ref for pod "{pod.metadata.name}"')
            if ref.uid not in sizes:
                uid, size = self._size(pod.metadata.namespace, ref)
                sizes[ref.uid] = 0
                sizes[uid] = size
        return sum(sizes.values())

    def _size(self, namespace: str, ref: OwnerRef) -> tuple[str, int]:
        """The size of a controller, or of the deployment above it; with the UID it belongs to."""
        known = self._scales.get((ref.api_version, ref.kind))
        obj = known[1].store.get(f"{namespace}/{ref.name}") if known is not None else None
        if obj is None or obj["metadata"]["uid"] != ref.uid:
            raise _NoScale(f"{ref.kind} {ref.name} does not say how many pods there should be")
        above = controller_of(meta_of(obj))
        if above is not None and above.kind == DEPLOYMENT.name:
            return self._size(namespace, above)
        return ref.uid, int(obj["spec"].get("replicas", 1))

    # --- who is meant

    def _pod(self, pod: Pod) -> None:
        for obj in self.objects.store.by_index(NAMESPACE, pod.metadata.namespace):
            if selector_of(obj).matches(pod.metadata.labels):
                self.enqueue(key_of(obj))

    def _changed(self, old: Pod, new: Pod) -> None:
        self._pod(new)
        if old.metadata.labels != new.metadata.labels:
            self._pod(old)

    def _resized(self, old: JSON, new: JSON) -> None:
        if old["spec"].get("replicas") != new["spec"].get("replicas"):
            for obj in self.objects.store.by_index(NAMESPACE, new["metadata"]["namespace"]):
                self.enqueue(key_of(obj))
