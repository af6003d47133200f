"""The engine without a queue knows the groups of its pods too."""

from __future__ import annotations

import pytest

from skedge.config.gates import FeatureGates
from skedge.plugins.gang_scheduling import NOT_APPEARED
from skedge.simulate.cluster import Cluster
from skedge.testing.builders import PodBuilder, make_node, make_pod


def member(name: str) -> PodBuilder:
    pod = make_pod(name)
    pod.json["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return pod


@pytest.mark.parametrize(("others", "said"), [([], NOT_APPEARED), ([member("b")], ""), ([member("b").node("n")], "")])
def test_gangs(others: list[PodBuilder], said: str) -> None:
    cluster = Cluster(gates=FeatureGates(GenericWorkload=True, GangScheduling=True))
    cluster.add_node(make_node("n").obj())
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    cluster.put("PodGroup", {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    pod = member("a")
    for each in (pod, *others):
        cluster.add_pod(each.obj())
    plugins = cluster.profiles["default-scheduler"].pre_enqueue
    assert [plugin.pre_enqueue(pod.info()).message for plugin in plugins if plugin.name == "GangScheduling"] == [said]
