"""The core's ports over the Kubernetes client: bindings, status patches, deletions, events.

Bodies are those kube-scheduler sends. Upstream: `defaultbinder`, `util/utils.go`, `framework/api_calls`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

import msgspec

from skedge.api.decode import KINDS
from skedge.api.scheduling import PodGroup
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.errors import ApiError, Conflict, ConnectionFailed, NotFound
from skedge.client.events import EventBroadcaster, EventRecorder, ObjectRef
from skedge.client.rest import STRATEGIC_MERGE_PATCH, RestClient
from skedge.framework.ports import PodGone
from skedge.snapshot.pods import PlacedPod, PodInfo

AnyPod = PodInfo | PlacedPod
_encode = msgspec.json.Encoder().encode
PATCH_TRIES = 4
FIRST_PAUSE = 0.01
_GROUPS = KINDS["PodGroup"]
_DELETE_OPTIONS = b'{"kind":"DeleteOptions","apiVersion":"v1"}'


class _BindingMeta(msgspec.Struct):
    name: str
    namespace: str
    uid: str


class _Target(msgspec.Struct):
    kind: str
    name: str


class _Binding(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: _BindingMeta
    target: _Target


class RestBinder:
    """POST pods/NAME/binding; never sent twice by us. The UID makes sure that it is that pod."""

    def __init__(self, client: RestClient) -> None:
        self._request = client.request

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        body = _Binding("Binding", "v1", _BindingMeta(pod.name, pod.namespace, pod.uid), _Target("Node", node_name))
        await self._request("POST", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding", body=_encode(body))


class RestPatcher:
    """PATCH pods/NAME/status, tried again after conflicts, internal errors and refused connections."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def patch_status(self, pod: AnyPod, patch: Mapping[str, Any]) -> None:
        await self._patch(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status", patch)

    async def patch_group_status(self, group: PodGroup, patch: Mapping[str, Any]) -> None:
        """`PodGroupPatcher`, in the same way."""
        await self._patch(_GROUPS.path(group.metadata.namespace, group.metadata.name) + "/status", patch)

    async def _patch(self, path: str, patch: Mapping[str, Any]) -> None:
        pause = FIRST_PAUSE
        for left in reversed(range(PATCH_TRIES)):
            try:
                await self._client.request("PATCH", path, body=_encode(dict(patch)), content_type=STRATEGIC_MERGE_PATCH)
                return
            except NotFound as error:
                raise PodGone(str(error)) from error
            except (ApiError, ConnectionFailed) as error:
                if not left or not _worth_another_try(error):
                    raise
            await asyncio.sleep(pause * (1 + 0.1 * self._client.rng.random()))
            pause *= 5


def _worth_another_try(error: ApiError | ConnectionFailed) -> bool:
    return isinstance(error, ConnectionFailed | Conflict) or error.code in (500, 503)


class RestEvictor:
    """DELETE pods/NAME, with the pod's own grace period."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def delete(self, pod: PlacedPod) -> bool:
        try:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            await self._client.request("DELETE", path, body=_DELETE_OPTIONS)
        except NotFound:
            return False
        return True


class RestEvents:
    """Events about pods, one recorder a profile; lost until `use` says by which API they are sent."""

    def __init__(self, hostname: str | None = None) -> None:
        self._broadcaster: EventBroadcaster | CoreEventBroadcaster | None = None
        self._hostname = hostname or socket.gethostname()
        self._recorders: dict[str, EventRecorder] = {}

    def use(self, broadcaster: EventBroadcaster | CoreEventBroadcaster) -> None:
        """Send events through this one."""
        self._broadcaster = broadcaster

    async def flush(self) -> None:
        """Wait until every event so far is sent or given up."""
        if self._broadcaster is not None:
            await self._broadcaster.flush()

    def event(
        self,
        regarding: AnyPod,
        related: AnyPod | PodGroup | None,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        controller: str,
    ) -> None:
        recorder = self._recorders.get(controller)
        if recorder is None:
            if self._broadcaster is None:
                return
            recorder = self._recorders[controller] = self._broadcaster.recorder(controller, self._hostname)
        other = None if related is None else _reference(related)
        recorder.event(_reference(regarding), other, type_, reason, action, note)


def _reference(pod: AnyPod | PodGroup) -> ObjectRef:
    if isinstance(pod, PodGroup):
        meta = pod.metadata
        return ObjectRef("PodGroup", meta.namespace, meta.name, meta.uid, _GROUPS.api_version, meta.resource_version)
    return ObjectRef("Pod", pod.namespace, pod.name, pod.uid, "v1", pod.resource_version)
