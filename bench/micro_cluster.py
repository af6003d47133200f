"""Decisions per second of one engine in memory where pods depend on each other: spreading, affinity, anti-affinity.

`python bench/micro_cluster.py [--nodes N] [--pods N] [--only NAME] [--profile]` prints a line a workload: search,
scores and assume of each pod; making the pods is not counted. Shapes follow the templates of scheduler_perf.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from skedge.api.core import Pod
from skedge.profiles.search import Search
from skedge.snapshot.pods import PodInfo
from skedge.testing.cases import Cluster

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NAMESPACES = ["sched-1", "sched-0"]
CONTAINER = {
    "name": "pause",
    "image": "registry.k8s.io/pause:3.10.2",
    "ports": [{"containerPort": 80}],
    "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
}


def node(i: int, zones: int) -> dict[str, Any]:
    name = f"node-{i:05}"
    return {
        "metadata": {"name": name, "uid": name, "labels": {HOSTNAME: name, ZONE: f"moon-{i % zones}"}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
    }


def pod(
    i: int, namespace: str = "sched-0", labels: dict[str, str] | None = None, prefix: str = "pod", **spec: Any
) -> dict[str, Any]:
    name = f"{prefix}-{i:06}"
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "labels": labels or {}}
    return {"metadata": meta, "spec": {"containers": [CONTAINER], "schedulerName": "default-scheduler", **spec}}


def spread(key: str, when: str, skew: int, color: str = "blue") -> dict[str, Any]:
    constraint = {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": color}},
    }
    return {"topologySpreadConstraints": [constraint]}


def term(key: str, color: str, **where: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key, **where}


def required(kind: str, of: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [of]}}}


def preferred(kind: str, of: dict[str, Any]) -> dict[str, Any]:
    weighted = [{"weight": 1, "podAffinityTerm": of}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


Template = Callable[[int], dict[str, Any]]


def colored(color: str, **spec: Any) -> Template:
    return lambda i: pod(i, labels={"color": color}, **spec)


DEVOPS = {"namespaceSelector": {"matchLabels": {"team": "devops"}}}
WORKLOADS: dict[str, tuple[int, Template]] = {
    # name: (zones, template of a pod)
    "plain": (3, lambda i: pod(i)),
    "hard-zone-spread": (3, colored("blue", **spread(ZONE, "DoNotSchedule", 5))),
    "hard-hostname-spread": (3, colored("blue", **spread(HOSTNAME, "DoNotSchedule", 1))),
    "preferred-zone-spread": (3, colored("blue", **spread(ZONE, "ScheduleAnyway", 5))),
    "hard-zone-affinity": (1, colored("blue", **required("podAffinity", term(ZONE, "blue", namespaces=NAMESPACES)))),
    "hard-zone-affinity-3-zones": (
        3,
        colored("blue", **required("podAffinity", term(ZONE, "blue", namespaces=NAMESPACES))),
    ),
    "hostname-anti-affinity": (
        3,
        colored("green", **required("podAntiAffinity", term(HOSTNAME, "green", namespaces=NAMESPACES))),
    ),
    "preferred-affinity": (
        3,
        colored("red", **preferred("podAffinity", term(HOSTNAME, "red", namespaces=NAMESPACES))),
    ),
    "preferred-anti-affinity": (
        3,
        colored("yellow", **preferred("podAntiAffinity", term(HOSTNAME, "yellow", namespaces=NAMESPACES))),
    ),
    "ns-selector-anti-affinity": (
        3,
        lambda i: pod(
            i,
            f"team-{i % 100}",
            {"color": "green"},
            **required("podAntiAffinity", term(HOSTNAME, "green", **DEVOPS)),
        ),
    ),
    "system-default-spreading": (3, lambda i: pod(i, labels={"app": f"app-{i % 50}"})),
}


def services() -> Iterator[dict[str, Any]]:
    for i in range(50):
        yield {
            "metadata": {"name": f"app-{i}", "namespace": "sched-0"},
            "spec": {"selector": {"app": f"app-{i}"}},
        }


def cluster_of(nodes: int, zones: int) -> Cluster:
    cluster = Cluster()
    for i in range(100):
        cluster.add("namespaces", {"metadata": {"name": f"team-{i}", "labels": {"team": "devops"}}})
    for i in range(nodes):
        cluster.add("nodes", node(i, zones))
    return cluster


def infos(template: Template, numbers: range) -> list[PodInfo]:
    return [PodInfo(msgspec.convert(template(i), Pod)) for i in numbers]


def place(cluster: Cluster, pods: list[PodInfo], rng: random.Random) -> int:
    """Decides for each pod in turn; returns how many found a node."""
    profile = cluster.profiles["default-scheduler"]
    names, assume = cluster.cache.table.names, cluster.cache.assume_pod
    placed = 0
    for info in pods:
        search = Search(profile, info)
        search.run()
        rows = search.rows
        if not len(rows):
            continue
        totals = search.scores()
        best = np.flatnonzero(totals == totals.max())
        assume(info, names[rows[best[rng.randrange(len(best))]]])
        placed += 1
    return placed


def measure(name: str, nodes: int, initial: int, pods: int, profile: bool) -> None:
    zones, template = WORKLOADS[name]
    cluster = cluster_of(nodes, zones)
    if name == "system-default-spreading":
        for service in services():
            cluster.add("services", service)
    rng = random.Random(1)
    place(cluster, infos(template, range(initial)), rng)
    measured = infos(template, range(initial, initial + pods))
    profiler = cProfile.Profile() if profile else None
    started, cpu = time.perf_counter(), time.process_time()
    if profiler is not None:
        profiler.enable()
    placed = place(cluster, measured, rng)
    if profiler is not None:
        profiler.disable()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    figures = f"{pods / seconds:9.0f} pods/s  {cpu / pods * 1e6:7.0f} µs CPU a pod"
    print(f"{name:28} {figures}  {placed} of {pods} placed", flush=True)
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(28)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--initial", type=int, default=1000, help="pods placed before the measurement")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--only", choices=sorted(WORKLOADS))
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else WORKLOADS:
        measure(name, arguments.nodes, arguments.initial, arguments.pods, arguments.profile)


if __name__ == "__main__":
    main()
