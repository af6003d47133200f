"""`skedge up`: begins, says how to look around, ends in order; a scheduler that can not start ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skedge.cli.main import main


def test_until_interrupted(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kc"
    command = [sys.executable, "-m", "skedge", "up", "--nodes", "2", "--kubeconfig-out", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [line.rstrip() for line in iter(process.stdout.readline, "Ctrl-C stops it.\n")]
        assert f"kubeconfig   {kubeconfig}" in lines
        assert sum(line.startswith("  kubectl ") for line in lines) == 3
        assert kubeconfig.exists()
        process.send_signal(signal.SIGINT)
        assert (process.wait(30), process.stderr.read()) == (0, "")


def test_a_plugin_that_cannot_be_made_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.py"
    file.write_text(
        'class P:\n    name = "P"\n    def __init__(self): raise OSError("no sensor")\n    def permit(self): ...\n'
    )
    assert main(["up", "--nodes", "1", "--plugin", f"{file}:P"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ")
    assert line.endswith('initializing plugin "P": no sensor')
