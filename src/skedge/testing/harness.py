"""A scheduler on an API server that is a dictionary, in virtual time: what tests and decision benchmarks run.

    async with Harness() as h:
        h.add_node(make_node("n1"))
        h.add_pod(make_pod("p").req(cpu="1"))
        await h.settle()
        assert h.node_of("p") == "n1"

The harness is its own port: it accepts bindings (or fails them, see `fail_bind`) and feeds the event that confirms them
back, as a watch would.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import msgspec

from skedge.api.core import Node, Pod
from skedge.api.decode import KINDS
from skedge.api.scheduling import PodGroup
from skedge.app.objects import ClockSignal
from skedge.app.watches import WATCHED
from skedge.assembly import build
from skedge.client.informer import Inbox
from skedge.clock import Clock, VirtualClock
from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.config.types import KubeSchedulerConfiguration
from skedge.framework.handle import Listers
from skedge.framework.ports import Extender, PodGone, Ports
from skedge.plugins.registry import Factory
from skedge.scheduler.auditor import Auditor
from skedge.scheduler.event_handlers import Watcher
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks
from skedge.testing.builders import NodeBuilder, PodBuilder

AnyPod = PodInfo | PlacedPod


def _merge_conditions(status: dict[str, Any], conditions: Sequence[dict[str, Any]]) -> None:
    for condition in conditions:
        kept = [c for c in status.get("conditions", []) if c["type"] != condition["type"]]
        old = [c for c in status.get("conditions", []) if c["type"] == condition["type"]]
        status["conditions"] = [*kept, {**(old[0] if old else {}), **condition}]


class RecordedEvent(NamedTuple):
    pod: str
    type: str
    reason: str
    action: str
    note: str


class Harness:
    """See the module's docstring. Pods are kept as JSON values, so that a status patch is applied as sent."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration | None = None,
        *,
        gates: FeatureGates | None = None,
        out_of_tree: Mapping[str, Factory] | None = None,
        clock: Clock | None = None,
        hooks: SchedulerHooks | None = None,
        seed: int = 0,
        connections: int = 4,
        max_in_unschedulable: float = 300.0,
        extenders: Sequence[Extender] = (),
    ) -> None:
        self.inbox = Inbox()
        self.clock: Any = clock or VirtualClock()
        self.gates = gates or FeatureGates()
        self.json: dict[str, dict[str, Any]] = {}
        self.store: dict[str, AnyPod] = {}
        self.nodes: dict[str, Node] = {}
        self.events: list[RecordedEvent] = []
        self.patches: list[tuple[str, dict[str, Any]]] = []
        self.bindings: list[tuple[str, str]] = []
        self.deleted: list[str] = []
        self.fail_bind: Callable[[AnyPod, str], Exception | None] = lambda pod, node: None
        self.bind_delay: Callable[[AnyPod], asyncio.Event | None] = lambda pod: None
        self.fail_update: Callable[[str, Any], Exception | None] = lambda kind, obj: None
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}  # (kind, key) -> JSON, of what `put` made
        self.listers = Listers()
        self._version = 1_000_000
        self.scheduler = build(
            config or default_configuration(self.gates),
            ports=Ports(self, self, self, self, self, self),
            clock=self.clock,
            pod_lister=self.store.get,
            gates=self.gates,
            registry=out_of_tree,
            listers=self.listers,
            rng=random.Random(seed),
            hooks=hooks,
            connections=connections,
            max_in_unschedulable=max_in_unschedulable,
            extenders=extenders,
            inbox=self.inbox,
        )

    async def __aenter__(self) -> Self:
        self.scheduler.dispatcher.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.scheduler.dispatcher.close()

    # --- the cluster's side -------------------------------------------------------------------------------------------

    def add_node(self, node: NodeBuilder | Node) -> None:
        obj = node.obj() if isinstance(node, NodeBuilder) else node
        self.inbox.submit(partial(self._deliver_node, obj))

    def _deliver_node(self, obj: Node) -> None:
        old = self.nodes.get(obj.metadata.name)
        self.nodes[obj.metadata.name] = obj
        if old is None:
            self.scheduler.handlers.node_added(obj)
        else:
            self.scheduler.handlers.node_updated(old, obj)

    update_node = add_node

    def delete_node(self, name: str) -> None:
        self.inbox.submit(lambda: self.scheduler.handlers.node_deleted(self.nodes.pop(name)))

    def add_pod(self, pod: PodBuilder | dict[str, Any]) -> None:
        """Creates a pod, or replaces the one of its name."""
        value = copy.deepcopy(pod.json if isinstance(pod, PodBuilder) else pod)
        self._version += 1
        value["metadata"]["resourceVersion"] = str(self._version)
        key = f"{value['metadata']['namespace']}/{value['metadata']['name']}"
        self.json[key] = value
        self.inbox.submit(partial(self._deliver, key, msgspec.convert(value, Pod)))

    update_pod = add_pod

    def delete_pod(self, name: str, namespace: str = "default") -> None:
        key = f"{namespace}/{name}"
        if self.json.pop(key, None) is not None:
            self.inbox.submit(lambda: self.scheduler.handlers.pod_deleted(self.store.pop(key)))

    def _deliver(self, key: str, pod: Pod) -> None:
        info = PodInfo(pod)
        new: AnyPod = PlacedPod(info, pod.spec.node_name) if pod.spec.node_name else info
        old = self.store.get(key)
        self.store[key] = new
        if old is None:
            self.scheduler.handlers.pod_added(new)
        else:
            self.scheduler.handlers.pod_updated(old, new)

    def put(self, kind: str, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Creates or replaces an object of another kind that plugins read; returns it with its version."""
        value = copy.deepcopy(dict(obj))
        self._version += 1
        meta = value["metadata"]
        meta["resourceVersion"] = str(self._version)
        key = (kind, f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"])
        old = self.objects.get(key)
        self.objects[key] = value
        struct, watcher = KINDS[kind].struct, self._watcher(kind)
        if old is None:
            watcher.added(msgspec.convert(value, struct))
        else:
            watcher.updated(msgspec.convert(old, struct), msgspec.convert(value, struct))
        return value

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Deletes what `put` made."""
        value = self.objects.pop((kind, f"{namespace}/{name}" if namespace else name))
        self._watcher(kind).deleted(msgspec.convert(value, KINDS[kind].struct))

    def _watcher(self, kind: str) -> Watcher:
        watched = next(each for each in WATCHED if each.kind == kind)
        return self.scheduler.handlers.of_store(watched.resource or kind, getattr(self.listers, watched.store))

    # --- the ports ----------------------------------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        gate = self.bind_delay(pod)
        if gate is not None:
            await gate.wait()
        error = self.fail_bind(pod, node_name)
        if error is not None:
            raise error
        value = self.json.get(pod.key)
        if value is None or value["metadata"]["uid"] != pod.uid:
            raise LookupError(f'pods "{pod.name}" not found')
        if value["spec"].get("nodeName"):
            raise ValueError(f"pod {pod.name} is already assigned to node {value['spec']['nodeName']!r}")
        self.bindings.append((pod.key, node_name))
        changed = copy.deepcopy(value)
        changed["spec"]["nodeName"] = node_name
        changed["status"].pop("nominatedNodeName", None)
        self.add_pod(changed)

    async def patch_status(self, pod: AnyPod, patch: Mapping[str, Any]) -> None:
        self.patches.append((pod.key, dict(patch)))
        value = self.json.get(pod.key)
        if value is None:
            raise PodGone(f'pods "{pod.name}" not found')
        changed = copy.deepcopy(value)
        status = changed["status"]
        _merge_conditions(status, patch["status"].get("conditions", ()))
        if "nominatedNodeName" in patch["status"]:
            status["nominatedNodeName"] = patch["status"]["nominatedNodeName"] or ""
        self.add_pod(changed)

    async def patch_group_status(self, group: PodGroup, patch: Mapping[str, Any]) -> None:
        value = copy.deepcopy(self.objects["PodGroup", group.key])
        _merge_conditions(value.setdefault("status", {}), patch["status"].get("conditions", ()))
        self.put("PodGroup", value)

    async def update(self, kind: str, obj: Any, change: Callable[[dict[str, Any]], None]) -> Any:
        error = self.fail_update(kind, obj)
        if error is not None:
            raise error
        meta = obj.metadata
        value = self.objects[kind, f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name]
        if value["metadata"]["resourceVersion"] != meta.resource_version:
            raise ValueError(f"{meta.name}: the object has been modified")
        changed = copy.deepcopy(value)
        change(changed)
        return msgspec.convert(self.put(kind, changed), KINDS[kind].struct)

    def signal(self) -> ClockSignal:
        return ClockSignal(self.clock)

    async def delete(self, pod: PlacedPod) -> bool:
        if pod.key not in self.json:
            return False
        self.deleted.append(pod.key)
        self.delete_pod(pod.name, pod.namespace)
        return True

    def event(
        self,
        regarding: AnyPod,
        related: AnyPod | PodGroup | None,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        controller: str,
    ) -> None:
        self.events.append(RecordedEvent(regarding.key, type_, reason, action, note))

    # --- looking ------------------------------------------------------------------------------------------------------

    def node_of(self, name: str, namespace: str = "default") -> str:
        """The node a pod is bound to, or ""."""
        value = self.json[f"{namespace}/{name}"]
        return str(value["spec"].get("nodeName", ""))

    def condition(self, name: str, namespace: str = "default", kind: str = "PodScheduled") -> dict[str, Any] | None:
        conditions = self.json[f"{namespace}/{name}"]["status"].get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), None)

    async def settle(self, advance: float = 0.0) -> None:
        """Lets everything happen that can, after moving the virtual clock by so many seconds."""
        if advance:
            self.clock.advance(advance)
        idle = 0
        while idle < 3:
            self.scheduler.flush()
            idle = 0 if await self.scheduler.work(1.0) else idle + 1
            for _ in range(5):
                await asyncio.sleep(0)

    def validate(self) -> None:
        """Cache and queue agree with themselves and with the pods of the dictionary, each in exactly one place."""
        scheduler = self.scheduler
        scheduler.cache.validate()
        scheduler.queue.validate()
        findings = Auditor(scheduler, self.store, self.nodes).detect()
        assert not findings, "; ".join(map(str, findings))
