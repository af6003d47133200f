"""The scheduler: cache, queue, profiles and the loop that takes pods from one to the other.

Upstream: `pkg/scheduler/scheduler.go`. One loop owns the state: cycles run in slices of a few milliseconds, then
sockets breathe. `assembly` builds it; nothing here opens a connection, that is what `ports` are for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from skedge.api.scheduling import PodGroup
from skedge.cache.cache import Cache
from skedge.clock import Clock
from skedge.framework.ports import Extender, Inbox, Ports
from skedge.framework.status import Status
from skedge.profiles.profile import Profile
from skedge.profiles.search import CycleError, Search
from skedge.queue.scheduling_queue import SchedulingQueue
from skedge.scheduler import binding_cycle, extended_cycle
from skedge.scheduler.dispatcher import Dispatcher
from skedge.scheduler.event_handlers import EventHandlers
from skedge.scheduler.extenders import Extenders
from skedge.scheduler.failure_handler import FailureHandler
from skedge.scheduler.pod_groups import GroupCycle, run_now
from skedge.scheduler.scheduling_cycle import Decision, choose, schedule_one
from skedge.scheduler.status_patches import StatusPatches
from skedge.scheduler.waiting_pods import WaitingPods
from skedge.scheduler.workload_preemption import WorkloadPreemption
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

SLICE = 0.005
"""Seconds of cycles before the loop serves its sockets again."""
LONGEST_SLEEP = 1.0
"""Seconds after which deadlines are looked at again: a pod that goes into backoff brings one and wakes nobody."""


class NoInbox:
    """For a scheduler whose cycles never wait: every change is made at once."""

    def submit(self, call: Callable[[], None]) -> None:
        call()

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()


class Scheduler:
    """See the module's docstring. `pod_lister` finds a pod in the informer by `namespace/name`; `wake` is set by the
    queue when a pod may be popped."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        profiles: Mapping[str, Profile],
        ports: Ports,
        clock: Clock,
        rng: random.Random,
        pod_lister: Callable[[str], PodInfo | PlacedPod | None],
        hooks: SchedulerHooks | None = None,
        dispatcher: Dispatcher | None = None,
        wake: asyncio.Event | None = None,
        extenders: Sequence[Extender] = (),
        inbox: Inbox | None = None,
    ) -> None:
        self.cache = cache
        self.queue = queue
        self.profiles = profiles
        self.ports = ports
        self.clock = clock
        self.rng = rng
        self.pod_lister = pod_lister
        self.hooks = hooks or SchedulerHooks()
        self.waiting = WaitingPods()
        self.pre_binding: dict[str, asyncio.Task[Status]] = {}
        self.dispatcher = dispatcher or Dispatcher()
        self.patches = StatusPatches(ports, self.dispatcher, clock)
        self.extenders = Extenders(extenders, cache, rng)
        self.inbox: Inbox = NoInbox() if inbox is None else inbox
        self.choose: Callable[[Search], int] = partial(choose, self)
        """Which of the rows that fit is taken; a replay takes those that were taken before."""
        self.workload_preemption: WorkloadPreemption | None = None
        self.group_of: Callable[[PodInfo | PlacedPod], PodGroup | None] = lambda pod: None
        """The object of a pod's group."""
        self.failures = FailureHandler(self)
        self.handlers = EventHandlers(self)
        self._stopping = False
        self._wake = wake or asyncio.Event()
        self.dispatcher.on_room = self._wake.set

    # --- the loop -----------------------------------------------------------------------------------------------------

    async def work(self, seconds: float = SLICE) -> int:
        """A slice of cycles, some of which may wait (extenders, groups): then they hold the state and no other runs."""
        if not self.extenders and self.cache.groups is None:
            return self.run_slice(seconds)
        end = self.clock.monotonic() + seconds
        done = 0
        while self.dispatcher.has_room and (queued := self.queue.pop()) is not None:
            if self._in_group(queued.pod):
                with self.inbox.held():
                    await GroupCycle(self, queued, pauses=not isinstance(self.inbox, NoInbox)).run()
            elif self.extenders.of(queued.pod):
                with self.inbox.held():
                    await extended_cycle.schedule_one(self, queued)
            else:
                schedule_one(self, queued)
            done += 1
            if self.clock.monotonic() >= end:
                break
        return done

    def run_slice(self, seconds: float = SLICE) -> int:
        """Schedules pods until the time is up, the queue is empty, or bindings pile up; returns how many."""
        clock, queue, dispatcher = self.clock, self.queue, self.dispatcher
        end = clock.monotonic() + seconds
        done = 0
        while dispatcher.has_room:
            queued = queue.pop()
            if queued is None:
                break
            if self._in_group(queued.pod):
                run_now(GroupCycle(self, queued).run())
            else:
                schedule_one(self, queued)
            done += 1
            if clock.monotonic() >= end:
                break
        return done

    def _in_group(self, pod: PodInfo) -> bool:
        """Whether a pod is scheduled together with others."""
        return pod.group is not None and self.cache.groups is not None

    async def run(self) -> None:
        """Schedules until cancelled or stopped."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            self._wake.clear()
            self.flush()
            if await self.work():
                await asyncio.sleep(0)
                continue
            deadline = self.queue.next_deadline()
            wait = LONGEST_SLEEP if deadline is None else min(LONGEST_SLEEP, deadline - self.clock.monotonic())
            timer = loop.call_later(max(0.0, wait), self._wake.set)
            try:
                await self._wake.wait()
            finally:
                timer.cancel()

    def flush(self) -> None:
        """Moves pods whose backoff is over, and those that waited too long."""
        deadline = self.queue.next_deadline()
        if deadline is not None and deadline <= self.clock.monotonic():
            self.queue.flush_due()

    def wake(self) -> None:
        """Has the loop look whether there is something to do."""
        self._wake.set()

    def stop(self) -> None:
        """No pod is popped any more."""
        self._stopping = True
        self._wake.set()

    # --- what cycles call ---------------------------------------------------------------------------------------------

    def start_binding(self, decision: Decision) -> None:
        binding_cycle.start_binding(self, decision)

    async def pre_bind(self, decision: Decision, groups: list[list[Any]]) -> Status:
        """Runs PreBind; meanwhile preemption may cancel it through `pre_binding`, with a word why."""
        task = asyncio.ensure_future(binding_cycle.run_pre_bind(decision, groups))
        self.pre_binding[decision.pod.uid] = task
        try:
            return await task
        except asyncio.CancelledError as cancelled:
            if not task.cancelled() or not cancelled.args:  # we are stopped, not the task alone
                raise
            return Status.from_error(CycleError(str(cancelled.args[0])))
        finally:
            self.pre_binding.pop(decision.pod.uid, None)
            task.cancel()

    def record(
        self, pod: PodInfo | PlacedPod, profile: Profile, type_: str, reason: str, action: str, note: str
    ) -> None:
        """Notes an event about a pod, in the profile's name; that this fails is no reason to do anything else."""
        try:
            self.ports.events.event(pod, None, type_, reason, action, note, controller=profile.name)
        except Exception as error:
            log.error(error, "Event could not be recorded", pod=pod.key, reason=reason)
