"""Whose client certificates the cluster believes: the ConfigMap `extension-apiserver-authentication`.

Upstream: `apiserver/pkg/server/options/authentication_dynamic_request_header.go`, `.../dynamiccertificates`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from skedge.client.errors import ClientError, one_line
from skedge.client.informer import Informer, Tombstone
from skedge.client.rest import RestClient
from skedge.client.watch import Resource
from skedge.serving.authentication import ClientTrust, RequestHeaderConfig
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_COLLECTION: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


class TrustError(Exception):
    """The ConfigMap could not be read, and the command line says that this must not be."""


def read_trust(data: Mapping[str, Any]) -> ClientTrust:
    """The trust that the data of the ConfigMap describe; lists that are no JSON arrays of strings count as empty."""

    def texts(key: str) -> tuple[str, ...]:
        try:
            return tuple(msgspec.json.decode(data.get(key) or "[]", type=list[str]))
        except msgspec.MsgspecError as error:
            log.error(error, "Ignoring a list in the authentication ConfigMap", key=key)
            return ()

    header = None
    if data.get("requestheader-client-ca-file"):
        header = RequestHeaderConfig(
            data["requestheader-client-ca-file"],
            texts("requestheader-allowed-names"),
            texts("requestheader-username-headers"),
            texts("requestheader-uid-headers"),
            texts("requestheader-group-headers"),
            texts("requestheader-extra-headers-prefix"),
        )
    return ClientTrust(data.get("client-ca-file") or "", header)


class ClusterTrust:
    """Reads the ConfigMap once, then follows it; `apply` takes over what it says.

    `own_client_ca`, `own_header`: what the command line gives comes first.
    """

    def __init__(
        self,
        client: RestClient,
        apply: Callable[[ClientTrust], Awaitable[None]],
        *,
        own_client_ca: bool = False,
        own_header: RequestHeaderConfig | None = None,
    ) -> None:
        self._client = client
        self._apply = apply
        self._own_client_ca = own_client_ca
        self._own_header = own_header
        self._data: Mapping[str, Any] = {}
        self._changed = asyncio.Event()

    async def look_up(self, *, tolerate: bool) -> None:
        """The first look. Raises TrustError unless failures are tolerated."""
        try:
            found = await self._client.get(f"{_COLLECTION}/{NAME}")
        except ClientError as error:
            if not tolerate:
                message = f"unable to load configmap based request-header-client-ca-file: {one_line(error)}"
                raise TrustError(message) from None
            log.warning(
                "Error looking up in-cluster authentication configuration; continuing without it. "
                "This may treat all requests as anonymous",
                err=one_line(error),
            )
        else:
            self._data = found.get("data") or {}
        await self.take_over()

    async def take_over(self) -> None:
        """Have what is known applied."""
        found = read_trust(self._data)
        client_ca = "" if self._own_client_ca else found.client_ca
        await self._apply(ClientTrust(client_ca, self._own_header or found.request_header))

    async def follow(self) -> None:
        """Watch the ConfigMap until cancelled."""
        resource: Resource[dict[str, Any]] = Resource.of(_COLLECTION, dict, field_selector=f"metadata.name={NAME}")
        informer = Informer(self._client, resource)
        informer.add_handler(
            on_add=lambda obj, _: self._seen(obj), on_update=lambda _, new: self._seen(new), on_delete=self._gone
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run(), name="authentication ConfigMap")
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self.take_over()

    def _seen(self, obj: dict[str, Any]) -> None:
        data = obj.get("data") or {}
        if data != self._data:
            self._data = data
            self._changed.set()

    def _gone(self, _: dict[str, Any] | Tombstone[dict[str, Any]]) -> None:
        """What was believed stays believed: a ConfigMap that vanishes must not lock everybody out."""
