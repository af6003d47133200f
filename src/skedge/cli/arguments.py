"""Command lines of all commands but `skedge scheduler`, whose flags are kube-scheduler's."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """A wrong command line is one line on stderr and exit status 1; options are not abbreviated."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"Error: {message} (see {self.prog} --help)\n")


def port(text: str) -> int:
    """A TCP port, 0 for any free one."""
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port number, expected 0 to 65535")
    return number
