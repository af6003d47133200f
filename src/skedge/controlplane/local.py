"""A whole cluster in one process, but for its scheduler: API server, controllers, fake nodes.

    python -m skedge.controlplane.local --port P --nodes N --data-dir D --kubeconfig-out F

prints `ready URL` when the nodes are registered, and ends on SIGINT or SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec

from skedge.client.clientconfig import ClientConfig
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.errors import ClientError, one_line
from skedge.client.informer import InformerFactory
from skedge.client.rest import RestClient
from skedge.client.tls import TlsConfig
from skedge.clock import Clock
from skedge.controlplane.access import Access
from skedge.controlplane.bootstrap import add_storage_class
from skedge.controlplane.controllers.all import CONTROLLERS
from skedge.controlplane.controllers.base import Context, Controller
from skedge.controlplane.nodes.fake import FakeNodes
from skedge.controlplane.nodes.inventory import NodesError, create_nodes, parse_nodes
from skedge.controlplane.nodes.stages import StageError, Stages, load_stages
from skedge.controlplane.server import ControlPlane
from skedge.controlplane.tls import certificates


async def run_controllers(
    config: ClientConfig,
    *,
    stages: Stages | None = None,
    nodes: Sequence[dict[str, Any]] = (),
    fake_nodes: bool = True,
    controllers: Sequence[Callable[[Context], Controller]] = CONTROLLERS,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Run controllers and fake nodes against an API server until cancelled.

    `nodes` are registered first, then `started` is called. Raises ClientError when that fails, and whatever ends a
    controller (a bug: what goes wrong with one object is logged and tried again).
    """
    rng = rng or random.Random()
    async with (
        RestClient.connect(config, user_agent="skedge-controllers", qps=-1, clock=clock, rng=rng) as client,
        CoreEventBroadcaster(client) as events,
        InformerFactory(client) as factory,
    ):
        context = Context(client, factory, events, rng)
        running: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = [
            (each.name, each.run) for each in (make(context) for make in controllers)
        ]
        if fake_nodes:
            running.append(("fake nodes", FakeNodes(context, stages, rng=rng).run))
        factory.start()
        await create_nodes(client, nodes)
        async with asyncio.TaskGroup() as group:
            for name, run in running:
                group.create_task(run(), name=name)
            await factory.wait_for_sync()
            started()


class LocalCluster:
    """An API server with controllers and fake nodes; an async context manager.

    Inside the block `url` and `config` reach it; leaving the block ends everything. If a controller fails, the block is
    cancelled and the error comes out. `plane` may be given, not yet started.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        nodes: str = "0",
        stages: Stages | None = None,
        kubeconfig: Path | None = None,
        plane: ControlPlane | None = None,
        connect: Callable[[str], ClientConfig] = ClientConfig,
        storage_class: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        controllers: Sequence[Callable[[Context], Controller]] = CONTROLLERS,
    ) -> None:
        """`nodes` is a text as in inventory.py. `kubeconfig` names a file to write; `connect` makes of the URL how
        clients reach the server, by default one that lets everybody in. With `storage_class` a new cluster has a
        default one. Raises NodesError.
        """
        self.plane = plane or ControlPlane(port, clock=clock, rng=rng)
        self.kubeconfig = kubeconfig
        self._nodes = parse_nodes(nodes)
        self._connect = connect
        self._storage_class = storage_class
        self._stages, self._clock, self._rng, self._controllers = stages, clock, rng, controllers
        self._group = asyncio.TaskGroup()
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return self.plane.url

    @property
    def config(self) -> ClientConfig:
        """How clients reach the cluster."""
        return self._connect(self.plane.url)

    async def __aenter__(self) -> LocalCluster:
        await self.plane.start()
        if self._storage_class and self.plane.is_new:
            add_storage_class(self.plane.cluster)
        if self.kubeconfig is not None:
            self.kubeconfig.write_bytes(kubeconfig(self.url, self.config.tls))
        await self._group.__aenter__()
        started = asyncio.Event()
        run = run_controllers(
            self.config,
            stages=self._stages,
            nodes=self._nodes,
            controllers=self._controllers,
            clock=self._clock,
            rng=self._rng,
            started=started.set,
        )
        self._task = self._group.create_task(run, name="controllers")
        waiting = self._group.create_task(started.wait(), name="controllers started")
        try:
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        if self._task is not None:
            self._task.cancel()
        try:
            await self._group.__aexit__(*exc)
        finally:
            await self.plane.stop()


def kubeconfig(url: str, tls: TlsConfig | None = None) -> bytes:
    """A kubeconfig for a server that lets everybody in, or whoever has the certificate of `tls`."""
    cluster, user = {"server": url}, {}
    if tls is not None and tls.ca_file:
        cluster["certificate-authority"] = tls.ca_file
        user = {"client-certificate": tls.cert_file, "client-key": tls.key_file}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "skedge", "cluster": cluster}],
        "users": [{"name": "skedge", "user": user}],
        "contexts": [{"name": "skedge", "context": {"cluster": "skedge", "user": "skedge"}}],
        "current-context": "skedge",
    }
    return msgspec.yaml.encode(document)


async def serve(
    port: int, nodes: str, stages: Stages, data_dir: Path | None, out: Path | None, tls_dir: Path | None = None
) -> None:
    """Run a cluster until a signal; prints its address when it is ready. `tls_dir`: with TLS and RBAC."""
    connect: Callable[[str], ClientConfig] = ClientConfig
    if tls_dir is None:
        plane = ControlPlane(port, data_dir)
    else:
        serving = certificates(tls_dir, "127.0.0.1", time.time())
        plane = ControlPlane(port, data_dir, tls=serving, access=Access({}))
        ca, cert, key = (str(tls_dir / name) for name in ("ca.crt", "admin.crt", "admin.key"))
        connect = functools.partial(ClientConfig, tls=TlsConfig(ca_file=ca, cert_file=cert, key_file=key))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    local = LocalCluster(nodes=nodes, stages=stages, kubeconfig=out, plane=plane, connect=connect, storage_class=True)
    async with local as cluster:
        print(f"ready {cluster.url}", flush=True)
        gc.freeze()
        await stop.wait()


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m skedge.controlplane.local", allow_abbrev=False)
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    parser.add_argument("--nodes", default="10", help="fake nodes: a number, or 3xm5.4xlarge,2xgpu.json (default: 10)")
    parser.add_argument("--stages", type=Path, default=None, help="YAML file that says what fake nodes do, and when")
    parser.add_argument("--data-dir", type=Path, default=None, help="keep everything in this folder (default: memory)")
    parser.add_argument("--kubeconfig-out", type=Path, default=None, help="write a kubeconfig to this file")
    text = "serve HTTPS with certificates from this folder (made there where they are missing) and evaluate RBAC"
    parser.add_argument("--tls-dir", type=Path, default=None, help=text)
    options = parser.parse_args(arguments)
    gc.set_threshold(50_000, 20, 50)
    try:
        stages = load_stages(options.stages)
        out = options.kubeconfig_out
        tls_dir = Path(os.path.abspath(options.tls_dir)) if options.tls_dir else None
        run = serve(options.port, options.nodes, stages, options.data_dir, out, tls_dir)
        try:
            import uvloop
        except ImportError:
            asyncio.run(run)
        else:
            uvloop.run(run)
    except Exception as error:
        why = _cause(error)
        if not isinstance(why, NodesError | StageError | ClientError | OSError):
            raise
        text = why.strerror if isinstance(why, OSError) and why.strerror else one_line(why)
        return _failed(f"{why.filename}: {text}" if isinstance(why, OSError) and why.filename else text)
    return 0


def _cause(error: BaseException) -> BaseException:
    """The error itself, or the first one of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _failed(why: str) -> int:
    print(f"Error: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
