"""`skedge up`: embedded control plane, fake nodes and the scheduler, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from skedge.app import local
from skedge.app.plugin_files import load_plugins
from skedge.cli.arguments import Parser, port
from skedge.cli.scheduler import run_loop
from skedge.client.errors import ClientError
from skedge.config.fields import ConfigError
from skedge.plugins.registry import Factory
from skedge.telemetry.logs import configure


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="skedge up", description="A cluster to try things on, without a cluster.")
    made.add_argument(
        "--nodes", default="10", metavar="N", help="fake nodes: how many, or like 3xm5.4xlarge,2xgpu.json"
    )
    made.add_argument("--port", type=port, default=0, help="port of the API server (default: any free one)")
    made.add_argument("--data-dir", type=Path, help="keep everything in this folder (default: in memory)")
    made.add_argument(
        "--stages", type=Path, metavar="FILE", help="YAML that says what fake nodes and their pods do, and when"
    )
    made.add_argument(
        "--tls-dir", type=Path, metavar="DIR", help="HTTPS with certificates from this folder (made there), and RBAC"
    )
    made.add_argument("--kubeconfig-out", type=Path, metavar="FILE", help="where to write the kubeconfig")
    made.add_argument(
        "--plugin", action="append", default=[], metavar="FILE.py:CLASS", help="a scheduler plugin of your own"
    )
    made.add_argument("-v", type=int, default=0, dest="verbosity", metavar="LEVEL", help="verbosity of the scheduler")
    return made


def run(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    handler = configure(level=arguments.verbosity)
    if not arguments.verbosity:
        handler.setLevel(logging.WARNING)
    try:
        return run_loop(_up(arguments, load_plugins(arguments.plugin)))
    except (ConfigError, local.LocalError, ClientError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


async def _up(arguments: argparse.Namespace, plugins: Mapping[str, Factory]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    plane = local.control_plane(
        nodes=arguments.nodes,
        port=arguments.port,
        data_dir=arguments.data_dir,
        kubeconfig=arguments.kubeconfig_out,
        stages=arguments.stages,
        tls_dir=arguments.tls_dir,
    )
    async with plane as running, local.scheduler(running, plugins) as scheduling:
        print(f"API server   {running.url}")
        print(f"kubeconfig   {running.kubeconfig}")
        print()
        print(f"  export KUBECONFIG={running.kubeconfig}")
        print("  kubectl create deployment web --image=nginx --replicas=20")
        print("  kubectl get pods -o wide")
        print("  kubectl get nodes")
        print()
        print("Ctrl-C stops it.", flush=True)
        stopped = asyncio.create_task(stop.wait(), name="stop")
        await asyncio.wait({stopped, scheduling, running.ended}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if running.ended.done():
            raise local.LocalError(f"the control plane has ended: status {running.ended.result()}")
        if scheduling.done():
            raise local.LocalError("the scheduler has ended")
    return 0
