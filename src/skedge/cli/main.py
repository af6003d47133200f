"""`skedge COMMAND`: finds the command and runs it. The command `kube-scheduler` is the scheduler itself.

Modules of commands are imported when they are needed, so that `--help` is quick. A command returns its exit status;
an error that is the user's to mend is one line on stderr.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from skedge import KUBERNETES_VERSION, __version__


class Command(NamedTuple):
    """`module` has a function `run(argv) -> int`."""

    module: str
    summary: str


COMMANDS: Final[dict[str, Command]] = {
    "scheduler": Command("skedge.cli.scheduler", "schedule a cluster's pods; takes kube-scheduler's flags"),
    "up": Command("skedge.cli.up", "embedded control plane, fake nodes and the scheduler, until Ctrl-C"),
    "demo": Command("skedge.cli.demo", "the same for a few seconds: example workloads, and where their pods went"),
    "explain": Command("skedge.cli.explain", "why a pod is not placed, and the smallest change that would help"),
    "plugins": Command("skedge.cli.plugins_command", "the plugins, where they take part, and what they were called"),
    "convert-policy": Command("skedge.cli.convert_policy", "a legacy Policy as a v1 configuration"),
    "completion": Command("skedge.cli.completion", "completion of this command line for bash, zsh or fish"),
    "version": Command("skedge.cli.version", "versions of skedge and of the Kubernetes it behaves like"),
}


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            f"skedge {__version__}: kube-scheduler {KUBERNETES_VERSION} in Python",
            "",
            "Usage: skedge COMMAND [ARGUMENTS]      skedge COMMAND --help",
            "",
            *lines,
            "",
            "Like kube-scheduler, `skedge scheduler` sends at most 50 requests a second unless told otherwise",
            "(--kube-api-qps, --kube-api-burst), and so binds at most 50 pods a second.",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line (without the program's name); the exit status."""
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        print(end="", flush=True)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # Else the interpreter tries once more at its end, and tells of it at length.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            where = f"{error.filename}: " if error.filename else ""
            print(f"Error: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    return status


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    name = "version" if words[0] == "--version" else words[0]
    command = COMMANDS.get(name)
    if command is None:
        print(f"Error: unknown command {name!r} for skedge; known: {', '.join(COMMANDS)}", file=sys.stderr)
        return 1
    return int(importlib.import_module(command.module).run(words[1:]))


def kube_scheduler() -> int:
    """`kube-scheduler FLAGS`, as the image has it: `skedge scheduler FLAGS`."""
    return main(["scheduler", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
