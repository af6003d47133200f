"""The reference of the command line is made from the commands themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from skedge.cli.describe import describe, markdown
from skedge.cli.main import COMMANDS, main, usage
from skedge.config.flags import FLAGS

ROOT = Path(__file__).parents[3]


def test_the_reference_is_current() -> None:
    found = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert found == markdown(), "python -m skedge.cli.describe > docs/cli.md"


def test_every_command_is_described() -> None:
    described = {command.name: command for command in describe()}
    assert list(described) == list(COMMANDS)
    flags = {option.names[-1] for option in described["scheduler"].options}
    assert flags == {f"--{flag.name}" for flag in FLAGS}
    assert all(command.summary in usage() for command in described.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name in ("version", "scheduler"):
        assert main([name, "--help"]) == 0
    else:
        with pytest.raises(SystemExit, match=r"^0$"):
            main([name, "--help"])
    assert capsys.readouterr().out


@pytest.mark.parametrize(("words", "status"), [([], 0), (["--help"], 0), (["help"], 0), (["--version"], 0), (["x"], 1)])
def test_without_a_command(words: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == status
    out = capsys.readouterr()
    assert (out.err == "") == (status == 0)
    if status:
        assert out.err.startswith("Error: unknown command 'x' for skedge; known: scheduler, ")
        assert out.err.count("\n") == 1
