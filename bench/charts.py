"""Bar and line charts as SVG, written by hand: no library, no scripts, readable in light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 880
LEFT: Final = 330
RIGHT: Final = 90
ROW: Final = 22
TOP: Final = 48
COLORS: Final = ("#3b78c2", "#d98b2b", "#4c9a5f", "#a45bb0", "#c2453b")
_STYLE: Final = (
    "<style>text{font:12px sans-serif;fill:#444}.title{font-size:15px;font-weight:bold}"
    ".grid{stroke:#bbb;stroke-width:.5}@media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#555}}</style>"
)


class Bar(NamedTuple):
    label: str
    value: float
    color: int = 0


def bars(title: str, unit: str, rows: Sequence[Bar], target: float | None = None) -> str:
    """A horizontal bar a row, its value beside it; `target` draws a line."""
    height = TOP + ROW * len(rows) + 16
    largest = max([row.value for row in rows] + [target or 0.0, 1e-9])
    scale = (WIDTH - LEFT - RIGHT) / largest
    parts = [_text(16, 24, f"{title} ({unit})", "title")]
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        wide = max(1.0, row.value * scale)
        parts.append(_text(LEFT - 8, y + 13, row.label, anchor="end"))
        color = COLORS[row.color % len(COLORS)]
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{wide:.1f}" height="{ROW - 6}" rx="2" fill="{color}"/>')
        parts.append(_text(LEFT + wide + 6, y + 13, number(row.value)))
    if target:
        x = LEFT + target * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 12}"/>')
        parts.append(_text(x, TOP - 12, f"target {number(target)}", anchor="middle"))
    return _svg(height, parts)


def lines(title: str, x_unit: str, y_unit: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A line a series of (x, y) over logarithmic axes: how figures change from small to large clusters."""
    points = [point for values in series.values() for point in values if point[0] > 0 and point[1] > 0]
    height = 380
    parts = [_text(16, 24, f"{title} ({y_unit} over {x_unit})", "title")]
    if not points:
        return _svg(height, parts)
    x_low, x_high = _span([x for x, _ in points])
    y_low, y_high = _span([y for _, y in points])
    left, right, top, bottom = 70, WIDTH - 260, TOP, height - 40

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return left + across * (right - left), bottom - up * (bottom - top)

    for power in range(math.ceil(y_low), math.floor(y_high) + 1):
        _, y_at = place(10**x_low, 10**power)
        parts.append(f'<line class="grid" x1="{left}" y1="{y_at:.1f}" x2="{right}" y2="{y_at:.1f}"/>')
        parts.append(_text(left - 6, y_at + 4, number(10**power), anchor="end"))
    ticks = sorted({x for x, _ in points})
    parts += [_text(place(x, 10**y_low)[0], bottom + 18, number(x), anchor="middle") for x in ticks]
    for i, (name, values) in enumerate(series.items()):
        color = COLORS[i % len(COLORS)]
        drawn = [place(x, y) for x, y in sorted(values) if x > 0 and y > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{path}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in drawn]
        parts.append(f'<rect x="{right + 16}" y="{top + 20 * i - 9}" width="10" height="10" fill="{color}"/>')
        parts.append(_text(right + 32, top + 20 * i, name))
    return _svg(height, parts)


def number(value: float) -> str:
    """A figure as people read it: 12,345 or 0.047."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = math.log10(min(values)), math.log10(max(values))
    return math.floor(low * 4 - 0.5) / 4, math.ceil(high * 4 + 0.5) / 4


def _text(x: float, y: float, text: str, class_: str = "", anchor: str = "start") -> str:
    named = f' class="{class_}"' if class_ else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _svg(height: int, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{_STYLE}{"".join(parts)}</svg>\n'
