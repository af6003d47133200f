"""CycleState: what plugins remember about a pod during one scheduling cycle. Upstream: `framework/cycle_state.go`."""

from __future__ import annotations

from typing import Any

PODS_TO_ACTIVATE = "kubernetes.io/pods-to-activate"
_ABSENT = object()


class CycleState:
    """A small dictionary that lives as long as one attempt to place one pod.

    Plugins write under their own name. Hypothetical worlds are views, so a state is never cloned: what a plugin writes
    in PreFilter holds for every view of the cycle. What kept answers were computed from is read from a `parent`.
    A plugin that sees in PreFilter that it will score nothing adds itself to `skip_score`.
    """

    __slots__ = ("_data", "_parent", "record_metrics", "skip_filter", "skip_score")

    def __init__(self, record_metrics: bool = False, parent: CycleState | None = None) -> None:
        self._data: dict[str, Any] = {}
        self._parent = parent
        self.record_metrics = record_metrics
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()

    def write(self, key: str, value: Any) -> None:
        self._data[key] = value

    def read(self, key: str) -> Any:
        """The value written under `key`. Raises KeyError(`not found`) as the reference's ErrNotFound."""
        found = self._data.get(key, _ABSENT)
        if found is not _ABSENT:
            return found
        if self._parent is not None:
            return self._parent.read(key)
        raise KeyError("not found")

    def get(self, key: str, default: Any = None) -> Any:
        found = self._data.get(key, _ABSENT)
        if found is not _ABSENT:
            return found
        return default if self._parent is None else self._parent.get(key, default)

    def take_over(self, other: CycleState) -> None:
        """Writes here what was written there."""
        self._data.update(other._data)

    def delete(self, key: str) -> None:
        self._data.pop(key, None)

    def clear(self) -> None:
        """The attempt is over. What plugins kept may be large, and refers to the cycle that refers to it."""
        self._data.clear()
