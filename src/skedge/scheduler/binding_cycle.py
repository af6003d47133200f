"""From a decision to a bound pod: wait for Permit, PreBind, Bind, PostBind. Upstream: `schedule_one.go`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from skedge import names
from skedge.framework import events
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.profiles.measures import BIND, POST_BIND, PRE_BIND, PRE_BIND_PREFLIGHT
from skedge.profiles.search import CycleError
from skedge.scheduler.scheduling_cycle import (
    WAITING,
    Decision,
    Failure,
    activate,
    rejected_on_one_node,
    undo,
)
from skedge.scheduler.waiting_pods import WaitingPod
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)


class PreBindWork:
    """What PreBind plugins said they have to do for a pod: groups that run one after another."""

    __slots__ = ("groups",)

    def __init__(self, groups: list[list[Any]]) -> None:
        self.groups = groups


def preflight(decision: Decision) -> PreBindWork | Status:
    """Asks every PreBind plugin what it has to do; neighbours that allow it share a group."""
    groups: list[list[Any]] = []
    open_group = False
    for plugin in decision.pre_bind:
        status, parallel = plugin.pre_bind_preflight(decision.state, decision.pod, decision.node_name)
        if status.code is Code.ERROR:
            return Status.from_error(CycleError(f'running PreBindPreFlight "{plugin.name}": {status.message}'))
        if not (status.ok or status.skip):
            return Status.from_error(
                CycleError(
                    f'PreBindPreFlight {plugin.name} returned "{status.code.word}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                )
            )
        if not parallel:
            open_group = False
        if status.skip:
            continue
        if parallel and open_group:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
            open_group = parallel
    return PreBindWork(groups)


def start_binding(scheduler: Scheduler, decision: Decision) -> None:
    """Hands a decision to the binding side. Pods with nothing to wait for share the dispatcher's workers."""
    work: PreBindWork | Status
    measures = decision.profile.measures
    start = measures.now()
    try:
        work = preflight(decision)
    except Exception as error:
        log.error(error, "PreBindPreFlight broke off", pod=decision.pod.key)
        work = Status.from_error(error)
    outcome = work.code if isinstance(work, Status) else Code.SUCCESS if work.groups else Code.SKIP
    measures.point(PRE_BIND_PREFLIGHT, outcome.word, start)
    waiting = None
    if decision.waits:
        waiting = WaitingPod(decision.pod, decision.waits)
        scheduler.waiting.add(waiting)
        if log.v(4):
            log.info(WAITING, pod=decision.pod.key)

    job = partial(bind, scheduler, decision, work, waiting)
    if waiting is not None or (isinstance(work, PreBindWork) and work.groups):
        scheduler.dispatcher.wait_apart(job)
    else:
        scheduler.dispatcher.bind(job, decision.pod.priority)


async def bind(
    scheduler: Scheduler, decision: Decision, work: PreBindWork | Status, waiting: WaitingPod | None
) -> None:
    """Carries a decision out; whatever goes wrong ends in the failure handler."""
    try:
        status = await _steps(scheduler, decision, work, waiting)
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        status = Status.from_error(CycleError(str(cancelled) or "a plugin was cancelled"))  # not we, but what it ran
    except Exception as error:
        log.error(error, "Binding cycle broke off", pod=decision.pod.key)
        status = Status.from_error(error)
    if status.ok:
        scheduler.inbox.submit(partial(_bound, scheduler, decision))
    else:
        scheduler.inbox.submit(partial(_failed, scheduler, decision, status))


async def _steps(
    scheduler: Scheduler, decision: Decision, work: PreBindWork | Status, waiting: WaitingPod | None
) -> Status:
    pod, node_name = decision.pod, decision.node_name
    if isinstance(work, Status):
        scheduler.waiting.remove(pod.uid)
        return work
    if work.groups or waiting is not None:
        try:
            await scheduler.patches.nominate(pod, node_name)
        except Exception as error:
            log.error(error, "Error updating pod", pod=pod.key)
    if waiting is not None:
        status = await _wait_on_permit(scheduler, decision, waiting)
        if not status.ok:
            return status
    scheduler.inbox.submit(partial(scheduler.queue.done, pod.uid))
    measures = decision.profile.measures
    start = measures.now()
    status = await scheduler.pre_bind(decision, work.groups) if work.groups else SUCCESS
    start = measures.point(PRE_BIND, status.code.word, start)
    if not status.ok:
        return status
    await scheduler.patches.settle(pod.uid)
    if scheduler.extenders:
        bound = await scheduler.extenders.bind(pod, node_name)
        if bound is not None:
            return bound
    status = await _bind(decision)
    measures.point(BIND, status.code.word, start)
    return status


async def _wait_on_permit(scheduler: Scheduler, decision: Decision, waiting: WaitingPod) -> Status:
    began = scheduler.clock.monotonic()
    try:
        status = await waiting.wait_for_signal()
    finally:
        scheduler.waiting.remove(decision.pod.uid)
    scheduler.hooks.permit_wait(status.code.word, scheduler.clock.monotonic() - began)
    if status.rejected:
        return rejected_on_one_node(decision.pod, decision.state, scheduler, status)
    if not status.ok:
        return Status.from_error(CycleError(f"waiting on permit for pod: {status.message}"))
    return status


async def run_pre_bind(decision: Decision, groups: list[list[Any]]) -> Status:
    """Runs the groups in order, the plugins of a group side by side; the first failure cancels its neighbours."""

    async def one(plugin: Any) -> Status:
        status: Status = await plugin.pre_bind(decision.state, decision.pod, decision.node_name)
        if status.ok:
            return status
        if status.rejected:
            return status.by(plugin.name)
        return Status.from_error(CycleError(f'running PreBind plugin "{plugin.name}": {status.message}'))

    for group in groups:
        if len(group) == 1:
            status = await one(group[0])
        else:
            status = await _first_failure([asyncio.ensure_future(one(plugin)) for plugin in group])
        if not status.ok:
            return status
    return SUCCESS


async def _first_failure(tasks: list[asyncio.Future[Status]]) -> Status:
    try:
        for finished in asyncio.as_completed(tasks):
            status = await finished
            if not status.ok:
                return status
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return SUCCESS


async def _bind(decision: Decision) -> Status:
    for plugin in decision.profile.bind:
        status: Status = await plugin.bind(decision.state, decision.pod, decision.node_name)
        if status.skip:
            continue
        if status.ok:
            return status
        if status.rejected:
            return status.by(plugin.name)
        return Status.from_error(CycleError(f'running Bind plugin "{plugin.name}": {status.message}'))
    return SKIP


def _bound(scheduler: Scheduler, decision: Decision) -> None:
    pod, node_name, queued = decision.pod, decision.node_name, decision.queued
    note = f"Successfully assigned {pod.key} to {node_name}"
    scheduler.record(pod, decision.profile, "Normal", names.REASON_SCHEDULED, names.ACTION_BINDING, note)
    if log.v(2):
        log.info(
            "Successfully bound pod to node",
            pod=pod.key,
            node=node_name,
            evaluatedNodes=decision.evaluated_nodes,
            feasibleNodes=decision.feasible_nodes,
        )
    now = scheduler.clock.monotonic()
    scheduler.hooks.schedule_attempt("scheduled", decision.profile.name, now - decision.started)
    first = queued.initial_attempt_timestamp
    scheduler.hooks.pod_scheduled(
        queued.attempts,
        None if first is None else scheduler.clock.now() - first,
        queued.was_flushed_from_unschedulable,
    )
    measures = decision.profile.measures
    start = measures.now()
    for plugin in decision.profile.post_bind:
        try:
            plugin.post_bind(decision.state, pod, node_name)
        except Exception as error:  # the pod is bound: there is nothing to take back
            log.error(error, "PostBind failed", plugin=plugin.name, pod=pod.key)
    measures.point(POST_BIND, Code.SUCCESS.word, start)
    activate(scheduler, decision.state)


def _failed(scheduler: Scheduler, decision: Decision, status: Status) -> None:
    """Gives the room back, wakes who may want it, and sends the pod through the failure handler.

    A pod that a plugin rejected must not be woken by its own room; one that failed by an error may.
    """
    pod, node_name = decision.pod, decision.node_name
    undo(scheduler, decision.profile, decision.state, pod, node_name)
    move = scheduler.queue.move_all
    if status.rejected:
        scheduler.failures.handle(decision.queued, decision.profile, Failure(status), decision.started)
        move(events.ASSIGNED_POD_DELETE, decision.placed, None, lambda other: other.uid != pod.uid)
    else:
        move(events.ASSIGNED_POD_DELETE, decision.placed, None)
        scheduler.failures.handle(decision.queued, decision.profile, Failure(status), decision.started)
