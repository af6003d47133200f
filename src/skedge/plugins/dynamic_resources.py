"""DynamicResources: devices claimed by pods. Upstream: `plugins/dynamicresources`.

Pods without claims pass it untouched; pods with claims are held back, for devices are not allocated here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skedge import names
from skedge.api.core import PodResourceClaim
from skedge.api.resource import ResourceClaim
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.normalize import FORWARD
from skedge.framework.plugin import Depends, NodeNames, PostFilterResult
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Code, PluginError, Status
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

NOTHING_TO_DEALLOCATE: Final = "no new claims to deallocate"
STILL_NOT_SCHEDULABLE: Final = "still not schedulable"
NOT_SUPPORTED: Final = "resource claims are not supported by this scheduler"
NOT_SIGNABLE: Final = "pods with dra resource claims are not signable"
_NOT_FOUND: Final = "not found"


class ClaimError(Exception):
    """A claim of the pod can not be used; the text says why."""


class DynamicResources:
    name = names.DYNAMIC_RESOURCES
    depends = Depends.CLUSTER
    wants = "resource_claims"
    normalizer = FORWARD

    def __init__(self, args: Any, handle: Any) -> None:
        self._claims = handle.listers.resource_claims

    # --- the pod's claims ---------------------------------------------------------------------------------------------

    def _resolve(self, pod: PodInfo) -> list[ResourceClaim]:
        """The claims the pod refers to; those it turned out not to need are left out. Raises ClaimError."""
        return [claim for entry in pod.resource_claims if (claim := self._claim(pod, entry)) is not None]

    def _claim(self, pod: PodInfo, entry: PodResourceClaim) -> ResourceClaim | None:
        name, own = entry.resource_claim_name, False
        if name is None:
            own = True
            statuses = pod.pod.status.resource_claim_statuses or ()
            status = next((each for each in statuses if each.name == entry.name), None)
            if status is None:
                raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')
            name = status.resource_claim_name
            if name is None:
                return None
        claim: ResourceClaim | None = self._claims.get(name, pod.namespace)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        owner = claim.metadata.controller()
        if own and (owner is None or owner.uid != pod.uid):
            claim_key = f"{pod.namespace}/{name}"
            raise ClaimError(f"ResourceClaim {claim_key} was not created for Pod {pod.key} (Pod is not owner)")
        return claim

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.resource_claims:
            return SUCCESS
        try:
            self._resolve(pod)
        except ClaimError as error:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, str(error))
        return SUCCESS

    # --- the cycle ----------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        state.write(self.name, True)
        if not pod.resource_claims:
            state.skip_score.add(self.name)
            return None, SKIP
        try:
            claims = self._resolve(pod)
        except ClaimError as error:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, str(error))
        if claims:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NOT_SUPPORTED)
        return None, SKIP

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        self._demand_state(state, f'running "{self.name}" filter plugin')
        return view.full(0)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        self._demand_state(state, f'plugin "{self.name}" failed with')
        return view.full(0)

    def _demand_state(self, state: CycleState, where: str) -> None:
        if not self._pre_filtered(state):
            raise PluginError(f'{where}: error reading "PreFilter{self.name}" from cycleState: {_NOT_FOUND}')

    def _pre_filtered(self, state: CycleState) -> bool:
        """Whether PreFilter ran, or was spared; it does not where the plugin is switched off there."""
        return self.name in state.skip_filter or bool(state.get(self.name))

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Any) -> tuple[PostFilterResult | None, Status]:
        if not self._pre_filtered(state):
            return None, Status(Code.ERROR, _NOT_FOUND)
        return None, Status(Code.UNSCHEDULABLE, STILL_NOT_SCHEDULABLE if pod.resource_claims else NOTHING_TO_DEALLOCATE)

    # --- pods that were placed, none of which has claims --------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """There is nothing to give back."""

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, bool]:
        return SKIP, True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    # --- waking pods --------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(
                ClusterEvent(events.RESOURCE_CLAIM, ActionType.ADD | ActionType.UPDATE), self.after_claim_change
            ),
            ClusterEventWithHint(
                ClusterEvent(events.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM), self.after_pod_change
            ),
        )

    def after_claim_change(self, pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim) -> QueueingHint:
        try:
            claims = self._resolve(pod)
        except ClaimError:
            return QueueingHint.QUEUE_SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return QueueingHint.QUEUE
        if all(claim.metadata.uid != new.metadata.uid for claim in claims):
            return QueueingHint.QUEUE_SKIP
        return QueueingHint(old is None or old.status != new.status)

    def after_pod_change(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        if new.uid != pod.uid or not isinstance(new, PodInfo):
            return QueueingHint.QUEUE_SKIP
        try:
            self._resolve(new)
        except ClaimError:
            return QueueingHint.QUEUE_SKIP
        return QueueingHint.QUEUE

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        if pod.resource_claims:
            return {}, Status(Code.UNSCHEDULABLE, NOT_SIGNABLE)
        return {}, SUCCESS
