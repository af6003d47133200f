"""VolumeZone: a pod goes where its volumes' zone and region labels allow. Upstream: `plugins/volumezone`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from skedge import names
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.handle import Handle
from skedge.framework.plugin import UNRESOLVABLE, Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, Status
from skedge.plugins.helpers.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_LABELS, ZONE_SEPARATOR
from skedge.plugins.helpers.settled_claims import SettledClaims
from skedge.plugins.helpers.volumes import (
    CLAIM,
    NO_CLAIM_NAME,
    STORAGE_CLASS,
    VOLUME,
    WAIT_FOR_FIRST_CONSUMER,
    class_of,
    no_binding_mode,
    not_found,
    sign_volumes,
    written_claims,
)
from skedge.snapshot.arith import where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.lookup import Membership
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

REASON: Final = "node(s) had no available volume zone"
NEITHER_VOLUME_NOR_CLASS: Final = "PersistentVolumeClaim had no pv name and storageClass name"
NO_VOLUME_NAME: Final = "PersistentVolume had no name"

_MODERN: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_OTHER_ZONE: Final = 1 | UNRESOLVABLE
_REJECTED: Final = 2 | UNRESOLVABLE


class Topology(NamedTuple):
    """One label of a volume, and the values of it that a node may have."""

    key: str
    values: frozenset[str]


class VolumeZone:
    name = names.VOLUME_ZONE
    depends = Depends.CLUSTER
    wants = "volumes"
    reads = Aspect.LABELS
    normalizer = None

    def __init__(self, args: Any, handle: Handle) -> None:
        self._claims = handle.listers.persistent_volume_claims
        self._volumes = handle.listers.persistent_volumes
        self._classes = handle.listers.storage_classes
        self._settled: SettledClaims = handle.shared(SettledClaims)

    # --- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        if not pod.volumes or self._settled.of(pod) is not None:
            return _SKIPPED  # no label of a zone
        found = self._topologies(pod)
        if isinstance(found, str):
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, found)
        if not found:
            return _SKIPPED
        state.write(self.name, found)
        return None, SUCCESS

    def _topologies(self, pod: PodInfo) -> list[Topology] | str:
        """What the pod's volumes demand, or why that can't be told."""
        found: list[Topology] = []
        for name in written_claims(pod):
            if not name:
                return NO_CLAIM_NAME
            claim: PersistentVolumeClaim | None = self._claims.get(name, pod.namespace)
            if claim is None:
                return not_found(CLAIM, name)
            volume_name = claim.spec.volume_name
            if not volume_name:
                error = self._unbound_error(claim)
                if error:
                    return error
                continue
            volume: PersistentVolume | None = self._volumes.get(volume_name)
            if volume is None:
                return not_found(VOLUME, volume_name)
            found += topologies(volume)
        return found

    def _unbound_error(self, claim: PersistentVolumeClaim) -> str:
        """Why a claim has no volume; "" when it waits for its first pod."""
        name = class_of(claim)
        if not name:
            return NEITHER_VOLUME_NOR_CLASS
        storage_class: StorageClass | None = self._classes.get(name)
        if storage_class is None:
            return not_found(STORAGE_CLASS, name)
        if storage_class.volume_binding_mode is None:
            return no_binding_mode(name)
        return "" if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else NO_VOLUME_NAME

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        found = state.get(self.name)
        if found is None:
            found = self._topologies(pod)  # a configuration without this PreFilter
            if isinstance(found, str):
                return _REJECTED
        zoned = view.full(0)
        for key in ZONE_LABELS:
            zoned = zoned | view.by_label(key, _PRESENT[key])
        wrong = view.full(0)
        for key, values in found:
            value = view.by_label(key, _membership(key, values))
            if key in _MODERN:
                modern = _MODERN[key]
                value = where(value == _ABSENT, view.by_label(modern, _membership(modern, values)), value)
            wrong = wrong | (value != _ALLOWED)
        return where((zoned != 0) & (wrong != 0), _OTHER_ZONE, 0)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        reason = REASON if code == _OTHER_ZONE else self._topologies(pod)
        assert isinstance(reason, str)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason)

    # --- events -------------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        added_or_updated = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(ClusterEvent(events.STORAGE_CLASS, ActionType.ADD), self.after_class_addition),
            ClusterEventWithHint(ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(
                ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, added_or_updated), self.after_claim_change
            ),
            ClusterEventWithHint(ClusterEvent(events.PERSISTENT_VOLUME, added_or_updated), self.after_volume_change),
        )

    def after_class_addition(self, pod: PodInfo, old: Any, new: StorageClass) -> QueueingHint:
        return QueueingHint(new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)

    def after_claim_change(self, pod: PodInfo, old: Any, new: PersistentVolumeClaim) -> QueueingHint:
        return QueueingHint(pod.namespace == new.metadata.namespace and new.metadata.name in written_claims(pod))

    def after_volume_change(self, pod: PodInfo, old: PersistentVolume | None, new: PersistentVolume) -> QueueingHint:
        return QueueingHint(old is None or topologies(old) != topologies(new))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return sign_volumes(pod)


_SKIPPED: Final[tuple[NodeNames | None, Status]] = (None, SKIP)
_ABSENT: Final = 0
_ALLOWED: Final = 1
_FORBIDDEN: Final = 2
_PRESENT: Final = {key: Membership((), inside=1, outside=1, absent=0) for key in ZONE_LABELS}


@lru_cache(maxsize=1024)
def _membership(key: str, values: frozenset[str]) -> Membership:
    """Of a node's value of the label: each key has a column, and lookups, of its own."""
    return Membership(values, inside=_ALLOWED, outside=_FORBIDDEN, absent=_ABSENT)


def topologies(volume: PersistentVolume) -> list[Topology]:
    """The zone and region labels of a volume; values that can't be read are passed over."""
    labels = volume.metadata.labels or {}
    found = []
    for key in ZONE_LABELS:
        if key in labels:
            values = [text.strip() for text in labels[key].split(ZONE_SEPARATOR)]
            if all(values):
                found.append(Topology(key, frozenset(values)))
    return found
