"""A volume that somebody may get, and what a claim asks of one. Upstream: `FindMatchingVolume`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from skedge.api.labels import IN, Selector, SelectorError, compile_selector
from skedge.api.quantity import Quantity, of_units, parse
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.framework.status import PluginError
from skedge.plugins.helpers.node_match import terms_hold
from skedge.plugins.helpers.volumes import capacity, class_of, requested, volume_terms

_FILESYSTEM: Final = "Filesystem"
_ZERO: Final = parse("0")


class Kind(NamedTuple):
    """What volumes differ in besides size and place."""

    mode: str
    attributes_class: str
    access_modes: frozenset[str]


class Offer:
    """A volume with a number of its own and its node affinity compiled (`terms`; None: it can be used on any node)."""

    __slots__ = ("capacity", "kind", "number", "size", "terms", "volume")

    def __init__(self, volume: PersistentVolume, number: int) -> None:
        spec = volume.spec
        self.volume = volume
        self.number = number
        self.capacity: Quantity = capacity(volume) or _ZERO
        self.size = self.capacity.value()
        self.kind = Kind(
            spec.volume_mode or _FILESYSTEM,
            spec.volume_attributes_class_name or "",
            frozenset(spec.access_modes or ()),
        )
        required = spec.node_affinity.required if spec.node_affinity is not None else None
        self.terms = None if required is None else volume_terms(required)

    def __lt__(self, other: Offer) -> bool:
        """Smaller volumes first; of equal ones the one that came first."""
        return (self.size, self.number) < (other.size, other.number)

    @property
    def whole(self) -> bool:
        """Whether `size`, in bytes, is all there is to say of the capacity."""
        return self.capacity == of_units(self.size)

    def label(self) -> tuple[str, Sequence[str]] | None:
        """(key, values) when the value of one label decides which nodes the volume can be used on."""
        if self.terms is None or len(self.terms.terms) != 1:
            return None
        term = self.terms.terms[0]
        if term.errors or len(term.labels.requirements) != 1:
            return None
        only = term.labels.requirements[0]
        return (only.key, only.values) if only.operator == IN else None

    def holds(self, view: Any) -> Any:
        """Whether the volume can be used on each row; 0 or 1."""
        return view.full(1) if self.terms is None else terms_hold(view, self.terms)


class Request:
    """What a claim asks of a volume."""

    def __init__(self, claim: PersistentVolumeClaim) -> None:
        spec = claim.spec
        self.claim = claim
        self.storage_class = class_of(claim)
        self.amount = requested(claim) or _ZERO
        self._mode = spec.volume_mode or _FILESYSTEM
        self._attributes_class = spec.volume_attributes_class_name or ""
        self._access_modes = frozenset(spec.access_modes or ())
        try:
            self.selector: Selector | None = None if spec.selector is None else compile_selector(spec.selector)
        except SelectorError as error:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            raise PluginError(f"error creating internal label selector for claim: {key}: {error}") from error

    def may_own(self, offer: Offer) -> bool:
        """Whether a volume that was promised to a claim of this name was promised to this one, and will do."""
        ref = offer.volume.spec.claim_ref
        return (
            ref is not None
            and ref.uid in ("", self.claim.metadata.uid)
            and class_of(offer.volume) == self.storage_class
            and offer.volume.metadata.deletion_timestamp is None
            and (offer.kind.mode, offer.kind.attributes_class) == (self._mode, self._attributes_class)
            and not offer.capacity < self.amount
        )

    def wants_kind(self, kind: Kind) -> bool:
        return (kind.mode, kind.attributes_class) == (
            self._mode,
            self._attributes_class,
        ) and self._access_modes <= kind.access_modes

    def selects(self, offer: Offer) -> bool:
        return self.selector is None or self.selector.matches(offer.volume.metadata.labels)

    def wants(self, offer: Offer) -> bool:
        """Whether a free volume of the claim's class will do."""
        return not offer.capacity < self.amount and self.wants_kind(offer.kind) and self.selects(offer)
