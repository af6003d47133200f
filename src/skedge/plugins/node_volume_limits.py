"""NodeVolumeLimits: no more CSI volumes on a node than its drivers can attach. Upstream: `plugins/nodevolumelimits`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skedge import names
from skedge.api.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.handle import Handle
from skedge.framework.plugin import UNRESOLVABLE, Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, PluginError, Status
from skedge.plugins.helpers.attached_volumes import AttachedVolumes
from skedge.plugins.helpers.csi_nodes import NO_LIMIT
from skedge.plugins.helpers.csi_translation import in_tree
from skedge.plugins.helpers.csi_volumes import ClaimMissing, CsiVolume, Key
from skedge.plugins.helpers.settled_claims import SettledClaims
from skedge.plugins.helpers.volumes import AnyPod, claim_name, claim_names, sign_volumes, written_claims
from skedge.snapshot.arith import where
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import DeltaView, View

REASON: Final = "node(s) exceed max volume count"
_EXCEEDED: Final = 1
_MISSING_CLAIM: Final = 2 | UNRESOLVABLE
_NOT_INSTALLED: Final = 4  # plus the position of the driver

Changes = Mapping[int, Mapping[Key, int]]
"""Position in a view -> volume -> by how much the number of its users differs from that of the row."""


def not_installed(driver: str) -> str:
    return f"{driver} CSI driver is not installed on the node"


class _Wanted(NamedTuple):
    """The pod's volumes by driver; or the claim that is missing."""

    by_driver: dict[str, list[CsiVolume]]
    missing: str = ""


class NodeVolumeLimits:
    name = names.NODE_VOLUME_LIMITS
    depends = Depends.CLUSTER
    wants = "volumes"
    normalizer = None

    def __init__(self, args: Any, handle: Handle) -> None:
        self._attached: AttachedVolumes = handle.shared(AttachedVolumes)
        self._settled: SettledClaims = handle.shared(SettledClaims)
        self._nodes = self._attached.csi_nodes
        self._drivers = handle.listers.csi_drivers
        self._scaling: bool = handle.gates.enabled("VolumeLimitScaling")

    # --- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        counts = pod.volumes and (self._settled.of(pod) is not None or _may_count(pod))
        return (None, SUCCESS) if counts else _SKIPPED

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        wanted = self._wanted(state, pod)
        if wanted.missing:
            return _MISSING_CLAIM
        if not wanted.by_driver:
            return 0
        self._attached.sync()
        codes = self._limits_kept(wanted, view)
        if self._scaling:
            for position, (driver, volumes) in reversed([*enumerate(wanted.by_driver.items())]):
                found = self._drivers.get(driver)
                if found is not None and found.spec.prevent_pod_scheduling_if_missing:
                    installed = self._nodes.installed.get(driver)
                    absent = view.full(1) if installed is None else view.pick(~installed)
                    counts = sum(self._counts_where(volume, view) for volume in volumes)
                    codes = where((absent != 0) & (view.full(1) * counts > 0), _NOT_INSTALLED + position, codes)
        return codes

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        wanted = self._wanted(state, pod)
        if code == _MISSING_CLAIM:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, wanted.missing)
        if code == _EXCEEDED:
            return Status(Code.UNSCHEDULABLE, REASON)
        return Status(Code.UNSCHEDULABLE, not_installed([*wanted.by_driver][code - _NOT_INSTALLED]))

    def _wanted(self, state: CycleState, pod: PodInfo) -> _Wanted:
        found: _Wanted | None = state.get(self.name)
        if found is None:
            by_driver: dict[str, list[CsiVolume]] = {}
            settled = self._settled.of(pod)
            try:
                for volume in self._attached.csi_volumes.of_pod(pod) if settled is None else settled.csi:
                    by_driver.setdefault(volume.key[0], []).append(volume)
                found = _Wanted(by_driver)
            except ClaimMissing as error:
                found = _Wanted({}, str(error))
            state.write(self.name, found)
        return found

    def _limits_kept(self, wanted: _Wanted, view: View) -> Any:
        attached = self._attached
        limited = [driver for driver in wanted.by_driver if driver in self._nodes.limits]
        if limited and attached.errors:
            self._refuse_errors(view)
        changes: Changes = self._changes(view) if limited and isinstance(view, DeltaView) else {}
        codes: Any = 0
        for driver in limited:
            volumes = wanted.by_driver[driver]
            if not changes and attached.room_everywhere(driver, len(volumes), self._nodes.least_limit(driver)):
                continue
            new: Any = 0
            for volume in volumes:
                new = new + self._counts_where(volume, view) * (1 - self._held(volume.key, view, changes))
            column = attached.counts.get(driver)
            present = 0 if column is None else view.pick(column)
            if changes:
                present = view.full(0) + present
                for position, by_key in changes.items():
                    present[position] += self._more(int(view.rows[position]), driver, by_key)
            codes = codes | where((new > 0) & (present + new > view.pick(self._nodes.limits[driver])), _EXCEEDED, 0)
        return codes

    def _refuse_errors(self, view: View) -> None:
        """A pod there whose volumes can't be told ends the cycle, as in the reference, where its node has limits."""
        table = view.table
        on_view = {int(row) for row in view.rows} & self._attached.errors.keys()
        for row in sorted(on_view):
            if table.exists[row] and any(column[row] != NO_LIMIT for column in self._nodes.limits.values()):
                raise PluginError(self._attached.errors[row])

    def _counts_where(self, volume: CsiVolume, view: View) -> Any:
        """1 for the rows where the volume counts at all, 0 elsewhere."""
        if not volume.plugin:
            return 1
        migrated = self._nodes.migrated_rows(volume.plugin, view)
        return migrated.astype(np.int64) if isinstance(migrated, np.ndarray) else int(migrated)

    def _held(self, key: Key, view: View, changes: Changes) -> Any:
        """1 for the rows where a pod uses the volume already, 0 elsewhere."""
        rows = self._attached.holders.get(key, {})
        if not rows and not changes:
            return 0
        marks = np.zeros(view.table.capacity, np.int64)
        marks[list(rows)] = 1
        held = view.pick(marks)
        for position, by_key in changes.items():
            if key in by_key:
                held[position] = rows.get(int(view.rows[position]), 0) + by_key[key] > 0
        return held

    def _more(self, row: int, driver: str, by_key: Mapping[Key, int]) -> int:
        """By how much the number of the driver's volumes on the row differs in a world with these changes."""
        total = 0
        for key, change in by_key.items():
            if key[0] == driver and not self._attached.is_attached(row, key):
                before = self._attached.holders.get(key, {}).get(row, 0)
                total += (before + change > 0) - (before > 0)
        return total

    def _changes(self, view: DeltaView) -> Changes:
        found: dict[int, dict[Key, int]] = {}
        rows = view.rows
        for position, sign, pod in view.deltas():
            if pod.volumes:
                row = int(rows[position])
                by_key = found.setdefault(position, {})
                for volume in self._attached.csi_volumes.of_pod(pod, set()):
                    if not volume.plugin or self._nodes.has_migrated(volume.plugin, row):
                        by_key[volume.key] = by_key.get(volume.key, 0) + sign
        return found

    # --- events -------------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(ClusterEvent(events.CSI_NODE, ActionType.ADD)),
            ClusterEventWithHint(ClusterEvent(events.CSI_NODE, ActionType.UPDATE), self.after_csi_node_update),
            ClusterEventWithHint(ClusterEvent(events.POD, ActionType.DELETE), self.after_pod_deletion),
            ClusterEventWithHint(
                ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), self.after_claim_addition
            ),
            ClusterEventWithHint(
                ClusterEvent(events.VOLUME_ATTACHMENT, ActionType.DELETE), self.after_attachment_deletion
            ),
        )

    def after_csi_node_update(self, pod: PodInfo, old: CSINode, new: CSINode) -> QueueingHint:
        before = dict(_limits(old))
        return QueueingHint(any(limit > before.get(driver, 0) for driver, limit in _limits(new)))

    def after_pod_deletion(self, pod: PodInfo, old: AnyPod, new: Any) -> QueueingHint:
        return QueueingHint(bool(old.node_name or old.nominated_node_name) and _may_count(old))

    def after_claim_addition(self, pod: PodInfo, old: Any, new: PersistentVolumeClaim) -> QueueingHint:
        return QueueingHint(pod.namespace == new.metadata.namespace and new.metadata.name in claim_names(pod))

    def after_attachment_deletion(self, pod: PodInfo, old: VolumeAttachment, new: Any) -> QueueingHint:
        if any(True for _ in written_claims(pod)):
            return QueueingHint.QUEUE
        plugins = (in_tree(volume) for volume in pod.volumes)
        return QueueingHint(any(plugin is not None and plugin.driver == old.spec.attacher for plugin in plugins))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return sign_volumes(pod)


_SKIPPED: Final[tuple[NodeNames | None, Status]] = (None, SKIP)


def _may_count(pod: AnyPod) -> bool:
    """Whether a volume of the pod is of a kind that can count."""
    return any(claim_name(pod, volume) is not None or in_tree(volume) is not None for volume in pod.volumes)


def _limits(csi_node: CSINode) -> Iterator[tuple[str, int]]:
    """(driver, limit); a driver without one has 0."""
    for driver in csi_node.spec.drivers or ():
        count = driver.allocatable.count if driver.allocatable is not None else None
        yield driver.name, count or 0
