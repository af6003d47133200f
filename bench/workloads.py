"""Reads workloads.yaml: which operations, at which sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

HERE: Final = Path(__file__).parent
MODES: Final = ("decisions", "e2e")
E2E_NODES: Final = 5_000
"""Larger clusters are not made over HTTP unless a size asks for it."""


class Workload(NamedTuple):
    """One workload at one size."""

    name: str
    size: str
    params: Mapping[str, Any]
    ops: tuple[Mapping[str, Any], ...]
    without: tuple[str, ...] = ()
    preempts: bool = False

    @property
    def label(self) -> str:
        return f"{self.name}/{self.size}"

    @property
    def modes(self) -> tuple[str, ...]:
        """Settings in which this size is measured."""
        chosen = self.params.get("modes")
        if chosen is not None:
            return tuple(chosen)
        return MODES if self.params.get("nodes", 1) <= E2E_NODES * 1.2 else MODES[:1]

    def value(self, text: Any) -> Any:
        """A value of an operation: `$name` stands for the size's parameter."""
        return self.params[text[1:]] if isinstance(text, str) and text.startswith("$") else text

    def count(self, op: Mapping[str, Any]) -> int:
        return int(self.value(op.get("count", 1)))


def workloads() -> Iterator[Workload]:
    """All workloads at all sizes; `params` has the marks `quick` and `test` too."""
    for entry in yaml.safe_load((HERE / "workloads.yaml").read_text(encoding="utf-8")):
        for size in entry["sizes"]:
            yield Workload(
                entry["name"],
                size["name"],
                size,
                tuple(entry["ops"]),
                tuple(entry.get("without", ())),
                bool(entry.get("preempts")),
            )


def find(label: str) -> Workload:
    """The workload called NAME/SIZE. Raises KeyError."""
    for workload in workloads():
        if workload.label == label:
            return workload
    raise KeyError(f"no workload {label!r} in workloads.yaml")
