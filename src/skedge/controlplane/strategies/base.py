"""The course every kind takes, with hooks for what is particular (`pkg/registry/*/*/strategy.go`)."""

from __future__ import annotations

from typing import Any

from skedge.controlplane import names
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import FieldError

JSON = dict[str, Any]


class Strategy:
    """A kind without peculiarities. Subclasses set the switches and override the hooks they need."""

    generation = False  # counts changes of everything but metadata and status
    own_status = False  # status is written through the status subresource only
    create_status = False  # status given at creation is kept even so
    graceful = False  # deletion first asks, see `grace`
    returns_deleted = False  # deletion answers with the object
    tracks_fields = True  # managedFields are kept
    update_creates = False  # PUT of an absent object creates it

    def name_problems(self, name: str) -> list[str]:
        """Problems of an object's name."""
        return names.subdomain_problems(name)

    def default(self, obj: JSON) -> None:
        """Fill in defaults; also called on what an update brings."""

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        """Set what the server decides on creation."""

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        """Set what the server decides on a change of the object itself."""

    def validate(self, obj: JSON) -> list[FieldError]:
        """Findings about the object's content, metadata aside."""
        return []

    def validate_as(self, group: str, obj: JSON) -> list[FieldError]:
        """Findings that depend on the API group the request came through."""
        return []

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        """Findings about a change; includes those about the new content where upstream repeats them."""
        return self.validate(new)

    def validate_status(self, new: JSON, old: JSON) -> list[FieldError]:
        """Findings about a status update."""
        return []

    def grace(self, obj: JSON, asked: int | None) -> int:
        """Seconds between a graceful deletion and the end."""
        return 0


class Generational(Strategy):
    """Kinds with a generation and a status of their own: most workloads."""

    generation = True
    own_status = True


class PathNamed(Strategy):
    """Kinds whose names only have to be path segments: RBAC."""

    def name_problems(self, name: str) -> list[str]:
        return names.path_segment_problems(name)


def spec_of(obj: JSON) -> JSON:
    """Everything a generation counts."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "kind", "apiVersion")}


def setdefaults(obj: JSON, **values: Any) -> None:
    """Set the fields that are absent."""
    for key, value in values.items():
        obj.setdefault(key, value)
