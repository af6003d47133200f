"""Claims and volumes of pods, as all volume plugins read them. Upstream: `component-helpers/storage`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from skedge.api.core import ResourceList, Volume
from skedge.api.meta import NodeSelector
from skedge.api.node_selectors import NodeTerms
from skedge.api.quantity import Quantity, QuantityError, quantity
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.framework.status import SUCCESS, Status
from skedge.snapshot.pods import PlacedPod, PodInfo

AnyPod = PodInfo | PlacedPod

CLAIM: Final = "persistentvolumeclaim"
VOLUME: Final = "persistentvolume"
STORAGE_CLASS: Final = "storageclass.storage.k8s.io"

BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

LOST: Final = "Lost"
"""Phase of a claim whose volume is gone."""
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"

NO_CLAIM_NAME: Final = "PersistentVolumeClaim had no name"


def not_found(resource: str, name: str) -> str:
    """How a missing object is reported; `resource` is one of the words above."""
    return f'{resource} "{name}" not found'


def no_binding_mode(storage_class: str) -> str:
    return f'VolumeBindingMode not set for StorageClass "{storage_class}"'


def claim_name(pod: AnyPod, volume: Volume) -> str | None:
    """The name of the claim behind a volume, written or (generic ephemeral) made up; None when it has none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_names(pod: AnyPod) -> Iterator[str]:
    """Names of all claims the pod uses, generic ephemeral ones included."""
    for volume in pod.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield name


def written_claims(pod: AnyPod) -> Iterator[str]:
    """Names of the claims that the pod names itself."""
    for volume in pod.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def ownership_error(pod: AnyPod, claim: PersistentVolumeClaim) -> str:
    """Why a claim is not the generic ephemeral one of this pod; "" when it is."""
    owner = claim.metadata.controller()
    if owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {claim.metadata.namespace}/{claim.metadata.name} was not created for pod {pod.key} (pod is not owner)"


def class_of(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of the storage class, by annotation or by field; "" for none."""
    annotations = obj.metadata.annotations
    if annotations is not None and BETA_CLASS in annotations:
        return annotations[BETA_CLASS]
    return obj.spec.storage_class_name or ""


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the binding of a claim is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or ())


def requested(claim: PersistentVolumeClaim) -> Quantity | None:
    """The storage a claim asks for."""
    resources = claim.spec.resources
    return _storage(resources.requests if resources is not None else None)


def capacity(volume: PersistentVolume) -> Quantity | None:
    """The storage a volume offers."""
    return _storage(volume.spec.capacity)


def _storage(amounts: ResourceList | None) -> Quantity | None:
    """The amount of storage, if there is one that can be read."""
    amount = (amounts or {}).get("storage")
    try:
        return None if amount is None else quantity(amount)
    except QuantityError:
        return None


@lru_cache(maxsize=4096)
def volume_terms(required: NodeSelector) -> NodeTerms:
    """A volume's node affinity, compiled. Nodes are judged by their labels alone: conditions on fields always hold."""
    terms = NodeTerms(required)
    for term in terms.terms:
        term.fields = ()
    return terms


def sign_volumes(pod: PodInfo) -> tuple[dict[str, Any], Status]:
    """The pod's volume sources as sorted JSON, for its signature; those that nobody here reads are left out."""
    sources = (msgspec.json.encode(msgspec.structs.replace(volume, name="")).decode() for volume in pod.volumes)
    return {"v1.Pod.Spec.Volumes.NonSyntheticSources()": sorted(each for each in sources if each != "{}")}, SUCCESS
