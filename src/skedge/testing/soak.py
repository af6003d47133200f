"""The scheduler process against a cluster that does not keep still, with faults, in virtual time.

    python -m skedge.testing.soak --seeds 200 [--first N] [--events 250]

A seed is one story: some hundred random changes of the cluster while requests are delayed, lost, doubled, refused, the
API server and the scheduler process die and come back, and clocks jump. The 5-minute flush is off, so that a lost
wake-up shows as a pod left pending. At every step: each live pod is in exactly one place and each node's sums are
right. At every decision: a fresh evaluation of the same state agrees. In the end: every pod that fits anywhere is
bound, and no task is left. Prints one line a failing seed and how often each fault hit each step; exit status 1 on any
failure, and where a fault never hit a step it can hit.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import logging
import math
import multiprocessing
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from skedge.api.decode import KINDS
from skedge.app.process import SchedulerProcess
from skedge.client.clientconfig import ClientConfig
from skedge.config.defaults import default_configuration
from skedge.config.types import KubeSchedulerConfiguration, Plugin, Profile
from skedge.framework.handle import Handle
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.profiles.search import CycleError, Search
from skedge.scheduler.auditor import ROUND_SECONDS, Auditor
from skedge.scheduler.scheduler import Scheduler
from skedge.simulate.cluster import STORES, Cluster
from skedge.snapshot.pods import PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.testing.churn import PROFILES, Churn
from skedge.testing.faults import APPLIES, Fault, Faults, FaultTransport, Step
from skedge.testing.memory_server import HOST, MemoryServer
from skedge.testing.virtual_loop import LoopClock, VirtualLoop, run

EVENTS: Final = 250
CALM_SECONDS: Final = 720
"""What everybody gets, once the faults have ended, to bring their business to an end: a dead watch takes that long."""
_MOST: Final = 5  # failures a seed tells of
_BUGS: Final = ("broke off", "Unreserve failed", "is tracked in multiple places", "put back that was not in flight")
"""Error lines of the scheduler that are never the cluster's fault."""
Hits = Counter[tuple[Fault, Step]]


class Outcome(NamedTuple):
    """How a seed went."""

    seed: int
    failures: list[str]
    hits: Hits
    lives: int
    bound: int


def configuration(witness: bool = True) -> KubeSchedulerConfiguration:
    """Two profiles, without election and rate limit."""
    config = default_configuration()
    config.leader_election.leader_elect = False
    config.client_connection.qps, config.client_connection.burst = -1.0, 0
    first = config.profiles[0]
    second: Profile = copy.deepcopy(first)
    second.scheduler_name = PROFILES[1]
    config.profiles = [first, second]
    if witness:
        for profile in config.profiles:
            profile.plugins.permit.enabled.append(Plugin("Witness"))
    return config


class Witness:
    """A Permit plugin: checks each decision against a fresh engine, and makes a few pods wait."""

    name = "Witness"

    def __init__(self, handle: Handle, soak: Soak) -> None:
        self._handle = handle
        self._soak = soak

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        soak = self._soak
        refusal = self._refusal(pod, node_name)
        if refusal:
            soak.fail(f"{pod.key} was given {node_name}, a fresh evaluation says: {refusal}")
        life = soak.life
        if life is None or soak.rng.random() >= 0.1:
            return SUCCESS, 0.0
        asyncio.get_running_loop().call_later(soak.rng.random() * 5.0, life.allow, pod.uid)
        return Status(Code.WAIT), 60.0

    def _refusal(self, pod: PodInfo, node_name: str) -> str:
        handle = self._handle
        fresh = Cluster(configuration(witness=False))
        for node in handle.table.nodes:
            if node is not None:
                fresh.add_node(node)
        for pods in handle.table.pods:
            for placed in pods.values():
                if placed.uid != pod.uid:
                    fresh.cache.add_pod(copy.copy(placed))
        for store in STORES.values():
            for obj in getattr(handle.listers, store):
                getattr(fresh.listers, store).set(obj)
        search = Search(fresh.profiles[pod.scheduler_name], pod, handle.nominator)
        try:
            search.run()
        except CycleError as error:
            return str(error)
        row = fresh.cache.table.row_of.get(node_name)
        return "" if row is not None and row in search.rows else search.explain().message()


class _Hooks(SchedulerHooks):
    """Whatever the handlers had to put right is a failure here."""

    def __init__(self, soak: Soak) -> None:
        self._soak = soak

    def auditor_finding(self, kind: str) -> None:
        self._soak.fail(f"an event handler had to repair the cache: {kind}")


class Life:
    """One life of the scheduler process."""

    def __init__(self, soak: Soak) -> None:
        self._soak = soak
        self._transports: list[FaultTransport] = []
        self.crashed = False
        self.auditor: Auditor | None = None
        self.process = SchedulerProcess(
            configuration(),
            ClientConfig(f"http://{HOST}"),
            transport=self._transport,
            clock=soak.clock,
            rng=random.Random(soak.rng.random()),
            hooks=_Hooks(soak),
            out_of_tree={"Witness": lambda args, handle: Witness(handle, soak)},
            max_in_unschedulable=math.inf,
            connections=soak.rng.choice([2, 8, 48]),
            synced=self._synced,
            audit=False,
        )
        self.task = asyncio.create_task(self.process.run(), name="process")

    def _transport(self) -> FaultTransport:
        transport = FaultTransport(self._soak.server.transport(), self._soak.faults, self._soak.clock)
        self._transports.append(transport)
        return transport

    def _synced(self) -> None:
        scheduler, watches = self.process.scheduler, self.process.watches
        assert scheduler is not None
        assert watches is not None
        self.auditor = Auditor(scheduler, watches.pods.store, watches.nodes.store)

    @property
    def scheduler(self) -> Scheduler:
        assert self.process.scheduler is not None
        return self.process.scheduler

    def allow(self, uid: str) -> None:
        """Lets a pod go that waits at Permit."""
        waiting = self.scheduler.waiting.get(uid)
        if waiting is not None:
            waiting.allow("Witness")

    def crash(self) -> None:
        """Nothing reaches the server any more, from this moment on."""
        self.crashed = True
        for transport in self._transports:
            transport.alive = False
        asyncio.get_running_loop().call_soon(self.task.cancel)

    async def end(self) -> None:
        """In order, or, after a crash, at once; then nothing of it may be left."""
        if not self.crashed:
            self.process.stop()
        await asyncio.wait([self.task], timeout=60.0)
        if not self.task.done():
            self._soak.fail("the process does not end")
            self.task.cancel()
        (result,) = await asyncio.gather(self.task, return_exceptions=True)
        if isinstance(result, Exception):
            self._soak.fail(f"the process ended by {result!r}")


class Soak:
    """One seed."""

    def __init__(self, seed: int, loop: VirtualLoop, events: int = EVENTS) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = LoopClock(loop)
        history, watch_list = self.rng.choice([30, 300, 3000]), self.rng.random() < 0.6
        self.server = MemoryServer(self.clock, random.Random(seed), history=history, watch_list=watch_list)
        self.faults = Faults(
            random.Random(seed),
            rate=self.rng.choice([0.02, 0.06, 0.12]),
            first=seed,
            restart=self.server.crash,
            jump=self.clock.jump,
            crash=self._crash,
        )
        self.churn = Churn(self.server, random.Random(seed))
        self.life: Life | None = None
        self.lives = 0
        self._events = events
        self._failures: list[str] = []
        self._doing = ""

    def fail(self, text: str) -> None:
        """Notes what went wrong, and when."""
        if len(self._failures) < _MOST:
            self._failures.append(f"at {self.clock.monotonic():.1f} s, {self._doing}: {text}")

    def _crash(self) -> None:
        if self.life is not None:
            self.life.crash()

    async def run(self) -> Outcome:
        self.churn.found()
        self._begin_life()
        for i in range(self._events):
            self._doing = f"step {i} {self.churn.step()}"
            await asyncio.sleep(self.rng.choice([0.0, 0.01, 0.3, 2.0]))
            await self._restart_if_dead()
            if self.rng.random() < 0.3:
                self.churn.tick()
            if self.rng.random() < 0.01:
                self.server.compact()
            self._check(whole=i % 25 == 0)
            if len(self._failures) >= _MOST:
                break
        self.faults.on = False
        self._doing = "in the end"
        for _ in range(CALM_SECONDS // 4):
            await asyncio.sleep(4.0)
            await self._restart_if_dead()
            self.churn.tick(1.0)
        self._check(whole=True)
        await asyncio.sleep(ROUND_SECONDS + 1.0)
        self._check(whole=True)
        self._check_outcome()
        await self._end_life()
        bound = sum(1 for pod in self.churn.pods() if pod["spec"].get("nodeName"))
        return Outcome(self.seed, self._failures, self.faults.hits, self.lives, bound)

    # --- lives --------------------------------------------------------------------------------------------------------

    def _begin_life(self) -> None:
        self.life = Life(self)
        self.lives += 1

    async def _end_life(self) -> None:
        life, self.life = self.life, None
        assert life is not None
        await life.end()
        await asyncio.sleep(0)
        left = {task.get_name() for task in asyncio.all_tasks()} - {"soak"}
        if left:
            self.fail(f"tasks are left over: {', '.join(sorted(left))}")

    async def _restart_if_dead(self) -> None:
        life = self.life
        assert life is not None
        if life.task.done() and not life.crashed:
            self.fail("the process ended by itself")
        if life.task.done() or life.crashed:
            await self._end_life()
            await asyncio.sleep(self.rng.random() * 5.0)
            self._begin_life()

    # --- checks -------------------------------------------------------------------------------------------------------

    def _check(self, whole: bool) -> None:
        life = self.life
        if life is None or life.crashed or life.auditor is None:
            return
        for finding in life.auditor.detect():
            self.fail(str(finding))
        if whole:
            try:
                life.scheduler.cache.validate()
                life.scheduler.queue.validate()
            except AssertionError as error:
                self.fail(str(error))

    def _check_outcome(self) -> None:
        """The server's objects, in a fresh engine: the cache has the same sums, and no pending pod fits anywhere."""
        life = self.life
        if life is None or life.auditor is None:
            self.fail("the scheduler is not up, though nothing goes wrong any more")
            return
        fresh = self._fresh()
        self._compare(fresh, life.scheduler)
        nominator = life.scheduler.queue.nominator
        for pod in fresh.pods.values():
            profile = fresh.profile_of(pod)
            if profile is None or pod.terminating or pod.pod.spec.scheduling_gates:
                continue
            search = Search(profile, pod, nominator if nominator else None)
            try:
                search.run()
            except CycleError:
                continue
            if len(search.rows):
                nodes = ", ".join(fresh.cache.table.names[row] for row in search.rows)
                story = "; ".join(str(step) for step in life.scheduler.queue.story(pod.key)[-6:])
                self.fail(f"{pod.key} is pending, though it fits on {nodes}. {story}")

    def _fresh(self) -> Cluster:
        fresh = Cluster(configuration(witness=False))
        for kind in ("Namespace", "Node", *STORES, "Pod"):
            info = KINDS[kind]
            storage = f"{info.plural}.{info.group}" if info.group else info.plural
            for stored in self.server.cluster.collection(storage).objects.values():
                fresh.put(kind, stored.load())
        return fresh

    def _compare(self, fresh: Cluster, scheduler: Scheduler) -> None:
        mine, true = scheduler.cache.table, fresh.cache.table
        if mine.row_of.keys() != true.row_of.keys():
            self.fail(f"cached nodes {sorted(mine.row_of)}, there are {sorted(true.row_of)}")
            return
        for name, row in true.row_of.items():
            own = mine.row_of[name]
            for resource in mine.requested.keys() | true.requested.keys():
                cached = int(mine.requested[resource][own]) if resource in mine.requested else 0
                sum_ = int(true.requested[resource][row]) if resource in true.requested else 0
                if cached != sum_:
                    self.fail(f"{name} has {cached} of {resource} requested in the cache, {sum_} at the server")
        assumed = scheduler.cache.statistics()["assumed_pods"]
        if assumed:
            self.fail(f"{assumed} pods are still assumed")


class _Lines(logging.Handler):
    """Reads what the scheduler logs: some lines are bugs."""

    def __init__(self, soak: Soak) -> None:
        super().__init__(logging.ERROR)
        self._soak = soak

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if any(bug in text for bug in _BUGS):
            values: Any = getattr(record, "values", {})
            self._soak.fail(f"logged {text}: {values}")


@contextmanager
def _listening(soak: Soak) -> Iterator[None]:
    logger, handler = logging.getLogger("skedge"), _Lines(soak)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def run_seed(seed: int, events: int = EVENTS) -> Outcome:
    """One seed, from the beginning; equal arguments give equal outcomes."""
    loop = VirtualLoop()
    soak = Soak(seed, loop, events)

    async def main() -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("soak")
        return await soak.run()

    with _listening(soak):
        outcome, left = run(loop, main())
    if left:
        outcome.failures.append(f"tasks are left over: {', '.join(left)}")
    return outcome


def _run_one(arguments: tuple[int, int]) -> Outcome:
    seed, events = arguments
    try:
        return run_seed(seed, events)
    except Exception as error:  # a seed that breaks off is a failing seed
        return Outcome(seed, [f"broke off: {error!r}"], Counter(), 0, 0)


def run_seeds(seeds: Sequence[int], events: int = EVENTS, jobs: int = 1) -> Iterator[Outcome]:
    """Outcomes as they come in. Each process hashes alike, so that a seed does the same every time."""
    os.environ["PYTHONHASHSEED"] = "0"
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(_run_one, [(seed, events) for seed in seeds])


def unhit(hits: Hits) -> list[tuple[Fault, Step]]:
    """What could have been hit and was not."""
    return [
        (fault, step) for fault, steps in APPLIES.items() for step in Step if step in steps and not hits[fault, step]
    ]


def table(hits: Hits) -> str:
    """Hits a fault (lines) and step (columns); a dot where a fault does not apply."""
    lines = [f"{'':12}" + "".join(f"{step.value:>8}" for step in Step)]
    for fault, steps in APPLIES.items():
        cells = (f"{hits[fault, step] if step in steps else '.':>8}" for step in Step)
        lines.append(f"{fault.value:12}" + "".join(cells))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m skedge.testing.soak", description="Soak the scheduler with faults."
    )
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds (200)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--events", type=int, default=EVENTS, help=f"changes of the cluster a seed ({EVENTS})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (all processors)")
    asked = parser.parse_args(arguments)
    hits: Hits = Counter()
    failing = lives = bound = 0
    seeds = range(asked.first, asked.first + asked.seeds)
    for outcome in run_seeds(seeds, asked.events, min(asked.jobs, asked.seeds)):
        hits += outcome.hits
        lives, bound = lives + outcome.lives, bound + outcome.bound
        if outcome.failures:
            failing += 1
            print(f"seed {outcome.seed}: {len(outcome.failures)} failures; {outcome.failures[0]}", flush=True)
            if asked.seeds == 1:
                for text in outcome.failures[1:]:
                    print(f"  {text}")
    print(table(hits))
    print(f"{asked.seeds} seeds, {failing} failing; {lives} lives of the scheduler, {bound} pods bound in the end")
    never = unhit(hits) if asked.seeds > 1 else []
    for fault, step in never:
        print(f"{fault.value} never hit {step.value}")
    return 1 if failing or never else 0


if __name__ == "__main__":
    sys.exit(main())
