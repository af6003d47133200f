"""Label selectors as text: `a=b,c in (x,y),!d`. For query parameters and command lines.

Grammar: requirements joined by commas; a requirement is `key`, `!key`, `key=value` (also `==`), `key!=value`,
`key in (values)`, `key notin (values)`, `key>number` or `key<number`. An empty text selects everything.

Upstream: `staging/src/k8s.io/apimachinery/pkg/labels/selector.go` (`Parse`).
"""

from __future__ import annotations

import re
from typing import Final

from skedge.api.labels import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    Requirement,
    Selector,
    SelectorError,
    checked_requirement,
    invalid,
    quote,
)
from skedge.api.validation import qualified_name_problems

_TOKEN = re.compile(r"[ \t\r\n]*(?:([^=!(),<> \t\r\n]+)|(==|!=|[=!(),<>])|$)")
_OPERATORS: Final = {
    "in": IN,
    "=": IN,
    "==": IN,
    ">": GT,
    "<": LT,
    "notin": NOT_IN,
    "!=": NOT_IN,
}
_EXPECTED_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"


def parse_selector(text: str) -> Selector:
    """Read a selector. Raises SelectorError with the reference's message."""
    return Selector(_Parser(text).requirements())


class _Parser:
    """Recursive descent over (text, is-word) tokens; the last token is an empty non-word."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool]] = []
        self._at = 0
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:  # not reached: every character is in one of the classes
                break
            position = match.end()
            if match[1] or match[2]:
                self._tokens.append((match[1] or match[2], bool(match[1])))
        self._tokens.append(("", False))

    def _peek(self) -> tuple[str, bool]:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _next(self) -> tuple[str, bool]:
        token = self._peek()
        self._at += 1
        return token

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() == ("", False):
            return found
        text, word = self._peek()
        if not word and text != "!":
            raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except SelectorError as err:
                raise SelectorError(f"unable to parse requirement: {err}") from None
            text, word = self._next()
            if (text, word) == ("", False):
                return found
            if text != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            text, word = self._peek()
            if not word and text != "!":
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key, word = self._next()
        negated = not word and key == "!"
        if negated:
            key, word = self._next()
        if not word:
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := qualified_name_problems(key):
            raise SelectorError(invalid("<nil>", quote(key), "; ".join(problems)))
        if negated or self._peek()[0] in ("", ","):  # what follows `!key` is left for the caller to refuse
            return checked_requirement(key, DOES_NOT_EXIST if negated else EXISTS, ())
        text, _ = self._next()
        operator = _OPERATORS.get(text)
        if operator is None:
            raise SelectorError(f"found '{text}', expected: {_EXPECTED_OPERATORS}")
        values = self._values() if text in ("in", "notin") else self._exact_value()
        return checked_requirement(key, operator, sorted(values))

    def _exact_value(self) -> set[str]:
        if self._peek()[0] in ("", ","):
            return {""}
        text, word = self._next()
        if not word:
            raise SelectorError(f"found '{text}', expected: identifier")
        return {text}

    def _values(self) -> set[str]:
        text, _ = self._next()
        if text != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        values: set[str] = set()
        expected = "',', ')' or identifier"
        while True:
            text, word = self._peek()
            if word:
                values.add(text)
                self._next()
                text, _ = self._peek()
                if text not in (",", ")"):
                    raise SelectorError(f"found '{text}', expected: ',' or ')'")
            elif text in (",", ")"):
                values.add("")
            else:
                raise SelectorError(f"found '{text}', expected: {expected}")
            expected = "',', or identifier"
            self._next()
            if text == ")":
                return values
