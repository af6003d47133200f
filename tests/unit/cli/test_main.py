"""`skedge`: what cannot be written is one line, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SKEDGE = Path(sys.executable).with_name("skedge")
COMMANDS = ["--help", "version", "plugins", "scheduler --help", "scheduler --version", "completion bash"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(command: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SKEDGE, *command.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=30
        )
    assert done.stderr == "Error: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_reads_on(command: str) -> None:
    with subprocess.Popen([SKEDGE, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 1


def test_no_output_at_all() -> None:
    line = f'"{SKEDGE}" scheduler --help >&-'
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
