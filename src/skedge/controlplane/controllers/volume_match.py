"""Which volume suits a claim. Upstream: `component-helpers/storage/volume/pv_helpers.go` (`FindMatchingVolume`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skedge.api.quantity import Quantity, QuantityError, quantity
from skedge.controlplane.controllers.owning import selector_of

JSON = dict[str, Any]

_NOTHING = quantity("0")


def fits(claim: JSON, volume: JSON) -> bool:
    """Whether a volume is large enough and of the class, mode and access modes that a claim asks for."""
    wanted, spec = claim["spec"], volume["spec"]
    return (
        (wanted.get("storageClassName") or "") == (spec.get("storageClassName") or "")
        and wanted.get("volumeMode", "Filesystem") == spec.get("volumeMode", "Filesystem")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and (wanted.get("volumeAttributesClassName") or "") == (spec.get("volumeAttributesClassName") or "")
        and _size(spec.get("capacity")) >= _size((wanted.get("resources") or {}).get("requests"))
    )


def best_match(claim: JSON, volumes: Iterable[JSON]) -> JSON | None:
    """The smallest volume that fits the claim and its selector; among equals the first by name."""
    selector = selector_of(claim) if claim["spec"].get("selector") is not None else None
    found = [
        volume
        for volume in volumes
        if fits(claim, volume) and (selector is None or selector.matches(volume["metadata"].get("labels")))
    ]
    found.sort(key=lambda volume: str(volume["metadata"]["name"]))
    return min(found, key=lambda volume: _Ordered(_size(volume["spec"].get("capacity"))), default=None)


class _Ordered:
    """A sort key for quantities."""

    __slots__ = ("amount",)

    def __init__(self, amount: Quantity) -> None:
        self.amount = amount

    def __lt__(self, other: _Ordered) -> bool:
        return self.amount < other.amount


def _size(resources: JSON | None) -> Quantity:
    try:
        return quantity((resources or {}).get("storage", "0"))
    except QuantityError:
        return _NOTHING
