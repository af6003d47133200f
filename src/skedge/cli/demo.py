"""`skedge demo`: example workloads on an embedded control plane, and where their pods went."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from skedge.app import local
from skedge.cli.arguments import Parser
from skedge.cli.manifests import ManifestError, create_all, default_manifests, read_manifests
from skedge.cli.scheduler import run_loop
from skedge.client.errors import ClientError
from skedge.client.rest import RestClient
from skedge.telemetry.logs import configure

PATIENCE: Final = 30.0
"""Seconds after which pods that still are on their way are shown as they are."""
PAUSE: Final = 0.1


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="skedge demo", description=__doc__.split(":", 1)[1].strip())
    made.add_argument("--nodes", default="10", metavar="N", help="fake nodes, as for `skedge up`")
    made.add_argument("manifests", nargs="*", type=Path, help="YAML files (default: the examples)")
    return made


def run(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    configure().setLevel(logging.WARNING)
    try:
        objects = read_manifests(arguments.manifests) if arguments.manifests else default_manifests()
        return run_loop(_demo(arguments.nodes, objects))
    except (local.LocalError, ClientError, ManifestError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


async def _demo(nodes: str, objects: Sequence[dict[str, Any]]) -> int:
    from rich.console import Console

    console = Console(highlight=False)
    async with (
        local.control_plane(nodes=nodes) as running,
        local.scheduler(running),
        RestClient.connect(running.client_config, user_agent="skedge-demo", qps=-1.0) as client,
    ):
        await create_all(client, objects)
        wanted = sum(_replicas(obj) for obj in objects)
        with console.status("creating pods") as status:
            pods = await _settled(client, wanted, status.update)
        events = await client.list("/api/v1/events")
    _show(console, pods, events["items"])
    return 0


def _replicas(obj: dict[str, Any]) -> int:
    if obj["kind"] == "Pod":
        return 1
    return (
        int(obj.get("spec", {}).get("replicas", 1)) if obj["kind"] in ("Deployment", "ReplicaSet", "StatefulSet") else 0
    )


async def _settled(client: RestClient, wanted: int, show: Any) -> list[dict[str, Any]]:
    """Waits until every pod runs, or is known not to fit; the pods."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while True:
        pods: list[dict[str, Any]] = (await client.list("/api/v1/pods"))["items"]
        states = Counter(_state(pod) for pod in pods)
        told = ", ".join(f"{n} {state}" for state, n in sorted(states.items()))
        show(f"{len(pods)} of {wanted} pods: {told}")
        if len(pods) >= wanted and not states["new"] and not states["bound"]:
            return pods
        if loop.time() > end:
            return pods
        await asyncio.sleep(PAUSE)


def _state(pod: dict[str, Any]) -> str:
    status = pod.get("status", {})
    if status.get("phase") == "Running":
        return "running"
    if pod["spec"].get("nodeName"):
        return "bound"
    return "pending" if _scheduled_condition(pod) else "new"


def _scheduled_condition(pod: dict[str, Any]) -> dict[str, Any] | None:
    conditions = pod.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), None)


def _show(console: Any, pods: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("POD", "NODE", "STATUS", box=None, pad_edge=False, header_style="")
    pending = []
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        node = pod["spec"].get("nodeName", "")
        if not node:
            pending.append(pod)
        table.add_row(pod["metadata"]["name"], node or "<none>", pod.get("status", {}).get("phase", ""))
    console.print(table)
    for pod in pending:
        console.print(f"\n{pod['metadata']['name']} is Pending. kubectl describe pod says:")
        notes = [e for e in events if e.get("involvedObject", {}).get("uid") == pod["metadata"]["uid"]]
        for event in notes[-1:]:
            console.print(f"  {event['type']}  {event['reason']}  {event['message']}", soft_wrap=True)
        condition = _scheduled_condition(pod)
        if condition is not None and not notes:
            console.print(f"  PodScheduled  False  {condition['reason']}: {condition['message']}", soft_wrap=True)
