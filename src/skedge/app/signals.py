"""Signals of the process: ask for an orderly end, end at once, dump. Upstream: `apiserver/pkg/server/signal.go`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable


class Signals:
    """The first SIGTERM or SIGINT asks for an end, the second one ends the process at once with status 1.

    Installed before there is a loop; what came until `connect` is made up for then. SIGUSR2 is ignored until then.
    """

    def __init__(self) -> None:
        self.stopping = False
        self._stop: Callable[[], object] = lambda: None
        self._dump: Callable[[], object] = lambda: None

    def install(self) -> None:
        """Take the signals over; on the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._asked_to_end())
        if hasattr(signal, "SIGUSR2"):
            signal.signal(signal.SIGUSR2, lambda *_: self._dump())

    def connect(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None], dump: Callable[[], None]) -> None:
        """Have `stop` and `dump` called on the loop."""
        self._stop = lambda: loop.call_soon_threadsafe(stop)
        self._dump = lambda: loop.call_soon_threadsafe(dump)
        if self.stopping:
            stop()

    def disconnect(self) -> None:
        """The loop is about to end."""
        self._stop = self._dump = lambda: None

    def _asked_to_end(self) -> None:
        if self.stopping:
            os._exit(1)
        self.stopping = True
        self._stop()
