"""The auditor finds every kind of contradiction, repairs it, and finds none in a healthy scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from skedge.profiles.measures import Measures
from skedge.profiles.search import Search
from skedge.scheduler import auditor as module
from skedge.scheduler.auditor import ROUND_SECONDS, Auditor
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


class Counting(SchedulerHooks):
    def __init__(self) -> None:
        self.found: list[str] = []
        self.repaired: list[str] = []

    def auditor_finding(self, kind: str) -> None:
        self.found.append(kind)

    def audit_repair(self, kind: str) -> None:
        self.repaired.append(kind)


class Told(Measures):
    """Notes what was measured."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pre_filtered(self, search: Search, start: float) -> float:
        self.calls.append(search.pod.key)
        return start


async def cluster() -> tuple[Harness, Auditor]:
    """A full node n with the pod a on it, and pods that wait: w for room, g for its gate."""
    h = Harness(hooks=Counting(), max_in_unschedulable=float("inf"))
    h.scheduler.dispatcher.start()
    h.add_node(make_node("n").capacity(cpu="1"))
    h.add_pod(make_pod("a").req(cpu="1"))
    await h.settle()
    h.add_pod(make_pod("w").req(cpu="1"))
    h.add_pod(make_pod("g").gates("x"))
    await h.settle()
    return h, Auditor(h.scheduler, h.store, h.nodes)


def pod(h: Harness, name: str) -> Any:
    return h.store[f"default/{name}"]


def lose(h: Harness) -> None:
    h.scheduler.queue.delete(pod(h, "w"))


def lose_placed(h: Harness) -> None:
    h.scheduler.cache.remove_pod(pod(h, "a"))


def double(h: Harness) -> None:
    h.scheduler.cache.assume_pod(pod(h, "w"), "n")


def queue_placed(h: Harness) -> None:
    h.scheduler.queue.add(make_pod("a").req(cpu="1").info())


def age(h: Harness) -> None:
    h.scheduler.cache.update_pod(make_pod("a").req(cpu="500m").node("n").placed())


def move(h: Harness) -> None:
    h.scheduler.cache.update_pod(make_pod("a").req(cpu="1").node("m").placed())


def haunt(h: Harness) -> None:
    h.scheduler.cache.add_pod(make_pod("nobody").req(cpu="1").node("n").placed())


def haunt_queue(h: Harness) -> None:
    h.scheduler.queue.add(make_pod("nobody").info())


def leak(h: Harness) -> None:
    h.scheduler.cache.table.requested["cpu"][0] += 250


def lose_node(h: Harness) -> None:
    h.scheduler.cache.remove_node(h.nodes["n"])


def haunt_node(h: Harness) -> None:
    h.scheduler.cache.add_node(make_node("nowhere").obj())


def promise(h: Harness) -> None:
    info = make_pod("w").req(cpu="1").info()
    h.scheduler.queue.nominator.add(info, "n")
    del h.store["default/w"], h.json["default/w"]
    h.scheduler.queue._pending.delete("default/w")


@pytest.mark.parametrize(
    ("harm", "kind", "subject"),
    [
        (lose, "lost", "default/w"),
        (lose_placed, "lost", "default/a"),
        (double, "misplaced", "default/w"),
        (queue_placed, "misplaced", "default/a"),
        (age, "stale", "default/a"),
        (move, "stale", "default/a"),
        (haunt, "ghost", "default/nobody"),
        (haunt_queue, "ghost", "default/nobody"),
        (leak, "sums", "n"),
        (lose_node, "lost", "n"),
        (haunt_node, "ghost", "nowhere"),
        (promise, "nomination", "default/w"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
async def test_each_harm_is_found_and_repaired(harm: Callable[[Harness], None], kind: str, subject: str) -> None:
    h, auditor = await cluster()
    try:
        assert auditor.detect() == []
        harm(h)
        found = auditor.detect()
        assert (kind, subject) in [(each.kind, each.subject) for each in found]
        assert str(found[0])
        for each in list(auditor._round()):
            if each is not None:
                auditor._repair(each)
        left = auditor.detect()
        if harm is double:  # the assumption is what is believed; nobody is binding the pod, though
            h.scheduler.cache.forget_pod(pod(h, "w"), "n")
            h.scheduler.queue.add(pod(h, "w"))
        else:
            assert left == []
        hooks: Any = h.scheduler.hooks
        assert kind in hooks.found
        assert hooks.repaired == hooks.found
        h.scheduler.cache.validate()
        h.scheduler.queue.validate()
    finally:
        await h.scheduler.dispatcher.close()


async def test_pods_that_may_be_tried_and_are_not() -> None:
    h, auditor = await cluster()
    h.scheduler.queue.activate([pod(h, "w")])  # and the loop sleeps
    assert auditor.detect() == []
    h.clock.advance(ROUND_SECONDS)
    assert [each.kind for each in auditor.detect()] == ["untried"]
    await h.scheduler.dispatcher.close()


async def test_an_attempt_without_an_end_is_found_and_the_pod_is_queued_again() -> None:
    h, auditor = await cluster()
    h.scheduler.queue.activate([pod(h, "w")])
    assert h.scheduler.queue.pop() is not None
    assert auditor.detect() == []
    h.clock.advance(ROUND_SECONDS)
    for each in list(auditor._round()):
        if each is not None:
            assert each.finding.kind == "in-flight"
            auditor._repair(each)
    assert h.scheduler.queue.find("default/w") is not None
    h.scheduler.queue.validate()
    await h.scheduler.dispatcher.close()


async def test_a_rejected_pod_that_fits_was_not_woken() -> None:
    h, auditor = await cluster()
    quiet = h.scheduler.queue.move_all
    h.scheduler.queue.move_all = lambda *args: None  # type: ignore[method-assign]
    h.add_node(make_node("m"))  # an event that gets lost
    h.scheduler.queue.move_all = quiet  # type: ignore[method-assign]
    assert auditor.detect() == []
    h.clock.advance(ROUND_SECONDS)
    (found,) = auditor.detect()
    assert (found.kind, found.subject) == ("untried", "default/w")
    h.clock.advance(ROUND_SECONDS)
    for each in list(auditor._round()):
        if each is not None:
            auditor._repair(each)
    await h.settle()
    assert h.node_of("w") == "m"
    await h.scheduler.dispatcher.close()


async def test_what_it_asks_plugins_is_in_no_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    h, auditor = await cluster()
    told = Told()
    monkeypatch.setattr(h.scheduler.profiles["default-scheduler"], "measures", told)
    assert auditor.detect() == []
    assert told.calls == []
    h.add_pod(make_pod("another").req(cpu="1"))
    await h.settle()
    assert told.calls, "an attempt is measured"
    await h.scheduler.dispatcher.close()


async def test_a_pod_that_fits_thanks_to_an_unconfirmed_one_will_be_woken() -> None:
    async with Harness(max_in_unschedulable=float("inf")) as h:
        gate = asyncio.Event()
        h.bind_delay = lambda pod: gate
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p").pod_affinity("kubernetes.io/hostname", {"app": "db"}))
        await h.settle()
        h.add_pod(make_pod("db").label(app="db"))
        await h.settle()
        auditor = Auditor(h.scheduler, h.store, h.nodes)
        assert auditor.detect() == []
        h.clock.advance(ROUND_SECONDS)
        assert auditor.detect() == []
        gate.set()
        await h.settle(2.0)
        assert h.node_of("p") == "n"


async def test_it_runs_in_slices_and_survives_its_own_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    h, auditor = await cluster()
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(module, "ROUND_SECONDS", 0.0)
    broken = iter([RuntimeError("a bug")])

    def nodes() -> Any:
        for error in broken:
            raise error
        return h.nodes.keys()

    class Nodes:
        get = staticmethod(h.nodes.get)
        keys = staticmethod(nodes)

    auditor._nodes = Nodes()
    haunt_queue(h)
    task = asyncio.create_task(auditor.run())
    for _ in range(200):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    hooks: Any = h.scheduler.hooks
    assert hooks.repaired == ["ghost"]
    assert h.scheduler.queue.find("default/nobody") is None
    await h.scheduler.dispatcher.close()


async def test_a_pod_cached_elsewhere_is_rebuilt_logged_and_counted() -> None:
    """Where the reference ends its process."""
    h, _ = await cluster()
    known = pod(h, "a")
    assert isinstance(known, PlacedPod)
    h.scheduler.handlers.pod_updated(known, make_pod("a").req(cpu="1").node("m").placed())
    hooks: Any = h.scheduler.hooks
    assert (hooks.found, hooks.repaired) == (["cache-node"], ["cache-node"])
    h.scheduler.cache.validate()
    assert isinstance(pod(h, "w"), PodInfo)
    await h.scheduler.dispatcher.close()


async def test_it_waits_for_a_cycle_that_waits() -> None:
    """A group that is being tried has its members assumed; that is nobody's business but the cycle's."""
    h, auditor = await cluster()
    with h.inbox.held():
        double(h)
        task = asyncio.create_task(auditor.run())
        for _ in range(10):
            await asyncio.sleep(0)
        h.scheduler.cache.forget_pod(pod(h, "w"), "n")
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert isinstance(h.scheduler.hooks, Counting)
    assert h.scheduler.hooks.found == []
    await h.scheduler.dispatcher.close()
