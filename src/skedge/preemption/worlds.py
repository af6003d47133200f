"""Worlds without victims: one a row, many at a time, from which victims are taken back one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from skedge.preemption.ranks import PodRanks
from skedge.snapshot.arith import Bools, Ints
from skedge.snapshot.crowd import Promised
from skedge.snapshot.pods import PlacedPod


class Worlds:
    """Rows and, a line each, their possible victims in the order in which they are taken back.

    `places[k, line]` is the place of the line's k-th victim among the row's pods by importance (`PodRanks`), `gone`
    says which victims are away. Lines are sorted by number of victims, most first: those with more than k victims are
    the first ones.
    """

    def __init__(self, ranks: PodRanks, rows: Ints, priority: int) -> None:
        """All pods with less than this priority are victims."""
        self.ranks = ranks
        lower = (ranks.priority[:, rows] < priority).sum(axis=0)
        order = np.argsort(-lower, kind="stable")
        self.rows: Ints = rows[order]
        self.victims: Ints = lower[order]
        self._set_places()

    def _set_places(self) -> None:
        ranks, rows = self.ranks, self.rows
        width = int(self.victims[0]) if len(rows) else 0
        counts = ranks.count[rows]
        places = (counts - self.victims) + np.arange(width)[:, None]
        self.gone: Bools = places < counts
        self.places: Ints = np.where(self.gone, places, 0)
        self._classes = np.where(self.gone, ranks.requests[self.places, rows], 0) if width else self.places
        self._asked: dict[str, Ints] = {}
        self._freed: dict[str, Ints] = {}
        self.freed_pods: Ints = self.gone.sum(axis=0)

    def keep(self, lines: Bools) -> None:
        """Goes on with some of the lines."""
        self.rows, self.victims = self.rows[lines], self.victims[lines]
        self._set_places()

    def reorder(self, first: Bools) -> Ints:
        """Takes the victims marked here back before the others; returns what `restore` needs."""
        order: Ints = np.argsort(np.where(self.gone, ~first, 2), axis=0, kind="stable")
        self.places = np.take_along_axis(self.places, order, 0)
        self._classes = np.take_along_axis(self._classes, order, 0)
        self._asked = {resource: np.take_along_axis(asked, order, 0) for resource, asked in self._asked.items()}
        return order

    @property
    def lines(self) -> int:
        return len(self.rows)

    def taking_back(self, k: int) -> int:
        """How many lines have a k-th victim."""
        return int(np.searchsorted(-self.victims, -k, side="left"))

    def labels(self) -> Ints:
        """Label classes of the victims, 0 where there is none."""
        return np.where(self.gone, self.ranks.labels[self.places, self.rows], 0)

    def pod_at(self, line: int, place: int) -> PlacedPod:
        return self.ranks.pods[int(self.rows[line])][int(self.places[place, line])]

    def asked(self, resource: str) -> Ints:
        """What each victim asks of a resource; 0 where there is none."""
        found = self._asked.get(resource)
        if found is None:
            found = self._asked[resource] = self.ranks.amounts(resource)[self._classes]
        return found

    def freed(self, resource: str) -> Ints:
        """What those that are gone ask of a resource, by line."""
        found = self._freed.get(resource)
        if found is None:
            found = self._freed[resource] = np.where(self.gone, self.asked(resource), 0).sum(axis=0)
        return found

    def take_back(self, k: int, fits: Bools) -> None:
        """The k-th victims of the first lines stay on their nodes where they fit."""
        lines = len(fits)
        for resource, freed in self._freed.items():
            freed[:lines] -= np.where(fits, self.asked(resource)[k, :lines], 0)
        self.freed_pods[:lines] -= fits
        self.gone[k, :lines] &= ~fits

    def pods_gone(self, line: int, but: int = -1) -> list[PlacedPod]:
        """The victims of a line; `but` the one at this place of the order."""
        pods = self.ranks.pods[int(self.rows[line])]
        places = self.places[:, line]
        return [pods[places[k]] for k in np.flatnonzero(self.gone[:, line]).tolist() if k != but]


class Removed(Mapping[int, Sequence[PlacedPod]]):
    """Row -> pods that are gone in the worlds of some lines; looked up only by rules that look at pods."""

    def __init__(self, worlds: Worlds, lines: Ints, but: int = -1) -> None:
        self._worlds = worlds
        self._lines = lines
        self._but = but
        self._line_of: dict[int, int] | None = None

    def __getitem__(self, row: int) -> list[PlacedPod]:
        if self._line_of is None:
            self._line_of = dict(zip(self, self._lines.tolist(), strict=True))
        return self._worlds.pods_gone(self._line_of[row], self._but)

    def __iter__(self) -> Iterator[int]:
        return iter(self._worlds.rows[self._lines].tolist())

    def __len__(self) -> int:
        return len(self._lines)


class Freed:
    """Amounts of a DeltaView over some lines: what is gone, less the k-th victim, plus pods that were promised room."""

    def __init__(self, worlds: Worlds, lines: Any, but: int = -1, promised: Promised | None = None) -> None:
        """`lines`: a slice or an index."""
        self._worlds = worlds
        self._lines = lines
        self._but = but
        self._promised = promised

    @property
    def count(self) -> Ints:
        change: Ints = (0 if self._but < 0 else 1) - self._worlds.freed_pods[self._lines]
        return change if self._promised is None else change + self._promised.count[self._lines]

    def requested(self, resource: str) -> Ints:
        change: Ints = -self._worlds.freed(resource)[self._lines]
        if self._but >= 0:
            change = change + self._worlds.asked(resource)[self._but, self._lines]
        return change if self._promised is None else change + self._promised.requested(resource)[self._lines]
