"""What the tests of `deploy/` share: the folder, its documents, kubectl."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from skedge.config import options_validation
from skedge.config.complete import complete
from skedge.config.gates import FeatureGates
from skedge.config.options import parse_options
from skedge.config.types import KubeSchedulerConfiguration

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = DEPLOY / "manifests"
KUBECTL = str(Path(sys.executable).with_name("kubectl"))

SETS = {"second-scheduler": "skedge", "cluster-scheduler": "skedge-scheduler"}
"""Manifest -> the name of all that it makes."""


def documents(text: str) -> dict[tuple[str, str], Any]:
    """Objects by kind and name."""
    found = [document for document in yaml.safe_load_all(text) if document is not None]
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(by_name) == len(found)
    return by_name


def manifest(name: str) -> dict[tuple[str, str], Any]:
    return documents((MANIFESTS / f"{name}.yaml").read_text())


def loaded(text: str) -> KubeSchedulerConfiguration:
    """A configuration as the command loads it; no warnings."""
    options = parse_options(["--config=x.yaml"])
    assert options_validation.validate(options) == []
    done = complete(options, lambda path: text.encode(), gates=FeatureGates())
    assert done.warnings == []
    return done.config


async def kubectl(config: str, *arguments: str) -> str:
    """What kubectl prints; it must succeed."""
    home = str(Path(config).parent)
    process = await asyncio.create_subprocess_exec(
        KUBECTL,
        *arguments,
        env={**os.environ, "KUBECONFIG": config, "HOME": home},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(30):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"kubectl {' '.join(arguments)}\n{output.decode()}"
    return output.decode()
