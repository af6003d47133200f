"""Nodes to create, from a short text: `10`, `3xm5.4xlarge,2xgpu.json`.

A part is a number of nodes of the default size, or `COUNTxWHAT`: an instance type of `INSTANCE_TYPES`, or a JSON or
YAML file with a Node manifest (its labels, taints, capacity; its name is the prefix of the nodes' names).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from skedge import KUBERNETES_VERSION
from skedge.client.errors import AlreadyExists
from skedge.client.rest import RestClient
from skedge.client.timefmt import rfc3339
from skedge.controlplane.controllers.kinds import NODE
from skedge.controlplane.controllers.objects import Node
from skedge.controlplane.nodes.templates import DEFAULT_CAPACITY, NodeScene, node_address

JSON = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c")
REGION = "region-1"
_AT_ONCE = 32
_LIMIT = 50_000
_PART = re.compile(r"(?:([0-9]+)x)?(.+)")


class NodesError(ValueError):
    """The nodes asked for cannot be made; the message names the part or the file and field."""


class Instance(NamedTuple):
    """What a provider's machine offers."""

    cpu: int
    memory_gib: float
    pods: int
    gpus: int = 0
    arch: str = "amd64"


DEFAULT_TYPE = "default"
INSTANCE_TYPES: dict[str, Instance] = {
    DEFAULT_TYPE: Instance(8, 32, 110),
    "t3.medium": Instance(2, 4, 17),
    "t3.large": Instance(2, 8, 35),
    "m5.large": Instance(2, 8, 29),
    "m5.xlarge": Instance(4, 16, 58),
    "m5.2xlarge": Instance(8, 32, 58),
    "m5.4xlarge": Instance(16, 64, 234),
    "m5.8xlarge": Instance(32, 128, 234),
    "m5.24xlarge": Instance(96, 384, 737),
    "m6g.xlarge": Instance(4, 16, 58, arch="arm64"),
    "m6g.4xlarge": Instance(16, 64, 234, arch="arm64"),
    "c5.large": Instance(2, 4, 29),
    "c5.xlarge": Instance(4, 8, 58),
    "c5.2xlarge": Instance(8, 16, 58),
    "c5.4xlarge": Instance(16, 32, 234),
    "r5.large": Instance(2, 16, 29),
    "r5.xlarge": Instance(4, 32, 58),
    "r5.2xlarge": Instance(8, 64, 58),
    "r5.4xlarge": Instance(16, 128, 234),
    "g4dn.xlarge": Instance(4, 16, 29, gpus=1),
    "g4dn.12xlarge": Instance(48, 192, 234, gpus=4),
    "p3.2xlarge": Instance(8, 61, 58, gpus=1),
    "p3.8xlarge": Instance(32, 244, 234, gpus=4),
    "p4d.24xlarge": Instance(96, 1152, 737, gpus=8),
    "e2-standard-4": Instance(4, 16, 110),
    "e2-standard-8": Instance(8, 32, 110),
    "n2-standard-16": Instance(16, 64, 110),
    "Standard_D4s_v5": Instance(4, 16, 110),
    "Standard_D8s_v5": Instance(8, 32, 110),
}


def parse_nodes(text: str, directory: Path | None = None) -> list[JSON]:
    """The manifests of the nodes a text asks for; files are looked for in `directory`. Raises NodesError."""
    nodes: list[JSON] = []
    numbers: dict[str, int] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        count, template = _part(part, directory or Path())
        if len(nodes) + count > _LIMIT:
            raise NodesError(f"{part}: more than {_LIMIT} nodes in all")
        prefix = template["metadata"]["name"]
        for _ in range(count):
            number = numbers[prefix] = numbers.get(prefix, -1) + 1
            nodes.append(_numbered(template, f"{prefix}-{number}", len(nodes)))
    return nodes


def _part(part: str, directory: Path) -> tuple[int, JSON]:
    if part.isdigit():
        return int(part), _of_type(DEFAULT_TYPE)
    match = _PART.fullmatch(part)
    assert match is not None  # the second group takes anything
    count, what = int(match[1] or 1), match[2]
    if what in INSTANCE_TYPES:
        return count, _of_type(what)
    if Path(what).suffix in (".json", ".yaml", ".yml"):
        return count, _from_file(directory / what)
    known = ", ".join(INSTANCE_TYPES)
    raise NodesError(f"{what} is neither a number, nor a .json or .yaml file, nor a known instance type ({known})")


def _of_type(name: str) -> JSON:
    instance = INSTANCE_TYPES[name]
    memory = f"{int(instance.memory_gib * 1024)}Mi"
    capacity = {"cpu": str(instance.cpu), "memory": memory, "ephemeral-storage": "100Gi", "pods": str(instance.pods)}
    if instance.gpus:
        capacity["nvidia.com/gpu"] = str(instance.gpus)
    labels = {"kubernetes.io/arch": instance.arch, "node.kubernetes.io/instance-type": name}
    prefix = "node" if name == DEFAULT_TYPE else re.sub(r"[^a-z0-9]+", "-", name.lower())
    return {"metadata": {"name": prefix, "labels": labels}, "spec": {}, "status": {"capacity": capacity}}


def _from_file(path: Path) -> JSON:
    try:
        text = path.read_text("utf-8")
        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise NodesError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise NodesError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or found.get("kind", "Node") != "Node":
        raise NodesError(f"{path}: expected a Node manifest (kind: Node)")
    template: JSON = {"metadata": {}, "spec": {}, "status": {}, **found}
    template["metadata"] = {"name": path.stem, **(template["metadata"] or {})}
    try:
        msgspec.convert(template, Node)
    except msgspec.ValidationError as error:
        raise NodesError(f"{path}: {error}") from None
    return template


def _numbered(template: JSON, name: str, index: int) -> JSON:
    """One node: the template with its name, and labels of host, zone (in turn), region, architecture and system."""
    meta, status = template["metadata"], template.get("status") or {}
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
        "topology.kubernetes.io/region": REGION,
        **(meta.get("labels") or {}),
        "kubernetes.io/hostname": name,
    }
    capacity = {key: str(amount) for key, amount in {**DEFAULT_CAPACITY, **(status.get("capacity") or {})}.items()}
    allocatable = {key: str(amount) for key, amount in {**capacity, **(status.get("allocatable") or {})}.items()}
    kept = {key: value for key, value in meta.items() if key in ("annotations",) and value}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, **kept},
        "spec": template.get("spec") or {},
        "status": {**status, "capacity": capacity, "allocatable": allocatable},
    }


async def create_nodes(client: RestClient, nodes: Sequence[JSON]) -> None:
    """Register nodes, ready from the start; those that exist already stay as they are."""
    now = rfc3339(client.clock.now())

    async def create(node: JSON) -> None:
        name = node["metadata"]["name"]
        scene = NodeScene(msgspec.convert(node, Node), now, node_address(name), KUBERNETES_VERSION)
        status = {
            **node["status"],
            "phase": "Running",
            "conditions": scene.conditions(True),
            "addresses": scene.addresses(),
            "nodeInfo": scene.info(),
        }
        try:
            await client.request("POST", NODE.path(), body={**node, "status": status})
        except AlreadyExists:
            pass

    for some in _batches(nodes):
        async with asyncio.TaskGroup() as group:
            for node in some:
                group.create_task(create(node), name=f"create node {node['metadata']['name']}")


def _batches(nodes: Sequence[JSON]) -> Iterable[Sequence[JSON]]:
    return (nodes[start : start + _AT_ONCE] for start in range(0, len(nodes), _AT_ONCE))
