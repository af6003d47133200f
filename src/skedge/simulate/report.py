"""An explanation as text: the verdict, counted reasons, nodes, scores, preemption, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from skedge.simulate.explanation import Explanation, Preemption, Said

SHOWN: Final = 10
"""Nodes and candidates that are listed unless all are asked for."""


def render(found: Explanation, *, all_nodes: bool = False) -> str:
    """The explanation in lines that end in a line break."""
    return "\n".join(_lines(found, None if all_nodes else SHOWN)) + "\n"


def _lines(found: Explanation, limit: int | None) -> Iterator[str]:
    yield f"Pod {found.pod}: {found.verdict} (scheduler {found.scheduler})"
    if found.node:
        yield f"It is on node {found.node}, and judged here as if it were not."
    if found.message:
        yield f"  {found.message}"
    for what, said in (("PreEnqueue", found.pre_enqueue), ("PreFilter", found.pre_filter)):
        if said is not None:
            yield _said(what, said)
    for note in found.notes:
        yield f"Note: {note}"
    if found.reasons:
        yield from ("", "REASONS")
        yield from _table([(str(each.nodes), each.reason, ", ".join(each.plugins)) for each in found.reasons])
    if found.feasible:
        yield from _fits(found, limit)
    if found.rejected:
        yield from ("", f"NODES THAT DO NOT FIT{_part(len(found.rejected), limit)}")
        rows = [("NODE", "PLUGIN", "CODE", "REASONS")]
        rows += [(each.node, each.plugin, each.code, "; ".join(each.reasons)) for each in found.rejected[:limit]]
        yield from _table(rows)
    if found.preemption is not None:
        yield from _preemption(found.preemption, limit)
    if found.hints:
        yield from ("", "WHAT WOULD HELP (any one of these)")
        for hint in found.hints:
            yield f"  {hint.text}: {_names(hint.examples, hint.nodes)}"
    elif found.verdict == "Unschedulable" and found.nodes:
        yield from ("", "No small change would help.")


def _said(what: str, said: Said) -> str:
    return f"{what} plugin {said.plugin or '(several)'}: {said.code}: {'; '.join(said.reasons)}"


def _fits(found: Explanation, limit: int | None) -> Iterator[str]:
    yield from ("", f"NODES THAT FIT{_part(len(found.feasible), limit)}")
    if found.best:
        chosen = found.best[0] if len(found.best) == 1 else f"one of {_first(found.best)} at random"
        yield f"  chosen: {chosen}"
    rows = []
    for each in found.feasible[:limit]:
        parts = " + ".join(f"{plugin} {score}" for plugin, score in each.scores.items() if score)
        total = "" if each.total is None else str(each.total)
        rows.append((each.node, total, f"= {parts}" if parts else ""))
    yield from _table(rows)


def _preemption(found: Preemption, limit: int | None) -> Iterator[str]:
    yield from ("", f"PREEMPTION{_part(len(found.candidates), limit) if found.candidates else ''}")
    if found.message:
        yield f"  {found.message}"
    if found.chosen:
        yield f"  would make room on {found.chosen}"
    rows = []
    for each in found.candidates[:limit]:
        budget = f"{each.pdb_violations} against a disruption budget" if each.pdb_violations else ""
        rows.append((each.node, f"evicts {_first(each.victims)}", budget))
    yield from _table(rows)


def _part(number: int, limit: int | None) -> str:
    return f" ({number})" if limit is None or number <= limit else f" ({limit} of {number}; --nodes all shows all)"


def _names(examples: Sequence[str], number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'} fit{'s' if number == 1 else ''} ({_first(examples, number)})"


def _first(names: Sequence[str], number: int | None = None) -> str:
    total = len(names) if number is None else number
    shown = names[:3]
    return ", ".join(shown) + (f" and {total - len(shown)} more" if total > len(shown) else "")


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    for row in listed:
        yield "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
