"""A cluster with pod groups, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skedge.config.gates import FeatureGates
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.harness import Harness

GATES = ("GenericWorkload", "GangScheduling")
TOPOLOGY = (*GATES, "TopologyAwareWorkloadScheduling")
PREEMPTION = (*GATES, "WorkloadAwarePreemption")


def groups(*gates: str, nodes: Mapping[str, str] | int = 1, cpu: str = "4", **options: Any) -> Harness:
    """`nodes`: how many, or the rack of each by name."""
    harness = Harness(gates=FeatureGates(**dict.fromkeys(gates or GATES, True)), **options)
    named = nodes if isinstance(nodes, Mapping) else {f"n{i}": "" for i in range(nodes)}
    for name, rack in named.items():
        node = make_node(name).capacity(cpu=cpu)
        harness.add_node(node.label(rack=rack) if rack else node)
    return harness


def gang(
    harness: Harness,
    name: str = "g",
    min_count: int | None = 3,
    *,
    priority: int | None = None,
    topology: str | None = None,
    whole: bool = False,
) -> None:
    """A PodGroup; without `min_count` of the basic policy."""
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec: dict[str, Any] = {"schedulingPolicy": policy, "disruptionMode": "PodGroup" if whole else "Pod"}
    if priority is not None:
        spec["priority"] = priority
    if topology is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    harness.put(
        "PodGroup",
        {"metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}", "generation": 1}, "spec": spec},
    )


def member(name: str, group: str = "g", cpu: str = "1") -> PodBuilder:
    pod = make_pod(name).req(cpu=cpu)
    pod.json["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


def group_condition(harness: Harness, name: str = "g") -> tuple[str, str, str]:
    """(status, reason, message) of PodGroupScheduled."""
    conditions = harness.objects["PodGroup", f"default/{name}"].get("status", {}).get("conditions", [])
    found = next((each for each in conditions if each["type"] == "PodGroupScheduled"), None)
    return ("", "", "") if found is None else (found["status"], found["reason"], found["message"])


def placed(harness: Harness) -> dict[str, str]:
    """Pods that have a node, by name."""
    return {key.split("/")[1]: node for key in harness.json if (node := harness.node_of(key.split("/")[1]))}
