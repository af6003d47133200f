"""The commands and their options as data: for completion scripts and for the reference in `docs/cli.md`.

python -m skedge.cli.describe > docs/cli.md
"""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

import msgspec

from skedge.cli.main import COMMANDS
from skedge.config.flags import FLAGS, SECTIONS
from skedge.simulate.explanation import PARTS, Explanation

CONFIG_FILES: Final = ("yaml", "yml", "json")
"""Suffixes of files that are read as YAML or JSON."""
_READ_AS_YAML: Final = frozenset({"--config", "--policy-config-file", "--filename", "--allow-metric-labels-manifest"})
_PATH_WORDS: Final = ("file", "kubeconfig", "dir", "filename", "out", "config-to")
_CHOICES: Final = {"--logging-format": ("text", "json"), "--leader-elect-resource-lock": ("leases",)}


class Option(NamedTuple):
    """`names` as typed (`-o`, `--output`); `value` is the word for its value, "" for a switch that takes none.

    `choices`: the values there are; `files`: suffixes of the files it names (`*`: any), () where it names none.
    """

    names: tuple[str, ...]
    value: str
    help: str
    choices: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    section: str = ""


class Argument(NamedTuple):
    name: str
    help: str
    choices: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Described(NamedTuple):
    name: str
    summary: str
    usage: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...] = ()


def describe() -> list[Described]:
    """All commands, in the order of the table."""
    return [_command(name) for name in COMMANDS]


def _command(name: str) -> Described:
    summary = COMMANDS[name].summary
    if name == "scheduler":
        return Described(name, summary, "skedge scheduler [FLAGS]", tuple(_flags()))
    module = importlib.import_module(COMMANDS[name].module)
    if not hasattr(module, "parser"):
        return Described(name, summary, f"skedge {name}", ())
    parser: argparse.ArgumentParser = module.parser()
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return Described(
        name,
        summary,
        _usage(parser),
        tuple(_option(action) for action in actions if action.option_strings),
        tuple(_argument(action) for action in actions if not action.option_strings),
    )


def _usage(parser: argparse.ArgumentParser) -> str:
    positional = [_argument(action).name for action in parser._actions if not action.option_strings]
    return " ".join([parser.prog, "[OPTIONS]", *positional])


def _flags() -> Iterator[Option]:
    for flag in FLAGS:
        name = f"--{flag.name}"
        names = (f"-{flag.shorthand}", name) if flag.shorthand else (name,)
        takes = "" if flag.kind.bare else flag.kind.label or "string"
        files = _files(name) if flag.kind.label in ("string", "") and not flag.kind.bare else ()
        yield Option(names, takes, flag.usage, _CHOICES.get(name, ()), files, flag.section)


def _files(name: str) -> tuple[str, ...]:
    if name in _READ_AS_YAML:
        return CONFIG_FILES
    return ("*",) if name.endswith(_PATH_WORDS) else ()


def _option(action: argparse.Action) -> Option:
    names = tuple(action.option_strings)
    if action.nargs == 0:
        return Option(names, "", _text(action))
    choices = tuple(map(str, action.choices or ()))
    value = "|".join(choices) or str(action.metavar or action.dest.upper())
    return Option(names, value, _text(action), choices, _files(names[-1]))


def _argument(action: argparse.Action) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    name = "|".join(choices) or str(action.metavar or action.dest.upper())
    many = {"+": f"{name} ...", "*": f"[{name} ...]"}.get(str(action.nargs), name)
    files = CONFIG_FILES if action.dest in ("file", "manifests") else ()
    return Argument(many, _text(action), choices, files)


def _text(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


# --- the reference ----------------------------------------------------------------------------------------------------


def markdown() -> str:
    """`docs/cli.md`."""
    return "\n".join(_document()) + "\n"


def _document() -> Iterator[str]:
    yield "# Command line"
    yield from ("", "Made from the command table by `python -m skedge.cli.describe`; a test compares.", "")
    yield from ("| command | |", "|---|---|")
    for command in describe():
        yield f"| [`skedge {command.name}`](#skedge-{command.name}) | {command.summary} |"
    yield from (
        "",
        "Called under the name `kube-scheduler` the program is `skedge scheduler`. Exit status: 0; 1 for an error,",
        "told on stderr, never as a traceback; 130 after Ctrl-C.",
    )
    for command in describe():
        yield from ("", f"## skedge {command.name}", "", f"{_sentence(command.summary)}", "")
        yield from ("```", command.usage, "```")
        yield from _sections(command)
        if command.name == "explain":
            yield from ("", "### JSON", "", "`-o json` prints an Explanation. Fields that say nothing are left out.")
            for struct in (Explanation, *PARTS):
                yield from _struct(struct)


def _struct(struct: type[msgspec.Struct]) -> Iterator[str]:
    paragraphs = inspect.cleandoc(struct.__doc__ or "").split("\n\n")
    yield from ("", f"**{struct.__name__}**: {' '.join(' '.join(paragraphs).split())}", "")
    for field in msgspec.structs.fields(struct):
        yield f"- `{field.encode_name}`: {_type(field.type)}"


def _type(kind: Any) -> str:
    """A field's type in the words of JSON."""
    origin, inner = get_origin(kind), [each for each in get_args(kind) if each is not type(None)]
    if origin is list:
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return f"object of {_type(inner[1])}"
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if len(inner) == 1:
        return _type(inner[0])
    return _JSON_WORDS.get(kind) or str(getattr(kind, "__name__", kind))


_JSON_WORDS: Final = {str: "string", int: "number", bool: "boolean", Any: "any value"}


def _sections(command: Described) -> Iterator[str]:
    if command.arguments:
        yield from ("", "| argument | |", "|---|---|")
        for argument in command.arguments:
            yield f"| {_code(argument.name)} | {_cell(argument.help)} |"
    sections = dict.fromkeys(option.section for option in command.options)
    for section in sorted(sections, key=lambda name: (*SECTIONS, name).index(name) if name else -1):
        if section:
            yield from ("", f"### {section} flags")
        yield from ("", "| option | |", "|---|---|")
        for option in command.options:
            if option.section == section:
                names = ", ".join(option.names) + (f" {option.value}" if option.value else "")
                yield f"| {_code(names)} | {_cell(option.help)} |"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(markdown(), end="")
