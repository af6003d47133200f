"""From a chosen node to bound claims: assume, write, wait. Upstream: `plugins/volumebinding/binder.go`.

What is promised in the assume caches is seen by the next cycles at once; the writes follow in PreBind. Nothing that was
written is taken back when a later step fails: the next attempt goes on from there.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from skedge.api.shared import ObjectReference
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.api.whole import Json, as_json, child, set_annotation
from skedge.framework.handle import Handle
from skedge.framework.ports import ObjectWriter, Signal
from skedge.plugins.helpers.volumes import (
    BOUND_BY_CONTROLLER,
    CLAIM,
    SELECTED_NODE,
    VOLUME,
    is_bound,
    not_found,
)
from skedge.plugins.volume_binding.filtering import Found, VolumeFinder
from skedge.plugins.volume_binding.pools import NONE
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows
from skedge.stores.assume import AssumeError, is_newer
from skedge.stores.store import key_of

POLL: Final = 1.0
"""Seconds after which bindings are looked at even if nothing about them was heard."""

TIMED_OUT: Final = "context deadline exceeded"


class BindingError(Exception):
    """The pod's volumes could not be bound; the text says why."""


class Promise:
    """A volume promised to a claim; `volume` is as assumed, later as written."""

    __slots__ = ("annotate", "changed", "claim", "reference", "volume")

    def __init__(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        meta, old = claim.metadata, volume.spec.claim_ref
        self.claim = claim
        ours = old is not None and (old.namespace, old.name) == (meta.namespace, meta.name)
        known = ours and old is not None and old.uid in ("", meta.uid)
        annotations = volume.metadata.annotations or {}
        self.annotate = not known and BOUND_BY_CONTROLLER not in annotations
        complete = ours and old is not None and old.uid == meta.uid
        self.changed = self.annotate or not complete
        if complete and old is not None:
            self.reference = old
        else:
            self.reference = ObjectReference(
                api_version="v1",
                kind="PersistentVolumeClaim",
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                resource_version=meta.resource_version,
            )
        replace = msgspec.structs.replace
        metadata = volume.metadata
        if self.annotate:
            metadata = replace(metadata, annotations={**annotations, BOUND_BY_CONTROLLER: "yes"})
        self.volume = replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=self.reference))

    def change(self, raw: Json) -> None:
        """The same on the volume's JSON."""
        child(raw, "spec")["claimRef"] = as_json(self.reference)
        if self.annotate:
            set_annotation(raw, BOUND_BY_CONTROLLER, "yes")


class Decision:
    """What is to be bound for a pod on its node: promised volumes, and claims to provision (assumed, then written)."""

    __slots__ = ("node", "promises", "provisions")

    def __init__(self, node: str) -> None:
        self.node = node
        self.promises: list[Promise] = []
        self.provisions: list[PersistentVolumeClaim] = []

    def select_node(self, raw: Json) -> None:
        """Tells the provisioner of a claim, in its JSON, where to make the volume."""
        set_annotation(raw, SELECTED_NODE, self.node)


class VolumeBinder:
    """Assumes, writes and waits; one a profile, for each has its timeout (seconds)."""

    def __init__(self, handle: Handle, finder: VolumeFinder, timeout: float) -> None:
        self._handle = handle
        self._finder = finder
        self._timeout = timeout
        self._waiting: dict[str, set[Signal]] = {}  # claim -> those to wake
        finder.claims.store.observers.append(self._claim_changed)
        finder.volumes.store.observers.append(self._volume_changed)

    # --- in the cycle -------------------------------------------------------------------------------------------------

    def assume(self, found: Found, node: str) -> Decision:
        """Makes the promises of a node, given what was found for its row. Raises AssumeError, assuming nothing."""
        decision = Decision(node)
        try:
            for match in found.matches:
                number = int(match.numbers[0])
                if number != NONE:
                    promise = Promise(self._finder.pools.offers[number].volume, match.claim)
                    if promise.changed:
                        self._finder.volumes.assume(promise.volume)
                    decision.promises.append(promise)
            for what, rows in found.provisions:
                if rows[0]:
                    meta = what.claim.metadata
                    annotations = {**(meta.annotations or {}), SELECTED_NODE: node}
                    claim = msgspec.structs.replace(
                        what.claim, metadata=msgspec.structs.replace(meta, annotations=annotations)
                    )
                    self._finder.claims.assume(claim)
                    decision.provisions.append(claim)
        except AssumeError:
            self.revert(decision)
            raise
        return decision

    def revert(self, decision: Decision, promises: int = 0, provisions: int = 0) -> None:
        """Forgets what was assumed, but for the first promises and provisions."""
        for promise in decision.promises[promises:]:
            self._finder.volumes.restore(promise.volume.metadata.name)
        for claim in decision.provisions[provisions:]:
            self._finder.claims.restore(key_of(claim))

    # --- writing ------------------------------------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, decision: Decision) -> None:
        """Writes what was promised and returns once every claim is bound. Raises what went wrong."""
        ports = self._handle.ports
        if ports is None or ports.objects is None:
            raise BindingError("volumes can not be written here")
        await self._write(ports.objects, decision)
        try:
            await self._wait(ports.objects.signal(), pod, decision)
        except BindingError as error:
            raise BindingError(f"binding volumes: {error}") from error

    async def _write(self, objects: ObjectWriter, decision: Decision) -> None:
        promises = provisions = 0
        try:
            for promise in decision.promises:
                if promise.changed:
                    promise.volume = await objects.update("PersistentVolume", promise.volume, promise.change)
                promises += 1
            for i, claim in enumerate(decision.provisions):
                decision.provisions[i] = await objects.update("PersistentVolumeClaim", claim, decision.select_node)
                provisions += 1
        except BaseException:
            self.revert(decision, promises, provisions)
            raise

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def _wait(self, signal: Signal, pod: PodInfo, decision: Decision) -> None:
        clock = self._handle.clock
        deadline = clock.monotonic() + self._timeout
        claims = {key_of(each) for each in (*(p.claim for p in decision.promises), *decision.provisions)}
        for claim in claims:
            self._waiting.setdefault(claim, set()).add(signal)
        try:
            while not self._is_done(pod, decision):
                left = deadline - clock.monotonic()
                if left <= 0:
                    raise BindingError(TIMED_OUT)
                await signal.wait(min(POLL, left))
        finally:
            for claim in claims:
                self._waiting[claim].discard(signal)
                if not self._waiting[claim]:
                    del self._waiting[claim]

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if self._waiting:
            self._wake(key_of(new if new is not None else old))

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        if self._waiting:
            for volume in (old, new):
                if volume is not None and volume.spec.claim_ref is not None:
                    self._wake(f"{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}")

    def _wake(self, claim: str) -> None:
        for signal in self._waiting.get(claim, ()):
            signal.set()

    def _is_done(self, pod: PodInfo, decision: Decision) -> bool:
        """Whether all claims are bound, by what the server last told. Raises BindingError when they never will be."""
        row = self._handle.table.row_of.get(decision.node)
        if row is None or not self._handle.table.exists[row]:
            raise BindingError(f'failed to get node "{decision.node}": {not_found("node", decision.node)}')
        lister = self._handle.pod_lister
        if lister is not None and lister(pod.key) is None:
            raise BindingError(f"pod does not exist any more: {not_found('pod', pod.name)}")
        return all(self._is_kept(promise, row) for promise in decision.promises) and all(
            self._is_provisioned(claim, decision.node, row) for claim in decision.provisions
        )

    def _is_kept(self, promise: Promise, row: int) -> bool:
        name, key = promise.volume.metadata.name, key_of(promise.claim)
        volume: PersistentVolume | None = self._finder.volumes.store.get(name)
        if volume is None:
            raise BindingError(f"failed to check binding: {_missing(VOLUME, name)}")
        claim: PersistentVolumeClaim | None = self._finder.claims.store.get(key)
        if claim is None:
            raise BindingError(f"failed to check binding: {_missing(CLAIM, key)}")
        if is_newer(promise.volume.metadata.resource_version, volume.metadata.resource_version):
            return False  # our own write has yet to come back
        self._check_affinity(volume, row)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingError(f'ClaimRef got reset for pv "{name}"')
        return is_bound(claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: str, row: int) -> bool:
        key, name = key_of(written), written.metadata.name
        claim: PersistentVolumeClaim | None = self._finder.claims.store.get(key)
        if claim is None:
            raise BindingError(f"failed to check provisioning pvc: {_missing(CLAIM, key)}")
        if is_newer(written.metadata.resource_version, claim.metadata.resource_version):
            return False
        annotations = claim.metadata.annotations
        if annotations is None:
            raise BindingError(f'selectedNode annotation reset for PVC "{name}"')
        if annotations.get(SELECTED_NODE, "") != node:
            raise BindingError(f'provisioning failed for PVC "{name}"')  # the provisioner took the annotation away
        if claim.spec.volume_name:
            volume: PersistentVolume | None = self._finder.volumes.store.get(claim.spec.volume_name)
            if volume is None:
                return False
            self._check_affinity(volume, row)
        return is_bound(claim)

    def _check_affinity(self, volume: PersistentVolume, row: int) -> None:
        table = self._handle.table
        usable: Any = self._finder.usable(volume, Rows(table, np.array([row], np.int64)))
        if not np.all(usable):
            raise BindingError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{table.names[row]}": '
                "no matching NodeSelectorTerms"
            )


def _missing(kind: str, key: str) -> str:
    return f'could not find {kind} "{key}"'
