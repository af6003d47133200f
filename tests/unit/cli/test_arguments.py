"""Wrong command lines: one line that names the cause, status 1."""

from __future__ import annotations

import argparse

import pytest

from skedge.cli.arguments import port
from skedge.cli.main import COMMANDS, main


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("scheduler", "version")])
def test_unknown_flags(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"explain": ["pod"], "completion": ["bash"], "convert-policy": ["file"]}.get(command, [])
    with pytest.raises(SystemExit) as end:
        main([command, *words, "--bogus"])
    assert end.value.code == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"Error: unrecognized arguments: --bogus (see skedge {command} --help)\n")


def test_ports(capsys: pytest.CaptureFixture[str]) -> None:
    assert [port("0"), port("65535")] == [0, 65535]
    for text in ("-1", "65536", "99999", "x", "", "１"):
        with pytest.raises(argparse.ArgumentTypeError, match="is no port number, expected 0 to 65535"):
            port(text)
    with pytest.raises(SystemExit):
        main(["up", "--port", "99999"])
    assert capsys.readouterr().err == (
        "Error: argument --port: 99999 is no port number, expected 0 to 65535 (see skedge up --help)\n"
    )
