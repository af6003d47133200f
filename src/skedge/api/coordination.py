"""coordination.k8s.io/v1: the lease that a leader holds. Times are RFC 3339 strings with microseconds."""

from __future__ import annotations

from msgspec import field

from skedge.api.meta import Object, ObjectMeta


class LeaseSpec(Object):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object):
    """Written back through `api.whole`, but for the first time, when it is made from this struct."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LeaseSpec = field(default_factory=LeaseSpec)
