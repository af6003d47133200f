"""Command lines read as the reference's parser reads them, and their help.

Upstream: `spf13/pflag`, `component-base/cli/flag`.
"""

import textwrap
from collections.abc import Sequence
from copy import copy
from typing import Any

import msgspec

from skedge.config.fields import ConfigError, go_quote
from skedge.config.flag_values import Kind

_ROOM = 24
"""Columns that a wrapped text needs at least."""


class UsageError(ConfigError):
    """A command line that cannot be read; the caller shows usage and the message, and exits with 1."""


class Flag(msgspec.Struct, frozen=True):
    """One flag of a command line. A hidden flag works but is in no help text."""

    name: str
    kind: Kind
    default: Any
    section: str
    usage: str
    shorthand: str = ""
    hidden: bool = False

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")


class Parsed(msgspec.Struct):
    """Values of all flags by name, the names that were given, and what was left over."""

    values: dict[str, Any]
    given: set[str]
    arguments: list[str]


def parse(flags: Sequence[Flag], argv: Sequence[str]) -> Parsed:
    """Read a command line (without the program's name); raises UsageError with the reference's message."""
    by_name = {flag.name: flag for flag in flags}
    by_letter = {flag.shorthand: flag for flag in flags if flag.shorthand}
    result = Parsed({flag.name: copy(flag.default) for flag in flags}, set(), [])
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            result.arguments += rest
            break
        if len(word) < 2 or word[0] != "-":
            result.arguments.append(word)
        elif word.startswith("--"):
            _long(word, rest, by_name, result)
        else:
            _short(word, rest, by_letter, result)
    return result


def _long(word: str, rest: list[str], by_name: dict[str, Flag], result: Parsed) -> None:
    name, equals, text = word[2:].partition("=")
    if not name or name[0] == "-":
        raise UsageError(f"bad flag syntax: {word}")
    flag = by_name.get(name.replace("_", "-"))
    if flag is None:
        raise UsageError(f"unknown flag: --{name}")
    if not equals:
        if flag.kind.bare:
            text = flag.kind.bare
        elif rest:
            text = rest.pop(0)
        else:
            raise UsageError(f"flag needs an argument: {word}")
    _set(flag, text, result)


def _short(word: str, rest: list[str], by_letter: dict[str, Flag], result: Parsed) -> None:
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = by_letter.get(letter)
        if flag is None:
            raise UsageError(f"unknown shorthand flag: {_quote(letter)} in {word}")
        if letters.startswith("=") and len(letters) > 1:
            text, letters = letters[1:], ""
        elif flag.kind.bare:
            text = flag.kind.bare
        elif letters:
            text, letters = letters, ""
        elif rest:
            text = rest.pop(0)
        else:
            raise UsageError(f"flag needs an argument: {_quote(letter)} in {word}")
        _set(flag, text, result)


def _quote(letter: str) -> str:
    return f"'{go_quote(letter)[1:-1]}'"


def _set(flag: Flag, text: str, result: Parsed) -> None:
    try:
        value = flag.kind.parse(text)
    except ValueError as error:
        name = f"-{flag.shorthand}, --{flag.name}" if flag.shorthand else f"--{flag.name}"
        raise UsageError(f'invalid argument {go_quote(text)} for "{name}" flag: {error}') from None
    # The first occurrence replaces the default, further ones of a list or map add to it.
    if flag.kind.many and flag.name in result.given:
        before = result.values[flag.name]
        value = before | value if isinstance(value, dict) else before + value
    result.values[flag.name] = value
    result.given.add(flag.name)


def sections(flags: Sequence[Flag], titles: Sequence[str], width: int = 0) -> str:
    """The flags grouped under `<Title> flags:`, sorted by name; wrapped to a terminal's width if it is not 0."""
    blocks = []
    for title in titles:
        members = sorted((f for f in flags if f.section == title and not f.hidden), key=lambda flag: flag.name)
        if members:
            blocks.append(f"{title} flags:\n\n{_block(members, width)}")
    return "\n".join(blocks)


def _block(flags: Sequence[Flag], width: int) -> str:
    heads = [_head(flag) for flag in flags]
    column = max(map(len, heads)) + 3
    below = 0 < width < column + _ROOM  # too narrow for two columns: usage stands under its flag
    if below:
        column = 16
    lines = []
    for flag, head in zip(flags, heads, strict=True):
        usage = flag.usage + _default(flag)
        room = width - column
        parts = textwrap.wrap(usage, room, break_on_hyphens=False) if room >= _ROOM else [usage]
        first = [head] if below else [head.ljust(column) + parts.pop(0)]
        lines += [*first, *(" " * column + part for part in parts)]
    return "\n".join(lines) + "\n"


def _head(flag: Flag) -> str:
    short = f"  -{flag.shorthand}, " if flag.shorthand else "      "
    return f"{short}--{flag.name} {flag.kind.label}".rstrip()


def _default(flag: Flag) -> str:
    if not flag.default or flag.kind.label.startswith("version"):
        return ""
    shown = flag.kind.show(flag.default)
    return f" (default {go_quote(shown)})" if flag.kind.label == "string" else f" (default {shown})"
