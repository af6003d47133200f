"""Compares queue, cache and informer stores all the time: no pod may be lost, no room may leak.

A round looks at every pod, node and record, a few at a time, so that it costs about one percent of the loop at any size
of cluster. Each look is made between two events, when everything has to agree. In production what is found is repaired
from the informer's object, logged as an error and counted; in tests, soak and benchmarks it is only reported, and any
finding fails the run: a repair must never hide a bug.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from skedge.framework import events
from skedge.profiles.search import CycleError, Search
from skedge.queue.pending import Place
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.logs import get_logger

if TYPE_CHECKING:
    from skedge.api.core import Node
    from skedge.scheduler.scheduler import Scheduler

log = get_logger(__name__)

SLICE_SECONDS: Final = 0.001
PAUSE_SECONDS: Final = 0.1
"""Work, and rest between two slices of it."""
ROUND_SECONDS: Final = 30.0
"""The shortest time between the beginnings of two rounds."""
PROBES: Final = 8
"""Unschedulable pods that a round evaluates anew."""
OVERDUE_SECONDS: Final = 5.0

T_co = TypeVar("T_co", covariant=True)


class Objects(Protocol[T_co]):
    """What is needed of an informer's store."""

    def get(self, key: str) -> T_co | None: ...

    def keys(self) -> Collection[str]: ...


class Finding(NamedTuple):
    """Something that must not be: which kind, of what (a pod's key or a node's name), and how it shows."""

    kind: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject} {self.text}"


class _Found(NamedTuple):
    finding: Finding
    repair: Callable[[], object]


class Auditor:
    """Kinds of findings:

    lost        a pending pod of ours is nowhere
    misplaced   a pod is in two places, or in the wrong one
    stale       queue or cache hold another state of an object than the informer
    ghost       queue or cache hold what the informer does not know
    sums        a node's columns are not the sums over its pods
    nomination  room is promised to a pod that is gone or has a node
    untried     a pod may be tried and nobody tries it
    in-flight   an attempt has no end
    """

    def __init__(self, scheduler: Scheduler, pods: Objects[PodInfo | PlacedPod], nodes: Objects[Node]) -> None:
        self._scheduler = scheduler
        self._cache, self._queue = scheduler.cache, scheduler.queue
        self._pods, self._nodes = pods, nodes
        self._idle = (-1, 0.0)  # the number of the last cycle, and since when pods wait and no other began
        self._flying: dict[tuple[str, int], float] = {}  # (uid, attempt) in flight and not placed -> since when
        self._fitting: dict[tuple[str, int], float] = {}  # (uid, attempt) rejected, that fits -> since when
        self._turn = 0

    # --- running ------------------------------------------------------------------------------------------------------

    def detect(self) -> list[Finding]:
        """One round at once, nothing repaired."""
        return [found.finding for found in self._round() if found is not None]

    async def run(self) -> None:
        """Round after round, with repairs, until cancelled."""
        clock = self._scheduler.clock
        while True:
            began = clock.monotonic()
            try:
                self._scheduler.hooks.audit_round(await self._run_round())
            except Exception as error:
                log.error(error, "The audit broke off, the next round begins anew")
            await asyncio.sleep(max(PAUSE_SECONDS, ROUND_SECONDS - (clock.monotonic() - began)))

    async def _run_round(self) -> float:
        """One round in slices, with repairs; the seconds it worked. Slices wait for a cycle that waits to be over."""
        worked, steps, more = 0.0, self._round(), True
        while more:
            start = time.perf_counter()
            taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._scheduler.inbox.submit(partial(self._take_slice, steps, taken))
            if not taken.done():
                await taken
                start = time.perf_counter()
            more = taken.result()
            worked += time.perf_counter() - start
            await asyncio.sleep(PAUSE_SECONDS)
        return worked

    def _take_slice(self, steps: Iterator[_Found | None], taken: asyncio.Future[bool]) -> None:
        """Works for a while; the future says whether there is more to do, or what went wrong."""
        if taken.done():  # the audit was ended
            return
        end = time.perf_counter() + SLICE_SECONDS
        try:
            for found in steps:
                if found is not None:
                    self._repair(found)
                if time.perf_counter() >= end:
                    taken.set_result(True)
                    return
        except Exception as error:
            taken.set_exception(error)
        else:
            taken.set_result(False)

    def _repair(self, found: _Found) -> None:
        finding, hooks = found.finding, self._scheduler.hooks
        hooks.auditor_finding(finding.kind)
        log.error(finding.text, "Queue, cache and informers disagree", kind=finding.kind, object=finding.subject)
        try:
            found.repair()
        except Exception as error:  # a bug on top of a bug must not end the audit
            log.error(error, "Repair failed", kind=finding.kind, object=finding.subject)
        else:
            hooks.audit_repair(finding.kind)

    def _round(self) -> Iterator[_Found | None]:
        """Every check; None where a slice may end."""
        for key in list(self._pods.keys()):
            yield from self._check_pod(key)
            yield None
        records = list(self._queue.records())
        yield None
        for place, record in records:
            yield self._check_record(place, record)
        yield from self._check_nodes()
        yield from self._check_nominations()
        yield from self._check_progress()
        yield from self._probe_unschedulable()

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _check_pod(self, key: str) -> Iterator[_Found]:
        pod = self._pods.get(key)
        if pod is None:
            return
        record = self._queue.find(key)
        if record is not None and record.pod.uid != pod.uid:
            yield _found("ghost", key, "waits in the queue with another UID", partial(self._requeue, record, pod))
            record = None
        cached = self._cache.find_pod(pod.uid)
        if isinstance(pod, PlacedPod):
            if record is not None:
                yield _found("misplaced", key, "has a node and is in the queue", partial(self._queue.delete, pod))
            if cached is None:
                yield _found("lost", key, f"is on {pod.node_name} and not in the cache", partial(self._rebuild, pod))
            elif cached is not pod:
                how = f"is cached on {cached.node_name} at version {cached.resource_version}"
                yield _found("stale", key, f"{how}, is {pod.resource_version}", partial(self._rebuild, pod))
            elif self._astray(cached):
                yield _found("stale", key, f"is not on the row of {pod.node_name}", partial(self._rebuild, pod))
        elif pod.scheduler_name in self._scheduler.profiles:
            yield from self._check_pending(pod, record, cached)
        elif record is not None:
            yield _found("misplaced", key, "is another scheduler's", partial(self._queue.delete, pod))

    def _check_pending(self, pod: PodInfo, record: QueuedPodInfo | None, cached: PlacedPod | None) -> Iterator[_Found]:
        key = pod.key
        if cached is not None and not self._cache.is_assumed(pod.uid):
            yield _found("ghost", key, f"has no node and is cached on {cached.node_name}", partial(self._drop, cached))
            cached = None
        if record is None:
            if cached is None and self._queue.in_flight(pod.uid) is None and not pod.terminating:
                yield _found("lost", key, "is pending and nowhere", partial(self._queue.add, pod))
        elif cached is not None:
            where = f"is in the queue and assumed on {cached.node_name}"
            yield _found("misplaced", key, where, partial(self._queue.delete, pod))
        elif self._queue.in_flight(pod.uid) is not None:
            yield _found("misplaced", key, "waits and is in flight", partial(self._queue.delete, pod))
        elif record.pod.resource_version != pod.resource_version:
            versions = f"waits as version {record.pod.resource_version}, is {pod.resource_version}"
            yield _found("stale", key, versions, partial(self._queue.update, record.pod, pod))

    def _astray(self, cached: PlacedPod) -> bool:
        table = self._cache.table
        return table.names[cached.row] != cached.node_name or table.pods[cached.row].get(cached.uid) is not cached

    def _check_cached(self, cached: PlacedPod) -> _Found | None:
        """Whether the informer knows a pod on a row. One whose wait was ended is about to be forgotten."""
        known = self._pods.get(cached.key)
        if (known is not None and known.uid == cached.uid) or self._scheduler.waiting.get(cached.uid) is not None:
            return None
        return _found("ghost", cached.key, f"is cached on {cached.node_name}", partial(self._drop, cached))

    def _check_record(self, place: Place, record: QueuedPodInfo) -> _Found | None:
        if place is Place.IN_FLIGHT:
            return None
        if self._queue.find(record.key) is not record or self._pods.get(record.key) is not None:
            return None  # moved since the round began, or compared with the informer's already
        return _found("ghost", record.key, f"is in the queue ({place.value})", partial(self._queue.delete, record.pod))

    def _requeue(self, record: QueuedPodInfo, pod: PodInfo | PlacedPod) -> None:
        self._queue.delete(record.pod)
        if isinstance(pod, PodInfo) and pod.scheduler_name in self._scheduler.profiles:
            self._queue.add(pod)

    def _rebuild(self, pod: PlacedPod) -> None:
        """The cache's record is made anew from the informer's object."""
        if self._cache.find_pod(pod.uid) is not None:
            self._cache.remove_pod(pod)
        self._cache.add_pod(pod)
        self._queue.move_all(events.ASSIGNED_POD_ADD, None, pod)

    def _drop(self, cached: PlacedPod) -> None:
        self._cache.remove_pod(cached)
        self._queue.move_all(events.ASSIGNED_POD_DELETE, cached, None)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _check_nodes(self) -> Iterator[_Found | None]:
        table, handlers = self._cache.table, self._scheduler.handlers
        for name in list(self._nodes.keys()):
            node, cached = self._nodes.get(name), table.node(name)
            if node is not None and cached is not node:
                kind, how = ("lost", "is not in the cache") if cached is None else ("stale", "is cached as it was")
                yield _found(kind, name, how, partial(handlers.node_added, node))
            yield None
        for name in list(table.row_of):
            cached = table.node(name)
            if cached is not None and self._nodes.get(name) is None:
                yield _found("ghost", name, "is a cached node", partial(handlers.node_deleted, cached))
            row = table.row_of.get(name)
            for pod in [] if row is None else list(table.pods[row].values()):
                ghost = self._check_cached(pod)
                if ghost is not None:
                    yield ghost
            yield self._check_sums(name)

    def _check_sums(self, name: str) -> _Found | None:
        cache = self._cache
        row = cache.table.row_of.get(name)
        wrong = "" if row is None else cache.wrong_sums(name)
        if not wrong:
            return None

        def recount() -> None:
            cache.recount(name)
            node = cache.table.node(name)
            if node is not None:
                self._queue.move_all(events.NODE_ADD, None, node)

        return _found("sums", name, wrong, recount)

    def _check_nominations(self) -> Iterator[_Found | None]:
        nominator = self._queue.nominator
        for name in list(nominator.nominated_nodes()):
            for pod in nominator.nominated_pods(name):
                known = self._pods.get(pod.key)
                if known is None or known.uid != pod.uid or known.node_name:
                    text = f"was promised room on {name} and " + ("has a node" if known is not None else "is gone")
                    yield _found("nomination", pod.key, text, partial(nominator.delete, pod))
            yield None

    # --- attempts -----------------------------------------------------------------------------------------------------

    def _check_progress(self) -> Iterator[_Found]:
        """Pods that may be popped are popped, and what was popped comes down again. Needs two rounds to tell."""
        queue, scheduler = self._queue, self._scheduler
        now, cycle = queue.now(), queue.scheduling_cycle
        waits: str | None = None
        flying: dict[tuple[str, int], float] = {}
        for place, record in list(queue.records()):
            if place is Place.ACTIVE:
                waits = waits or record.key
            elif place in (Place.BACKOFF, Place.ERROR_BACKOFF):
                if now - record.backoff_expiration > OVERDUE_SECONDS:
                    waits = waits or record.key
            elif place is Place.IN_FLIGHT and self._cache.find_pod(record.pod.uid) is None:
                attempt = record.pod.uid, record.attempts
                since = flying[attempt] = self._flying.get(attempt, now)
                if now - since >= ROUND_SECONDS:
                    text = f"has been in flight for {now - since:.0f} s"
                    yield _found("in-flight", record.key, text, partial(self._land, record))
        self._flying = flying
        if waits is None or not scheduler.dispatcher.has_room or self._idle[0] != cycle:
            self._idle = cycle, now
        elif now - self._idle[1] >= ROUND_SECONDS:
            yield _found("untried", waits, "may be tried and is not", scheduler.wake)

    def _land(self, record: QueuedPodInfo) -> None:
        self._queue.done(record.pod.uid)
        known = self._pods.get(record.key)
        if isinstance(known, PodInfo) and known.uid == record.pod.uid and self._queue.find(record.key) is None:
            self._queue.add(known)

    def _probe_unschedulable(self) -> Iterator[_Found | None]:
        """Some of the pods that plugins rejected are evaluated anew: one that fits should have been woken.

        It may be on its way (a nomination that was taken back shows when the patch returns), so it has to fit twice.
        """
        now = self._queue.now()
        rejected = [record for place, record in self._queue.records() if place is Place.UNSCHEDULABLE]
        turn = [rejected[(self._turn + i) % len(rejected)] for i in range(min(PROBES, len(rejected)))]
        self._turn += PROBES
        fitting: dict[tuple[str, int], float] = {}
        suspects = [record for record in rejected if (record.pod.uid, record.attempts) in self._fitting]
        for record in {record.key: record for record in (*suspects, *turn)}.values():
            if self._queue.find(record.key) is record and self.fits(record):
                attempt = record.pod.uid, record.attempts
                since = fitting[attempt] = self._fitting.get(attempt, now)
                if now - since >= ROUND_SECONDS:
                    text = f"fits, but nothing woke it for {', '.join(sorted(record.rejectors))}"
                    yield _found("untried", record.key, text, partial(self._queue.activate, [record.pod]))
            yield None
        self._fitting = fitting

    def fits(self, record: QueuedPodInfo) -> bool:
        """Whether a pod that filters rejected would find a node now. Profiles that sample nodes are not asked: each
        question would move their turn."""
        profile = self._scheduler.profiles.get(record.pod.scheduler_name)
        if profile is None or profile.sampler is not None or record.pod.terminating:
            return False
        filters = {plugin.name for plugin in (*profile.filter, *profile.pre_filter)}
        if not record.rejectors or not record.rejectors <= filters:
            return False
        if self._cache.statistics()["assumed_pods"] and not record.rejectors <= profile.kept_names:
            return False  # a rule over several nodes may hold thanks to a pod whose binding is not confirmed yet
        nominator = self._queue.nominator
        search = Search(profile.unmeasured(), record.pod, nominator if nominator else None)
        try:
            search.run()
        except CycleError:
            return False
        return len(search.rows) > 0


def _found(kind: str, subject: str, text: str, repair: Callable[[], object]) -> _Found:
    return _Found(Finding(kind, subject, text), repair)
