"""A Lease as a lock. The Lease is changed on the JSON last seen, so that fields we don't know survive.

Upstream: `client-go/tools/leaderelection/resourcelock/leaselock.go`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from skedge.client.errors import DecodeError
from skedge.client.rest import RestClient


@dataclass(frozen=True, slots=True)
class Record:
    """The part of a Lease's spec that an election is about; times are RFC 3339 with microseconds, "" when absent."""

    holder: str = ""
    duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0
    preferred_holder: str = ""
    """Coordinated election only: read, and left as it is."""

    @staticmethod
    def read(lease: dict[str, Any]) -> Record:
        spec = lease.get("spec") or {}
        return Record(
            spec.get("holderIdentity") or "",
            int(spec.get("leaseDurationSeconds") or 0),
            spec.get("acquireTime") or "",
            spec.get("renewTime") or "",
            int(spec.get("leaseTransitions") or 0),
            spec.get("preferredHolder") or "",
        )

    def spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_seconds,
            "acquireTime": self.acquire_time,
            "renewTime": self.renew_time,
            "leaseTransitions": self.transitions,
        }


class LeaseLock:
    """Reads and writes one Lease. `lease` is its JSON as last seen; updates carry its resourceVersion."""

    def __init__(self, client: RestClient, namespace: str, name: str, identity: str) -> None:
        self.namespace, self.name, self.identity = namespace, name, identity
        self.lease: dict[str, Any] | None = None
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._path = f"{self._collection}/{quote(name, safe='')}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    async def get(self) -> Record:
        return self._remember(await self._client.get(self._path))

    async def create(self, record: Record) -> None:
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": record.spec(),
        }
        self._remember(await self._client.create(self._collection, lease))

    async def update(self, record: Record) -> None:
        """Write `record` into the Lease as last seen. Raises Conflict when it has changed since."""
        if self.lease is None:
            raise RuntimeError("the lease was neither read nor created yet")
        lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"} | self.lease
        lease["spec"] = (lease.get("spec") or {}) | record.spec()
        self._remember(await self._client.update(self._path, lease))

    def reference(self) -> dict[str, str]:
        """The Lease as an event's involved object."""
        metadata = (self.lease or {}).get("metadata") or {}
        return {
            "kind": "Lease",
            "namespace": self.namespace,
            "name": self.name,
            "uid": metadata.get("uid", ""),
            "api_version": "coordination.k8s.io/v1",
            "resource_version": metadata.get("resourceVersion", ""),
        }

    def _remember(self, lease: Any) -> Record:
        if not isinstance(lease, dict) or not isinstance(lease.get("spec") or {}, dict):
            raise DecodeError(f"lease {self}: the server's answer is no Lease")
        try:
            record = Record.read(lease)
        except (TypeError, ValueError) as error:
            raise DecodeError(f"lease {self}: spec: {error}") from None
        self.lease = lease
        return record
