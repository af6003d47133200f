"""Which nodes can have the pod's volumes, and which volumes these are. Upstream: `binder.go` (FindPodVolumes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skedge.api.meta import NodeSelector
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.framework.handle import Handle
from skedge.plugins.helpers.csi_nodes import CsiNodes
from skedge.plugins.helpers.csi_translation import in_tree, translated_affinity
from skedge.plugins.helpers.node_match import terms_hold
from skedge.plugins.helpers.settled_claims import SettledClaims
from skedge.plugins.helpers.volumes import SELECTED_NODE, volume_terms
from skedge.plugins.volume_binding.capacities import NO_SPACE, NOT_POSSIBLE, Capacities, Provisioning, provisioning
from skedge.plugins.volume_binding.claims import PodClaims
from skedge.plugins.volume_binding.offers import Request
from skedge.plugins.volume_binding.pools import NONE, Match, Pools
from skedge.snapshot.arith import Bools, Ints, where

NODE_CONFLICT: Final = 1
BIND_CONFLICT: Final = 2
NOT_ENOUGH_SPACE: Final = 4
VOLUME_MISSING: Final = 8

REASONS: Final = {
    NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    BIND_CONFLICT: "node(s) didn't find available persistent volumes to bind",
    NOT_ENOUGH_SPACE: "node(s) did not have enough free storage",
    VOLUME_MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
"""Bit -> reason, in the order in which they are told."""


class Provisioned(NamedTuple):
    """A claim for which a volume would be made on these rows."""

    what: Provisioning
    rows: Bools


class Found(NamedTuple):
    """What each row of a view can do for a pod: `codes` (bits of REASONS, 0: all is well), the free volumes its claims
    would get, and the volumes that would be made."""

    codes: Any
    matches: Sequence[Match] = ()
    provisions: Sequence[Provisioned] = ()


class VolumeFinder:
    """Shared by all profiles: assume caches and what follows them."""

    def __init__(self, handle: Handle) -> None:
        listers = handle.listers
        self.settled: SettledClaims = handle.shared(SettledClaims)
        self.claims, self.volumes = self.settled.claims, self.settled.volumes
        self.classes = listers.storage_classes
        self.csi_nodes: CsiNodes = handle.shared(CsiNodes)
        self.pools = Pools(self.volumes)
        self.capacities = Capacities(handle)

    def nothing_to_check(self, claims: PodClaims) -> bool:
        """Whether every node will do: all claims are bound to volumes that can be used anywhere."""
        return not claims.delayed and all(
            (volume := self.volumes.get(claim.spec.volume_name)) is not None
            and volume.spec.node_affinity is None
            and (volume.spec.csi is not None or in_tree(volume.spec) is None)
            for claim in claims.bound
        )

    def find(self, claims: PodClaims, view: Any) -> Found:
        """Raises PluginError where the reference has no answer."""
        codes = self._bound_codes(claims.bound, view)
        if not claims.delayed:
            return Found(codes)
        unbound = self._find_unbound(claims.delayed, view)
        return unbound._replace(codes=codes | unbound.codes)

    # --- bound claims -------------------------------------------------------------------------------------------------

    def _bound_codes(self, claims: Sequence[PersistentVolumeClaim], view: Any) -> Any:
        codes: Any = 0
        fits: Any = 1  # no conflict so far: the first one ends the search
        for claim in claims:
            volume = self.volumes.get(claim.spec.volume_name)
            if volume is None:
                return codes | where(fits != 0, VOLUME_MISSING, 0)
            fits = fits & self.usable(volume, view)
            codes = where(fits != 0, 0, NODE_CONFLICT)
        return codes

    def usable(self, volume: PersistentVolume, view: Any) -> Any:
        """Whether each row may use the volume, by its node affinity as the node understands it; 0 or 1."""
        affinity = volume.spec.node_affinity
        holds = _affinity_holds(affinity.required if affinity is not None else None, view)
        plugin = in_tree(volume.spec) if volume.spec.csi is None else None
        if plugin is not None and plugin.switchable:
            self.csi_nodes.sync()
            migrated = self.csi_nodes.migrated_rows(plugin.name, view)
            if np.any(migrated):
                holds = where(migrated, _affinity_holds(translated_affinity(plugin, volume), view), holds)
        return holds

    # --- claims that wait for the pod ---------------------------------------------------------------------------------

    def _find_unbound(self, claims: Sequence[PersistentVolumeClaim], view: Any) -> Found:
        size = view.size
        elsewhere = np.zeros(size, bool)  # a claim is being provisioned for another node: nothing else is looked at
        chosen: list[PersistentVolumeClaim] = []
        to_match: list[PersistentVolumeClaim] = []
        for claim in claims:
            node = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if node is None:
                to_match.append(claim)
            else:
                chosen.append(claim)
                elsewhere |= ~np.broadcast_to(view.named((node,)), (size,))
        matches: list[Match] = []
        for request in sorted(map(Request, to_match), key=lambda request: request.amount):
            taken = [match.numbers for match in matches]
            matches.append(Match(request.claim, self.pools.find(request, view, taken)))
        everywhere = np.ones(size, bool)
        provisions = [Provisioned(provisioning(claim, self.classes), everywhere) for claim in chosen]
        for match in matches:
            unmatched = match.numbers == NONE
            if unmatched.any():
                provisions.append(Provisioned(provisioning(match.claim, self.classes), unmatched))
        codes = np.where(elsewhere, BIND_CONFLICT, self._provision_codes(provisions, view))
        return Found(codes, matches, provisions)

    def _provision_codes(self, provisions: Sequence[Provisioned], view: Any) -> Ints:
        """The first claim of a row that can't be provisioned decides."""
        codes = np.zeros(view.size, np.int64)
        for what, rows in provisions:
            verdict = what.codes(self.capacities, view)
            code = np.where(verdict == NOT_POSSIBLE, BIND_CONFLICT, np.where(verdict == NO_SPACE, NOT_ENOUGH_SPACE, 0))
            codes = np.where(rows & (codes == 0), code, codes)
        return codes


def _affinity_holds(required: NodeSelector | None, view: Any) -> Any:
    return 1 if required is None else terms_hold(view, volume_terms(required))
