"""`skedge up`: begins, says how to look around, ends in order; a scheduler that can not start ends it."""

from __future__ import annotations

import os
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


def _until_up(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line == "Ctrl-C stops it.\n":
            return


def test_with_tls_stages_and_a_default_storage_class(tmp_path: Path) -> None:
    """Pods fail as the stages say; who has no certificate is let in nowhere; kubectl acts as others."""
    stages, kubeconfig = tmp_path / "stages.yaml", tmp_path / "kc"
    stages.write_text(
        "apiVersion: skedge.io/v1\nkind: Stage\nmetadata: {name: fail}\nspec:\n  resourceRef: {kind: Pod}\n"
        "  selector: {matchExpressions: [{key: .status.phase, operator: In, values: [Pending]}]}\n"
        "  next: {statusTemplate: {phase: Failed, reason: Planned}}\n"
    )
    command = [sys.executable, "-m", "skedge", "up", "--nodes", "1", "--kubeconfig-out", str(kubeconfig)]
    command += ["--stages", str(stages), "--tls-dir", str(tmp_path / "pki")]
    kubectl = [str(Path(sys.executable).with_name("kubectl")), f"--kubeconfig={kubeconfig}", f"--cache-dir={tmp_path}"]

    def run(*arguments: str) -> str:
        done = subprocess.run([*kubectl, *arguments], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        _until_up(process)
        assert "standard (default)" in run("get", "storageclass")
        assert "https://127.0.0.1" in kubeconfig.read_text()
        assert run("run", "p", "--image=i", "--restart=Never") == "pod/p created\n"
        assert "condition met" in run("wait", "--for=jsonpath={.status.reason}=Planned", "pod/p", "--timeout=30s")
        assert 'User "jane" cannot list resource "pods"' in run("get", "pods", "--as=jane")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_it_ends_when_its_control_plane_does(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "skedge", "up", "--nodes", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        _until_up(process)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        assert process.wait(30) == 1
        assert process.stderr.read().splitlines()[-1] == "Error: the control plane has ended: status -9"


def test_a_plugin_that_cannot_be_made_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.py"
    file.write_text(
        'class P:\n    name = "P"\n    def __init__(self): raise OSError("no sensor")\n    def permit(self): ...\n'
    )
    assert main(["up", "--nodes", "1", "--plugin", f"{file}:P"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ")
    assert line.endswith('initializing plugin "P": no sensor')
