"""What pods that are there are worth to a pod that has preferences, or that they have preferences about."""

from __future__ import annotations

from skedge.snapshot.blends import Blend
from skedge.snapshot.counters import Counters
from skedge.snapshot.counters_rows import RowCounts

Parts = tuple[tuple[str, RowCounts, int], ...]
"""(topology key, counts, what each counted pod is worth)"""


class Worth:
    """What the pods in each domain are worth to a pod and to those like it, a `Blend` for each key; kept current."""

    __slots__ = ("by_key",)

    def __init__(self, counters: Counters, parts: Parts) -> None:
        of_key: dict[str, list[tuple[RowCounts, int]]] = {}
        for key, counts, factor in parts:
            of_key.setdefault(key, []).append((counts, factor))
        self.by_key = {key: Blend(counters.domains(key), some) for key, some in of_key.items()}
        self.sync()

    @property
    def nbytes(self) -> int:
        return 1000 + sum([blend.nbytes for blend in self.by_key.values()])

    @property
    def anything(self) -> bool:
        """Whether a counted pod is on a node with its key."""
        return any(blend.counted for blend in self.by_key.values())

    def sync(self) -> None:
        for blend in self.by_key.values():
            blend.sync()
