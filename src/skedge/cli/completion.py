"""`skedge completion SHELL`: a script that completes commands, options, choices and files.

source <(skedge completion bash)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from skedge.cli.arguments import Parser
from skedge.cli.describe import Argument, Described, Option, describe

PROGRAMS: Final = ("skedge", "kube-scheduler")


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="skedge completion", description="Prints a completion script: source <(skedge completion bash)")
    made.add_argument("shell", choices=tuple(_SHELLS), help="the shell the script is for")
    return made


def run(argv: Sequence[str]) -> int:
    print(script(parser().parse_args(argv).shell), end="")
    return 0


def script(shell: str) -> str:
    """The completion script for `bash`, `zsh` or `fish`."""
    return "\n".join(_SHELLS[shell](describe())) + "\n"


# --- bash -------------------------------------------------------------------------------------------------------------

_BASH: Final = """\
_skedge_files() {
    local suffix
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -d -- "$cur"))
    for suffix in "$@"; do
        COMPREPLY+=($(compgen -f -X "!*.$suffix" -- "$cur"))
    done
}

_skedge_paths() {
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
}

_skedge() {
    local cur="${COMP_WORDS[COMP_CWORD]}" option="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}" first=2
    COMPREPLY=()
    if [[ ${COMP_WORDS[0]##*/} == kube-scheduler ]]; then
        command=scheduler first=1
    fi
    if [[ $cur == = ]]; then
        cur=
    elif [[ $option == = ]]; then
        option="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    if ((COMP_CWORD < first)); then
        COMPREPLY=($(compgen -W "%s" -- "$cur"))
        return
    fi
    case "$command $option" in"""


def _bash(commands: Sequence[Described]) -> Iterator[str]:
    yield "# bash completion of skedge"
    yield _BASH % " ".join(command.name for command in commands)
    for command in commands:
        for option in command.options:
            action = _bash_values(option)
            if action:
                patterns = "|".join(f'"{command.name} {name}"' for name in option.names)
                yield f"        {patterns}) {action}; return ;;"
    yield from ("    esac", '    case "$command" in')
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        yield f"        {command.name})"
        yield from _bash_arguments(command.arguments)
        yield f'            [[ $cur == -* ]] && COMPREPLY=($(compgen -W "{names}" -- "$cur"))'
        yield "            ;;"
    yield from ("    esac", "}", "")
    yield f"complete -F _skedge {' '.join(PROGRAMS)}"


def _bash_values(option: Option) -> str:
    """What completes the option's value; ":" where nothing does, "" where it takes none."""
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur"))'
    if option.files:
        return "_skedge_paths" if option.files == ("*",) else f"_skedge_files {' '.join(option.files)}"
    return ":" if option.value else ""


def _bash_arguments(arguments: Iterable[Argument]) -> Iterator[str]:
    for argument in arguments:
        action = _bash_values(Option((), "x", "", argument.choices, argument.files))
        if action != ":":
            yield f"            [[ $cur == -* ]] || {action}"


# --- zsh --------------------------------------------------------------------------------------------------------------


def _zsh(commands: Sequence[Described]) -> Iterator[str]:
    yield f"#compdef {' '.join(PROGRAMS)}"
    for command in commands:
        yield from ("", f"_skedge_{_identifier(command.name)}() {{", "    _arguments \\")
        for option in command.options:
            yield from (f"        {spec} \\" for spec in _zsh_specs(option))
        for argument in command.arguments:
            action = _zsh_action(argument.choices, argument.files)
            yield f"        {_quoted(f'*:{_zsh_text(argument.name)}:{action}')} \\"
        yield from ("        && return", "}")
    yield from ("", "_skedge() {", "    if [[ $service == kube-scheduler ]]; then", "        _skedge_scheduler")
    yield from ("        return", "    fi", "    local state", "    local -a commands", "    commands=(")
    for command in commands:
        yield f"        {_quoted(f'{command.name}:{_zsh_text(command.summary)}')}"
    yield from ("    )", "    _arguments -C '1:command:->command' '*::argument:->argument' && return")
    yield from (
        '    case "$state" in',
        "        command) _describe command commands ;;",
        '        argument) case "$words[1]" in',
    )
    for command in commands:
        yield f"            {command.name}) _skedge_{_identifier(command.name)} ;;"
    yield from ("        esac ;;", "    esac", "}", "", '_skedge "$@"')


def _zsh_specs(option: Option) -> Iterator[str]:
    text = _zsh_text(option.help)
    for name in option.names:
        if not option.value:
            yield _quoted(f"{name}[{text}]")
            continue
        equals = "=" if name.startswith("--") else ""
        action = _zsh_action(option.choices, option.files)
        yield _quoted(f"{name}{equals}[{text}]:{_zsh_text(option.value)}:{action}")


def _zsh_action(choices: Sequence[str], files: Sequence[str]) -> str:
    if choices:
        return f"({' '.join(choices)})"
    if files:
        return "_files" if tuple(files) == ("*",) else f'_files -g "*.({"|".join(files)})"'
    return " "


def _zsh_text(text: str) -> str:
    for special in "\\[]:":
        text = text.replace(special, f"\\{special}")
    return text


# --- fish -------------------------------------------------------------------------------------------------------------


def _fish(commands: Sequence[Described]) -> Iterator[str]:
    yield "# fish completion of skedge"
    yield "complete -c skedge -f"
    for command in commands:
        text = _fish_quoted(command.summary)
        yield f"complete -c skedge -n __fish_use_subcommand -a {command.name} -d {text}"
    for command in commands:
        condition = f"-c skedge -n '__fish_seen_subcommand_from {command.name}'"
        yield from (f"complete {condition} {_fish_option(option)}" for option in command.options)
        for argument in command.arguments:
            values = _fish_values(argument.choices, argument.files)
            if values:
                yield f"complete {condition} {values}"
    scheduler = next(command for command in commands if command.name == "scheduler")
    yield from (f"complete -c kube-scheduler {_fish_option(option)}" for option in scheduler.options)


def _fish_option(option: Option) -> str:
    parts = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    if option.value:
        parts.append(_fish_values(option.choices, option.files) or "-x")
    return " ".join([*parts, "-d", _fish_quoted(option.help)])


def _fish_values(choices: Sequence[str], files: Sequence[str]) -> str:
    if choices:
        return f"-xa {_fish_quoted(' '.join(choices))}"
    if files:
        return "-rF" if tuple(files) == ("*",) else f"-xka {_fish_quoted(_fish_suffixes(files))}"
    return ""


def _fish_suffixes(files: Sequence[str]) -> str:
    return f"({'; '.join(f'__fish_complete_suffix .{suffix}' for suffix in files)})"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quoted(text: str) -> str:
    """In single quotes of a POSIX shell."""
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _identifier(name: str) -> str:
    return name.replace("-", "_")


_SHELLS: Final[dict[str, Callable[[Sequence[Described]], Iterator[str]]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
