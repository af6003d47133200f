"""One pod: search, choose, assume, Reserve, Permit. A plain function; nothing here waits.

Upstream: `pkg/scheduler/schedule_one.go` (ScheduleOne, schedulingCycle, schedulePod, assume, selectHost).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skedge import names
from skedge.cache.cache import CacheError
from skedge.framework.state import PODS_TO_ACTIVATE, CycleState
from skedge.framework.status import Code, Status
from skedge.profiles.diagnosis import Diagnosis, FitError
from skedge.profiles.profile import Profile
from skedge.profiles.sampling import heap_root
from skedge.profiles.search import CycleError, Search
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)

NO_NODES = "no nodes available to schedule pods"
WAITING = "one or more plugins asked to wait and no plugin rejected pod"
MAX_PERMIT_WAIT = 15 * 60.0


class Decision(NamedTuple):
    """A pod that was given a node, on its way to be bound."""

    queued: QueuedPodInfo
    profile: Profile
    state: CycleState
    placed: PlacedPod
    waits: dict[str, float]  # Permit plugins that hold the pod back -> seconds
    started: float
    evaluated_nodes: int
    feasible_nodes: int

    @property
    def pod(self) -> PodInfo:
        return self.queued.pod

    @property
    def node_name(self) -> str:
        return self.placed.node_name


class Failure(NamedTuple):
    """Why an attempt failed, and what becomes of the pod's nominated node (None: nothing)."""

    status: Status
    nominate: str | None = ""


def schedule_one(scheduler: Scheduler, queued: QueuedPodInfo) -> None:
    """Tries to place a popped pod. It leaves by one door: bound (or being bound), back in the queue, or gone."""
    pod = queued.pod
    profile = scheduler.profiles.get(pod.scheduler_name)
    if profile is None:
        log.error(None, f'profile not found for scheduler name "{pod.scheduler_name}"', pod=pod.key)
        scheduler.queue.done(pod.uid)
        return
    if pod.terminating:
        note = f"skip schedule deleting pod: {pod.key}"
        scheduler.record(pod, profile, "Warning", names.REASON_FAILED_SCHEDULING, names.ACTION_SCHEDULING, note)
        scheduler.queue.done(pod.uid)
        return
    if scheduler.cache.is_assumed(pod.uid):
        scheduler.queue.done(pod.uid)
        return
    if log.v(3):
        log.info("Attempting to schedule pod", pod=pod.key)
    started = scheduler.clock.monotonic()
    try:
        outcome = _cycle(scheduler, queued, profile, started)
    except Exception as error:  # a bug in a plugin or here: the pod goes back to the queue, nothing is left behind
        log.error(error, "Scheduling cycle broke off", pod=pod.key)
        _take_back(scheduler, pod)
        outcome = Failure(Status.from_error(error))
    if isinstance(outcome, Failure):
        scheduler.failures.handle(queued, profile, outcome, started)
    else:
        scheduler.start_binding(outcome)


def _take_back(scheduler: Scheduler, pod: PodInfo) -> None:
    cached = scheduler.cache.find_pod(pod.uid)
    if cached is not None and scheduler.cache.is_assumed(pod.uid):
        scheduler.cache.forget_pod(cached, cached.node_name)


def _cycle(scheduler: Scheduler, queued: QueuedPodInfo, profile: Profile, started: float) -> Decision | Failure:
    pod = queued.pod
    if not scheduler.cache.table.count:
        error = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=NoNodesError(NO_NODES))
        return Failure(error)
    nominator = scheduler.queue.nominator
    search = Search(profile, pod, nominator if nominator else None)
    try:
        search.run()
        if not len(search.rows):
            failure = _no_fit(search)
            scheduler.hooks.scheduling_algorithm(scheduler.clock.monotonic() - started)
            return failure
        row = choose(scheduler, search)
    except CycleError as error:
        return Failure(Status.from_error(error))
    now = scheduler.clock.monotonic()
    scheduler.hooks.scheduling_algorithm(now - started)
    return _reserve(scheduler, queued, search, search.table.names[row], started)


class NoNodesError(Exception):
    """The cluster has no nodes at all."""


def choose(scheduler: Scheduler, search: Search) -> int:
    """The row to take: the only one, or one of the best by total score, each as likely (the first in the reference's
    heap where a sample of the nodes is looked at)."""
    rows = search.rows
    if len(rows) == 1:
        return int(rows[0])
    totals = search.scores()
    if search.profile.sampler is not None:
        return int(rows[heap_root(totals)])
    best = np.flatnonzero(totals == totals.max())
    return int(rows[best[scheduler.rng.randrange(len(best)) if len(best) > 1 else 0]])


def _no_fit(search: Search) -> Failure:
    diagnosis = search.explain()
    nominate: str | None = ""
    if search.profile.post_filter:
        result = search.post_filter()
        nominate = None if result is None else result.nominate
    return Failure(Status(Code.UNSCHEDULABLE, error=FitError(diagnosis)), nominate)


def rejected_on_one_node(search_pod: PodInfo, state: CycleState, scheduler: Scheduler, status: Status) -> Status:
    """A rejection by Reserve or Permit, told as a FitError over the one node that was chosen."""
    diagnosis = Diagnosis(scheduler.cache.table, state, search_pod, 1)
    diagnosis.explicit = {-1: status}
    return Status(status.code, error=FitError(diagnosis))


def _reserve(
    scheduler: Scheduler, queued: QueuedPodInfo, search: Search, node_name: str, started: float
) -> Decision | Failure:
    pod, profile, state = queued.pod, search.profile, search.state
    try:
        placed = scheduler.cache.assume_pod(pod, node_name)
    except CacheError as error:
        return Failure(Status.from_error(error))
    if scheduler.queue.nominator:
        scheduler.queue.nominator.delete(pod)
    for plugin in profile.reserve:
        status = plugin.reserve(state, pod, node_name)
        if not status.ok:
            undo(scheduler, profile, state, pod, node_name)
            return Failure(_told(status.by(plugin.name), "Reserve", pod, state, scheduler))
    waits: dict[str, float] = {}
    for plugin in profile.permit:
        status, seconds = plugin.permit(state, pod, node_name)
        if status.code is Code.WAIT:
            waits[plugin.name] = min(seconds, MAX_PERMIT_WAIT)
        elif not status.ok:
            undo(scheduler, profile, state, pod, node_name)
            return Failure(_told(status.by(plugin.name), "Permit", pod, state, scheduler))
    activate(scheduler, state)
    return Decision(queued, profile, state, placed, waits, started, search.evaluated_nodes, len(search.rows))


def _told(status: Status, point: str, pod: PodInfo, state: CycleState, scheduler: Scheduler) -> Status:
    if status.rejected:
        return rejected_on_one_node(pod, state, scheduler, status)
    return Status.from_error(CycleError(f'running {point} plugin "{status.plugin}": {status.message}'))


def undo(scheduler: Scheduler, profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> None:
    """Unreserve by every Reserve plugin, last first, then forget. One that raises does not stop the others."""
    for plugin in reversed(profile.reserve):
        try:
            plugin.unreserve(state, pod, node_name)
        except Exception as error:
            log.error(error, "Unreserve failed", plugin=plugin.name, pod=pod.key)
    try:
        scheduler.cache.forget_pod(pod, node_name)
    except CacheError as error:
        log.error(error, "scheduler cache ForgetPod failed", pod=pod.key)


def activate(scheduler: Scheduler, state: CycleState) -> None:
    """Moves pods to the active queue that plugins asked for during this cycle."""
    pods = state.get(PODS_TO_ACTIVATE)
    if pods:
        scheduler.queue.activate(list(pods.values()))
        pods.clear()
