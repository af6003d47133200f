"""Configurations at random: arguments, plugins off, on, in another order and with other weights."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
API = "kubescheduler.config.k8s.io/v1"
RESOURCES = (
    "cpu", "memory", "ephemeral-storage", "example.com/gpu", "nvidia.com/gpu", "hugepages-2Mi", "vendor.io/fpga",
    "storage", "kubernetes.io/odd",
)  # fmt: skip
FILTERS = (
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "NodeDeclaredFeatures", "DynamicResources",
)  # fmt: skip
PREPARING = tuple(name for name in FILTERS if name not in ("NodeUnschedulable", "NodeName", "TaintToleration"))
SCORES = (
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", "ImageLocality",
    "NodeResourcesBalancedAllocation",
)  # fmt: skip
PRE_SCORES = tuple(name for name in SCORES if name != "ImageLocality")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def configuration(rng: random.Random) -> Json:
    """One profile, of the default name."""
    profile: Json = {"schedulerName": "default-scheduler"}
    args = {name: make(rng) for name, make in ARGS.items() if rng.random() < 0.35}
    if args:
        profile["pluginConfig"] = [{"name": name, "args": each} for name, each in args.items()]
    if rng.random() < 0.6:
        profile["plugins"] = _plugins(rng)
    found = {"apiVersion": API, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    return {**found, "percentageOfNodesToScore": 100}


def _plugins(rng: random.Random) -> Json:
    found: Json = {}

    def some(names: tuple[str, ...], most: int) -> list[str]:
        return rng.sample(names, rng.randrange(1, most + 1))

    def off(point: str, names: tuple[str, ...], most: int = 2) -> None:
        found.setdefault(point, {})["disabled"] = [{"name": name} for name in some(names, most)]

    if rng.random() < 0.3:
        off("filter", FILTERS)
    if rng.random() < 0.3:
        off("score", SCORES, 3)
    if rng.random() < 0.1:
        off("preFilter", PREPARING, 1)
    if rng.random() < 0.1:
        off("preScore", PRE_SCORES, 1)
    if rng.random() < 0.15:
        off("postFilter", ("DynamicResources", "DefaultPreemption", "*"), 1)
    if rng.random() < 0.2:
        off("multiPoint", (*FILTERS, "ImageLocality", "NodeResourcesBalancedAllocation", "SchedulingGates"))
    if rng.random() < 0.3:
        gone = {each["name"] for each in found.get("filter", {}).get("disabled", ())}
        names = [name for name in some(FILTERS, 4) if name not in gone]
        found.setdefault("filter", {})["enabled"] = [{"name": name} for name in names]
    if rng.random() < 0.4:
        names = some(SCORES, 4)
        enabled = [{"name": name, "weight": rng.choice([1, 2, 5, 100])} for name in names]
        found.setdefault("score", {})["enabled"] = enabled
    return found


def _resources(rng: random.Random, weights: tuple[int, ...]) -> list[Json]:
    return [{"name": name, "weight": rng.choice(weights)} for name in rng.sample(RESOURCES, rng.randrange(1, 5))]


def _fit(rng: random.Random) -> Json:
    kind = rng.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
    strategy: Json = {"type": kind, "resources": _resources(rng, (1, 1, 2, 3, 7, 100))}
    if kind == "RequestedToCapacityRatio":
        at = sorted(rng.sample(range(101), rng.randrange(1, 5)))
        shape = [{"utilization": each, "score": rng.randrange(11)} for each in at]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    found: Json = {"scoringStrategy": strategy}
    if rng.random() < 0.3:
        found["ignoredResources"] = rng.sample(["example.com/gpu", "nvidia.com/gpu", "vendor.io/fpga"], 2)
    if rng.random() < 0.3:
        found["ignoredResourceGroups"] = [rng.choice(["example.com", "nvidia.com", "vendor.io"])]
    return found


def _spread(rng: random.Random) -> Json:
    if rng.random() < 0.2:
        return {"defaultingType": "System"}
    constraints = [
        {"topologyKey": key, "maxSkew": rng.randrange(1, 4), "whenUnsatisfiable": when}
        for key in rng.sample([ZONE, HOST, "rack", "topology.kubernetes.io/region"], 2)
        for when in rng.sample(["DoNotSchedule", "ScheduleAnyway"], rng.randrange(1, 3))
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}


def _added(rng: random.Random) -> Json:
    def term() -> Json:
        labels = [("disk", ["ssd", "hdd"]), ("pool", ["a", "b"]), ("gen", ["1", "3"]), (ZONE, ["z1", "z2"])]
        key, values = rng.choice(labels)
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        if operator in ("Gt", "Lt"):
            values = [rng.choice(["0", "2"])]
        elif operator in ("Exists", "DoesNotExist"):
            values = []
        return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}

    added: Json = {}
    if rng.random() < 0.6:
        terms = {"nodeSelectorTerms": [term() for _ in range(rng.randrange(1, 3))]}
        added["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    if rng.random() < 0.6:
        listed = [{"weight": rng.randrange(1, 101), "preference": term()} for _ in range(rng.randrange(1, 4))]
        added["preferredDuringSchedulingIgnoredDuringExecution"] = listed
    return {"addedAffinity": added}


ARGS = {
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": lambda rng: {"resources": _resources(rng, (1,))},
    "PodTopologySpread": _spread,
    "InterPodAffinity": lambda rng: {
        "hardPodAffinityWeight": rng.choice([0, 1, 5, 100]),
        "ignorePreferredTermsOfExistingPods": rng.random() < 0.5,
    },
    "NodeAffinity": _added,
}
