"""VolumeBinding at its extension points. Upstream: `plugins/volumebinding/volume_binding.go`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from skedge import names
from skedge.api.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from skedge.config.plugin_args import VolumeBindingArgs
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.handle import Handle
from skedge.framework.plugin import Depends, NodeNames
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, PluginError, Status
from skedge.plugins.helpers.csi_translation import MIGRATED_PLUGINS
from skedge.plugins.helpers.volumes import claim_names, sign_volumes
from skedge.plugins.volume_binding.binding import Decision, VolumeBinder
from skedge.plugins.volume_binding.capacities import volume_limit
from skedge.plugins.volume_binding.claims import ClaimError, PodClaims, classify, usable
from skedge.plugins.volume_binding.filtering import REASONS, VolumeFinder
from skedge.plugins.volume_binding.scoring import storage_use
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows, View
from skedge.stores.assume import AssumeError

IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"


class _Volumes:
    """What a cycle knows of its pod's volumes; `decision` once a node is reserved."""

    __slots__ = ("claims", "decision")

    def __init__(self, claims: PodClaims) -> None:
        self.claims = claims
        self.decision: Decision | None = None


class VolumeBinding:
    name = names.VOLUME_BINDING
    depends = Depends.CLUSTER
    wants = "volumes"
    reads = Aspect.LABELS
    normalizer = None

    def __init__(self, args: Any, handle: Handle) -> None:
        args = args or VolumeBindingArgs.default(handle.gates)
        self._handle = handle
        self._claims = handle.listers.persistent_volume_claims
        self._finder: VolumeFinder = handle.shared(VolumeFinder)
        self._binder = VolumeBinder(handle, self._finder, args.bind_timeout_seconds)
        self._scores: bool = handle.gates.enabled("StorageCapacityScoring")
        self._shape = [(point.utilization, point.score * 10) for point in args.shape or ()]

    # --- filter -------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        if not pod.volumes:
            return _SKIPPED
        settled = self._finder.settled.of(pod)
        if settled is not None:
            if settled.anywhere:
                return _SKIPPED
            state.write(self.name, _Volumes(PodClaims(settled.claims, (), False)))
            return None, SUCCESS
        any_claim, error = usable(pod, self._claims)
        if error:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error)
        if not any_claim:
            return _SKIPPED
        try:
            claims = classify(pod, self._finder.claims, self._finder.classes)
        except ClaimError as failure:
            return None, Status.from_error(failure)
        if claims.immediate:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, IMMEDIATE)
        state.write(self.name, _Volumes(claims))
        return _SKIPPED if self._finder.nothing_to_check(claims) else (None, SUCCESS)

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        found: _Volumes | None = state.get(self.name)
        if found is None:
            raise PluginError("not found")
        try:
            return self._finder.find(found.claims, view).codes
        except PluginError:
            self._handle.hooks.volume_scheduling_stage_error("predicate")
            raise

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        reasons = (reason for bit, reason in REASONS.items() if code & bit)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, *reasons)

    # --- score --------------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        if not self._scores:
            return SKIP
        found: _Volumes | None = state.get(self.name)
        return SUCCESS if found is not None and found.claims.delayed else SKIP

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        found: _Volumes | None = state.get(self.name)
        if not self._scores or found is None:
            return 0
        finder = self._finder
        outcome = finder.find(found.claims, view)
        return storage_use(outcome, finder.pools.offers, finder.capacities, view).scores(self._shape)

    # --- reserve and bind ---------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        found: _Volumes | None = state.get(self.name)
        if found is None or not found.claims.delayed:
            return SUCCESS
        table = self._handle.table
        view = Rows(table, np.array([table.row_of[node_name]], np.int64))
        try:
            outcome = self._finder.find(found.claims, view)
            if np.any(outcome.codes):  # what was free for the filter is not any more
                return self.filter_status(state, pod, int(np.max(outcome.codes)))
            found.decision = self._binder.assume(outcome, node_name)
        except (AssumeError, PluginError) as error:
            self._handle.hooks.volume_scheduling_stage_error("assume")
            return Status.from_error(error)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        found: _Volumes | None = state.get(self.name)
        if found is not None and found.decision is not None:
            self._binder.revert(found.decision)
            found.decision = None

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, bool]:
        found: _Volumes | None = state.get(self.name)
        if found is None or not found.claims.delayed:
            return SKIP, True
        if found.decision is None:
            return Status.from_error(LookupError(f'no pod volumes found for node "{node_name}"')), True
        return SUCCESS, True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        found: _Volumes = state.read(self.name)
        if found.decision is None:
            return SUCCESS
        try:
            await self._binder.bind(pod, found.decision)
        except Exception as error:  # whatever the port says: the pod goes back to the queue
            self._handle.hooks.volume_scheduling_stage_error("bind")
            return Status.from_error(error)
        return SUCCESS

    # --- events -------------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(ClusterEvent(events.STORAGE_CLASS, changed), self.after_class_change),
            ClusterEventWithHint(ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, changed), self.after_claim_change),
            ClusterEventWithHint(ClusterEvent(events.PERSISTENT_VOLUME, changed)),
            ClusterEventWithHint(ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(ClusterEvent(events.CSI_NODE, changed), self.after_csi_node_change),
            ClusterEventWithHint(ClusterEvent(events.CSI_DRIVER, ActionType.UPDATE), self.after_driver_update),
            ClusterEventWithHint(ClusterEvent(events.CSI_STORAGE_CAPACITY, changed), self.after_capacity_change),
        )

    def after_class_change(self, pod: PodInfo, old: StorageClass | None, new: StorageClass) -> QueueingHint:
        return QueueingHint(old is None or (old.allowed_topologies or ()) != (new.allowed_topologies or ()))

    def after_claim_change(self, pod: PodInfo, old: Any, new: PersistentVolumeClaim) -> QueueingHint:
        return QueueingHint(pod.namespace == new.metadata.namespace and new.metadata.name in claim_names(pod))

    def after_csi_node_change(self, pod: PodInfo, old: CSINode | None, new: CSINode) -> QueueingHint:
        def migrated(csi_node: CSINode) -> str:
            return (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")

        return QueueingHint(old is None or migrated(old) != migrated(new))

    def after_driver_update(self, pod: PodInfo, old: CSIDriver, new: CSIDriver) -> QueueingHint:
        relaxed = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
        uses = any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.volumes)
        return QueueingHint(relaxed and uses)

    def after_capacity_change(
        self, pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity
    ) -> QueueingHint:
        if old is None:
            return QueueingHint.QUEUE
        before, after = volume_limit(old), volume_limit(new)
        return QueueingHint(after is not None and (before is None or after > before))

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        return sign_volumes(pod)


_SKIPPED: Final[tuple[NodeNames | None, Status]] = (None, SKIP)
