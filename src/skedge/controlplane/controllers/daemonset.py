"""Daemon sets: one pod on every node that its template allows, placed by the scheduler through affinity to the node.

Upstream: `pkg/controller/daemon/{daemon_controller,update}.go`, `.../util/daemonset_util.go`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from skedge.api import core
from skedge.api.node_selectors import RequiredNodeAffinity
from skedge.api.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from skedge.controlplane.controllers.base import Context
from skedge.controlplane.controllers.history import HASH, History
from skedge.controlplane.controllers.kinds import DAEMON_SET, NODES
from skedge.controlplane.controllers.objects import Node, Pod, epoch
from skedge.controlplane.controllers.owning import BURST, PodOwner, selector_of
from skedge.controlplane.controllers.revisions import scaled

JSON = dict[str, Any]

_TOLERATED = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", NO_SCHEDULE),
    ("memory-pressure", NO_SCHEDULE),
    ("pid-pressure", NO_SCHEDULE),
    ("unschedulable", NO_SCHEDULE),
)


class _Plan(NamedTuple):
    """What the pods of a daemon set look like and where they may be."""

    template: JSON
    digest: str
    required: RequiredNodeAffinity
    tolerations: tuple[core.Toleration, ...]
    node_name: str

    def verdict(self, node: Node) -> tuple[bool, bool]:
        """Whether a pod should run on the node, and whether one that does may stay."""
        meta = node.metadata
        if self.node_name and self.node_name != meta.name:
            return False, False
        if not self.required.matches(meta.name, meta.labels):
            return False, False
        if find_untolerated(node.spec.taints, self.tolerations) is None:
            return True, True
        return False, find_untolerated(node.spec.taints, self.tolerations, (NO_EXECUTE,)) is None


class DaemonSets(PodOwner):
    name = "daemonset"
    kind = DAEMON_SET

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.nodes = context.informer(NODES)
        self.history = History(self, context)
        self.nodes.add_handler(
            on_add=lambda *_: self._all(), on_update=self._node_changed, on_delete=lambda _: self._all()
        )

    async def sync(self, key: str, obj: JSON) -> float | None:
        selector = selector_of(obj)
        pods = await self.claimed(obj, selector)
        revision, earlier = await self.history.of(obj, selector)
        plan = _plan(obj, revision["metadata"]["labels"][HASH])
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.target_node, []).append(pod)
        if self.expectations.met(key) and "deletionTimestamp" not in obj["metadata"]:
            changed = await self._place(key, obj, plan, by_node)
            if not changed:
                await self._update(key, obj, plan, by_node)
            hashes = {(pod.metadata.labels or {}).get(HASH) for pod in pods}
            live = {each["metadata"]["name"] for each in earlier if each["metadata"]["labels"].get(HASH) in hashes}
            await self.history.clean_up(obj, earlier, live)
        return await self._report(obj, plan, by_node)

    async def _place(self, key: str, obj: JSON, plan: _Plan, by_node: dict[str, list[Pod]]) -> bool:
        """Create what is missing and delete what is too much; whether there was anything to do."""
        missing: list[str] = []
        surplus: list[Pod] = []
        for node in self.nodes.store:
            name = node.metadata.name
            should_run, may_stay = plan.verdict(node)
            pods = by_node.get(name, [])
            failed = [pod for pod in pods if pod.is_finished and pod.metadata.deletion_timestamp is None]
            surplus += failed
            alive = [pod for pod in pods if not pod.is_finished]
            if should_run and not alive:
                missing.append(name)
            elif not may_stay:
                surplus += [pod for pod in alive if pod.is_active]
            elif len(alive) > 1 and not _surge(obj, len(self.nodes.store)):
                active = sorted((pod for pod in alive if pod.is_active), key=_age)
                surplus += active[1:]
        if surplus:
            await self.delete_pods(key, obj, surplus[:BURST])
        if missing:
            await self.create_pods(key, obj, [self._body(obj, plan, name) for name in missing[:BURST]])
        return bool(surplus or missing)

    async def _update(self, key: str, obj: JSON, plan: _Plan, by_node: dict[str, list[Pod]]) -> None:
        """Replace pods of earlier templates, as many at once as the strategy allows."""
        if obj["spec"].get("updateStrategy", {}).get("type") != "RollingUpdate":
            return
        now, delay = self.clock.now(), obj["spec"].get("minReadySeconds", 0)
        nodes = [node.metadata.name for node in self.nodes.store if plan.verdict(node)[0]]
        surge = _surge(obj, len(nodes))
        rolling = obj["spec"]["updateStrategy"].get("rollingUpdate") or {}
        room = scaled(rolling.get("maxUnavailable", 1), len(nodes), up=True)
        create: list[str] = []
        broken: list[Pod] = []
        candidates: list[Pod] = []
        for name in nodes:
            active = [pod for pod in by_node.get(name, []) if pod.is_active]
            new = [pod for pod in active if _digest(pod) == plan.digest]
            old = [pod for pod in active if _digest(pod) != plan.digest]
            available = [pod for pod in active if _is_available(pod, delay, now)]
            if surge:
                if old and not new:
                    create.append(name)
                elif old and any(pod in available for pod in new):
                    candidates += old
                continue
            if not available:
                room -= 1
                broken += old
            else:
                candidates += [pod for pod in old if pod in available]
        if surge:
            started = sum(len([pod for pod in by_node.get(name, []) if pod.is_active]) > 1 for name in nodes)
            fresh = create[: max(0, surge - started)]
            if candidates:
                await self.delete_pods(key, obj, candidates)
            if fresh:
                await self.create_pods(key, obj, [self._body(obj, plan, name) for name in fresh])
            return
        going = broken + candidates[: max(0, room)]
        if going:
            await self.delete_pods(key, obj, going)

    def _body(self, obj: JSON, plan: _Plan, node: str) -> bytes:
        affinity = dict(plan.template["spec"].get("affinity") or {})
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity["nodeAffinity"] = {
            **(affinity.get("nodeAffinity") or {}),
            "requiredDuringSchedulingIgnoredDuringExecution": required,
        }
        spec = {"affinity": affinity, "tolerations": plan.template["spec"]["tolerations"]}
        return self.pod_body(obj, plan.template, change={"labels": {HASH: plan.digest}, "spec": spec})

    async def _report(self, obj: JSON, plan: _Plan, by_node: dict[str, list[Pod]]) -> float | None:
        now, delay = self.clock.now(), obj["spec"].get("minReadySeconds", 0)
        desired = current = misplaced = ready = available = updated = 0
        again: float | None = None
        for node in self.nodes.store:
            should_run, _ = plan.verdict(node)
            pods = sorted((pod for pod in by_node.get(node.metadata.name, []) if not pod.is_finished), key=_age)
            if not should_run:
                misplaced += bool(pods)
                continue
            desired += 1
            if not pods:
                continue
            current += 1
            # During a surge the newest ready pod counts.
            ready += any(pod.is_ready for pod in pods)
            updated += any(_digest(pod) == plan.digest for pod in pods)
            ends = [end for pod in pods if (end := pod.available_at(delay)) is not None]
            if ends and min(ends) <= now:
                available += 1
            elif ends:
                again = min(ends) - now if again is None else min(again, min(ends) - now)
        status: JSON = {
            "currentNumberScheduled": current,
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
            "observedGeneration": obj["metadata"].get("generation", 0),
        }
        for name, count in (
            ("updatedNumberScheduled", updated),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        ):
            if count:
                status[name] = count
        await self.update_status(self.kind, obj, status)
        return again

    def _all(self) -> None:
        for key in self.objects.store.keys():  # noqa: SIM118
            self.enqueue(key)

    def _node_changed(self, old: Node, new: Node) -> None:
        if old.metadata.labels != new.metadata.labels or old.spec != new.spec:
            self._all()


def _plan(obj: JSON, digest: str) -> _Plan:
    template = obj["spec"]["template"]
    spec = template["spec"]
    tolerations = [*(spec.get("tolerations") or ())]
    standard = [*_TOLERATED, *((("network-unavailable", NO_SCHEDULE),) if spec.get("hostNetwork") else ())]
    for name, effect in standard:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    pod = msgspec.convert({"metadata": {}, "spec": spec}, core.Pod)
    return _Plan(
        template={**template, "spec": {**spec, "tolerations": tolerations}},
        digest=digest,
        required=RequiredNodeAffinity(pod),
        tolerations=msgspec.convert(tolerations, tuple[core.Toleration, ...]),
        node_name=spec.get("nodeName", ""),
    )


def _surge(obj: JSON, nodes: int) -> int:
    """How many nodes may have an old and a new pod at the same time."""
    strategy = obj["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    return scaled(rolling.get("maxSurge", 0), nodes, up=True) if strategy.get("type") == "RollingUpdate" else 0


def _digest(pod: Pod) -> str | None:
    return (pod.metadata.labels or {}).get(HASH)


def _age(pod: Pod) -> tuple[bool, float]:
    """Placed ones first, then the oldest."""
    return not pod.spec.node_name, epoch(pod.metadata.creation_timestamp)


def _is_available(pod: Pod, delay: int, now: float) -> bool:
    at = pod.available_at(delay)
    return at is not None and at <= now
