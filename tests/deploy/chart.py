"""Renders the part of Helm's templates that the chart uses: values, conditions, and one named template.

    {{ .Values.name }}   {{- if .Values.flag }} ... {{- else }} ... {{- end }}
    {{- define "name" -}} ... {{- end }}   {{- include "name" . | nindent 4 }}

Anything else is refused, so that the chart stays a substitution of values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_INCLUDE = re.compile(r'include "([\w.-]+)" \.(?: \| nindent (\d+))?')


class Chart:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._named: dict[str, str] = {}
        for path in sorted((folder / "templates").glob("*.tpl")):
            self._define(path.read_text())

    def values(self, *files: str, **given: Any) -> dict[str, Any]:
        """The chart's values, with those of files and the ones given over them. Unknown ones are refused."""
        values: dict[str, Any] = yaml.safe_load((self._folder / "values.yaml").read_text())
        for changed in (*(yaml.safe_load((self._folder / file).read_text()) for file in files), given):
            assert set(changed) <= set(values)
            values |= changed
        return values

    def render(self, values: dict[str, Any]) -> str:
        """All templates, as one text of documents."""
        paths = sorted((self._folder / "templates").glob("*.yaml"))
        return "\n---\n".join(self._render(path.read_text(), values) for path in paths)

    def _define(self, text: str) -> None:
        for name, body in re.findall(r'\{\{-? define "([\w.-]+)" -?\}\}(.*?)\{\{-? end -?\}\}', text, re.DOTALL):
            self._named[name] = body.strip("\n")

    def _render(self, text: str, values: dict[str, Any]) -> str:
        parts: list[str] = []
        active = [True]
        for piece, action in _pieces(text):
            if all(active):
                parts.append(piece)
            if action.startswith("if "):
                active.append(bool(_value(action[3:], values)))
            elif action == "else":
                active[-1] = not active[-1]
            elif action == "end":
                active.pop()
            elif action and all(active):
                parts.append(self._put(action, values))
        assert active == [True]
        return "".join(parts)

    def _put(self, action: str, values: dict[str, Any]) -> str:
        include = _INCLUDE.fullmatch(action)
        if include is None:
            return str(_value(action, values))
        body = self._render(self._named[include[1]], values)
        if include[2] is None:
            return body
        return "".join("\n" + " " * int(include[2]) + line for line in body.splitlines())


def _value(expression: str, values: dict[str, Any]) -> Any:
    assert expression.startswith(".Values."), f"not a value: {expression}"
    return values[expression.removeprefix(".Values.")]


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Text and the action behind it; the last action is empty. Dashes trim the space next to them."""
    start, trim = 0, False
    for found in _ACTION.finditer(text):
        piece = text[start : found.start()]
        piece = piece.lstrip() if trim else piece
        yield piece.rstrip() if found[1] else piece, found[2]
        start, trim = found.end(), bool(found[3])
    yield (text[start:].lstrip() if trim else text[start:]), ""
