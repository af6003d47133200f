"""Every filter answers for hypothetical worlds as the plain scheduler does for one node at a time.

Each node of an unseen case is a world of its own: some of its pods are gone, some of other nodes came.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from generated.crossings import Crossings
from generated.test_crossings import pool
from skedge.api.core import Pod
from skedge.profiles.search import CycleError, Search
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import DeltaView
from skedge.testing.cases import Cluster
from twins.plain.cycle import Cycle
from twins.plain.decision import cycle_of
from twins.plain.objects import CycleFailed, Unclear, key, name, uid

AT_ONCE = 25
ABOUT_PODS = ("podaffinity", "spread", "ports", "volumes")
CROWDED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}, {"name": "TaintToleration"}]}},
        }
    ],
}


def worlds(cycle: Cycle, rng: random.Random) -> dict[str, tuple[list[Any], list[Any]]]:
    """Node -> (pods that come, pods that go), as JSON."""
    everybody = [pod for pods in cycle.there.values() for pod in pods]
    found = {}
    for node, there in cycle.there.items():
        gone = [pod for pod in there if rng.random() < 0.4]
        came = []
        for i in range(rng.choice([0, 1, 2, 4]) if everybody else 0):
            pod = copy.deepcopy(rng.choice(everybody))
            pod["metadata"].update(name=f"came-{i}-{node}", uid=f"came-{i}-{node}")
            pod["spec"]["nodeName"] = node
            came.append(pod)
        found[node] = (came, gone)
    return found


def expected(cycle: Cycle, node: Any, came: list[Any], gone: list[Any]) -> Any:
    inside = cycle.inside.clone()
    for pod in gone:
        inside.update(node, pod, -1)
    for pod in came:
        inside.update(node, pod, 1)
    left = [pod for pod in cycle.there[name(node)] if uid(pod) not in {uid(each) for each in gone}]
    found = cycle._filters(inside, node, [*left, *came])
    return None if found is None else (found["plugin"], found["code"], sorted(found["reasons"]))


def case_of(seed: int) -> Any:
    """Two of three cases are about what other pods do to a pod besides taking resources, which hides the rest."""
    cases = [line["case"] for line in pool()]
    if seed % 3 == 0:
        return Crossings(cases, seed).case()
    cases = [case for case in cases if case["family"] in ABOUT_PODS]
    case = Crossings(cases, seed).case()
    case["config"] = CROWDED
    case["pod"]["spec"]["schedulerName"] = "default-scheduler"
    return case


def differences(seed: int) -> list[str]:
    case = case_of(seed)
    cycle = cycle_of(case)
    if cycle is None:
        return []
    cluster = Cluster(case.get("config"))
    cluster.fill(case)
    info = PodInfo(msgspec.convert(case["pod"], Pod))
    profile = cluster.profile_of(info)
    assert profile is not None
    search = Search(profile, info)
    try:
        rejected, _, _ = cycle.pre_filter()
        if rejected is not None or not cycle.nodes:
            return []
        search.run()
        changes = worlds(cycle, random.Random(seed))
        want = {name(node): expected(cycle, node, *changes[name(node)]) for node in cycle.nodes}
    except (CycleFailed, CycleError, Unclear):
        return []
    table = cluster.cache.table
    rows = np.array([table.row_of[name(node)] for node in cycle.nodes], np.int64)
    added, removed = {}, {}
    for node, (came, gone) in changes.items():
        row = table.row_of[node]
        added[row] = [PlacedPod(PodInfo(msgspec.convert(pod, Pod)), node) for pod in came]
        uids = {uid(pod) for pod in gone}
        removed[row] = [pod for pod in table.pods[row].values() if pod.uid in uids]
    codes = search.codes(DeltaView(table, rows, added, removed))
    found = []
    for i, node in enumerate(cycle.nodes):
        got = None
        for plugin, each in codes:
            if each[i]:
                status = plugin.filter_status(search.state, info, int(each[i]))
                got = (plugin.name, status.code.word, sorted(status.all_reasons()))
                break
        if got != want[name(node)]:
            moved = {
                word: [key(pod) for pod in pods]
                for word, pods in zip(("came", "gone"), changes[name(node)], strict=True)
            }
            found.append(f"{case['id']} {name(node)}: expected {want[name(node)]}, got {got}; {moved}")
    return found


@pytest.mark.parametrize("start", range(500_000, 500_000 + 8 * AT_ONCE, AT_ONCE))
def test_worlds(start: int) -> None:
    assert [each for seed in range(start, start + AT_ONCE) for each in differences(seed)] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", range(600_000, 600_000 + 80 * AT_ONCE, 10 * AT_ONCE))
def test_many_worlds(start: int) -> None:
    assert [each for seed in range(start, start + 10 * AT_ONCE) for each in differences(seed)] == []
