"""`python -m skedge.controlplane --port P [--data-dir D] [--tls-dir T] [--token-file F]`: an API server process.

Prints one line, its address, once it answers; ends on SIGINT and SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import gc
import signal
import ssl
import sys
import time
from pathlib import Path

from skedge.controlplane.access import Access, User
from skedge.controlplane.server import ControlPlane
from skedge.controlplane.tls import ServerTLS, certificates


async def serve(
    port: int,
    host: str = "127.0.0.1",
    data_dir: Path | None = None,
    tls: ServerTLS | None = None,
    access: Access | None = None,
) -> None:
    """Run a server until a signal; prints its address when it is ready."""
    plane = ControlPlane(port, data_dir, host=host, tls=tls, access=access)
    await plane.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    print(f"ready {plane.url}", flush=True)
    gc.freeze()
    await stop.wait()
    await plane.stop()


def read_tokens(path: Path) -> dict[str, User]:
    """Tokens of a CSV file, `token,user,uid[,"group,group"]` a line. Raises ValueError naming the line."""
    tokens: dict[str, User] = {}
    with path.open(newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            if not row:
                continue
            if len(row) < 3 or not row[0] or not row[1]:
                raise ValueError(f'{path}, line {number}: expected token,user,uid[,"groups"]')
            groups = tuple(g.strip() for g in row[3].split(",") if g.strip()) if len(row) > 3 else ()
            tokens[row[0]] = User(row[1], groups, row[2])
    return tokens


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m skedge.controlplane", allow_abbrev=False)
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--data-dir", type=Path, default=None, help="keep the state in this directory (default: memory)"
    )
    text = "serve HTTPS with certificates from this directory (ca.crt, admin.crt, ... are made there) and evaluate RBAC"
    parser.add_argument("--tls-dir", type=Path, default=None, help=text)
    text = 'CSV file of bearer tokens (token,user,uid,"groups"); RBAC is evaluated'
    parser.add_argument("--token-file", type=Path, default=None, help=text)
    options = parser.parse_args(arguments)
    gc.set_threshold(50_000, 20, 50)
    try:
        tokens = read_tokens(options.token_file) if options.token_file else {}
        tls = certificates(options.tls_dir, options.host, time.time()) if options.tls_dir else None
        access = Access(tokens) if tls is not None or tokens else None
        run = serve(options.port, options.host, options.data_dir, tls, access)
        with contextlib.suppress(KeyboardInterrupt):
            try:
                import uvloop
            except ImportError:
                asyncio.run(run)
            else:
                uvloop.run(run)
    except (OSError, ssl.SSLError) as e:
        print(f"cannot serve on {options.host}:{options.port}: {e}", file=sys.stderr)
        return 1
    except ValueError as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
