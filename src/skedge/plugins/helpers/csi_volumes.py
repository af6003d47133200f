"""From pods to the CSI volumes they use. Upstream: `nodevolumelimits/csi.go` (filterAttachableVolumes)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from skedge.api.core import Volume
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from skedge.framework.handle import Listers
from skedge.framework.status import PluginError
from skedge.plugins.helpers.csi_translation import IN_TREE, InTree, in_tree, inline_handle, volume_handle
from skedge.plugins.helpers.volumes import (
    CLAIM,
    NO_CLAIM_NAME,
    STORAGE_CLASS,
    VOLUME,
    AnyPod,
    claim_name,
    class_of,
    not_found,
    ownership_error,
)

Key = tuple[str, str]
"""(driver, handle): what makes two volumes the same."""

Source = tuple[str, str]
"""(kind, name) of an object besides claims that a pod's volumes were worked out from: a VOLUME or a STORAGE_CLASS."""


class CsiVolume(NamedTuple):
    """A volume as limits count it; `plugin`: only on nodes that have migrated this in-tree plugin ("": everywhere)."""

    key: Key
    plugin: str = ""


def distinct(volumes: Iterable[CsiVolume | None]) -> list[CsiVolume]:
    """Each volume once; of one that is there with and without a plugin, the one that counts everywhere."""
    found: dict[Key, CsiVolume] = {}
    for each in volumes:
        if each is not None and (each.key not in found or not each.plugin):
            found[each.key] = each
    return [*found.values()]


class ClaimMissing(Exception):
    """A claim of a pod that is to be placed does not exist; the text says which."""


class CsiVolumes:
    """Looks volumes up in the stores."""

    def __init__(self, listers: Listers) -> None:
        self._claims = listers.persistent_volume_claims
        self._volumes = listers.persistent_volumes
        self._classes = listers.storage_classes

    def of_pod(self, pod: AnyPod, sources: set[Source] | None = None) -> list[CsiVolume]:
        """The volumes of a pod that limits may count; what they rest on is added to `sources`.

        With `sources` (a pod that has a node) a missing claim does not count; without, it raises ClaimMissing. Raises
        PluginError where the reference has no answer.
        """
        found = []
        for volume in pod.volumes:
            name = claim_name(pod, volume)
            if name is None:
                found.append(_inline(volume))
            elif name:
                found.append(self._behind_claim(pod, volume, name, sources))
            else:
                raise PluginError(NO_CLAIM_NAME)
        return distinct(found)

    def _behind_claim(self, pod: AnyPod, volume: Volume, name: str, sources: set[Source] | None) -> CsiVolume | None:
        claim: PersistentVolumeClaim | None = self._claims.get(name, pod.namespace)
        if claim is None:
            if sources is None:
                raise ClaimMissing(f"looking up PVC {pod.namespace}/{name}: {not_found(CLAIM, name)}")
            return None
        if volume.ephemeral is not None and volume.persistent_volume_claim is None:
            error = ownership_error(pod, claim)
            if error:
                raise PluginError(error)
        if claim.spec.volume_name:
            if sources is not None:
                sources.add((VOLUME, claim.spec.volume_name))
            pv: PersistentVolume | None = self._volumes.get(claim.spec.volume_name)
            if pv is not None:
                return csi_volume(pv)
        return self._to_come(claim, f"{pod.namespace}/{name}", sources)

    def _to_come(self, claim: PersistentVolumeClaim, key: str, sources: set[Source] | None) -> CsiVolume | None:
        """What a claim without a volume will count as, by the provisioner of its class."""
        name = class_of(claim)
        if not name:
            return None
        if sources is not None:
            sources.add((STORAGE_CLASS, name))
        storage_class: StorageClass | None = self._classes.get(name)
        if storage_class is None:
            return None
        provisioner = storage_class.provisioner
        handle = f"\0{key}"  # no volume has such a handle
        plugin: InTree | None = IN_TREE.get(provisioner)
        if plugin is None:
            return CsiVolume((provisioner, handle))
        return CsiVolume((plugin.driver, handle), plugin.name) if plugin.switchable else None


def _inline(volume: Volume) -> CsiVolume | None:
    plugin = in_tree(volume)
    if plugin is None or not plugin.switchable:
        return None
    handle = inline_handle(plugin, volume)
    return None if handle is None else CsiVolume((plugin.driver, handle), plugin.name)


def csi_volume(pv: PersistentVolume) -> CsiVolume | None:
    """The volume as limits count it; None: they do not."""
    if pv.spec.csi is not None:
        return CsiVolume((pv.spec.csi.driver, pv.spec.csi.volume_handle))
    plugin = in_tree(pv.spec)
    if plugin is None or not plugin.switchable:
        return None
    handle = volume_handle(plugin, pv)
    return None if handle is None else CsiVolume((plugin.driver, handle), plugin.name)
