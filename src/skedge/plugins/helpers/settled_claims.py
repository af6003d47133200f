"""Claims about which nothing is left to decide, found once for all volume plugins that are asked about a pod.

Nearly all claims of nearly all pods are bound, in order, neither for one pod alone nor with labels of a zone. Whoever
knows that of a pod's claims needs only `SettledClaims.of`; of all others the plugins look at everything themselves.
"""

from __future__ import annotations

from typing import NamedTuple

from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.framework.handle import Handle
from skedge.plugins.helpers.csi_translation import ZONE_LABELS
from skedge.plugins.helpers.csi_volumes import CsiVolume, csi_volume, distinct
from skedge.plugins.helpers.volumes import LOST, READ_WRITE_ONCE_POD, is_bound
from skedge.snapshot.pods import PodInfo
from skedge.stores.assume import AssumeCache


class Settled(NamedTuple):
    """What a pod's volumes come to, all of which are settled claims."""

    claims: tuple[PersistentVolumeClaim, ...]
    csi: list[CsiVolume]
    """Those of their volumes that limits may count."""
    anywhere: bool
    """Whether no volume has a node affinity."""


class SettledClaims:
    """Claims and volumes as they are and as they will be; shared by all profiles."""

    def __init__(self, handle: Handle) -> None:
        listers = handle.listers
        self.claims: AssumeCache[PersistentVolumeClaim] = AssumeCache(listers.persistent_volume_claims)
        self.volumes: AssumeCache[PersistentVolume] = AssumeCache(listers.persistent_volumes)
        self._pod: PodInfo | None = None
        self._found: Settled | None = None
        self.claims.observers.append(self._forget)
        self.volumes.observers.append(self._forget)

    def of(self, pod: PodInfo) -> Settled | None:
        """What the pod's volumes come to; None unless all are settled claims. Kept while the next plugins ask."""
        if pod is not self._pod:
            self._found, self._pod = self._find(pod), pod
        return self._found

    def _forget(self, old: object, new: object) -> None:
        self._pod = None

    def _find(self, pod: PodInfo) -> Settled | None:
        claims, csi, anywhere = [], [], True
        for each in pod.volumes:
            source = each.persistent_volume_claim
            claim = None if source is None else self.claims.stored(source.claim_name, pod.namespace)
            if claim is None or not _is_ordinary(claim):
                return None
            volume = self.volumes.stored(claim.spec.volume_name)
            if volume is None or not (volume.metadata.labels or {}).keys().isdisjoint(ZONE_LABELS):
                return None
            claims.append(claim)
            anywhere = anywhere and volume.spec.node_affinity is None
            csi.append(csi_volume(volume))
        return Settled(tuple(claims), distinct(csi), anywhere)


def _is_ordinary(claim: PersistentVolumeClaim) -> bool:
    return (
        is_bound(claim)
        and claim.metadata.deletion_timestamp is None
        and claim.status.phase != LOST
        and READ_WRITE_ONCE_POD not in (claim.spec.access_modes or ())
    )
