"""How many preemptions a second are decided: `python bench/micro_preemption.py [--nodes 5000] [--preemptors 1000]`.

Nodes of 4 cpu, full of low-priority pods (4 of 900m each, or what `--pods` says), preemptors of 3 cpu. Two ways:

    crowd   all preemptors are decided before a victim is gone: each sees the nominations of all before it
    steady  the victims of each are gone and it is placed before the next one comes

Prints one JSON object a way: decisions a second, and milliseconds of a decision in the search and in PostFilter.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from skedge.api.core import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from skedge.api.meta import ObjectMeta
from skedge.app.collector import calm
from skedge.framework.plugin import PostFilterResult
from skedge.profiles.search import Search
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.cases import Cluster

CAPACITY: dict[str, str | int | float] = {"cpu": "4", "memory": "32Gi", "pods": "110"}


def pod(name: str, priority: int, cpu: str, memory: str, node: str = "") -> Pod:
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": memory})
    return Pod(
        metadata=ObjectMeta(name=name, namespace="bench", uid=name, labels={"app": "low" if node else "high"}),
        spec=PodSpec(
            node_name=node,
            priority=priority,
            scheduler_name="default-scheduler",
            containers=(Container(name="c", image="pause:1", resources=requests),),
        ),
        status=PodStatus(start_time="2026-01-01T00:00:00Z" if node else None),
    )


def full_cluster(nodes: int, pods: int) -> Cluster:
    cluster = Cluster()
    cpu = f"{3600 // pods}m"
    for i in range(nodes):
        name = f"node-{i}"
        labels = {"topology.kubernetes.io/zone": f"zone-{i % 3}", "kubernetes.io/hostname": name}
        node = Node(metadata=ObjectMeta(name=name, uid=name, labels=labels), status=NodeStatus(allocatable=CAPACITY))
        cluster.cache.add_node(node)
        for k in range(pods):
            cluster.add_pod(pod(f"low-{i}-{k}", 0, cpu, "100Mi", name))
    return cluster


def decide(cluster: Cluster, info: PodInfo) -> tuple[Any, float, float]:
    profile = cluster.profile_of(info)
    assert profile is not None
    began = time.perf_counter()
    search = Search(profile, info, cluster.nominator)
    search.run()
    searched = time.perf_counter()
    result, outcome = search.preempt()
    assert isinstance(result, PostFilterResult)
    assert result.nominate, search.diagnosis.message()
    return outcome, searched - began, time.perf_counter() - searched


def measure(way: str, nodes: int, pods: int, preemptors: int) -> dict[str, Any]:
    cluster = full_cluster(nodes, pods)
    calm()
    decide(cluster, PodInfo(pod("first", 100, "3", "500Mi")))  # builds what is kept
    search = post_filter = 0.0
    began = time.perf_counter()
    for i in range(preemptors):
        info = PodInfo(pod(f"high-{i}", 100, "3", "500Mi"))
        outcome, searched, filtered = decide(cluster, info)
        search += searched
        post_filter += filtered
        if way == "crowd":
            cluster.nominator.add(PlacedPod(info, outcome.nominated))
        else:
            for victim in outcome.chosen.victims:
                cluster.cache.remove_pod(victim)
            cluster.cache.assume_pod(info, outcome.nominated)
    seconds = time.perf_counter() - began
    return {
        "way": way,
        "nodes": nodes,
        "pods_per_node": pods,
        "preemptors": preemptors,
        "decisions_per_second": round(preemptors / seconds, 1),
        "search_ms": round(1000 * search / preemptors, 3),
        "post_filter_ms": round(1000 * post_filter / preemptors, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=4, help="low-priority pods a node")
    parser.add_argument("--preemptors", type=int, default=1000)
    parser.add_argument("--way", choices=("crowd", "steady"), action="append")
    arguments = parser.parse_args()
    for way in arguments.way or ("steady", "crowd"):
        print(json.dumps(measure(way, arguments.nodes, arguments.pods, arguments.preemptors)), flush=True)


if __name__ == "__main__":
    main()
