"""Controllers that own pods: making and deleting them, claiming those that match, being told of them.

Upstream: `pkg/controller/controller_utils.go`, `controller_ref_manager.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from skedge.api.labels import NOTHING, Selector, SelectorError, compile_selector
from skedge.api.meta import LabelSelector
from skedge.client.errors import ApiError, ClientError, NotFound, one_line
from skedge.client.informer import Informer
from skedge.client.rest import STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import NAMESPACE, OWNER, Context, Controller, last
from skedge.controlplane.controllers.expectations import Expectations
from skedge.controlplane.controllers.kinds import POD, Kind
from skedge.controlplane.controllers.objects import Meta, Pod, key_of, meta_of, owner_reference

JSON = dict[str, Any]
O = TypeVar("O")

BURST = 500
"""Pods made or deleted in one go; the next go comes when these were seen."""

_encode = msgspec.json.Encoder().encode


class PodOwner(Controller):
    """Base of controllers whose objects (`kind`) own pods. `objects` is their informer."""

    kind: ClassVar[Kind]

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.objects: Informer[JSON] = context.owned(self.kind)
        self.pods = context.pods
        self.expectations = Expectations(self.clock)
        self.watch(self.objects, key_of)
        self.pods.add_handler(on_add=self._pod_added, on_update=self._pod_updated, on_delete=self._pod_deleted)

    async def reconcile(self, key: str) -> float | None:
        obj = self.objects.store.get(key)
        if obj is None:
            self.expectations.forget(key)
            self.forget(key)
            return None
        return await self.sync(key, obj)

    async def sync(self, key: str, obj: JSON) -> float | None:
        """`reconcile` for an object that exists. It is the informer's: never change it in place."""
        raise NotImplementedError

    async def claimed(self, obj: JSON, selector: Selector) -> list[Pod]:
        """The pods this object controls: adopts orphans that match, lets go those that no longer do."""
        return await claim(self, self.kind, obj, selector, self.pods, POD)

    async def create_pods(self, key: str, obj: JSON, bodies: Sequence[bytes]) -> int:
        """Create pods, at first one at a time, then in ever larger batches; how many were made.

        Stops at the first batch with a failure and raises its error.
        """
        self.expectations.expect_creations(key, len(bodies))
        path = POD.path(obj["metadata"]["namespace"])
        made = 0

        async def create(body: bytes) -> None:
            nonlocal made
            created = msgspec.json.decode(await self.client.request("POST", path, body=body), type=_Named)
            made += 1
            self.event(obj, self.kind, "Normal", "SuccessfulCreate", f"Created pod: {created.metadata.name}")

        try:
            await slow_start(bodies, create)
        except ApiError as error:
            self.event(obj, self.kind, "Warning", "FailedCreate", f"Error creating: {one_line(error)}")
            raise
        finally:
            if made < len(bodies):
                self.expectations.created(key, len(bodies) - made)
        return made

    async def delete_pods(self, key: str, obj: JSON, pods: Sequence[Pod]) -> None:
        """Delete pods, all at once. Raises the first error after all were tried."""
        for pod in pods:
            self.expectations.expect_deletion(key, pod.metadata.uid)

        async def delete(pod: Pod) -> None:
            try:
                await delete_pod(self, pod)
            except NotFound:
                self.expectations.deleted(key, pod.metadata.uid)
            except ClientError as error:
                self.expectations.deleted(key, pod.metadata.uid)
                text = f"Error deleting: {one_line(error)}"
                self.event(obj, self.kind, "Warning", "FailedDelete", text)
                raise
            else:
                self.event(obj, self.kind, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

        await together(map(delete, pods))

    def pod_body(
        self, obj: JSON, template: JSON, *, name: str = "", prefix: str = "", change: JSON | None = None
    ) -> bytes:
        """The pod of a template, as bytes: owned by `obj`, named `name` or by a prefix, its own if none is given.
        `change` is merged over metadata (labels, annotations, finalizers) and spec."""
        wanted, given = change or {}, template.get("metadata") or {}
        meta: JSON = {"name": name} if name else {"generateName": prefix or f"{obj['metadata']['name'][:247]}-"}
        for field in ("labels", "annotations"):
            merged = {**(given.get(field) or {}), **(wanted.get(field) or {})}
            if merged:
                meta[field] = merged
        finalizers = [*(given.get("finalizers") or ()), *(wanted.get("finalizers") or ())]
        if finalizers:
            meta["finalizers"] = finalizers
        meta["ownerReferences"] = [owner_reference(obj, self.kind.api_version, self.kind.name)]
        spec = {**template["spec"], **(wanted.get("spec") or {})}
        return _encode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def owner_key(self, meta: Meta) -> str | None:
        """The key of the object of our kind that controls something, if one does."""
        for ref in meta.owner_references or ():
            if ref.controller:
                return f"{meta.namespace}/{ref.name}" if ref.kind == self.kind.name else None
        return None

    def _pod_added(self, pod: Pod, initial: bool) -> None:
        key = self.owner_key(pod.metadata)
        if key is not None:
            if pod.metadata.deletion_timestamp is not None:
                self.expectations.deleted(key, pod.metadata.uid)
            elif not initial:
                self.expectations.created(key)
            self.enqueue(key)
        elif not pod.metadata.owner_references:
            self._orphan(pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        key, before = self.owner_key(new.metadata), self.owner_key(old.metadata)
        if before is not None and before != key:
            self.enqueue(before)
        if key is not None:
            if new.metadata.deletion_timestamp is not None:
                self.expectations.deleted(key, new.metadata.uid)
            self.enqueue(key)
        elif not new.metadata.owner_references and old.metadata.labels != new.metadata.labels:
            self._orphan(new)

    def _pod_deleted(self, obj: Any) -> None:
        pod: Pod = last(obj)
        key = self.owner_key(pod.metadata)
        if key is not None:
            self.expectations.deleted(key, pod.metadata.uid)
            self.enqueue(key)

    def _orphan(self, pod: Pod) -> None:
        """Tell the objects that might adopt a pod nobody owns."""
        for obj in self.objects.store.by_index(NAMESPACE, pod.metadata.namespace):
            if selector_of(obj).matches(pod.metadata.labels):
                self.enqueue(key_of(obj))


class _Name(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Name


async def claim(
    controller: Controller, kind: Kind, owner: JSON, selector: Selector, informer: Informer[O], owned: Kind
) -> list[O]:
    """The objects of `informer` that `owner` controls, after adopting and letting go (`ControllerRefManager`)."""
    meta = owner["metadata"]
    uid, namespace = meta["uid"], meta["namespace"]
    found: list[O] = []
    matches = matcher(selector)
    for obj in informer.store.by_index(OWNER, uid):
        its = meta_of(obj)
        if matches(its.labels) or its.deletion_timestamp is not None:
            found.append(obj)
        else:
            patch = {"metadata": {"uid": its.uid, "ownerReferences": [{"$patch": "delete", "uid": uid}]}}
            await _patch(controller, owned, its, patch)
    if meta.get("deletionTimestamp"):
        return found
    for obj in informer.store.by_index(OWNER, f"orphans:{namespace}"):
        its = meta_of(obj)
        if its.deletion_timestamp is None and matches(its.labels):
            reference = owner_reference(owner, kind.api_version, kind.name)
            await _patch(controller, owned, its, {"metadata": {"uid": its.uid, "ownerReferences": [reference]}})
            found.append(obj)
    return found


def matcher(selector: Selector) -> Callable[[dict[str, str] | None], bool]:
    """`selector.matches` for many pods at hand: those of a workload share few label sets, each is asked about once."""
    known: dict[int, tuple[bool, object]] = {}  # the labels are held, so that their id stays theirs

    def matches(labels: dict[str, str] | None) -> bool:
        found = known.get(id(labels))
        if found is None:
            found = known[id(labels)] = (selector.matches(labels), labels)
        return found[0]

    return matches


async def _patch(controller: Controller, kind: Kind, meta: Meta, patch: JSON) -> None:
    try:
        path = kind.path(meta.namespace, meta.name)
        await controller.client.request("PATCH", path, body=patch, content_type=STRATEGIC_MERGE_PATCH)
    except NotFound:
        pass  # gone meanwhile


async def delete_pod(controller: Controller, pod: Pod) -> None:
    """Delete this very pod, not one of the same name that came after it."""
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": pod.metadata.uid}}
    await controller.client.request("DELETE", POD.path(pod.metadata.namespace, pod.metadata.name), body=body)


async def slow_start(items: Sequence[O], work: Callable[[O], Awaitable[None]]) -> None:
    """Work on one item, then two, four, ... at once; no further batch after a failure (`slowStartBatch`)."""
    start, size = 0, 1
    while start < len(items):
        await together(map(work, items[start : start + size]))
        start, size = start + size, size * 2


async def together(work: Iterable[Awaitable[None]]) -> None:
    """Wait for all; then raise the first error, if there was one."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def selector_of(obj: JSON, field: str = "selector") -> Selector:
    """`spec.selector`, compiled; one that cannot be read selects nothing."""
    try:
        return compile_selector(msgspec.convert(obj["spec"].get(field), LabelSelector | None))
    except (SelectorError, msgspec.ValidationError):
        return NOTHING
