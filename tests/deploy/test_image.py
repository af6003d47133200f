"""The Dockerfile, as far as that can be checked without building it, and the command it starts."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deploy.support import DEPLOY, ROOT, SETS, manifest

TEXT = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
STEPS = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and not line.startswith("#")]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def steps(instruction: str) -> list[str]:
    return [rest for name, rest in STEPS if name == instruction]


def copied() -> list[str]:
    """What is copied from the repository."""
    return [source for rest in steps("COPY") if "--from" not in rest for source in rest.split()[:-1]]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    for source in copied():
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied())


def test_package_can_be_built_from_what_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml"]
    needed += project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    for path in needed:
        assert any(path == source or fnmatch.fnmatch(path, f"{source}/*") for source in copied()), path


def test_packages_are_those_of_the_lock() -> None:
    installs = [rest for rest in steps("RUN") if "pip install" in rest]
    locked = [rest for rest in installs if "-r requirements/run.txt" in rest]
    assert len(locked) == 1
    assert "--require-hashes" in locked[0]
    assert all("--no-deps" in rest and "--no-build-isolation" in rest for rest in installs if rest not in locked)


def test_user_and_entry() -> None:
    (user,) = steps("USER")
    assert user == "65532:65532"
    assert steps("ENTRYPOINT") == ['["kube-scheduler"]']
    assert "kube-scheduler" in SCRIPTS
    (place,) = (rest.split()[-1] for rest in steps("COPY") if "--from=build" in rest)
    assert f"ln -s {place}/bin/kube-scheduler /usr/local/bin/kube-scheduler" in steps("RUN")
    for name, own in SETS.items():
        security = manifest(name)["Deployment", own]["spec"]["template"]["spec"]["securityContext"]
        assert f"{security['runAsUser']}:{security['runAsGroup']}" == user


def test_names_no_registry() -> None:
    assert {rest.split()[0] for rest in steps("FROM")} == {"python:3.11-slim"}
    assert "://" not in TEXT


def test_manifests_and_chart_name_one_image() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    texts = [path.read_text() for path in (DEPLOY / "manifests").glob("*.yaml")]
    texts.append((DEPLOY / "helm" / "skedge" / "values.yaml").read_text())
    assert {found for text in texts for found in re.findall(r"(?m)^ *image: (\S+)$", text)} == {f"skedge:{version}"}


@pytest.mark.parametrize(
    ("flags", "status", "out"),
    [(["--version"], 0, "Kubernetes v1.36.2\n"), (["--version=raw"], 0, None), (["--no-such-flag"], 1, "")],
)
def test_the_command_is_the_scheduler(flags: list[str], status: int, out: str | None) -> None:
    command = Path(sys.executable).with_name("kube-scheduler")
    done = subprocess.run([command, *flags], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == status
    assert out is None or done.stdout == out
    assert "Traceback" not in done.stderr
