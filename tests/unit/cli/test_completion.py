"""Completion scripts, the one for bash as bash runs it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from skedge.cli.completion import script
from skedge.cli.main import COMMANDS, main
from skedge.config.flags import FLAGS

BASH = shutil.which("bash")


def complete(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    run = f'COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _skedge; printf "%s\\n" "${{COMPREPLY[@]}}"'
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc", "-c", f"{script('bash')}\n{run}"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return sorted(done.stdout.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.yaml", "b.yml", "c.json", "d.txt", "kubeconfig"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    return tmp_path


YAML = ["a.yaml", "b.yml", "c.json", "sub"]
EVERY = ["a.yaml", "b.yml", "c.json", "d.txt", "kubeconfig", "sub"]


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("skedge", ""), sorted(COMMANDS)),
        (("skedge", "ex"), ["explain"]),
        (("skedge", "scheduler", "--config", ""), YAML),
        (("skedge", "scheduler", "--config", "=", ""), YAML),
        (("skedge", "scheduler", "--config", "="), YAML),
        (("skedge", "scheduler", "--config", "=", "a"), ["a.yaml"]),
        (("/usr/bin/kube-scheduler", "--config", ""), YAML),
        (("kube-scheduler", "--leader-elect-r"), [
            "--leader-elect-renew-deadline",
            "--leader-elect-resource-lock",
            "--leader-elect-resource-name",
            "--leader-elect-resource-namespace",
            "--leader-elect-retry-period",
        ]),
        (("skedge", "scheduler", "--kubeconfig", ""), EVERY),
        (("skedge", "scheduler", "--secure-port", ""), []),
        (("skedge", "scheduler", "--logging-format", "j"), ["json"]),
        (("skedge", "scheduler", "--write-config"), ["--write-config-to"]),
        (("skedge", "explain", "-o", ""), ["json", "text"]),
        (("skedge", "explain", "-f", ""), YAML),
        (("skedge", "explain", "--no"), ["--no-hints", "--nodes"]),
        (("skedge", "completion", ""), ["bash", "fish", "zsh"]),
        (("skedge", "convert-policy", ""), YAML),
        (("skedge", "plugins", "x"), []),
        (("skedge", "unknown", ""), []),
    ],
)  # fmt: skip
def test_bash(folder: Path, words: tuple[str, ...], expected: list[str]) -> None:
    assert complete(folder, *words) == expected


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_knows_every_flag(folder: Path) -> None:
    offered = complete(folder, "kube-scheduler", "--")
    assert {f"--{flag.name}" for flag in FLAGS} == set(offered)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_commands_flags_and_suffixes(shell: str) -> None:
    text = script(shell)
    for name in COMMANDS:
        assert name in text
    for flag in FLAGS:
        assert (f"--{flag.name}" if shell == "zsh" else f"-l {flag.name} ") in text
    config = next(line for line in text.splitlines() if ("'--config=" if shell == "zsh" else "-l config ") in line)
    assert all(suffix in config for suffix in ("yaml", "yml", "json"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_parse(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    path = tmp_path / "script"
    path.write_text(script(shell))
    done = subprocess.run([program, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == script("bash")
    with pytest.raises(SystemExit) as end:
        main(["completion", "csh"])
    assert end.value.code == 1
