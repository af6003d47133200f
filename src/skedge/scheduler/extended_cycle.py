"""The cycle of a pod that extenders are asked about: the same halves as `scheduling_cycle`, with waits in between.

Whoever runs it holds the scheduler's inbox, so that the state is the same after each wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skedge.framework.status import Status
from skedge.profiles.profile import Profile
from skedge.profiles.search import CycleError, Search
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.scheduler.scheduling_cycle import (
    CLEAR,
    EVERYWHERE,
    Choice,
    Decision,
    Failure,
    Scope,
    broke_off,
    conclude,
    new_search,
    no_fit,
    no_nodes,
    profile_for,
    reserve,
)
from skedge.snapshot.pods import PodInfo

if TYPE_CHECKING:
    from skedge.scheduler.scheduler import Scheduler


async def schedule_one(scheduler: Scheduler, queued: QueuedPodInfo) -> None:
    """`scheduling_cycle.schedule_one` for a pod that extenders are asked about."""
    profile = profile_for(scheduler, queued)
    if profile is None:
        return
    started = scheduler.clock.monotonic()
    outcome: Decision | Failure
    try:
        choice = await decide(scheduler, queued.pod, profile, started)
        outcome = choice if isinstance(choice, Failure) else reserve(scheduler, queued, choice, started)
    except Exception as error:
        outcome = broke_off(scheduler, queued.pod, error)
    conclude(scheduler, queued, profile, outcome, started)


async def decide(
    scheduler: Scheduler, pod: PodInfo, profile: Profile, started: float, scope: Scope = EVERYWHERE
) -> Choice | Failure:
    """`scheduling_cycle.decide` with extenders."""
    if not scheduler.cache.table.count:
        return no_nodes()
    search, extenders = new_search(scheduler, pod, profile, scope), scheduler.extenders
    try:
        for nominated in search.steps():
            await extenders.filter(search, nominated)
        if len(search.rows):
            found: Choice | Failure = Choice(search, search.table.names[await extenders.choose(search)])
        else:
            search.explain()
            if scope.post_filter:
                await post_filter(scheduler, search)
            found = no_fit(search, search.nomination if scope.post_filter and profile.post_filter else CLEAR)
    except CycleError as error:
        return Failure(Status.from_error(error))
    finally:
        extenders.release(search)
    scheduler.hooks.scheduling_algorithm(scheduler.clock.monotonic() - started)
    return found


async def post_filter(scheduler: Scheduler, search: Search) -> None:
    """PostFilter; extenders that preempt are asked about the candidates."""
    for plugin, outcome in search.post_filter_steps(halves=True):
        await scheduler.extenders.preempt(search.pod, plugin, outcome)
