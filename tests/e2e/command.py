"""The real command in a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml


def kubeconfig(folder: Path, server: str, token: str = "", *, name: str = "kubeconfig", **cluster: object) -> str:
    """A kubeconfig file; its path."""
    path = folder / name
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


class Command:
    """`skedge scheduler` with some flags; what it wrote so far is in `text`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: list[str] = []
        self._grew = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="output")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self.lines.append(line.decode(errors="replace").rstrip("\n"))
            self._grew.set()
        self._grew.set()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def code(self) -> int | None:
        """The exit status, None while it runs."""
        return self._process.returncode

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def says(self, pattern: str, seconds: float = 20.0) -> re.Match[str]:
        """Waits for output that matches."""
        try:
            async with asyncio.timeout(seconds):
                while (found := re.search(pattern, self.text)) is None:
                    assert self._process.returncode is None or not self._reading.done(), (
                        f"ended without: {pattern}\n{self.text}"
                    )
                    self._grew.clear()
                    await self._grew.wait()
        except TimeoutError:
            raise AssertionError(f"did not say: {pattern}\n{self.text}") from None
        return found

    async def ended(self, seconds: float = 20.0) -> int:
        """Waits for the end; the exit status."""
        async with asyncio.timeout(seconds):
            status = await self._process.wait()
            await self._reading
        assert "Traceback" not in self.text
        return status

    async def https_port(self) -> int:
        found = await self.says(r'"Serving securely" address="[^"]*" port=(\d+)')
        return int(found[1])

    async def close(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading


@asynccontextmanager
async def scheduler(*flags: str, **environment: str) -> AsyncIterator[Command]:
    """Runs the command; killed at the end of the block if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "skedge",
        "scheduler",
        *flags,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "KUBERNETES_SERVICE_HOST": "", **environment},
    )
    command = Command(process)
    try:
        yield command
    finally:
        await command.close()
