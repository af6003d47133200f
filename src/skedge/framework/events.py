"""Cluster events and how they wake rejected pods. Upstream: `framework/types.go`, `framework/events.go`."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any, Final, NamedTuple


class ActionType(IntFlag):
    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


_ACTION_WORDS: Final = {
    ActionType.ADD: "Add",
    ActionType.DELETE: "Delete",
    ActionType.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    ActionType.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    ActionType.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    ActionType.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    ActionType.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    ActionType.UPDATE_POD_LABEL: "UpdatePodLabel",
    ActionType.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    ActionType.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    ActionType.UPDATE: "Update",
    ActionType.ALL: "All",
}

POD: Final = "Pod"
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
NODE: Final = "Node"
PERSISTENT_VOLUME: Final = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
CSI_NODE: Final = "storage.k8s.io/CSINode"
CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
WILDCARD: Final = "*"


class ClusterEvent(NamedTuple):
    """Something that happened (or that a plugin waits for): a resource, what was done to it, and how logs call it."""

    resource: str
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        return _label(self)

    @property
    def wildcard(self) -> bool:
        return self.resource == WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether this *registered* event covers an incoming one; the bits are compared as numbers, as upstream."""
        if self.wildcard:
            return True
        return (
            covers(self.resource, incoming.resource)
            and bool(self.action & incoming.action)
            and int(incoming.action) <= int(self.action)
        )


@cache
def _label(event: ClusterEvent) -> str:
    return event.custom_label or event.resource + _ACTION_WORDS.get(event.action, "")


def covers(registered: str, incoming: str) -> bool:
    """Whether a registered resource covers an incoming one."""
    return (
        registered in (WILDCARD, incoming)
        or (registered == POD and incoming in (ASSIGNED_POD, UNSCHEDULABLE_POD))
    )  # fmt: skip


ASSIGNED_POD_ADD: Final = ClusterEvent(ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE: Final = ClusterEvent(ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULABLE_POD_ADD: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULABLE_POD_UPDATE: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE)
NODE_ADD: Final = ClusterEvent(NODE, ActionType.ADD)
NODE_DELETE: Final = ClusterEvent(NODE, ActionType.DELETE)
FORCE_ACTIVATE: Final = ClusterEvent(WILDCARD, ActionType.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(WILDCARD, ActionType.ALL, "UnschedulableTimeout")

SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF_Q: Final = "PopFromBackoffQ"


class QueueingHint(IntEnum):
    QUEUE_SKIP = 0
    QUEUE = 1


QueueingHintFn = Callable[[Any, Any, Any], QueueingHint]
"""`(pod, old object | None, new object | None) -> hint`. An exception counts as QUEUE. `pod` is a PodInfo; pods among
the objects are PodInfo or PlacedPod, all else the decoded struct."""


class ClusterEventWithHint(NamedTuple):
    event: ClusterEvent
    hint: QueueingHintFn | None = None
    """None: always QUEUE."""
