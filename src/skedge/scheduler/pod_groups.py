"""A whole pod group in one cycle, all or nothing. Upstream: `schedule_one_podgroup.go`.

    collect ─▶ try: one member after the other, each sees those before it as assumed ─▶ all undone ─▶ submit
                       └─ on each placement, if there are several; the best one counts

Nothing is left behind by trying: what was assumed is unreserved and forgotten, last first. Submitting assumes again,
for good. The cycle waits where extenders are asked, and pauses when it is long; whoever runs it holds the state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from skedge.framework.status import Code, Status
from skedge.profiles.profile import Profile
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.scheduler import extended_cycle, scheduling_cycle
from skedge.scheduler.pod_group_placements import best_placement
from skedge.scheduler.pod_group_status import PodGroupError, tell_group
from skedge.scheduler.pod_group_verdict import Fate, Trial, Verdict
from skedge.scheduler.quiet_terms import QuietTerms
from skedge.scheduler.scheduling_cycle import (
    EVERYWHERE,
    WAITING,
    Choice,
    Decision,
    Failure,
    Scope,
    broke_off,
    conclude,
    profile_for,
    reserve,
    undo,
)
from skedge.snapshot.pods import PodInfo

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler

SLICE: Final = 0.005
"""Seconds after which a group pauses."""
UNSCHEDULABLE: Final = "pod group is unschedulable"
PREEMPTING: Final = "pod group is waiting for preemption to complete"


def run_now(cycle: Coroutine[Any, Any, None]) -> None:
    """Runs a cycle in which nobody is waited for."""
    try:
        cycle.send(None)
    except StopIteration:
        return
    raise AssertionError("a cycle waited that had nothing to wait for")


class GroupCycle:
    """One attempt to schedule the group of a popped pod."""

    def __init__(self, scheduler: Scheduler, first: QueuedPodInfo, *, pauses: bool = False) -> None:
        """`pauses`: whoever runs it can wait, so it lets sockets breathe between members."""
        self.scheduler = scheduler
        self._pauses = pauses
        self._first = first
        self.started = self._breathed = scheduler.clock.monotonic()
        self._popped = [first]
        self.members: list[QueuedPodInfo] = []
        self.profile: Profile

    async def run(self) -> None:
        """All of it; whatever goes wrong, every member leaves by the failure handler."""
        try:
            found = self._collect()
        except Exception as error:  # a bug here must not lose a pod that was popped
            for queued in self._popped:
                self._fail(queued, broke_off(self.scheduler, queued.pod, error))
            return
        if not found:
            return
        try:
            verdict = await self._decide()
        except Exception as error:
            verdict = Verdict(broke_off(self.scheduler, self._first.pod, error).status)
        scheduler = self.scheduler
        took = scheduler.clock.monotonic() - self.started
        scheduler.hooks.podgroup_scheduling_algorithm(took)
        self._submit(verdict)
        took = scheduler.clock.monotonic() - self.started
        scheduler.hooks.podgroup_schedule_attempt(verdict.result, self.profile.name, took)
        tell_group(scheduler, self._first.pod, verdict.status)

    # --- who ----------------------------------------------------------------------------------------------------------

    def _collect(self) -> bool:
        """Takes the group's other pods out of the queue. False when there is nobody to schedule."""
        scheduler, pod = self.scheduler, self._first.pod
        state = scheduler.cache.groups.of(pod) if scheduler.cache.groups is not None else None
        if state is None:
            missing = f"pod group state not found for pod group {pod.namespace}/{pod.group}"
            text = f"error while retrieving pod group state: {missing}"
            self._fail(self._first, Failure(Status.from_error(PodGroupError(text)), None))
            return False
        members = self._popped
        for other in list(state.unscheduled.values()):
            if other.key != pod.key:
                queued = scheduler.queue.pop_specific_pod(other)
                if queued is not None:
                    members.append(queued)
        members.sort(key=lambda each: (-each.pod.priority, each.initial_attempt_timestamp or 0.0))
        name = members[0].pod.scheduler_name
        other_name = next((each.pod.scheduler_name for each in members if each.pod.scheduler_name != name), None)
        if other_name is not None:
            text = (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{other_name}" and "{name}"'
            )
            for each in members:
                self._fail(each, Failure(Status.from_error(PodGroupError(text))))
            return False
        for each in members:
            profile = profile_for(scheduler, each)
            if profile is not None:
                self.profile = profile
                self.members.append(each)
        return bool(self.members)

    def _fail(self, queued: QueuedPodInfo, failure: Failure) -> None:
        profile = profile_for(self.scheduler, queued)
        if profile is not None:
            self.scheduler.failures.handle(queued, profile, failure, self.started)

    # --- trying -------------------------------------------------------------------------------------------------------

    async def _decide(self) -> Verdict:
        if not self.profile.placement_generate:
            return await self.try_on()
        return await best_placement(self)

    async def try_on(self, scope: Scope = EVERYWHERE) -> Verdict:
        """An attempt, and where it fails a look for victims, behind the gate for that."""
        verdict = await self.attempt(scope)
        preemption = self.scheduler.workload_preemption
        if preemption is not None and verdict.status.rejected:
            await preemption.help(self, verdict, scope)
        return verdict

    async def attempt(self, scope: Scope = EVERYWHERE) -> Verdict:
        """Tries the members one after the other, and takes everything back."""
        verdict = Verdict(Status(Code.UNSCHEDULABLE, error=PodGroupError(UNSCHEDULABLE)))
        preempts = False
        done: list[tuple[Decision, str]] = []
        terms = QuietTerms(self.scheduler.cache)
        try:
            for queued in self.members:
                await self._breathe()
                terms.show_to(queued.pod)
                trial = await self._try(queued, scope, done)
                verdict.trials.append(trial)
                if trial.fate is Fate.ERROR:
                    assert trial.failure is not None
                    text = f"failed to schedule other pod from a pod group: {trial.failure.status.message}"
                    verdict.status, verdict.waiting = Status.from_error(PodGroupError(text)), False
                    break
                if trial.fate is Fate.REJECTED:
                    continue
                decision = done[-1][0]
                terms.assumed(decision.placed)
                preempts = preempts or trial.fate is Fate.PREEMPTS
                if not decision.waits:
                    verdict.waiting = preempts
                    verdict.status = Status()
                    if preempts:
                        verdict.status = Status(Code.UNSCHEDULABLE, PREEMPTING, error=PodGroupError(UNSCHEDULABLE))
        finally:
            for decision, nominated in reversed(done):
                undo(self.scheduler, self.profile, decision.state, decision.pod, decision.node_name)
                if nominated:
                    self.scheduler.queue.nominator.add(decision.pod, nominated)
        return verdict

    async def _breathe(self) -> None:
        now = self.scheduler.clock.monotonic()
        if self._pauses and now - self._breathed >= SLICE:
            self._breathed = now
            await asyncio.sleep(0)

    async def _try(self, queued: QueuedPodInfo, scope: Scope, done: list[tuple[Decision, str]]) -> Trial:
        """One member; where it gets a node it stays assumed, and stands in `done` with its nomination."""
        choice = await self._choose(queued.pod, scope)
        fate, failure = Fate.FITS, None
        if isinstance(choice, Failure):
            failure = choice
            if not failure.status.rejected:
                return Trial(queued, Fate.ERROR, None, failure)
            if failure.search is None or not failure.nominate:
                return Trial(queued, Fate.REJECTED, None, failure)
            fate, choice = Fate.PREEMPTS, Choice(failure.search, failure.nominate)
        nominated = self.scheduler.queue.nominator.node_of(queued.pod.uid)
        outcome = reserve(self.scheduler, queued, choice, self.started)
        if isinstance(outcome, Failure):
            fate = Fate.REJECTED if outcome.status.rejected else Fate.ERROR
            return Trial(queued, fate, None, outcome)
        done.append((outcome, nominated))
        permit = ", ".join((*outcome.wait_reasons, WAITING)) if outcome.waits else ""
        return Trial(queued, fate, choice, failure, permit)

    async def _choose(self, pod: PodInfo, scope: Scope) -> Choice | Failure:
        scheduler = self.scheduler
        if scheduler.extenders.of(pod):
            return await extended_cycle.decide(scheduler, pod, self.profile, self.started, scope)
        return scheduling_cycle.decide(scheduler, pod, self.profile, self.started, scope)

    # --- submitting ---------------------------------------------------------------------------------------------------

    def _submit(self, verdict: Verdict) -> None:
        tried = {id(trial.queued): trial for trial in verdict.trials}
        for queued in self.members:
            trial = tried.get(id(queued))
            try:
                outcome = Failure(verdict.status) if trial is None else self._outcome(verdict, trial)
            except Exception as error:  # a bug in a plugin or here costs the other members nothing
                outcome = broke_off(self.scheduler, queued.pod, error)
            conclude(self.scheduler, queued, self.profile, outcome, self.started)

    def _outcome(self, verdict: Verdict, trial: Trial) -> Decision | Failure:
        """What becomes of a member."""
        failure = trial.failure
        if verdict.result == "error":
            return Failure(failure.status if trial.fate is Fate.ERROR and failure is not None else verdict.status)
        if trial.fate is Fate.REJECTED:
            assert failure is not None
            return failure
        if trial.fate is Fate.FITS and verdict.status.ok:
            assert trial.choice is not None
            return reserve(self.scheduler, trial.queued, trial.choice, self.started)
        if verdict.waiting:
            if trial.fate is Fate.PREEMPTS and failure is not None:
                return failure
            assert trial.choice is not None
            return Failure(verdict.status, trial.choice.node_name)
        return Failure(Status(Code.UNSCHEDULABLE, trial.permit, error=PodGroupError(UNSCHEDULABLE)))
