"""How many CSI volumes each node has, by driver, kept current pod by pod. Upstream: `nodevolumelimits/csi.go`.

A volume is counted once a node, however many pods use it, and also while a VolumeAttachment says that it is still
attached. Which volume is behind a pod's claim depends on claims, volumes, classes, and on what the node has migrated:
pods whose answer may have changed are noted, and looked at again when somebody asks (`sync`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from skedge.api.core import Volume
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from skedge.framework.handle import Handle
from skedge.framework.status import PluginError
from skedge.plugins.helpers.csi_nodes import CsiNodes, grown
from skedge.plugins.helpers.csi_translation import IN_TREE, InTree, in_tree, inline_handle, volume_handle
from skedge.plugins.helpers.volumes import (
    CLAIM,
    NO_CLAIM_NAME,
    AnyPod,
    claim_name,
    claim_names,
    class_of,
    not_found,
    ownership_error,
)
from skedge.snapshot.arith import Ints
from skedge.snapshot.pods import PlacedPod

Key = tuple[str, str]
"""(driver, handle): what makes two volumes the same."""

Source = tuple[str, str]
"""(kind, key) of an object that a pod's volumes were worked out from."""


class CsiVolume(NamedTuple):
    """A volume as limits count it; `plugin`: only on nodes that have migrated this in-tree plugin ("": everywhere)."""

    key: Key
    plugin: str = ""


class ClaimMissing(Exception):
    """A claim of a pod that is to be placed does not exist; the text says which."""


class _User:
    """A pod with volumes: what they were worked out from, and what is counted for it on its row."""

    __slots__ = ("counted", "error", "pod", "row", "sources")

    def __init__(self, pod: PlacedPod, row: int) -> None:
        self.pod = pod
        self.row = row
        self.sources: set[Source] = set()
        self.counted: list[Key] = []
        self.error = ""


class AttachedVolumes:
    """See the module's docstring. Read only after `sync`, but for `users`."""

    def __init__(self, handle: Handle) -> None:
        self._table = handle.table
        listers = handle.listers
        self._claims = listers.persistent_volume_claims
        self._volumes = listers.persistent_volumes
        self._classes = listers.storage_classes
        self.csi_nodes: CsiNodes = handle.shared(CsiNodes)
        self.counts: dict[str, Ints] = {}
        """Driver -> volumes of a row."""
        self.holders: dict[Key, dict[int, int]] = {}
        """Volume -> row -> number of pods there that use it."""
        self.users: dict[str, dict[str, PlacedPod]] = {}
        """Claim (`namespace/name`) -> pods with a node that use it, by UID."""
        self.errors: dict[int, str] = {}
        """Rows with a pod whose volumes can't be worked out, and why."""
        self._pods: dict[str, _User] = {}
        self._stale: set[str] = set()  # UIDs
        self._used: dict[Source, set[str]] = {}  # -> UIDs
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}  # node -> name -> attachment
        self._attached: dict[int, set[Key]] = {}  # row -> volumes with an attachment
        self._stale_nodes: set[str] = set()
        self._stale_rows: set[int] = set()
        self._capacity = self._table.capacity
        for pods in self._table.pods:
            for pod in pods.values():
                self._pod_changed(pod.row, None, pod)
        for attachment in listers.volume_attachments:
            self._attachment_changed(None, attachment)
        self._table.observers.append(self._pod_changed)
        self._claims.observers.append(self._claim_changed)
        self._volumes.observers.append(self._volume_changed)
        self._classes.observers.append(self._class_changed)
        listers.volume_attachments.observers.append(self._attachment_changed)
        self.csi_nodes.moved.append(self._stale_rows.add)

    # --- what happens -------------------------------------------------------------------------------------------------

    def _pod_changed(self, row: int, old: PlacedPod | None, new: PlacedPod | None) -> None:
        if old is not None and old.volumes:
            if new is not None and new.volumes == old.volumes:
                user = self._pods[old.uid]
                user.pod = new
                for name in claim_names(new):
                    self.users[f"{new.namespace}/{name}"][new.uid] = new
                return
            self._forget(old)
        if new is not None and new.volumes:
            self._pods[new.uid] = _User(new, row)
            self._stale.add(new.uid)
            for name in claim_names(new):
                self.users.setdefault(f"{new.namespace}/{name}", {})[new.uid] = new

    def _forget(self, pod: PlacedPod) -> None:
        user = self._pods.pop(pod.uid)
        self._stale.discard(pod.uid)
        self._take_off(user)
        for name in claim_names(pod):
            key = f"{pod.namespace}/{name}"
            users = self.users.get(key)
            if users is not None:
                users.pop(pod.uid, None)
                if not users:
                    del self.users[key]

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        meta = (new or old).metadata  # type: ignore[union-attr]
        self._stale |= self._used.get((CLAIM, f"{meta.namespace}/{meta.name}"), _NOBODY)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        name = (new or old).metadata.name  # type: ignore[union-attr]
        self._stale |= self._used.get(("volume", name), _NOBODY)
        if self._attachments:
            self._stale_nodes |= {
                node
                for node, attachments in self._attachments.items()
                if any(each.spec.source.persistent_volume_name == name for each in attachments.values())
            }

    def _class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        self._stale |= self._used.get(("class", (new or old).metadata.name), _NOBODY)  # type: ignore[union-attr]

    def _attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        for attachment in (old, new):
            if attachment is not None:
                self._stale_nodes.add(attachment.spec.node_name)
        if old is not None:
            self._attachments.get(old.spec.node_name, {}).pop(old.metadata.name, None)
        if new is not None:
            self._attachments.setdefault(new.spec.node_name, {})[new.metadata.name] = new

    # --- keeping up ---------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Brings counts up to date with everything that happened."""
        self.csi_nodes.sync()
        if self._capacity != self._table.capacity:
            self._capacity = self._table.capacity
            for driver, column in self.counts.items():
                self.counts[driver] = grown(column, self._capacity, 0)
        if self._stale_rows:
            for row in self._stale_rows:
                self._stale |= {pod.uid for pod in self._table.pods[row].values() if pod.volumes}
                self._set_attached(row)
            self._stale_rows.clear()
        if self._stale_nodes:
            for name in self._stale_nodes:
                row_of_node = self._table.row_of.get(name)
                if row_of_node is not None:
                    self._set_attached(row_of_node)
            self._stale_nodes.clear()
        if self._stale:
            for uid in self._stale:
                self._count(self._pods[uid])
            self._stale.clear()

    def _count(self, user: _User) -> None:
        self._take_off(user)
        try:
            volumes = self.volumes_of(user.pod, user.sources)
        except PluginError as error:
            user.error = str(error)
            self.errors[user.row] = user.error
            volumes = []
        for source in user.sources:
            self._used.setdefault(source, set()).add(user.pod.uid)
        for volume in volumes:
            if not volume.plugin or self.csi_nodes.has_migrated(volume.plugin, user.row):
                user.counted.append(volume.key)
                rows = self.holders.setdefault(volume.key, {})
                rows[user.row] = rows.get(user.row, 0) + 1
                if rows[user.row] == 1 and not self.is_attached(user.row, volume.key):
                    self._add(volume.key, user.row, 1)

    def _take_off(self, user: _User) -> None:
        for source in user.sources:
            used = self._used.get(source)
            if used is not None:
                used.discard(user.pod.uid)
                if not used:
                    del self._used[source]
        user.sources = set()
        if user.error:
            user.error = ""
            others = (self._pods[pod.uid].error for pod in self._table.pods[user.row].values() if pod.uid in self._pods)
            left = next((error for error in others if error), "")
            if left:
                self.errors[user.row] = left
            else:
                self.errors.pop(user.row, None)
        for key in user.counted:
            rows = self.holders[key]
            rows[user.row] -= 1
            if not rows[user.row]:
                del rows[user.row]
                if not rows:
                    del self.holders[key]
                if not self.is_attached(user.row, key):
                    self._add(key, user.row, -1)
        user.counted = []

    def is_attached(self, row: int, key: Key) -> bool:
        """Whether a VolumeAttachment says that the volume is attached to the row's node."""
        return key in self._attached.get(row, _NOTHING)

    def _set_attached(self, row: int) -> None:
        node = self._table.nodes[row]
        new = _NOTHING if node is None else frozenset(self._keys_of(node.metadata.name))
        old = self._attached.get(row, _NOTHING)
        for key in old ^ new:
            if row not in self.holders.get(key, {}):
                self._add(key, row, 1 if key in new else -1)
        if new:
            self._attached[row] = set(new)
        else:
            self._attached.pop(row, None)

    def _keys_of(self, node: str) -> Iterable[Key]:
        for attachment in self._attachments.get(node, {}).values():
            name = attachment.spec.source.persistent_volume_name
            volume = self._volumes.get(name) if name else None
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                yield attachment.spec.attacher, volume.spec.csi.volume_handle

    def _add(self, key: Key, row: int, amount: int) -> None:
        column = self.counts.get(key[0])
        if column is None:
            column = self.counts[key[0]] = np.zeros(self._table.capacity, np.int64)
        column[row] += amount

    # --- from pods to volumes -----------------------------------------------------------------------------------------

    def volumes_of(self, pod: AnyPod, sources: set[Source] | None = None) -> list[CsiVolume]:
        """The volumes of a pod that limits may count; what they rest on is added to `sources`.

        With `sources` (a pod that has a node) a missing claim does not count; without, it raises ClaimMissing. Raises
        PluginError where the reference has no answer.
        """
        found: dict[Key, CsiVolume] = {}
        for volume in pod.volumes:
            name = claim_name(pod, volume)
            if name is None:
                csi = _inline(volume)
            elif name:
                csi = self._behind_claim(pod, volume, name, sources)
            else:
                raise PluginError(NO_CLAIM_NAME)
            if csi is not None and (csi.key not in found or not csi.plugin):
                found[csi.key] = csi
        return [*found.values()]

    def _behind_claim(self, pod: AnyPod, volume: Volume, name: str, sources: set[Source] | None) -> CsiVolume | None:
        key = f"{pod.namespace}/{name}"
        if sources is not None:
            sources.add((CLAIM, key))
        claim: PersistentVolumeClaim | None = self._claims.get(name, pod.namespace)
        if claim is None:
            if sources is None:
                raise ClaimMissing(f"looking up PVC {key}: {not_found(CLAIM, name)}")
            return None
        if volume.ephemeral is not None and volume.persistent_volume_claim is None:
            error = ownership_error(pod, claim)
            if error:
                raise PluginError(error)
        if claim.spec.volume_name:
            if sources is not None:
                sources.add(("volume", claim.spec.volume_name))
            pv: PersistentVolume | None = self._volumes.get(claim.spec.volume_name)
            if pv is not None:
                return _of_volume(pv)
        return self._to_come(claim, key, sources)

    def _to_come(self, claim: PersistentVolumeClaim, key: str, sources: set[Source] | None) -> CsiVolume | None:
        """What a claim without a volume will count as, by the provisioner of its class."""
        name = class_of(claim)
        if not name:
            return None
        if sources is not None:
            sources.add(("class", name))
        storage_class: StorageClass | None = self._classes.get(name)
        if storage_class is None:
            return None
        provisioner = storage_class.provisioner
        handle = f"\0{key}"  # no volume has such a handle
        plugin: InTree | None = IN_TREE.get(provisioner)
        if plugin is None:
            return CsiVolume((provisioner, handle))
        return CsiVolume((plugin.driver, handle), plugin.name) if plugin.switchable else None


_NOBODY: frozenset[str] = frozenset()
_NOTHING: frozenset[Any] = frozenset()


def _inline(volume: Volume) -> CsiVolume | None:
    plugin = in_tree(volume)
    if plugin is None or not plugin.switchable:
        return None
    handle = inline_handle(plugin, volume)
    return None if handle is None else CsiVolume((plugin.driver, handle), plugin.name)


def _of_volume(pv: PersistentVolume) -> CsiVolume | None:
    if pv.spec.csi is not None:
        return CsiVolume((pv.spec.csi.driver, pv.spec.csi.volume_handle))
    plugin = in_tree(pv.spec)
    if plugin is None or not plugin.switchable:
        return None
    handle = volume_handle(plugin, pv)
    return None if handle is None else CsiVolume((plugin.driver, handle), plugin.name)
