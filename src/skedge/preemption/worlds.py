"""Worlds without victims: one a row, many at a time, from which victims are taken back one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from skedge.preemption.ranks import PodRanks
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.crowd import Promised
from skedge.snapshot.pods import PlacedPod


class Back(NamedTuple):
    """Victims that are taken back, a run of them on each of some lines; all ask for the same."""

    lines: Ints
    first: Ints
    """Place of the run's first one in the line's order."""
    number: Ints


class Worlds:
    """Rows and, a line each, their possible victims in the order in which they are taken back.

    `places[k, line]` is the place of the line's k-th victim among the row's pods by importance (`PodRanks`), `gone`
    says which victims are away, `victims` how many there were.
    """

    def __init__(self, ranks: PodRanks, rows: Ints, victims: Ints) -> None:
        """The last so many pods of each row are victims."""
        self.ranks = ranks
        self.rows = rows
        self.victims = victims
        self.alive: Bools = np.ones(len(rows), bool)
        """Lines with which somebody goes on."""
        places = np.arange(victims.max(initial=0))[:, None]
        self.gone: Bools = places < victims
        self.places: Ints = np.where(self.gone, places + (ranks.count[rows] - victims), 0)
        self._classes = np.where(self.gone, ranks.classes_at(self.places, rows), 0)
        self._asked: dict[str, Ints] = {}
        self._freed: dict[str, Ints] = {}
        self.freed_pods: Ints = victims.copy()

    def reorder(self, first: Bools) -> Ints:
        """Takes the victims marked here back before the others; returns the order, by old places."""
        order: Ints = np.argsort(np.where(self.gone, ~first, 2), axis=0, kind="stable")
        self.places = np.take_along_axis(self.places, order, 0)
        self._classes = np.take_along_axis(self._classes, order, 0)
        self._asked = {resource: np.take_along_axis(asked, order, 0) for resource, asked in self._asked.items()}
        return order

    @property
    def lines(self) -> int:
        return len(self.rows)

    def runs(self) -> Ints:
        """How many victims from each on, in the order in which they are taken back, ask for the same; at least 1."""
        width, classes = len(self._classes), self._classes
        ends = np.full((width + 1, self.lines), width, np.int32)
        np.copyto(ends[1:-1], np.arange(1, width, dtype=np.int32)[:, None], where=classes[1:] != classes[:-1])
        ends = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
        found: Ints = np.minimum(ends[1:], self.victims) - np.arange(width)[:, None]
        return np.maximum(found, 1)

    def labels(self) -> Ints:
        """Label classes of the victims, 0 where there is none."""
        return np.where(self.gone, self.ranks.labels[self.places, self.rows], 0)

    def pod_at(self, line: int, place: int) -> PlacedPod:
        return self.ranks.pods[int(self.rows[line])][int(self.places[place, line])]

    def asked(self, resource: str) -> Ints:
        """What each victim asks of a resource; 0 where there is none."""
        found = self._asked.get(resource)
        if found is None:
            found = self._asked[resource] = self.ranks.amounts(resource).take(self._classes)
        return found

    def freed(self, resource: str) -> Ints:
        """What those that are gone ask of a resource, by line."""
        found = self._freed.get(resource)
        if found is None:
            found = self._freed[resource] = np.where(self.gone, self.asked(resource), 0).sum(axis=0)
        return found

    def take_back(self, back: Back) -> None:
        """These victims stay on their nodes."""
        lines, first, number = back
        for resource, freed in self._freed.items():
            freed[lines] -= self.asked(resource)[first, lines] * number
        self.freed_pods[lines] -= number
        if number.max(initial=0) <= 1:
            self.gone[first, lines] &= number == 0
        else:
            places = np.arange(len(self.gone))[:, None]
            others = (places < first) | (places >= first + number)
            if len(lines) == self.lines:
                self.gone &= others
            else:
                self.gone[:, lines] &= others

    def pods_gone(self, line: int, but: range) -> list[PlacedPod]:
        """The victims of a line, but those at these places of the order."""
        pods = self.ranks.pods[int(self.rows[line])]
        places = self.places[:, line]
        return [pods[places[k]] for k in np.flatnonzero(self.gone[:, line]).tolist() if k not in but]


class Removed(Mapping[int, Sequence[PlacedPod]]):
    """Row -> pods that are gone in the worlds of some lines; looked up only by rules that look at pods."""

    def __init__(self, worlds: Worlds, back: Back) -> None:
        self._worlds = worlds
        self._lines = back.lines
        self._back = back
        self._at: dict[int, int] | None = None

    def __getitem__(self, row: int) -> list[PlacedPod]:
        if self._at is None:
            self._at = {each: i for i, each in enumerate(self)}
        i = self._at[row]
        first = self._back.first.item(i)
        return self._worlds.pods_gone(self._lines.item(i), range(first, first + self._back.number.item(i)))

    def __iter__(self) -> Iterator[int]:
        return iter(self._worlds.rows[self._lines].tolist())

    def __len__(self) -> int:
        return len(self._lines)


class Freed:
    """Amounts of a DeltaView over some lines: what is gone, less some victims, plus pods that were promised room."""

    def __init__(self, worlds: Worlds, back: Back, promised: Promised | None = None) -> None:
        self._worlds = worlds
        self._back = back
        self._promised = promised

    @property
    def count(self) -> Ints:
        lines, _, number = self._back
        change: Ints = number - self._worlds.freed_pods[lines]
        return change if self._promised is None else change + self._promised.count[lines]

    def requested(self, resource: str) -> Ints:
        lines, first, number = self._back
        change: Ints = self._worlds.asked(resource)[first, lines] * number - self._worlds.freed(resource)[lines]
        return change if self._promised is None else change + self._promised.requested(resource)[lines]
