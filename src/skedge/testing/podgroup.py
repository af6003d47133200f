"""Replays recorded batches of pods that belong to groups, through queue, group cycles and bindings.

Each attempt is compared, then the recorded node is taken, so that the next pod is tried in the same state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from skedge.api.core import Node
from skedge.config.gates import FeatureGates
from skedge.profiles.profile import Profile
from skedge.profiles.search import Search
from skedge.queue.pending import Place
from skedge.scheduler import scheduling_cycle
from skedge.scheduler.scheduler import Scheduler
from skedge.scheduler.scheduling_cycle import EVERYWHERE, Choice, Failure, Scope
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.testing.cases import FINISHED, Compare, Difference
from skedge.testing.harness import Harness
from skedge.testing.sequence import compare_search

CONDITION_FIELDS = ("type", "status", "reason", "message")


class _Cycles(SchedulerHooks):
    """Counts cycles of groups."""

    def __init__(self) -> None:
        super().__init__()
        self.groups = 0

    def podgroup_schedule_attempt(self, result: str, profile: str, seconds: float) -> None:
        self.groups += 1


def compare_podgroup(line: Mapping[str, Any]) -> list[Difference]:
    """The differences of one case of the family `podgroup`. Runs an event loop of its own."""
    return asyncio.run(_compare(line["case"], line["expected"]))


async def _compare(case: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Difference]:
    found: list[Difference] = []
    gates = FeatureGates(GenericWorkload=True, GangScheduling=True)
    hooks = _Cycles()
    async with Harness(gates=gates, hooks=hooks) as harness:
        _fill(harness, case)
        for i, (batch, wanted) in enumerate(zip(case["batches"], expected["batches"], strict=True)):

            def compare(node: str, field: str, want: Any, got: Any, i: int = i) -> None:
                if want != got:
                    found.append(Difference(case["id"], node, f"batch {i} {field}", want, got))

            await _Batch(harness, hooks, batch, wanted, compare).run()
        harness.validate()
    return found


def _fill(harness: Harness, case: Mapping[str, Any]) -> None:
    for field, kind in (("namespaces", "Namespace"), ("podGroups", "PodGroup")):
        for obj in case.get(field, ()):
            harness.put(kind, obj)
    for node in case["nodes"]:
        harness.add_node(msgspec.convert(node, Node))
    for pod in case.get("pods", ()):
        if pod.get("status", {}).get("phase") not in FINISHED:
            harness.add_pod(pod)


class _Batch:
    """The pods of one batch, from their creation until each is bound or has failed."""

    def __init__(
        self,
        harness: Harness,
        hooks: _Cycles,
        pods: Sequence[dict[str, Any]],
        expected: Mapping[str, Any],
        compare: Compare,
    ) -> None:
        self._harness = harness
        self._hooks = hooks
        self._pods = pods
        self._expected = expected
        self._compare = compare
        self._attempts = list(expected["attempts"])
        self._tried = 0
        self._seen: set[str] = set()  # tried in this batch
        self._singles = 0

    async def run(self) -> None:
        harness, expected = self._harness, self._expected
        before = self._hooks.groups
        with self._watching():
            for pod in self._pods:
                harness.add_pod(pod)
            gated = self._gated()
            await harness.settle()
        self._compare("", "attempts", len(self._attempts), self._tried)
        self._compare("", "cycles", expected["cycles"], self._hooks.groups - before + self._singles)
        self._compare("", "preEnqueue", expected.get("preEnqueue", {}), gated)
        for key, outcome in expected["outcome"].items():
            self._compare("", f"outcome {key}", outcome, self._outcome(key))
        for key, conditions in expected.get("podGroupConditions", {}).items():
            group = harness.objects["PodGroup", key]
            got = [
                {field: each.get(field, "") for field in CONDITION_FIELDS}
                for each in group.get("status", {}).get("conditions", ())
            ]
            wanted = [{field: each.get(field, "") for field in CONDITION_FIELDS} for each in conditions]
            self._compare("", f"conditions of {key}", wanted, got)

    def _outcome(self, key: str) -> dict[str, Any]:
        namespace, name = key.split("/")
        node = self._harness.node_of(name, namespace)
        if node:
            return {"node": node}
        condition = self._harness.condition(name, namespace) or {}
        return {field: condition.get(field) for field in ("reason", "message")}

    def _gated(self) -> dict[str, Any]:
        """What PreEnqueue says to those of the batch that are not let in."""
        keys = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in self._pods}
        scheduler = self._harness.scheduler
        found = {}
        for place, record in scheduler.queue.records():
            if place is Place.GATED and record.key in keys:
                plugins = scheduler.profiles[record.pod.scheduler_name].pre_enqueue
                plugin = next(each for each in plugins if each.name == record.gating_plugin)
                status = plugin.pre_enqueue(record.pod)
                found[record.key] = {
                    "plugin": plugin.name,
                    "code": status.code.word,
                    "reasons": list(status.all_reasons()),
                }
        return found

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Compares every attempt, and has the recorded node taken."""
        decide = scheduling_cycle.decide

        def watched(
            scheduler: Scheduler, pod: PodInfo, profile: Profile, started: float, scope: Scope = EVERYWHERE
        ) -> Choice | Failure:
            outcome = decide(scheduler, pod, profile, started, scope)
            self._attempted(pod, outcome)
            return outcome

        queue = self._harness.scheduler.queue
        activate = queue.activate

        def untried(pods: Iterable[PodInfo | PlacedPod]) -> None:
            activate([pod for pod in pods if pod.key not in self._seen])

        with (
            patch.object(scheduling_cycle, "decide", watched),
            patch.object(queue, "activate", untried),
            patch.object(self._harness.scheduler, "choose", self._choose),
        ):
            yield

    def _choose(self, search: Search) -> int:
        chosen = next((each.get("chosen") for each in self._attempts if each["pod"] == search.pod.key), None)
        row = search.table.row_of.get(chosen or "", -1)
        return row if row in search.rows else int(search.rows[0])

    def _attempted(self, pod: PodInfo, outcome: Choice | Failure) -> None:
        at, self._tried = self._tried, self._tried + 1
        self._seen.add(pod.key)
        self._singles += pod.group is None
        step = self._attempts[at] if at < len(self._attempts) else {}
        self._compare("", f"attempt {at}", step.get("pod"), pod.key)
        if step.get("pod") == pod.key and outcome.search is not None:
            compare_search(
                outcome.search,
                step,
                None,
                lambda node, field, want, got: self._compare(node, f"{pod.key} {field}", want, got),
            )
