"""How many CSI volumes each node has, by driver, kept current pod by pod. Upstream: `nodevolumelimits/csi.go`.

A volume is counted once a node, however many pods use it, and also while a VolumeAttachment says that it is still
attached. Which volume is behind a pod's claim depends on claims, volumes, classes, and on what the node has migrated:
pods whose answer may have changed are noted, and looked at again when somebody asks (`sync`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from skedge.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from skedge.framework.handle import Handle
from skedge.framework.status import PluginError
from skedge.plugins.helpers.csi_nodes import MANY, CsiNodes, grown
from skedge.plugins.helpers.csi_volumes import CsiVolumes, Key, Source
from skedge.plugins.helpers.volumes import STORAGE_CLASS, VOLUME, claim_names
from skedge.snapshot.arith import Ints
from skedge.snapshot.pods import PlacedPod


class User:
    """A pod with a node and volumes: its claims (`namespace/name`), what else its volumes were worked out from, and
    what is counted for it on its row."""

    __slots__ = ("claims", "counted", "error", "pod", "row", "sources")

    def __init__(self, pod: PlacedPod, row: int) -> None:
        self.pod = pod
        self.row = row
        self.claims = [f"{pod.namespace}/{name}" for name in claim_names(pod)]
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
        self.csi_volumes = CsiVolumes(listers)
        self.csi_nodes: CsiNodes = handle.shared(CsiNodes)
        self.counts: dict[str, Ints] = {}
        """Driver -> volumes of a row."""
        self._most: dict[str, int] = {}  # driver -> no row has more volumes; fewer there may be
        self.holders: dict[Key, dict[int, int]] = {}
        """Volume -> row -> number of pods there that use it."""
        self.users: dict[str, dict[str, User]] = {}
        """Claim (`namespace/name`) -> pods with a node that use it, by UID."""
        self.errors: dict[int, str] = {}
        """Rows with a pod whose volumes can't be worked out, and why."""
        self._pods: dict[str, User] = {}
        self._stale: set[str] = set()  # UIDs
        self._used: dict[Source, set[str]] = {}  # -> UIDs
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}  # node -> name -> attachment
        self._attachments_of: dict[str, set[str]] = {}  # volume -> nodes
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
                self._pods[old.uid].pod = new
                return
            self._forget(old)
        if new is not None and new.volumes:
            user = self._pods[new.uid] = User(new, row)
            self._stale.add(new.uid)
            for claim in user.claims:
                self.users.setdefault(claim, {})[new.uid] = user

    def _forget(self, pod: PlacedPod) -> None:
        user = self._pods.pop(pod.uid)
        self._stale.discard(pod.uid)
        self._take_off(user)
        for claim in user.claims:
            users = self.users.get(claim)
            if users is not None:
                users.pop(pod.uid, None)
                if not users:
                    del self.users[claim]

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        meta = (new or old).metadata  # type: ignore[union-attr]
        self._stale |= self.users.get(f"{meta.namespace}/{meta.name}", _NO_USERS).keys()

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        name = (new or old).metadata.name  # type: ignore[union-attr]
        self._stale |= self._used.get((VOLUME, name), _NOBODY)
        self._stale_nodes |= self._attachments_of.get(name, _NOBODY)

    def _class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        self._stale |= self._used.get((STORAGE_CLASS, (new or old).metadata.name), _NOBODY)  # type: ignore[union-attr]

    def _attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if old is not None:
            node = old.spec.node_name
            self._stale_nodes.add(node)
            left = self._attachments[node]
            del left[old.metadata.name]
            volume = old.spec.source.persistent_volume_name
            if volume is not None and all(each.spec.source.persistent_volume_name != volume for each in left.values()):
                self._attachments_of[volume].discard(node)
                if not self._attachments_of[volume]:
                    del self._attachments_of[volume]
            if not left:
                del self._attachments[node]
        if new is not None:
            self._stale_nodes.add(new.spec.node_name)
            self._attachments.setdefault(new.spec.node_name, {})[new.metadata.name] = new
            volume = new.spec.source.persistent_volume_name
            if volume is not None:
                self._attachments_of.setdefault(volume, set()).add(new.spec.node_name)
        if len(self._stale_nodes) > MANY:
            self.sync()

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

    def _count(self, user: User) -> None:
        self._take_off(user)
        try:
            volumes = self.csi_volumes.of_pod(user.pod, user.sources)
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

    def _take_off(self, user: User) -> None:
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
        number = column.item(row) + amount
        column[row] = number
        if number > self._most.get(key[0], 0):
            self._most[key[0]] = number

    def room_everywhere(self, driver: str, more: int, limit: int) -> bool:
        """Whether so many more volumes keep within a limit on every row."""
        if self._most.get(driver, 0) + more > limit:
            self._most[driver] = int(self.counts[driver].max()) if driver in self.counts else 0
        return self._most.get(driver, 0) + more <= limit


_NOBODY: frozenset[str] = frozenset()
_NOTHING: frozenset[Any] = frozenset()
_NO_USERS: dict[str, User] = {}
