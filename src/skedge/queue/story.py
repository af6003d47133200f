"""What happened to pods in the queue lately, for dumps, explanations and error messages."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Step(NamedTuple):
    time: float  # seconds since 1970
    key: str  # namespace/name of the pod
    what: str  # where it went ("active", "pop", ...) or what was done to it ("update")
    why: str  # label of the event behind it, or ""

    def __str__(self) -> str:
        return f"{self.time:.3f} {self.key} {self.what}{f' ({self.why})' if self.why else ''}"


class Story:
    """The last `limit` steps of all pods together."""

    def __init__(self, limit: int = 20_000) -> None:
        self._steps: deque[tuple[float, str, str, str]] = deque(maxlen=limit)
        self.tell = self._steps.append
        """Takes (time, key, what, why)."""

    def of(self, key: str) -> list[Step]:
        """The remembered steps of one pod, oldest first."""
        return [Step(*step) for step in self._steps if step[1] == key]

    def last(self, count: int) -> list[Step]:
        """The last steps of all pods, oldest first."""
        return [Step(*step) for step in list(self._steps)[-count:]]

    def __len__(self) -> int:
        return len(self._steps)
