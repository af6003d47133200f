"""The one funnel for failed attempts: back to the queue, nominate, tell. Upstream: `handleSchedulingFailure`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skedge import names
from skedge.api.core import PodCondition
from skedge.framework.status import Status
from skedge.profiles.diagnosis import FitError
from skedge.profiles.profile import Profile
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.scheduler.pod_group_status import PodGroupError
from skedge.scheduler.pod_status import POD_SCHEDULED
from skedge.scheduler.scheduling_cycle import Failure, NoNodesError
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
NOTE_BYTES = 1024


def shortened(note: str) -> str:
    """An event's note: at most 1024 bytes, cut off with ` ...`."""
    raw = note.encode()
    if len(raw) <= NOTE_BYTES:
        return note
    return raw[: NOTE_BYTES - 4].decode(errors="ignore") + " ..."


def _in_words(status: Status, pod: PodInfo) -> tuple[Status, str]:
    """A status and its message; where a plugin can't say why it rejected the pod, that error and its message."""
    try:
        return status, status.message
    except Exception as error:
        log.error(error, "Reasons of a rejection could not be told", pod=pod.key)
        return Status.from_error(error), str(error)


class FailureHandler:
    """Every failed attempt of the scheduling or the binding cycle passes here, exactly once."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def handle(self, queued: QueuedPodInfo, profile: Profile, failure: Failure, started: float) -> None:
        """Requeues the pod, nominates, records the event and patches the condition, in this order."""
        try:
            self._handle(queued, profile, failure, started)
        finally:
            if failure.search is not None:
                failure.search.state.clear()

    def _handle(self, queued: QueuedPodInfo, profile: Profile, failure: Failure, started: float) -> None:
        scheduler = self._scheduler
        status, message = _in_words(failure.status, queued.pod)
        rejected = status.rejected
        took = scheduler.clock.monotonic() - started
        scheduler.hooks.schedule_attempt("unschedulable" if rejected else "error", profile.name, took)
        self._note_rejectors(queued, status)
        self._log(queued.pod, status)
        pod = self._requeue(queued)
        if pod is None:
            return
        scheduler.queue.nominator.add(pod, failure.nominate)
        scheduler.queue.promise_over(queued, scheduler.queue.nominator.node_of(pod.uid))
        if status.skip:  # no Bind plugin wanted the pod: the reference has no error to tell of
            return
        scheduler.record(
            pod,
            profile,
            "Warning",
            names.REASON_FAILED_SCHEDULING,
            names.ACTION_SCHEDULING,
            shortened(message),
        )
        condition = PodCondition(
            type=POD_SCHEDULED,
            status="False",
            reason=UNSCHEDULABLE if rejected else SCHEDULER_ERROR,
            message=message,
            observed_generation=pod.pod.metadata.generation or None,
        )
        scheduler.patches.tell(pod, condition, failure.nominate)

    def _note_rejectors(self, queued: QueuedPodInfo, status: Status) -> None:
        error = status.error
        if isinstance(error, FitError):
            queued.set_rejectors(error.diagnosis.unschedulable_plugins, error.diagnosis.pending_plugins)
        else:
            queued.set_rejectors()

    def _log(self, pod: PodInfo, status: Status) -> None:
        if isinstance(status.error, NoNodesError):
            if log.v(2):
                log.info("Unable to schedule pod; no nodes are registered to the cluster; waiting", pod=pod.key)
        elif isinstance(status.error, FitError):
            if log.v(2):
                log.info("Unable to schedule pod; no fit; waiting", pod=pod.key, err=status.message)
        elif isinstance(status.error, PodGroupError) and status.rejected:
            if log.v(2):
                log.info("Unable to schedule pod belonging to a pod group; waiting", pod=pod.key, err=status.message)
        else:
            log.error(status.message, "Error scheduling pod; retrying", pod=pod.key)

    def _requeue(self, queued: QueuedPodInfo) -> PodInfo | None:
        """Puts the pod back if the informer still has it unbound; None when it is another pod by now."""
        scheduler, pod = self._scheduler, queued.pod
        known: PodInfo | PlacedPod | None = scheduler.pod_lister(pod.key)
        if known is None or isinstance(known, PlacedPod):
            scheduler.queue.done(pod.uid)
            return pod
        if known.uid != pod.uid:
            scheduler.queue.done(pod.uid)
            return None
        queued.pod = known
        refused = scheduler.queue.add_unschedulable_if_not_present(queued)
        if refused is not None:
            log.error(refused, "Error occurred", pod=pod.key)
        return known
