"""Plain tables: columns as wide as their longest entry, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable


def columns(rows: Iterable[tuple[str, ...]], gap: int = 2) -> list[str]:
    """Lines of rows with equally many entries."""
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return [(" " * gap).join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in listed]
