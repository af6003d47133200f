"""The embedded control plane in a process of its own, and a scheduler on it in this one."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple

from skedge.app.plugin_files import enable
from skedge.app.process import SchedulerProcess
from skedge.client.clientconfig import ClientConfig, load_kubeconfig
from skedge.config.defaults import default_configuration
from skedge.plugins.registry import Factory
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

STOP_SECONDS = 10.0
BEGIN_SECONDS = 5.0


class LocalError(Exception):
    """The control plane did not start; the message is its last line."""


class Local(NamedTuple):
    """A running control plane; should `ended` be done, it runs no more."""

    url: str
    kubeconfig: Path
    client_config: ClientConfig
    ended: asyncio.Task[int]


@contextlib.asynccontextmanager
async def control_plane(
    *,
    nodes: str = "10",
    port: int = 0,
    data_dir: Path | None = None,
    kubeconfig: Path | None = None,
    stages: Path | None = None,
    tls_dir: Path | None = None,
) -> AsyncIterator[Local]:
    """Starts API server, controllers and fake nodes in a process of their own; ends them on the way out.

    Arguments are as `skedge up` takes them. Raises LocalError.
    """
    with tempfile.TemporaryDirectory(prefix="skedge-") as folder:
        path = kubeconfig or Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "skedge.controlplane.local", "--port", str(port), "--nodes", nodes]
        command += ["--kubeconfig-out", str(path)]
        for flag, value in (("--data-dir", data_dir), ("--stages", stages), ("--tls-dir", tls_dir)):
            if value is not None:
                command += [flag, str(value)]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        errors: list[bytes] = []
        drain = asyncio.create_task(_collect(process.stderr, errors), name="control plane stderr")
        try:
            line = (await process.stdout.readline()).decode().strip()
            if not line.startswith("ready "):
                await process.wait()
                await drain
                said = b"".join(errors).decode(errors="replace").strip().splitlines()
                raise LocalError(said[-1].removeprefix("Error: ") if said else "the control plane ended without a word")
            ended = asyncio.create_task(process.wait(), name="control plane")
            try:
                yield Local(line.split()[1], path, load_kubeconfig(path), ended)
            finally:
                ended.cancel()
                await asyncio.gather(ended, return_exceptions=True)
        finally:
            if process.returncode is None:
                process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), STOP_SECONDS)
                except TimeoutError:
                    process.kill()
                    await process.wait()
            drain.cancel()
            await asyncio.gather(drain, return_exceptions=True)


async def _collect(stream: asyncio.StreamReader, lines: list[bytes]) -> None:
    """Keeps the last lines a process wrote, so that it never blocks and its reason to end can be told."""
    while line := await stream.readline():
        lines.append(line)
        del lines[:-20]


@contextlib.asynccontextmanager
async def scheduler(local: Local, plugins: Mapping[str, Factory] | None = None) -> AsyncIterator[asyncio.Task[int]]:
    """A scheduler on a local control plane, without the limits that protect a real one; `plugins` are all enabled.

    Gives the task that it runs in, once it has begun to schedule (or waits for its lease); should that task end, no
    scheduler is there any more. Raises what makes a start impossible.
    """
    config = default_configuration()
    enable(config, plugins or {})
    config.client_connection.qps, config.client_connection.burst = -1.0, 0
    begun = asyncio.Event()
    process = SchedulerProcess(config, local.client_config, out_of_tree=plugins, synced=begun.set)
    task = asyncio.create_task(process.run(), name="scheduler")
    begins = asyncio.create_task(begun.wait(), name="scheduler begins")
    try:
        await asyncio.wait({task, begins}, timeout=BEGIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            raise LocalError(f"the scheduler did not start: status {task.result()}")
        yield task
    finally:
        process.stop()
        begins.cancel()
        await asyncio.gather(task, begins, return_exceptions=True)
