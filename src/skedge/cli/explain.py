"""`skedge explain`: why a pod is not placed, or where it would go, and what would help. Reads only.

The objects come from a cluster, each kind listed once, or from files.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from skedge.api.decode import KINDS
from skedge.app.watches import UNFINISHED, WATCHED
from skedge.cli.arguments import Parser
from skedge.cli.scheduler import run_loop
from skedge.client.clientconfig import ClientConfig, load_kubeconfig
from skedge.client.errors import ClientError, NotFound
from skedge.client.rest import RestClient
from skedge.config.complete import complete
from skedge.config.fields import ConfigError
from skedge.config.flag_parser import UsageError
from skedge.config.gates import FeatureGates
from skedge.config.options import feature_gates, parse_options
from skedge.config.types import KubeSchedulerConfiguration
from skedge.simulate.explain import explain
from skedge.simulate.objects import ObjectError, Objects
from skedge.simulate.report import render
from skedge.snapshot.pods import PodInfo
from skedge.telemetry.logs import configure

USER_AGENT: Final = "skedge-explain"
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ExplainError(Exception):
    """What stands between a user and an explanation, in one line."""


class Setup(NamedTuple):
    config: KubeSchedulerConfiguration
    gates: FeatureGates


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="skedge explain", description=__doc__)
    made.add_argument("pod", nargs="+", metavar="POD", help="pod NAMESPACE/NAME, or only NAMESPACE/NAME or NAME")
    made.add_argument("-n", "--namespace", default="", metavar="NAME", help="namespace of a pod given by name alone")
    made.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="objects as JSON or YAML (kubectl get -o json), instead of a cluster's; - is stdin; may be repeated",
    )
    made.add_argument("--kubeconfig", metavar="FILE", help="the cluster (default: $KUBECONFIG, ~/.kube/config)")
    made.add_argument("--context", default="", metavar="NAME", help="context of the kubeconfig (default: current)")
    made.add_argument("--config", default="", metavar="FILE", help="the scheduler's configuration (default: defaults)")
    made.add_argument("--policy-config-file", default="", metavar="FILE", help="a legacy Policy instead of --config")
    made.add_argument("--feature-gates", default="", metavar="NAME=BOOL,...", help="as for the scheduler")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="form of the answer")
    made.add_argument("--nodes", choices=("some", "all"), default="some", help="nodes that the text lists")
    made.add_argument("--no-hints", action="store_true", help="do not look for what would help")
    return made


def run(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    configure(level=0)
    try:
        return _run(arguments)
    except (ExplainError, ObjectError, ConfigError, UsageError, ClientError) as error:
        print(f"Error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    namespace, name = pod_name(arguments.pod, arguments.namespace)
    setup = _setup(arguments)
    objects = Objects()
    if arguments.filename:
        for path in arguments.filename:
            objects.add(read_documents(path), path)
        namespace = namespace or "default"
    else:
        client_config = load_kubeconfig(arguments.kubeconfig, context=arguments.context)
        namespace = namespace or client_config.namespace
        run_loop(_fetched(objects, client_config, setup.gates, namespace, name))
    cluster = objects.cluster(setup.config, gates=setup.gates)
    pod = objects.pod(f"{namespace}/{name}")
    if pod is None:
        raise ExplainError(f'pods "{name}" not found in namespace "{namespace}"')
    found = explain(cluster, PodInfo(pod), hints=not arguments.no_hints)
    if arguments.output == "json":
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print(render(found, all_nodes=arguments.nodes == "all"), end="")
    return 0


def pod_name(words: Sequence[str], namespace: str) -> tuple[str, str]:
    """(namespace or "", name) of `pod NS/NAME`, `pod NAME`, `pod/NAME`, `NS/NAME` or `NAME`. Raises ExplainError."""
    kinds = ("pod", "pods", "po")
    given = list(words)
    if len(given) == 2 and given[0] in kinds:
        given = given[1:]
    if len(given) != 1:
        raise ExplainError(f"expected one pod, as in `skedge explain pod NAMESPACE/NAME`, got {' '.join(words)!r}")
    parts = given[0].split("/")
    if len(parts) == 2 and parts[0] in kinds and len(words) == 1:
        parts = parts[1:]
    if len(parts) > 2 or not all(parts):
        raise ExplainError(f"{given[0]!r} is no pod: expected NAMESPACE/NAME")
    if len(parts) == 2:
        if namespace not in ("", parts[0]):
            raise ExplainError(f"--namespace {namespace} contradicts {given[0]!r}")
        return parts[0], parts[1]
    return namespace, parts[0]


def _setup(arguments: argparse.Namespace) -> Setup:
    """The configuration a scheduler with these flags would run. Raises ConfigError and UsageError."""
    names = ("config", "policy_config_file", "feature_gates")
    given = {name.replace("_", "-"): getattr(arguments, name) for name in names if getattr(arguments, name)}
    options = parse_options([f"--{name}={value}" for name, value in given.items()])
    gates, _ = feature_gates(options)
    return Setup(complete(options, lambda path: Path(path).read_bytes(), gates=gates).config, gates)


# --- objects ----------------------------------------------------------------------------------------------------------


def read_documents(path: str) -> list[Any]:
    """The documents of a JSON or YAML file, or of stdin (`-`). Raises ExplainError."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ExplainError(f"{path}: {error.strerror or error}") from None
    if data.lstrip().startswith(b"{"):
        try:
            return [msgspec.json.decode(data)]
        except msgspec.DecodeError:
            pass  # YAML may begin so too, and says the line
    try:
        return list(yaml.load_all(data, Loader=_Loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark is not None else ""
        raise ExplainError(f"{path}:{line} {getattr(error, 'problem', None) or 'malformed YAML'}") from None
    except UnicodeDecodeError:
        raise ExplainError(f"{path}: the file is no UTF-8 text") from None


async def _fetched(objects: Objects, config: ClientConfig, gates: FeatureGates, namespace: str, name: str) -> int:
    async with RestClient.connect(config, user_agent=USER_AGENT, qps=-1.0) as client:
        await fetch(objects, client, gates, namespace, name)
    return 0


async def fetch(objects: Objects, client: RestClient, gates: FeatureGates, namespace: str, name: str) -> None:
    """Lists all a scheduler reads. The pod itself first: whether it is there decides. Raises ClientError."""
    pod = await client.get(KINDS["Pod"].path(namespace, name))
    kinds = ["Node", "Pod", *_read_kinds(gates)]
    answers = await asyncio.gather(*(_list(client, kind) for kind in kinds), return_exceptions=True)
    for kind, answer in zip(kinds, answers, strict=True):
        if isinstance(answer, NotFound) and kind not in ("Node", "Pod"):
            continue  # this server does not have the kind
        if isinstance(answer, BaseException):
            raise answer
        objects.add_items(kind, answer)
    objects.add_items("Pod", [pod])


def _read_kinds(gates: FeatureGates) -> Iterable[str]:
    return (watched.kind for watched in WATCHED if not watched.gate or gates.enabled(watched.gate))


async def _list(client: RestClient, kind: str) -> list[dict[str, Any]]:
    found = await client.list(KINDS[kind].path(), field_selector=UNFINISHED if kind == "Pod" else "")
    items: list[dict[str, Any]] = found["items"]
    return items
