"""`python -m skedge.controlplane --port P [--data-dir D]`: an API server as a process of its own.

Prints one line, its address, once it answers; ends on SIGINT and SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
import sys
from pathlib import Path

from skedge.controlplane.server import ControlPlane


async def serve(port: int, host: str = "127.0.0.1", data_dir: Path | None = None) -> None:
    """Run a server until a signal; prints its address when it is ready."""
    plane = ControlPlane(port, data_dir, host=host)
    await plane.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    print(f"ready {plane.url}", flush=True)
    gc.freeze()
    await stop.wait()
    await plane.stop()


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m skedge.controlplane", allow_abbrev=False)
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--data-dir", type=Path, default=None, help="keep the state in this directory (default: memory)"
    )
    options = parser.parse_args(arguments)
    gc.set_threshold(50_000, 20, 50)
    run = serve(options.port, options.host, options.data_dir)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            try:
                import uvloop
            except ImportError:
                asyncio.run(run)
            else:
                uvloop.run(run)
    except OSError as e:
        print(f"cannot serve on {options.host}:{options.port}: {e.strerror or e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
