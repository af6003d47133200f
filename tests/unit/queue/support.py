"""What the tests of the queue build with: pods, plugins that say what they are told to, and a queue in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from skedge.api.core import Pod, PodSchedulingGate, PodSchedulingGroup, PodSpec, PodStatus, Toleration
from skedge.api.meta import ObjectMeta
from skedge.clock import VirtualClock
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.status import SUCCESS, Code, Status
from skedge.queue.hints import ProfileQueueing, hint_map
from skedge.queue.pending import Place
from skedge.queue.queued_pod import QueuedPodInfo
from skedge.queue.scheduling_queue import SchedulingQueue
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.hooks import SchedulerHooks

PROFILE = "default-scheduler"
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
POD_DELETE = ClusterEvent(events.POD, ActionType.DELETE)
NODE_LABEL = ClusterEvent(events.NODE, ActionType.UPDATE_NODE_LABEL)
PV_ADD = ClusterEvent(events.PERSISTENT_VOLUME, ActionType.ADD)
GATES_GONE = ClusterEvent(events.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def pod(
    name: str = "p",
    *,
    uid: str | None = None,
    priority: int | None = None,
    nominated: str = "",
    node: str = "",
    gates: Sequence[str] = (),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    tolerations: int = 0,
    group: str | None = None,
    scheduler: str = PROFILE,
    version: str = "1",
    deleting: bool = False,
) -> PodInfo:
    meta = ObjectMeta(
        name=name,
        namespace="ns",
        uid=uid or f"uid-{name}",
        labels=labels,
        annotations=annotations,
        resource_version=version,
        deletion_timestamp="2024-01-01T00:00:00Z" if deleting else None,
    )
    spec = PodSpec(
        node_name=node,
        scheduler_name=scheduler,
        priority=priority,
        scheduling_gates=tuple(map(PodSchedulingGate, gates)),
        tolerations=tuple(Toleration(key=f"t{i}") for i in range(tolerations)),
        scheduling_group=PodSchedulingGroup(pod_group_name=group) if group else None,
    )
    return PodInfo(Pod(meta, spec, PodStatus(nominated_node_name=nominated)))


def record(name: str = "p", timestamp: float = 0.0, **fields: object) -> QueuedPodInfo:
    """A queue's record of a pod that went through what `fields` say."""
    made = QueuedPodInfo(pod(name), timestamp)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def priority_sort(priority: int, timestamp: float, _: PodInfo) -> tuple[int, float]:
    return -priority, timestamp


class Rejector:
    """A filter that registers events and answers its hint with `answer` (an exception is raised), or asks `judge`."""

    def __init__(
        self,
        name: str,
        *registered: ClusterEvent,
        answer: QueueingHint | Exception = QUEUE,
        judge: Callable[[PodInfo, Any, Any], QueueingHint] | None = None,
    ) -> None:
        self.name = name
        self.registered = registered
        self.answer = answer
        self.judge = judge
        self.asked: list[tuple[str, Any, Any]] = []

    def filter(self, state: Any, pod: PodInfo, view: Any) -> int:
        return 1

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [ClusterEventWithHint(event, self.hint) for event in self.registered]

    def hint(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        self.asked.append((pod.key, old, new))
        if self.judge is not None:
            return self.judge(pod, old, new)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Gates(Rejector):
    """SchedulingGates."""

    filter = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__("SchedulingGates", GATES_GONE, judge=lambda pod, old, new: QueueingHint(new.uid == pod.uid))

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE) if pod.pod.spec.scheduling_gates else SUCCESS


class Barrier(Rejector):
    """PreEnqueue that keeps out the pods of `closed`; its hint says Skip unless told otherwise."""

    filter = None  # type: ignore[assignment]

    def __init__(
        self, name: str = "Barrier", *registered: ClusterEvent, answer: QueueingHint | Exception = SKIP
    ) -> None:
        super().__init__(name, *registered, answer=answer)
        self.closed: set[str] = set()
        self.code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        self.runs = 0

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.runs += 1
        return Status(self.code) if pod.name in self.closed else SUCCESS


class Counts(SchedulerHooks):
    """Counts what the queue reports."""

    def __init__(self) -> None:
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.hints: list[tuple[str, str, str]] = []
        self.executions: list[tuple[str, str, str]] = []

    def queue_incoming(self, queue: str, event: str, pods: int = 1) -> None:
        self.incoming[queue, event] += pods

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self.rejected[plugin, profile] += change

    def hint(self, plugin: str, event: str, result: str, seconds: float) -> None:
        self.hints.append((plugin, event, result))

    def plugin_execution(self, plugin: str, extension_point: str, status: str, seconds: float) -> None:
        self.executions.append((plugin, extension_point, status))

    def gauge(self) -> dict[str, int]:
        return {plugin: n for (plugin, _), n in self.rejected.items() if n}


class World:
    """A queue with two filters, `fit` and `other`, a PreEnqueue plugin, scheduling gates, and an informer's store."""

    def __init__(self, *plugins: Any, **options: Any) -> None:
        self.clock = VirtualClock(start=1_000_000.0)
        self.store: dict[str, PodInfo | PlacedPod] = {}
        self.counts = Counts()
        self.wakes = 0
        self.fit = Rejector("Fit", POD_DELETE, events.NODE_ADD)
        self.other = Rejector("Other", NODE_LABEL)
        self.gates = Gates()
        self.barrier = Barrier("Barrier", POD_DELETE)
        self.plugins = [self.fit, self.other, self.gates, self.barrier, *plugins]
        gating = tuple(p for p in self.plugins if hasattr(p, "pre_enqueue"))
        self.queue = SchedulingQueue(
            self.clock,
            options.pop("sort_key", priority_sort),
            {PROFILE: ProfileQueueing(gating, hint_map(self.plugins)), **options.pop("profiles", {})},
            lister=self.store.get,
            on_ready=self._ready,
            hooks=self.counts,
            **options,
        )

    def _ready(self) -> None:
        self.wakes += 1

    def add(self, *pods: PodInfo) -> None:
        for each in pods:
            self.store[each.key] = each
            self.queue.add(each)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        self.store[new.key] = new
        self.queue.update(old, new)

    def pop(self) -> QueuedPodInfo:
        record = self.queue.pop()
        assert record is not None
        return record

    def pop_name(self) -> str:
        record = self.queue.pop()
        return "" if record is None else record.pod.name

    def fail(self, record: QueuedPodInfo, *unschedulable: str, pending: Iterable[str] = ()) -> Place | None:
        """A failed attempt, as the failure handler puts it back; returns where the pod is now."""
        record.set_rejectors(unschedulable, pending)
        assert self.queue.add_unschedulable_if_not_present(record) is None
        return self.place(record.pod)

    def rejected(self, each: PodInfo, *unschedulable: str, pending: Iterable[str] = ()) -> QueuedPodInfo:
        """The pod, added, tried and turned down once."""
        self.add(each)
        record = self.queue.pop_specific_pod(each)
        assert record is not None
        self.fail(record, *(unschedulable or ("Fit",)), pending=pending)
        return record

    def place(self, each: PodInfo) -> Place | None:
        """Where the pod of that UID is; checks that all is well on the way."""
        self.queue.validate()
        found = [place for place, record in self.queue.records() if record.pod.uid == each.uid]
        assert len(found) <= 1
        return found[0] if found else None

    def pass_time(self, seconds: float) -> None:
        """Time passes; deadlines are kept."""
        end = self.clock.monotonic() + seconds
        while (deadline := self.queue.next_deadline()) is not None and deadline <= end:
            self.clock.advance(max(0.0, deadline - self.clock.monotonic()))
            self.queue.flush_due()
            after = self.queue.next_deadline()
            assert after is None or after > self.clock.monotonic(), "a deadline that does not pass"
        self.clock.advance(max(0.0, end - self.clock.monotonic()))
