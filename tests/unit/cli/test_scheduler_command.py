"""`skedge scheduler` and `kube-scheduler` as somebody at a terminal sees them."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from skedge.cli import main as cli
from skedge.cli.main import main

POLICY = """
kind: Policy
apiVersion: v1
predicates: [{name: ZoneTogether, argument: {serviceAffinity: {labels: [zone]}}}]
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a server that is not there; its folder is where we are."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return "--kubeconfig=kubeconfig"


@pytest.mark.parametrize("columns", [80, 120])
def test_help_has_the_width_of_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["scheduler", "--help"]) == 0
    flags = screen.getvalue().partition("Misc flags:")[2].splitlines()
    assert max(map(len, flags)) <= columns


def test_help_in_a_pipe_has_a_line_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler", "--help"]) == 0
    flags = capsys.readouterr().out.partition("Misc flags:")[2].splitlines()
    assert all(re.match(r"      --|  -\w, --|\w[\w ]* flags:$", line) for line in flags if line)


def test_usage_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler", "--nope"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage:\n  kube-scheduler [flags]\n")
    assert err.endswith("\nError: unknown flag: --nope\n")


def test_kube_scheduler_is_skedge_scheduler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kube-scheduler", "--version"])
    assert cli.kube_scheduler() == 0
    assert capsys.readouterr().out == "Kubernetes v1.36.2\n"


def test_flags_are_logged_at_their_level(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler", kubeconfig, "-v=1", "--logging-format=json", "--write-config-to=out.yaml"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    flags = [line for line in lines if line["msg"].startswith("FLAG: ")]
    assert {line["v"] for line in flags} == {1}
    assert 'FLAG: --secure-port="10259"' in {line["msg"] for line in flags}
    assert lines[-1]["msg"] == "Wrote configuration"


def test_what_cannot_be_read_back_says_so(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Plugins of a Policy have no name in a v1 file."""
    assert main(["scheduler", kubeconfig, "--policy-config-file=policy.yaml", "--write-config-to=out.yaml"]) == 0
    note = "It names plugins of a legacy Policy or provider, and --config does not take those"
    assert note in capsys.readouterr().err
    assert main(["scheduler", "--config=out.yaml", "--write-config-to=again.yaml"]) == 1
    assert 'FilterPlugin \\"ServiceAffinity\\" does not exist' in capsys.readouterr().err


def test_requests_without_burst(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler", kubeconfig, "--kube-api-burst=0", "--secure-port=0", "--write-config-to=written"]) == 1
    assert len(re.findall(r"(?m)^E", capsys.readouterr().err)) == 1


def test_what_is_configured_anew_is_told(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.yaml").write_text("""
kind: KubeSchedulerConfiguration
apiVersion: kubescheduler.config.k8s.io/v1
clientConnection: {kubeconfig: kubeconfig}
profiles:
- plugins:
    multiPoint: {enabled: [{name: TaintToleration}]}
    score: {enabled: [{name: ImageLocality, weight: 3}]}
""")
    flags = ["--config=config.yaml", "--secure-port=0", "--write-config-to=written", "--logging-format=json"]
    assert main(["scheduler", *flags]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["msg"], line["v"], line["plugin"]) for line in lines if "plugin" in line] == [
        ("Default plugin is explicitly re-configured; overriding", 0, "TaintToleration"),
        ("MultiPoint plugin is explicitly re-configured; overriding", 0, "ImageLocality"),
    ]
