"""A pod's claims: may it use them, and which are bound already."""

from __future__ import annotations

from typing import Any, NamedTuple

from skedge.api.storage import PersistentVolumeClaim, StorageClass
from skedge.plugins.helpers.volumes import (
    CLAIM,
    LOST,
    WAIT_FOR_FIRST_CONSUMER,
    claim_name,
    class_of,
    is_bound,
    no_binding_mode,
    not_found,
    ownership_error,
)
from skedge.snapshot.pods import PodInfo


class ClaimError(Exception):
    """A claim that can't be judged, so that the attempt ends."""


class PodClaims(NamedTuple):
    """Bound claims, those that wait for a pod, and those that a controller has yet to bind."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]
    immediate: bool


def usable(pod: PodInfo, claims: Any) -> tuple[bool, str]:
    """(whether the pod has claims at all, why it can not use one of them or "")."""
    any_claim = False
    for volume in pod.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        any_claim = True
        ephemeral = volume.persistent_volume_claim is None
        claim: PersistentVolumeClaim | None = claims.get(name, pod.namespace)
        if claim is None:
            if ephemeral:
                return True, f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return True, not_found(CLAIM, name)
        if claim.status.phase == LOST:
            volume_name = claim.spec.volume_name
            return True, f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
        if claim.metadata.deletion_timestamp is not None:
            return True, f'persistentvolumeclaim "{name}" is being deleted'
        error = ownership_error(pod, claim) if ephemeral else ""
        if error:
            return True, error
    return any_claim, ""


def classify(pod: PodInfo, claims: Any, classes: Any) -> PodClaims:
    """The pod's claims as the assume cache has them. Raises ClaimError."""
    bound, delayed, immediate = [], [], False
    for volume in pod.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim: PersistentVolumeClaim | None = claims.get(name, pod.namespace)
        if claim is None:
            key = f"{pod.namespace}/{name}"
            raise ClaimError(f'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"')
        if is_bound(claim):
            bound.append(claim)
        elif _waits(claim, classes) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate = True
    return PodClaims(tuple(bound), tuple(delayed), immediate)


def _waits(claim: PersistentVolumeClaim, classes: Any) -> bool:
    """Whether the claim's class binds when a pod comes."""
    name = class_of(claim)
    storage_class: StorageClass | None = classes.get(name) if name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise ClaimError(no_binding_mode(name))
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
