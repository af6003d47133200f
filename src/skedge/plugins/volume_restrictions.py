"""VolumeRestrictions: disks that one node must not have twice, claims that only one pod may use.

Upstream: `plugins/volumerestrictions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skedge import names
from skedge.api.core import Volume
from skedge.api.storage import PersistentVolumeClaim
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.handle import Handle
from skedge.framework.plugin import Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, PluginError, Status
from skedge.plugins.helpers.attached_volumes import AttachedVolumes
from skedge.plugins.helpers.settled_claims import SettledClaims
from skedge.plugins.helpers.volumes import CLAIM, READ_WRITE_ONCE_POD, AnyPod, not_found, sign_volumes, written_claims
from skedge.snapshot.arith import where
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import DeltaView, View

REASON_DISK: Final = "node(s) had no available disk"
REASON_ONE_POD: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_DISK: Final = 1
_ONE_POD: Final = 2
_STATE: Final = "PreFilterVolumeRestrictions"

DiskKey = tuple[str, ...]


class Disk(NamedTuple):
    """A disk that a pod mounts by itself. Two with the same key exclude each other unless both only read."""

    key: DiskKey
    read_only: bool
    monitors: frozenset[str] | None = None
    """RBD: those without a monitor in common are different disks."""

    def conflicts(self, other: Disk) -> bool:
        if self.key != other.key or (self.read_only and other.read_only):
            return False
        return self.monitors is None or other.monitors is None or bool(self.monitors & other.monitors)


def disks_of(pod: AnyPod) -> list[Disk]:
    return [disk for volume in pod.volumes if volume.persistent_volume_claim is None for disk in _disks(volume)]


def _disks(volume: Volume) -> Iterator[Disk]:
    if volume.gce_persistent_disk is not None:
        gce = volume.gce_persistent_disk
        yield Disk(("gce", gce.pd_name), gce.read_only)
    if volume.aws_elastic_block_store is not None:
        yield Disk(("aws", volume.aws_elastic_block_store.volume_id), False)  # not even two readers
    if volume.iscsi is not None:
        yield Disk(("iscsi", volume.iscsi.iqn), volume.iscsi.read_only)
    if volume.rbd is not None:
        rbd = volume.rbd
        yield Disk(("rbd", rbd.pool, rbd.image), rbd.read_only, frozenset(rbd.monitors or ()))


class DiskIndex:
    """Disks in use: key -> row -> the disks of that key, one a mount."""

    def __init__(self, handle: Handle) -> None:
        self.used: dict[DiskKey, dict[int, list[Disk]]] = {}
        for pods in handle.table.pods:
            for pod in pods.values():
                self._pod_changed(pod.row, None, pod)
        handle.table.observers.append(self._pod_changed)

    def _pod_changed(self, row: int, old: PlacedPod | None, new: PlacedPod | None) -> None:
        if old is not None and new is not None and old.volumes == new.volumes:
            return
        if old is not None and old.volumes:
            for disk in disks_of(old):
                rows = self.used[disk.key]
                rows[row].remove(disk)
                if not rows[row]:
                    del rows[row]
                    if not rows:
                        del self.used[disk.key]
        if new is not None and new.volumes:
            for disk in disks_of(new):
                self.used.setdefault(disk.key, {}).setdefault(row, []).append(disk)


class _Wanted(NamedTuple):
    """What PreFilter found: the pod's disks, its one-pod claims, and how many of these are in use."""

    disks: tuple[Disk, ...]
    one_pod: frozenset[str]
    in_use: int


class VolumeRestrictions:
    name = names.VOLUME_RESTRICTIONS
    depends = Depends.CLUSTER
    wants = "volumes"
    normalizer = None

    def __init__(self, args: Any, handle: Handle) -> None:
        self._claims = handle.listers.persistent_volume_claims
        self._disks: DiskIndex = handle.shared(DiskIndex)
        self._users = handle.shared(AttachedVolumes).users
        self._settled: SettledClaims = handle.shared(SettledClaims)
        self._table = handle.table

    # --- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        if not pod.volumes or self._settled.of(pod) is not None:
            return _SKIPPED  # no disk of its own, and no claim for one pod alone
        one_pod = []
        for name in written_claims(pod):
            claim: PersistentVolumeClaim | None = self._claims.get(name, pod.namespace)
            if claim is None:
                return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, not_found(CLAIM, name))
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                one_pod.append(name)
        in_use = sum(self._is_used(f"{pod.namespace}/{name}") for name in set(one_pod))
        wanted = _Wanted(tuple(disks_of(pod)), frozenset(one_pod), in_use)
        state.write(_STATE, wanted)
        return (None, SUCCESS) if wanted.disks or in_use else _SKIPPED

    def _is_used(self, claim: str) -> bool:
        """Whether a pod on an existing node uses the claim."""
        exists = self._table.exists
        return any(exists.item(user.row) for user in self._users.get(claim, {}).values())

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        wanted: _Wanted | None = state.get(_STATE)
        if wanted is None:
            raise PluginError(f'cannot read "{_STATE}" from cycleState')
        in_use: Any = wanted.in_use
        if wanted.one_pod and isinstance(view, DeltaView):
            in_use = view.full(in_use)
            for position, sign, other in view.deltas():
                in_use[position] += sign * sum(name in wanted.one_pod for name in written_claims(other))
        codes = where(in_use > 0, _ONE_POD, 0)
        return where(self._disk_taken(wanted.disks, view), _DISK, codes) if wanted.disks else codes

    def _disk_taken(self, disks: Sequence[Disk], view: View) -> Any:
        taken = np.zeros(view.table.capacity, bool)
        for disk in disks:
            for row, used in self._disks.used.get(disk.key, {}).items():
                taken[row] |= any(map(disk.conflicts, used))
        picked = view.pick(taken)
        if isinstance(view, DeltaView):
            rows = view.rows
            for position in {position for position, _, other in view.deltas() if any(disks_of(other))}:
                present = (disk for other in view.pods(int(rows[position])) for disk in disks_of(other))
                picked[position] = _any_conflict(disks, present)
        return picked

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE, REASON_DISK if code == _DISK else REASON_ONE_POD)

    # --- events -------------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(ClusterEvent(events.POD, ActionType.DELETE), self.after_pod_deletion),
            ClusterEventWithHint(ClusterEvent(events.NODE, ActionType.ADD)),
            ClusterEventWithHint(
                ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), self.after_claim_addition
            ),
        )

    def after_pod_deletion(self, pod: PodInfo, old: AnyPod, new: Any) -> QueueingHint:
        if pod.namespace != old.namespace:
            return QueueingHint.QUEUE_SKIP
        if not set(written_claims(pod)).isdisjoint(written_claims(old)):
            return QueueingHint.QUEUE
        return QueueingHint(_any_conflict(disks_of(pod), disks_of(old)))

    def after_claim_addition(self, pod: PodInfo, old: Any, new: PersistentVolumeClaim) -> QueueingHint:
        return QueueingHint(pod.namespace == new.metadata.namespace and new.metadata.name in written_claims(pod))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return sign_volumes(pod)


_SKIPPED: Final[tuple[NodeNames | None, Status]] = (None, SKIP)


def _any_conflict(disks: Sequence[Disk], others: Iterable[Disk]) -> bool:
    return any(disk.conflicts(other) for other in others for disk in disks)
