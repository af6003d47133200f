"""The cluster as a process of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from skedge.client.clientconfig import load_kubeconfig
from skedge.client.rest import RestClient
from skedge.controlplane.local import LocalCluster


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "skedge.controlplane.local",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
async def test_one_ready_line_and_a_clean_end(tmp_path: Path, end: signal.Signals) -> None:
    file = tmp_path / "kubeconfig"
    process = await _start("--nodes", "2", "--kubeconfig-out", str(file))
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("ready http://127.0.0.1:")
    config = load_kubeconfig(file)
    assert line == f"ready {config.server}\n"
    async with RestClient.connect(config) as client:
        assert len((await client.list("/api/v1/nodes"))["items"]) == 2
    process.send_signal(end)
    rest, errors = await process.communicate()
    assert (process.returncode, rest, errors) == (0, b"", b"")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--nodes", "3xhuge"), "Error: huge is neither a number"),
        (("--stages", "/nonexistent.yaml"), "Error: "),
        (("--host", "x"), "unrecognized arguments"),
        (("--data-dir", "/proc/none"), "Error: /proc/none: No such file or directory"),
    ],
)
async def test_wrong_arguments(arguments: tuple[str, ...], problem: str) -> None:
    process = await _start(*arguments)
    _, errors = await process.communicate()
    assert process.returncode in (1, 2)
    assert problem in errors.decode()
    assert "Traceback" not in errors.decode()


@pytest.mark.asyncio
async def test_an_occupied_port_is_one_line() -> None:
    async with LocalCluster() as cluster:
        process = await _start("--port", str(cluster.plane.port))
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.decode().startswith("Error: ")
    assert len(errors.decode().splitlines()) == 1


@pytest.mark.asyncio
async def test_a_failure_inside_the_block_comes_out_and_everything_ends(tmp_path: Path) -> None:
    with pytest.raises(BaseExceptionGroup) as info:
        async with LocalCluster(kubeconfig=tmp_path / "k"):
            raise LookupError("mine")
    assert info.group_contains(LookupError, match="mine", depth=1)
