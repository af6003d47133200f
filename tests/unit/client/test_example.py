"""The controller of `examples/` does what it says, over HTTP, with failures; the surface is whole."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import skedge.client
from skedge.client import ClientConfig, RestClient

from .fakeapi import FakeApi, Reply, serving, status

EXAMPLE = Path(__file__).parents[3] / "examples" / "controller.py"


def example() -> Any:
    spec = importlib.util.spec_from_file_location("controller_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.asyncio
async def test_controller_labels_pods() -> None:
    api = FakeApi()

    def labelled() -> set[str]:
        return {name for (_, _, name), o in api.objects.items() if o["metadata"].get("labels") == {"seen-by": "skedge"}}

    def pod(name: str, **meta: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": "ns"} | meta}

    api.put("/api/v1/pods", pod("old"))
    api.put("/api/v1/pods", pod("done", labels={"seen-by": "skedge"}))
    api.fail(Reply(500, status(500, "InternalError", "etcd is tired")), method="PATCH")
    async with serving(api) as url, RestClient.connect(ClientConfig(url), qps=-1) as client:
        task = asyncio.create_task(example().control(client))
        await api.wait_until(lambda: labelled() == {"old", "done"})
        api.put("/api/v1/pods", pod("new"))
        await api.wait_until(lambda: labelled() == {"old", "done", "new"})
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert len(api.seen("PATCH")) == 3  # one failed and was tried again; the labelled one was left alone


def test_controller_without_a_cluster_says_why(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, EXAMPLE, tmp_path / "none"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == f"error: kubeconfig {tmp_path}/none: no such file or directory\n"


def test_controller_is_forty_lines_or_so() -> None:
    body = ast.parse(EXAMPLE.read_text()).body
    code = {line for node in body[1:] for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    assert len(code) <= 45


def test_public_surface() -> None:
    """`__all__` is sorted, complete, and everything in it has a docstring."""
    names = {name for name in vars(skedge.client) if not name.startswith("_")}
    modules = {name for name in names if isinstance(getattr(skedge.client, name), type(skedge.client))}
    assert set(skedge.client.__all__) == names - modules
    assert not [name for name in skedge.client.__all__ if not getattr(skedge.client, name).__doc__]
