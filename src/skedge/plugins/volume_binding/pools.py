"""Volumes that unbound claims may get, kept in order, and the best one of them for every node at once.

Upstream: `component-helpers/storage/volume/pv_helpers.go` (FindMatchingVolume).

Most volumes that are bound to a place are bound by one label (a host name, a zone): these are kept as columns, so that
a claim costs a few array operations however many they are.
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from skedge.plugins.helpers.volumes import class_of
from skedge.plugins.volume_binding.offers import Kind, Offer, Request
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.interning import Interner
from skedge.snapshot.lookup import ByValue
from skedge.stores.assume import AssumeCache

NONE: Final = -1
"""Instead of an offer's number: no volume."""

_AVAILABLE: Final = "Available"
_ENDLESS: Final = np.iinfo(np.int64).max


class Match(NamedTuple):
    """A claim and, by row, the number of the offer it gets there, or NONE."""

    claim: PersistentVolumeClaim
    numbers: Ints


class _Choice:
    """The smallest volume found so far for each row of a view."""

    def __init__(self, size: int, taken: Sequence[Ints]) -> None:
        self.numbers: Ints = np.full(size, NONE, np.int64)
        self.sizes: Ints = np.full(size, _ENDLESS, np.int64)
        self.taken = taken

    def is_taken(self, numbers: Any) -> Any:
        """Whether an earlier claim of the pod got the volume, by row."""
        result: Any = np.False_
        for others in self.taken:
            result = result | ((others == numbers) & (others != NONE))
        return result

    def offer(self, numbers: Any, sizes: Any, rows: Any) -> None:
        """Takes these volumes on the rows where they are smaller than what there is."""
        better = rows & (sizes < self.sizes) & ~self.is_taken(numbers)
        self.numbers = np.where(better, numbers, self.numbers)
        self.sizes = np.where(better, sizes, self.sizes)


class _Labelled:
    """Free volumes of a class that one label key binds to nodes; each has a slot for each value it can be used at."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._offers: list[Offer | None] = []
        self._slots: dict[int, list[int]] = {}  # number -> slots
        self._empty: list[int] = []
        self._at: dict[str, list[Offer]] = {}  # value -> offers, in order
        self._values: Interner[str] = Interner()
        self._kinds: Interner[Kind] = Interner()
        self._value: Ints = np.zeros(64, np.int64)
        self._size: Ints = np.zeros(64, np.int64)
        self._kind: Ints = np.full(64, NONE, np.int64)  # NONE: the slot is empty
        self._number: Ints = np.zeros(64, np.int64)
        self._lookup: ByValue | None = None
        self._looked_up = (-1, -1)

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, offer: Offer, values: Sequence[str]) -> None:
        slots = self._slots[offer.number] = []
        for value in values:
            insort(self._at.setdefault(value, []), offer)
            slot = self._empty.pop() if self._empty else len(self._offers)
            if slot == len(self._offers):
                self._offers.append(None)
                if slot == len(self._value):
                    self._grow()
            self._offers[slot] = offer
            self._value[slot] = self._values.acquire(value)
            self._kind[slot] = self._kinds.acquire(offer.kind)
            self._size[slot], self._number[slot] = offer.size, offer.number
            slots.append(slot)

    def remove(self, offer: Offer, values: Sequence[str]) -> None:
        for slot in self._slots.pop(offer.number):
            self._values.release(int(self._value[slot]))
            self._kinds.release(int(self._kind[slot]))
            self._kind[slot], self._offers[slot] = NONE, None
            self._empty.append(slot)
        for value in values:
            self._at[value].remove(offer)
            if not self._at[value]:
                del self._at[value]

    def _grow(self) -> None:
        empty = np.zeros(len(self._value), np.int64)
        self._value, self._size = np.append(self._value, empty), np.append(self._size, empty)
        self._number, self._kind = np.append(self._number, empty), np.append(self._kind, empty + NONE)

    def choose(self, request: Request, view: Any, choice: _Choice) -> None:
        """Offers each row the smallest volume for its value of the label."""
        slots = self._wanted(request)
        if not len(slots):
            return
        count = len(self._values)
        value, size = self._value[slots], self._size[slots]
        sizes = np.full(count + 1, _ENDLESS, np.int64)
        np.minimum.at(sizes, value, size)
        smallest = size == sizes[value]
        numbers = np.full(count + 1, NONE, np.int64)
        numbers[value[smallest]] = self._number[slots[smallest]]
        at = view.by_label(self.key, self._lookup_of_values())
        chosen = numbers[at]
        choice.offer(chosen, sizes[at], chosen != NONE)
        if choice.taken:
            self._choose_others(request, at, chosen, choice)

    def _wanted(self, request: Request) -> Ints:
        used = len(self._offers)
        kinds = [kind is not None and request.wants_kind(kind) for kind in self._kinds.values]
        wanted: Bools = np.array([*kinds, False])[self._kind[:used]]  # the last entry is that of empty slots
        slots = np.flatnonzero(wanted & (self._size[:used] >= request.amount.value()))
        if request.selector is not None:
            selected = [slot for slot in slots.tolist() if (o := self._offers[slot]) is not None and request.selects(o)]
            slots = np.array(selected, np.int64)
        return slots

    def _lookup_of_values(self) -> ByValue:
        """Node's value of the label -> its id here; for values that no volume has, one past the last id."""
        state = (self._values.generation, len(self._values))
        if self._lookup is None or state != self._looked_up:
            known = {value: i for i, value in enumerate(self._values.values) if value is not None}
            self._lookup, self._looked_up = ByValue(known, len(self._values)), state
        return self._lookup

    def _choose_others(self, request: Request, at: Ints, chosen: Ints, choice: _Choice) -> None:
        """Where an earlier claim got the smallest volume, the next one is looked for."""
        known: dict[tuple[int, ...], Offer | None] = {}
        for row in np.flatnonzero(choice.is_taken(chosen)).tolist():
            gone = tuple(int(others[row]) for others in choice.taken)
            key = (int(at[row]), *gone)
            if key not in known:
                value = self._values.values[key[0]]
                left = (o for o in self._at.get(value or "", ()) if o.number not in gone and request.wants(o))
                known[key] = next(left, None)
            offer = known[key]
            if offer is not None and offer.size < choice.sizes[row]:
                choice.numbers[row], choice.sizes[row] = offer.number, offer.size


class _Pool:
    """Free volumes of one class."""

    def __init__(self) -> None:
        self.ordered: list[Offer] = []  # those without an affinity, and those with one that is not a single label
        self.labelled: dict[str, _Labelled] = {}

    def add(self, offer: Offer) -> None:
        label = offer.label()
        if label is None or not offer.whole:
            insort(self.ordered, offer)
        else:
            self.labelled.setdefault(label[0], _Labelled(label[0])).add(offer, label[1])

    def remove(self, offer: Offer) -> None:
        label = offer.label()
        if label is None or not offer.whole:
            self.ordered.remove(offer)
            return
        labelled = self.labelled[label[0]]
        labelled.remove(offer, label[1])
        if not len(labelled):
            del self.labelled[label[0]]

    def choose(self, request: Request, view: Any, choice: _Choice) -> None:
        for labelled in self.labelled.values():
            labelled.choose(request, view, choice)
        for offer in filter(request.wants, self.ordered):
            if not (choice.sizes > offer.size).any():
                return
            choice.offer(offer.number, offer.size, offer.holds(view) != 0)


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
            self._pools.setdefault(class_of(new), _Pool()).add(offer)
        else:
            insort(self._promised.setdefault(_promised_to(new), []), offer)

    def _take_away(self, offer: Offer) -> None:
        if offer.volume.spec.claim_ref is None:
            self._pools[class_of(offer.volume)].remove(offer)
            return
        key = _promised_to(offer.volume)
        self._promised[key].remove(offer)
        if not self._promised[key]:
            del self._promised[key]

    def find(self, request: Request, view: Any, taken: Sequence[Ints]) -> Ints:
        """Number of the offer the claim gets on each row, or NONE; `taken`: what earlier claims of the pod got there.

        A volume that was promised to the claim is the answer, or the reason why there is none; else the smallest.
        """
        choice = _Choice(view.size, taken)
        meta = request.claim.metadata
        undecided = np.ones(view.size, bool)
        promised: Ints = choice.numbers
        for offer in filter(request.may_own, self._promised.get((meta.namespace, meta.name), ())):
            here = undecided & ~choice.is_taken(offer.number)
            promised = np.where(here & (offer.holds(view) != 0), offer.number, promised)
            undecided &= ~here
        pool = self._pools.get(request.storage_class)
        if pool is not None and undecided.any():
            pool.choose(request, view, choice)
        return np.where(undecided, choice.numbers, promised)


def _promised_to(volume: PersistentVolume) -> tuple[str, str]:
    ref = volume.spec.claim_ref
    assert ref is not None
    return ref.namespace, ref.name
