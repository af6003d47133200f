"""Makes victims go, beside the loop. Upstream: `framework/preemption/executor.go`.

    start ─▶ lower nominations on the node cleared ─▶ all victims but the last told to go ─▶ the last one ─▶ done
                                                       └── an error: the last one is spared ──▶ preemptor activated

A victim that waits on Permit or is in PreBind gives up in memory; any other gets the condition DisruptionTarget and is
deleted. Meanwhile its preemptor counts as running, until the last victim is seen to go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skedge import names
from skedge.api.core import PodCondition
from skedge.api.scheduling import PodGroup
from skedge.framework.ports import PodGone
from skedge.preemption.evaluator import BY_SCHEDULER, DISRUPTION_TARGET
from skedge.scheduler.pod_status import status_patch
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)

CLUSTER = "cluster"
"""Stands for the node where victims are anywhere."""
IN_MEMORY = " (in kube-scheduler memory)."
T = TypeVar("T")


class Claimant(NamedTuple):
    """Whom the room is for: one pod, or a pod group."""

    kind: str
    uid: str
    key: str
    scheduler_name: str
    priority: int
    pods: tuple[PodInfo, ...]
    group: PodGroup | None = None


class PreemptionExecutor:
    """The `Preemptor` of one scheduler. API calls go through its dispatcher, so they are bounded with all others."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._running: dict[str, PlacedPod | None] = {}  # preemptor's UID -> the last victim, once it is its turn

    # --- what plugins call --------------------------------------------------------------------------------------------

    def start(self, pod: PodInfo, node_name: str, victims: Sequence[PlacedPod], plugin: str) -> None:
        """See `Preemptor`. Victims that are going already are left alone; if all are, nothing starts."""
        claimant = Claimant("pod", pod.uid, pod.key, pod.scheduler_name, pod.priority, (pod,))
        self._start(claimant, node_name, victims, plugin)

    def start_group(
        self, group: PodGroup, pods: Sequence[PodInfo], priority: int, victims: Sequence[PlacedPod], plugin: str
    ) -> None:
        """As `start`, for a whole pod group with these pods."""
        name = pods[0].scheduler_name
        claimant = Claimant("podgroup", group.metadata.uid, group.key, name, priority, tuple(pods), group)
        self._start(claimant, CLUSTER, victims, plugin)

    def _start(self, pod: Claimant, node_name: str, victims: Sequence[PlacedPod], plugin: str) -> None:
        going = [victim for victim in victims if not victim.terminating]
        if not going:
            return
        self._scheduler.hooks.preemption_victims(len(victims))
        self._running[pod.uid] = None

        async def job() -> None:
            await self._run(pod, node_name, going, plugin)

        self._scheduler.dispatcher.apart(job, f"preemption for {pod.key}")

    def running(self, pod: PodInfo) -> bool:
        return self.running_for(pod.uid)

    def running_for(self, uid: str) -> bool:
        if uid not in self._running:
            return False
        last = self._running[uid]
        if last is None:
            return True
        known = self._scheduler.pod_lister(last.key)
        return known is not None and known.uid == last.uid and not known.terminating

    # --- the work -----------------------------------------------------------------------------------------------------

    async def _run(self, pod: Claimant, node_name: str, victims: Sequence[PlacedPod], plugin: str) -> None:
        hooks, started = self._scheduler.hooks, self._scheduler.clock.monotonic()
        hooks.goroutines(plugin, 1)
        failed = True
        try:
            cleared = await self._clear_lower_nominations(pod, node_name)
            *others, last = victims
            evictions = (self._try_evict(pod, node_name, victim, plugin) for victim in others)
            evicted = all(await asyncio.gather(*evictions))
            if evicted:
                self._running[pod.uid] = last
                evicted = await self._try_evict(pod, node_name, last, plugin)
            failed = not (cleared and evicted)
        finally:
            self._scheduler.inbox.submit(lambda: self._ended(pod, victims, failed))
            took = self._scheduler.clock.monotonic() - started
            hooks.goroutines(plugin, -1)
            hooks.preemption_goroutine("error" if failed else "success", took)

    def _ended(self, pod: Claimant, victims: Sequence[PlacedPod], failed: bool) -> None:
        """Wakes the preemptor if no event will: after an error, and where the last victim's room was free too early,
        because it was deleted, gave up in memory, or was not bound after all."""
        self._running.pop(pod.uid, None)
        records = (self._scheduler.queue.find(each.key) for each in pod.pods)
        if not failed and any(record is not None and record.gated for record in records):
            failed = self._scheduler.cache.find_pod(victims[-1].uid) is None
        if failed:
            self._scheduler.queue.activate(pod.pods)

    async def _clear_lower_nominations(self, pod: Claimant, node_name: str) -> bool:
        """Pods of lower priority lose their promise of this node. False when one could not be told."""
        scheduler = self._scheduler
        cleared = True
        for other in scheduler.queue.nominator.nominated_pods(node_name):
            if other.priority >= pod.priority:
                continue
            try:
                await scheduler.patches.nominate(other, "")
            except PodGone:
                continue
            except Exception as error:
                log.error(error, "Unable to clear nominated node name of a pod", pod=other.key, node=node_name)
                cleared = False
        return cleared

    async def _try_evict(self, pod: Claimant, node_name: str, victim: PlacedPod, plugin: str) -> bool:
        try:
            await self._evict(pod, node_name, victim, plugin)
        except Exception as error:
            log.error(error, "Error occurred during async preemption", pod=victim.key, preemptor=pod.key)
            return False
        return True

    async def _evict(self, pod: Claimant, node_name: str, victim: PlacedPod, plugin: str) -> None:
        note = f"Preempted by {pod.kind} {pod.uid} on node {node_name}"
        if self._give_up_in_memory(victim, plugin):
            self._record(pod, victim, note + IN_MEMORY)
            return
        ports = self._scheduler.ports
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=BY_SCHEDULER,
            message=f"{pod.scheduler_name}: preempting to accommodate a higher priority {pod.kind}",
            observed_generation=victim.generation or None,
        )
        patch = status_patch(victim.conditions, "", condition, None, self._scheduler.clock.now())
        try:
            if patch is not None:
                await self._call(lambda: ports.patcher.patch_status(victim, patch))
        except PodGone:
            return
        if not await self._call(lambda: ports.evictor.delete(victim)):
            return
        if log.v(2):
            log.info("Preemptor Pod preempted victim Pod", preemptor=pod.key, victim=victim.key, node=node_name)
        self._record(pod, victim, note)

    def _give_up_in_memory(self, victim: PlacedPod, plugin: str) -> bool:
        """A victim that is not bound yet gives up its place; False when it is too late for that."""
        waiting = self._scheduler.waiting.get(victim.uid)
        if waiting is not None and waiting.preempt(plugin, "preempted"):
            return True
        task = self._scheduler.pre_binding.get(victim.uid)
        return task is not None and not task.done() and task.cancel(f"preempted by {plugin}")

    def _record(self, pod: Claimant, victim: PlacedPod, note: str) -> None:
        self._scheduler.ports.events.event(
            victim,
            pod.group,
            "Normal",
            names.REASON_PREEMPTED,
            names.ACTION_PREEMPTING,
            note,
            controller=pod.scheduler_name,
        )

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """One API call, made by the dispatcher when it is its turn."""
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def job() -> None:
            try:
                answer = await call()
            except Exception as error:
                if not result.done():
                    result.set_exception(error)
            else:
                if not result.done():
                    result.set_result(answer)

        self._scheduler.dispatcher.call(job)
        return await result
