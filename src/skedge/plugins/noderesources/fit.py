"""NodeResourcesFit: does the pod's request fit, and how well. Upstream: `plugins/noderesources/fit.go`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from skedge import names
from skedge.api.core import Node
from skedge.api.quantity import milli_value, value
from skedge.api.requests import DEVICE_CLASS_PREFIX, is_extended
from skedge.api.resource import DeviceClass
from skedge.api.scheduling import PodGroup
from skedge.config.plugin_args import NodeResourcesFitArgs
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import UNRESOLVABLE, Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, PluginError, Status
from skedge.framework.workloads import Placement
from skedge.plugins.helpers.allocation import container_requests, counts, used
from skedge.plugins.helpers.cycle import PRE_FILTERED, pre_filtered
from skedge.plugins.noderesources import scorers
from skedge.snapshot.arith import WIDE, anywhere, where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import CPU, MEMORY, PODS, PlacedPod, PodInfo, Requests
from skedge.snapshot.views import Rows, View

TOO_MANY_PODS = "Too many pods"
RESOURCES_NOT_FOUND = "resources not found"
_TOO_MANY_PODS = 1
_FIRST_RESOURCE = 2  # bit of the first checked resource
_COMMON = frozenset({CPU, MEMORY, "ephemeral-storage"})
"""What nearly every node has, while extended resources are on some."""


class _Checked(NamedTuple):
    """What Filter compares: the requests above zero that no extender or argument takes care of."""

    requests: Requests
    common: tuple[str, ...]
    amounts: list[int]
    """What is asked of the common ones, and room for one pod."""


def insufficient(resource: str) -> str:
    return f"Insufficient {resource}"


class NodeResourcesFit:
    name = names.NODE_RESOURCES_FIT
    depends = Depends.NODE
    reads = Aspect.RESOURCES | Aspect.ALLOCATABLE
    by_resources = True
    by_amounts = True
    normalizer = None

    def __init__(self, args: Any, handle: Any) -> None:
        args = args or NodeResourcesFitArgs.default()
        self._handle = handle
        self._ignored = frozenset(args.ignored_resources or ())
        self._ignored_groups = frozenset(args.ignored_resource_groups or ())
        strategy = args.scoring_strategy
        self._resources = [(r.name, r.weight) for r in strategy.resources or ()]
        self._average = scorers.average
        self._of_stack: scorers.StackScorer | None = None
        self._scorer: scorers.Scorer
        if strategy.type == "MostAllocated":
            self._scorer, self._of_stack = scorers.most_allocated, scorers.most_allocated_of_stack
        elif strategy.type == "RequestedToCapacityRatio":
            shape = [(p.utilization, p.score * 10) for p in strategy.requested_to_capacity_ratio.shape]
            self._scorer = scorers.ratio(shape)
            self._average = scorers.rounded_average
        else:
            self._scorer, self._of_stack = scorers.least_allocated, scorers.least_allocated_of_stack

    def fragment(self, pod: PodInfo) -> Hashable:
        # With pod-level resources containers may differ where the sum does not; scoring looks at containers.
        if pod.pod.spec.resources is not None:
            return pod.requests, tuple(sorted(container_requests(pod).items()))
        return pod.requests, pod.nonzero

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        asked = tuple([each for each in pod.requests if each[1] != 0 and not self._is_ignored(each[0])])
        common = [each for each in asked if each[0] in _COMMON]
        amounts = [*[amount for _, amount in common], 1]
        state.write(PRE_FILTERED + self.name, _Checked(asked, tuple([name for name, _ in common]), amounts))
        return None, SUCCESS

    def _is_ignored(self, resource: str) -> bool:
        if not self._ignored and not self._ignored_groups:
            return False
        if not is_extended(resource):
            return False
        return resource in self._ignored or resource.split("/", 1)[0] in self._ignored_groups

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        """Bit 0: too many pods; bit i + 1: not enough of the i-th checked resource; UNRESOLVABLE: of the whole node."""
        checked: _Checked = pre_filtered(state, self.name)
        stack = view.stack(checked.common)
        roomy = stack is not None and stack.fits(checked.amounts)  # known without a look at each node
        codes: Any = 0
        if not roomy:
            crowded = view.pod_count >= view.allowed_pods
            codes = where(crowded, _TOO_MANY_PODS, 0) if anywhere(crowded) else 0
        bit = _FIRST_RESOURCE
        for resource, amount in checked.requests:
            if resource not in _COMMON or (amount > 0 and not roomy):
                allocatable = view.allocatable(resource)
                short = amount > allocatable - view.requested(resource)
                if anywhere(short):
                    hopeless = where(amount > allocatable, bit | UNRESOLVABLE, bit)
                    codes = codes | where(short, hopeless, 0)
            bit <<= 1
        return codes

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        checked: Requests = pre_filtered(state, self.name).requests
        reasons = [TOO_MANY_PODS] if code & _TOO_MANY_PODS else []
        reasons += [insufficient(name) for i, (name, _) in enumerate(checked) if code & (_FIRST_RESOURCE << i)]
        kind = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if code & UNRESOLVABLE else Code.UNSCHEDULABLE
        return Status(kind, *reasons)

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        if not self._resources:
            raise PluginError(RESOURCES_NOT_FOUND)
        requests = container_requests(pod)
        counted = [
            (resource, weight, request)
            for resource, weight in self._resources
            if counts(resource, request := requests.get(resource, 0))
        ]
        if self._of_stack is not None and counted:
            names_of, weights, amounts = zip(*counted, strict=True)
            stack = view.stack(names_of)
            if stack is not None and stack.everywhere and max(amounts) < WIDE:
                return scorers.average_of_stack(self._of_stack(stack, amounts), weights)
        scores = []
        for resource, weight, request in counted:
            allocatable = view.allocatable(resource)
            requested = used(view, resource, nonzero=True) + request
            divisor, present = view.divisor(resource)
            if request >= WIDE:  # with it sums may wrap, which takes whole numbers
                divisor = where(allocatable == 0, 1, allocatable)
            scores.append((self._scorer(requested, allocatable, divisor), present, weight))
        return self._average(scores, view.full(0))

    def placement_score(self, group: PodGroup, placement: Placement, proposed: Sequence[PodInfo]) -> int:
        """How full a placement's nodes would be all together, whatever the strategy for single nodes."""
        view = Rows(self._handle.table, placement.rows)
        requests: Counter[str] = Counter()
        for pod in proposed:
            requests.update(container_requests(pod))
        scores = []
        for resource, weight in self._resources:
            if counts(resource, requests[resource]):
                allocatable = int(view.allocatable(resource).sum())
                requested = int(used(view, resource, nonzero=True).sum()) + requests[resource]
                scores.append(
                    (scorers.most_allocated(requested, allocatable, allocatable or 1), allocatable != 0, weight)
                )
        return int(scorers.average(scores, 0))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        found = [
            ClusterEventWithHint(
                ClusterEvent(events.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN), self.after_pod_change
            ),
            ClusterEventWithHint(
                ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE), self.after_node_change
            ),
        ]
        if self._handle is not None and self._handle.gates.enabled("DRAExtendedResource"):
            of_classes = ClusterEvent(events.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
            found.append(ClusterEventWithHint(of_classes, self.after_device_class_change))
        return found

    def after_pod_change(
        self, pod: PodInfo, old: PodInfo | PlacedPod | None, new: PodInfo | PlacedPod | None
    ) -> QueueingHint:
        if new is None:
            assert old is not None
            return QueueingHint(bool(old.node_name or old.nominated_node_name))
        if new.uid == pod.uid:
            return QueueingHint.QUEUE
        if not new.node_name or old is None:
            return QueueingHint.QUEUE_SKIP
        after = dict(new.node_requests)
        before = dict(old.node_requests)
        shrank = any(before.get(name, 0) > after.get(name, 0) for name, amount in pod.requests if amount)
        return QueueingHint(shrank)

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        offered = _allocatable(new)
        fits_empty = offered.get(PODS, 0) >= 1 and all(
            amount <= offered.get(name, 0) for name, amount in pod.requests if amount
        )
        if not fits_empty:
            return QueueingHint.QUEUE_SKIP
        if old is None:
            return QueueingHint.QUEUE
        before = _allocatable(old)
        grown = [name for name, amount in pod.requests if amount] + [PODS]
        return QueueingHint(any(offered.get(name, 0) > before.get(name, 0) for name in grown))

    def after_device_class_change(self, pod: PodInfo, old: DeviceClass | None, new: DeviceClass) -> QueueingHint:
        requested = {name for name, amount in pod.requests if amount}
        extended = new.spec.extended_resource_name
        if old is None:
            return QueueingHint(bool(requested & {DEVICE_CLASS_PREFIX + new.metadata.name, extended}))
        return QueueingHint(extended != old.spec.extended_resource_name and extended in requested)

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return {"v1.Pod.Spec.ContainerRequestsAndOverheads()": dict(pod.requests)}, SUCCESS


def _allocatable(node: Node) -> dict[str, int]:
    return {
        name: milli_value(text) if name == CPU else value(text)
        for name, text in (node.status.allocatable or {}).items()
    }
