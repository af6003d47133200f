"""Runs the operations of a workload in a world: an engine in memory, or a scheduler over HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Protocol

from bench.objects import Change, Template
from bench.workloads import Workload

Background = Callable[[], Awaitable[None]]


class Batch:
    """Objects number `first` to `first + count - 1` of a template; `placed`: how many of its pods have a node."""

    def __init__(self, template: Template, first: int, count: int) -> None:
        self.template = template
        self.first = first
        self.count = count
        self.placed = 0

    def numbers(self) -> range:
        return range(self.first, self.first + self.count)


class World(Protocol):
    """Where a workload runs."""

    change: Change | None
    """What is done to templates before they are filled in."""

    async def create(self, batch: Batch) -> None: ...

    async def delete(self, batch: Batch, i: int) -> None:
        """Deletes object `i`, wherever its life has come to."""

    async def settle(self, batch: Batch) -> None:
        """Waits until the batch's pods have a node, or nothing moves any more."""

    async def attempted(self) -> None:
        """Waits until every pod was tried."""

    async def measure(self, batch: Batch, background: list[Background]) -> dict[str, Any]:
        """Creates a batch of pods, waits until they have nodes, and tells what it took. `background` runs meanwhile."""


class Run:
    """One workload in one world. `figures` is what the measured operation told."""

    def __init__(self, workload: Workload, world: World) -> None:
        self._workload = workload
        self._world = world
        self._next: Counter[tuple[str, str, str]] = Counter()
        self._batches: list[Batch | None] = []
        self._background: list[Background] = []
        self.nodes = 0
        self.figures: dict[str, Any] = {}

    async def all(self) -> dict[str, Any]:
        for op in self._workload.ops:
            self._batches.append(await self._one(op))
        return {"nodes": self.nodes, **self.figures}

    async def _one(self, op: Mapping[str, Any]) -> Batch | None:
        world, opcode = self._world, op["opcode"]
        if opcode == "createPods":
            return await self._create_pods(op)
        if opcode in ("createNodes", "createNamespaces", "createAny"):
            batch = self._batch(op)
            self.nodes += batch.count if batch.template.kind == "Node" else 0
            await world.create(batch)
            return batch
        if opcode == "createPodSets":
            for i in range(self._workload.count(op)):
                await self._create_pods({**op["createPodsOp"], "namespace": f"{op['namespacePrefix']}-{i}"})
        elif opcode == "churn":
            self._background.append(self._churn(op))
        elif opcode == "deletePods":
            await self._delete_pods(op)
        elif opcode == "barrier":
            if op.get("stageRequirement") == "Attempted":
                await world.attempted()
            else:
                for batch in filter(None, self._batches):
                    await world.settle(batch)
        elif opcode == "sleep":
            await asyncio.sleep(float(op["seconds"]))
        else:
            raise ValueError(f"{self._workload.name}: unknown opcode {opcode!r}")
        return None

    async def _create_pods(self, op: Mapping[str, Any]) -> Batch:
        world = self._world
        batch = self._batch(op)
        for key in ("persistentVolumeTemplate", "persistentVolumeClaimTemplate"):
            if key in op:
                await world.create(Batch(Template(op[key], change=world.change), batch.first, batch.count))
        if op.get("collectMetrics"):
            self.figures = await world.measure(batch, self._background)
        else:
            await world.create(batch)
            if not op.get("skipWaitToCompletion"):
                await world.settle(batch)
        return batch

    def _batch(self, op: Mapping[str, Any]) -> Batch:
        template = Template(
            op.get("template", "node"),
            namespace=op.get("namespace", "default"),
            prefix=op.get("prefix", ""),
            labels=op.get("labels"),
            volume="persistentVolumeClaimTemplate" in op,
            change=self._world.change,
        )
        return self._take(template, self._workload.count(op))

    def _take(self, template: Template, wanted: int) -> Batch:
        key = (template.kind, template.name_prefix, "")
        first = self._next[key]
        self._next[key] += wanted
        return Batch(template, first, wanted)

    def _churn(self, op: Mapping[str, Any]) -> Background:
        world = self._world
        templates = [Template(name, change=world.change) for name in op["templates"]]
        kept = int(op.get("number", 0)) if op["mode"] == "recreate" else 0

        async def churn() -> None:
            made: list[list[Batch]] = [[] for _ in templates]
            for turn in count():
                which = turn % len(templates)
                if kept and len(made[which]) >= kept:
                    oldest = made[which].pop(0)
                    await world.delete(oldest, oldest.first)
                else:
                    batch = self._take(templates[which], 1)
                    await world.create(batch)
                    made[which].append(batch)
                await asyncio.sleep(float(op["intervalMilliseconds"]) / 1000)

        return churn

    async def _delete_pods(self, op: Mapping[str, Any]) -> None:
        batch = self._batches[op["of"]]
        if batch is None:
            raise ValueError(f"{self._workload.name}: operation {op['of']} created nothing")
        pause = 1.0 / op["deletePodsPerSecond"]

        async def delete() -> None:
            for i in batch.numbers():
                await self._world.delete(batch, i)
                await asyncio.sleep(pause)

        if op.get("skipWaitToCompletion"):
            self._background.append(delete)
        else:
            await delete()
