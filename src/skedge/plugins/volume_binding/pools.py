"""Volumes that unbound claims may get, kept in order, and the best one of them for every node at once.

Upstream: `component-helpers/storage/volume/pv_helpers.go` (FindMatchingVolume).
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skedge.api.labels import IN, Selector, SelectorError, compile_selector
from skedge.api.quantity import Quantity, parse
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.framework.status import PluginError
from skedge.plugins.helpers.node_match import terms_hold
from skedge.plugins.helpers.volumes import capacity, class_of, requested, volume_terms
from skedge.snapshot.arith import Ints
from skedge.snapshot.lookup import ByValue
from skedge.stores.assume import AssumeCache

NONE: Final = -1
"""Instead of an offer's number: no volume."""

_AVAILABLE: Final = "Available"
_FILESYSTEM: Final = "Filesystem"
_NEVER: Final = np.iinfo(np.int64).max
_ZERO: Final = parse("0")
_FEW: Final = 8


class Offer:
    """A volume that somebody may get, `number`ed, with its node affinity compiled (None: any node)."""

    __slots__ = ("capacity", "number", "terms", "volume")

    def __init__(self, volume: PersistentVolume, number: int) -> None:
        self.volume = volume
        self.number = number
        self.capacity: Quantity = capacity(volume) or _ZERO
        affinity = volume.spec.node_affinity
        required = affinity.required if affinity is not None else None
        self.terms = None if required is None else volume_terms(required)

    def __lt__(self, other: Offer) -> bool:
        """Smaller volumes first; of equal ones the one that came first."""
        return (self.capacity, self.number) < (other.capacity, other.number)

    def label(self) -> tuple[str, Sequence[str]] | None:
        """(key, values) when one label decides which nodes the volume can be used on."""
        if self.terms is None or len(self.terms.terms) != 1:
            return None
        term = self.terms.terms[0]
        if term.errors or term.fields or len(term.labels.requirements) != 1:
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
        self._modes = frozenset(spec.access_modes or ())
        try:
            self._selector: Selector | None = None if spec.selector is None else compile_selector(spec.selector)
        except SelectorError as error:
            raise PluginError(f"error creating internal label selector for claim: {_key(claim)}: {error}") from error

    def admits(self, offer: Offer) -> bool:
        """Whether the volume is large enough, of the right kind, and there to stay."""
        volume, spec = offer.volume.spec, self.claim.spec
        return (
            offer.volume.metadata.deletion_timestamp is None
            and (volume.volume_mode or _FILESYSTEM) == (spec.volume_mode or _FILESYSTEM)
            and (volume.volume_attributes_class_name or "") == (spec.volume_attributes_class_name or "")
            and not offer.capacity < self.amount
        )

    def wants(self, offer: Offer) -> bool:
        """Whether a volume that is free will do."""
        return (
            self.admits(offer)
            and self._modes.issubset(offer.volume.spec.access_modes or ())
            and (self._selector is None or self._selector.matches(offer.volume.metadata.labels))
        )

    def owns(self, offer: Offer) -> bool:
        """Whether the volume was promised to this very claim."""
        ref = offer.volume.spec.claim_ref
        return ref is not None and ref.uid in ("", self.claim.metadata.uid)


class _Pool:
    """Free volumes of one class, by what decides about nodes; each list in order."""

    __slots__ = ("anywhere", "by_label", "elsewhere")

    def __init__(self) -> None:
        self.anywhere: list[Offer] = []
        self.by_label: dict[str, dict[str, list[Offer]]] = {}
        self.elsewhere: list[Offer] = []

    def lists_of(self, offer: Offer) -> Iterator[list[Offer]]:
        if offer.terms is None:
            yield self.anywhere
            return
        label = offer.label()
        if label is None:
            yield self.elsewhere
            return
        by_value = self.by_label.setdefault(label[0], {})
        for value in label[1]:
            yield by_value.setdefault(value, [])

    def remove(self, offer: Offer) -> None:
        for offers in self.lists_of(offer):
            offers.remove(offer)
        label = offer.label()
        if label is not None:
            by_value = self.by_label[label[0]]
            for value in label[1]:
                if not by_value[value]:
                    del by_value[value]
            if not by_value:
                del self.by_label[label[0]]


class Pools:
    """All volumes that are free or promised to a claim; follows the assume cache."""

    def __init__(self, volumes: AssumeCache[PersistentVolume]) -> None:
        self.offers: dict[int, Offer] = {}
        self._numbers: dict[str, int] = {}  # volume -> number of its offer
        self._pools: dict[str, _Pool] = {}  # class -> free volumes
        self._promised: dict[tuple[str, str], list[Offer]] = {}  # (namespace, claim) -> volumes
        self._next = itertools.count()
        for volume in volumes:
            self._volume_changed(None, volume)
        volumes.observers.append(self._volume_changed)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        number = NONE
        if old is not None:
            number = self._numbers.pop(old.metadata.name, NONE)
            if number != NONE:
                self._take_away(self.offers.pop(number))
        if new is None:
            return
        free = new.spec.claim_ref is None
        if free and (new.status.phase != _AVAILABLE or new.metadata.deletion_timestamp is not None):
            return
        offer = Offer(new, next(self._next) if number == NONE else number)
        self._numbers[new.metadata.name] = offer.number
        self.offers[offer.number] = offer
        if free:
            for offers in self._pools.setdefault(class_of(new), _Pool()).lists_of(offer):
                insort(offers, offer)
        else:
            insort(self._promised.setdefault(_promised_to(new), []), offer)

    def _take_away(self, offer: Offer) -> None:
        volume = offer.volume
        if volume.spec.claim_ref is None:
            self._pools[class_of(volume)].remove(offer)
            return
        key = _promised_to(volume)
        self._promised[key].remove(offer)
        if not self._promised[key]:
            del self._promised[key]

    # --- matching -----------------------------------------------------------------------------------------------------

    def find(self, request: Request, view: Any, taken: Sequence[Ints]) -> Ints:
        """Number of the offer the claim gets on each row, or NONE; `taken`: what earlier claims of the pod got there.

        A volume that was promised to the claim is the answer, or the reason why there is none; else the smallest.
        """
        found = np.full(view.size, NONE, np.int64)
        undecided = np.ones(view.size, bool)
        meta = request.claim.metadata
        for offer in self._promised.get((meta.namespace, meta.name), ()):
            if (
                class_of(offer.volume) == request.storage_class and request.owns(offer) and request.admits(offer)
            ):  # volumes of other classes are not even looked at
                here = undecided & ~_is_taken(offer.number, taken)
                found[here & (offer.holds(view) != 0)] = offer.number
                undecided &= ~here
        pool = self._pools.get(request.storage_class)
        if pool is not None and undecided.any():
            best = _Best(request, view, taken)
            best.look_at(pool)
            found = np.where(undecided, best.numbers(), found)
        return found


class _Best:
    """The smallest fitting volume of each row, found group by group. Volumes are compared by rank."""

    def __init__(self, request: Request, view: Any, taken: Sequence[Ints]) -> None:
        self._request = request
        self._view = view
        self._taken = taken
        self._candidates: list[Offer] = []
        self._rank = np.full(view.size, _NEVER, np.int64)

    def look_at(self, pool: _Pool) -> None:
        wants, enough = self._request.wants, len(self._taken) + 1  # so many are left over at least on every row
        anywhere = [*itertools.islice(filter(wants, pool.anywhere), enough)]
        by_label: dict[str, dict[str, list[Offer]]] = {}
        for key, by_value in pool.by_label.items():
            chosen = by_label[key] = {}
            for value in self._values(key, by_value):
                offers = [*itertools.islice(filter(wants, by_value[value]), enough)]
                if offers:
                    chosen[value] = offers
        elsewhere = [*filter(wants, pool.elsewhere)]
        grouped = (offer for lists in by_label.values() for offers in lists.values() for offer in offers)
        self._candidates = sorted({offer.number: offer for offer in (*anywhere, *grouped, *elsewhere)}.values())
        ranks = {offer.number: rank for rank, offer in enumerate(self._candidates)}
        self._numbers: Ints = np.array([offer.number for offer in self._candidates] or [NONE], np.int64)
        for offer in anywhere:
            self._improve(np.full(self._view.size, ranks[offer.number], np.int64))
        for key, chosen in by_label.items():
            for place in range(enough):
                at_place = {
                    value: ranks[offers[place].number] for value, offers in chosen.items() if place < len(offers)
                }
                if at_place:
                    self._improve(self._view.by_label(key, ByValue(at_place, _NEVER)))
        for offer in elsewhere:
            rank = ranks[offer.number]
            if (self._rank > rank).any():
                self._improve(np.where(offer.holds(self._view) != 0, rank, _NEVER))

    def _values(self, key: str, by_value: dict[str, list[Offer]]) -> Sequence[str]:
        """Label values to look at: those of the rows when there are only a few."""
        if self._view.size > _FEW:
            return [*by_value]
        nodes = (self._view.table.nodes[int(row)] for row in self._view.rows)
        present = {(node.metadata.labels or {}).get(key) for node in nodes if node is not None}
        return [value for value in present if value in by_value]

    def _improve(self, ranks: Ints) -> None:
        """Takes over ranks that are better, where the volume was not given to another claim."""
        if self._taken:
            known = ranks != _NEVER
            numbers = np.where(known, self._numbers[np.where(known, ranks, 0)], NONE - 1)
            for others in self._taken:
                ranks = np.where(others == numbers, _NEVER, ranks)
        self._rank = np.minimum(self._rank, ranks)

    def numbers(self) -> Ints:
        some = self._rank != _NEVER
        return np.where(some, self._numbers[np.where(some, self._rank, 0)], NONE)


def _is_taken(number: int, taken: Sequence[Ints]) -> Any:
    result: Any = np.False_
    for numbers in taken:
        result = result | (numbers == number)
    return result


def _promised_to(volume: PersistentVolume) -> tuple[str, str]:
    ref = volume.spec.claim_ref
    assert ref is not None
    return ref.namespace, ref.name


def _key(claim: PersistentVolumeClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


class Match(NamedTuple):
    """A claim and, by row, the number of the offer it gets there."""

    claim: PersistentVolumeClaim
    numbers: Ints
