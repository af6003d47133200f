"""One pod: search, choose, assume, Reserve, Permit. A plain function; nothing here waits.

Upstream: `pkg/scheduler/schedule_one.go` (ScheduleOne, schedulingCycle, schedulePod, assume, selectHost).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from skedge import names
from skedge.cache.cache import CacheError
from skedge.framework.plugin import PostFilterResult
from skedge.framework.state import PODS_TO_ACTIVATE, CycleState
from skedge.framework.status import Code, Status
from skedge.profiles.diagnosis import Diagnosis, FitError
from skedge.profiles.measures import PERMIT, RESERVE, UNRESERVE
from skedge.profiles.measures import SUCCESS as PASSED
from skedge.profiles.profile import Profile
from skedge.profiles.sampling import heap_root
from skedge.profiles.search import CycleError, Search
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.snapshot.arith import Ints
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)

NO_NODES = "no nodes available to schedule pods"
WAITING = "one or more plugins asked to wait and no plugin rejected pod"
MAX_PERMIT_WAIT = 15 * 60.0
CLEAR = PostFilterResult("")


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
    pod: PodInfo  # as it was when it was popped
    pre_bind: tuple[Any, ...]  # PreBind plugins that may have to do with it
    wait_reasons: tuple[str, ...] = ()  # what those Permit plugins said

    @property
    def node_name(self) -> str:
        return self.placed.node_name


class Failure(NamedTuple):
    """Why an attempt failed, and what becomes of the pod's nominated node (None: nothing)."""

    status: Status
    nominate: str | None = ""
    search: Search | None = None  # that found no node


def schedule_one(scheduler: Scheduler, queued: QueuedPodInfo) -> None:
    """Tries to place a popped pod. It leaves by one door: bound (or being bound), back in the queue, or gone."""
    profile = profile_for(scheduler, queued)
    if profile is None:
        return
    started = scheduler.clock.monotonic()
    outcome: Decision | Failure
    try:
        choice = decide(scheduler, queued.pod, profile, started)
        outcome = choice if isinstance(choice, Failure) else reserve(scheduler, queued, choice, started)
    except Exception as error:  # a bug in a plugin or here: the pod goes back to the queue, nothing is left behind
        outcome = broke_off(scheduler, queued.pod, error)
    conclude(scheduler, queued, profile, outcome, started)


def profile_for(scheduler: Scheduler, queued: QueuedPodInfo) -> Profile | None:
    """The profile that is to place a popped pod; None when it is not to be tried, and the queue is told so."""
    pod = queued.pod
    profile = scheduler.profiles.get(pod.scheduler_name)
    if profile is None:
        log.error(None, f'profile not found for scheduler name "{pod.scheduler_name}"', pod=pod.key)
        scheduler.queue.done(pod.uid)
        return None
    if pod.terminating:
        note = f"skip schedule deleting pod: {pod.key}"
        scheduler.record(pod, profile, "Warning", names.REASON_FAILED_SCHEDULING, names.ACTION_SCHEDULING, note)
        scheduler.queue.done(pod.uid)
        return None
    if scheduler.cache.is_assumed(pod.uid):
        scheduler.queue.done(pod.uid)
        return None
    if log.v(3):
        log.info("Attempting to schedule pod", pod=pod.key)
    return profile


def broke_off(scheduler: Scheduler, pod: PodInfo, error: Exception) -> Failure:
    """What becomes of a pod whose cycle ended by a bug: an assumption is taken back."""
    log.error(error, "Scheduling cycle broke off", pod=pod.key)
    cached = scheduler.cache.find_pod(pod.uid)
    if cached is not None and scheduler.cache.is_assumed(pod.uid):
        scheduler.cache.forget_pod(cached, cached.node_name)
    return Failure(Status.from_error(error))


def conclude(
    scheduler: Scheduler, queued: QueuedPodInfo, profile: Profile, outcome: Decision | Failure, started: float
) -> None:
    """Sends a pod on its way: to be bound, or through the failure handler."""
    if isinstance(outcome, Failure):
        scheduler.failures.handle(queued, profile, outcome, started)
    else:
        scheduler.queue.promise_over(queued, outcome.node_name)
        scheduler.start_binding(outcome)


class Choice(NamedTuple):
    """A search and the node that was chosen of what it found."""

    search: Search
    node_name: str


class Scope(NamedTuple):
    """Where a pod is looked at, if not everywhere and as usual."""

    within: Ints | None = None  # rows of a placement
    post_filter: bool = True


EVERYWHERE = Scope()


def decide(
    scheduler: Scheduler, pod: PodInfo, profile: Profile, started: float, scope: Scope = EVERYWHERE
) -> Choice | Failure:
    """Searches and chooses; nothing has changed yet."""
    if not scheduler.cache.table.count:
        return no_nodes()
    search = new_search(scheduler, pod, profile, scope)
    try:
        search.run()
        if search.count:
            found: Choice | Failure = Choice(search, search.table.names[scheduler.choose(search)])
        else:
            search.explain()
            post_filter = scope.post_filter and profile.post_filter
            found = no_fit(search, search.post_filter() if post_filter else CLEAR)
    except CycleError as error:
        return Failure(Status.from_error(error))
    scheduler.hooks.scheduling_algorithm(scheduler.clock.monotonic() - started)
    return found


def new_search(scheduler: Scheduler, pod: PodInfo, profile: Profile, scope: Scope) -> Search:
    nominator = scheduler.queue.nominator
    return Search(profile.measures.of_cycle(profile), pod, nominator if nominator else None, scope.within)


class NoNodesError(Exception):
    """The cluster has no nodes at all."""


def no_nodes() -> Failure:
    return Failure(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=NoNodesError(NO_NODES)))


def choose(scheduler: Scheduler, search: Search) -> int:
    """The row to take: the only one, or one of the best by total score, each as likely (the first in the reference's
    heap where a sample of the nodes is looked at)."""
    if search.count == 1:
        return int(search.rows[0])
    if search.profile.sampler is not None:
        return int(search.rows[heap_root(search.scores())])
    return search.pick(scheduler.rng)


def no_fit(search: Search, result: PostFilterResult | None) -> Failure:
    """No node fits; `result` is what PostFilter came to."""
    nominate = None if result is None else result.nominate
    return Failure(Status(Code.UNSCHEDULABLE, error=FitError(search.diagnosis)), nominate, search)


def rejected_on_one_node(search_pod: PodInfo, state: CycleState, scheduler: Scheduler, status: Status) -> Status:
    """A rejection by Reserve or Permit, told as a FitError over the one node that was chosen."""
    diagnosis = Diagnosis(scheduler.cache.table, state, search_pod, 1)
    diagnosis.explicit = {-1: status}
    return Status(status.code, error=FitError(diagnosis))


def reserve(scheduler: Scheduler, queued: QueuedPodInfo, choice: Choice, started: float) -> Decision | Failure:
    """Assumes the pod on its node, and asks Reserve and Permit; what is refused or breaks off is undone."""
    search, node_name = choice
    pod, profile, state = queued.pod, search.profile, search.state
    try:
        placed = scheduler.cache.assume_pod(pod, node_name)
    except CacheError as error:
        return Failure(Status.from_error(error))
    if scheduler.queue.nominator:
        scheduler.queue.nominator.delete(pod)
    try:
        return _ask(scheduler, queued, search, placed, started)
    except Exception:
        undo(scheduler, profile, state, pod, node_name)
        raise


def _ask(
    scheduler: Scheduler, queued: QueuedPodInfo, search: Search, placed: PlacedPod, started: float
) -> Decision | Failure:
    """Reserve and Permit for an assumed pod. An exception of a plugin passes through."""
    profile, state, pod, node_name = search.profile, search.state, queued.pod, placed.node_name
    measures = profile.measures
    start = measures.now()
    for plugin in search.asked.reserve:
        status = plugin.reserve(state, pod, node_name)
        if not status.ok:
            measures.point(RESERVE, status.code.word, start)
            undo(scheduler, profile, state, pod, node_name)
            return Failure(_told(status.by(plugin.name), "Reserve", pod, state, scheduler))
    start = measures.point(RESERVE, PASSED, start)
    waits: dict[str, float] = {}
    reasons: list[str] = []
    for plugin in profile.permit:
        status, seconds = plugin.permit(state, pod, node_name)
        if status.code is Code.WAIT:
            waits[plugin.name] = min(seconds, MAX_PERMIT_WAIT)
            reasons += status.all_reasons()
        elif not status.ok:
            measures.point(PERMIT, status.code.word, start)
            undo(scheduler, profile, state, pod, node_name)
            return Failure(_told(status.by(plugin.name), "Permit", pod, state, scheduler))
    measures.point(PERMIT, Code.WAIT.word if waits else PASSED, start)
    activate(scheduler, state)
    seen, pre_bind = (search.evaluated_nodes, search.count), search.asked.pre_bind
    return Decision(queued, profile, state, placed, waits, started, *seen, pod, pre_bind, tuple(reasons))


def _told(status: Status, point: str, pod: PodInfo, state: CycleState, scheduler: Scheduler) -> Status:
    if status.rejected:
        return rejected_on_one_node(pod, state, scheduler, status)
    return Status.from_error(CycleError(f'running {point} plugin "{status.plugin}": {status.message}'))


def undo(scheduler: Scheduler, profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> None:
    """Unreserve by every Reserve plugin, last first, then forget. One that raises does not stop the others."""
    start = profile.measures.now()
    for plugin in reversed(profile.reserve):
        try:
            plugin.unreserve(state, pod, node_name)
        except Exception as error:
            log.error(error, "Unreserve failed", plugin=plugin.name, pod=pod.key)
    profile.measures.point(UNRESERVE, PASSED, start)
    try:
        scheduler.cache.forget_pod(pod, node_name)
    except CacheError as error:
        log.error(error, "scheduler cache ForgetPod failed", pod=pod.key)


def activate(scheduler: Scheduler, state: CycleState) -> None:
    """Moves pods to the active queue that plugins asked for during this cycle."""
    pods = state.get(PODS_TO_ACTIVATE)
    if pods:
        try:
            scheduler.queue.activate(list(pods.values()))
            pods.clear()
        except Exception as error:  # whatever a plugin wrote there, this pod's way goes on
            log.error(error, "Pods to activate could not be activated")
