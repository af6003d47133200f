"""A plugin whose PreFilter or PreScore a configuration leaves out, and errors that only some nodes would meet."""

from __future__ import annotations

from typing import Any

import pytest

from skedge.api.core import Pod
from skedge.profiles.search import CycleError, Search
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.cases import Cluster

API = "kubescheduler.config.k8s.io/v1"


def cluster_without(point: str, plugin: str, **points: Any) -> Cluster:
    plugins = {point: {"disabled": [{"name": plugin}]}, **points}
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    return Cluster({"apiVersion": API, "kind": "KubeSchedulerConfiguration", "profiles": [profile]})


def decided(cluster: Cluster, pod: Pod | None = None) -> Search:
    search = Search(cluster.profiles["default-scheduler"], PodInfo(pod or make_pod("p").req(cpu="1").obj()))
    search.run()
    if len(search.rows) > 1:
        search.scores()
    return search


@pytest.mark.parametrize(
    ("point", "plugin", "fails"),
    [
        ("preFilter", "NodeAffinity", False),  # made up for
        ("preFilter", "NodePorts", True),
        ("preFilter", "NodeResourcesFit", True),
        ("preFilter", "VolumeRestrictions", True),
        ("preFilter", "NodeVolumeLimits", False),
        ("preFilter", "VolumeBinding", True),
        ("preFilter", "VolumeZone", False),
        ("preFilter", "PodTopologySpread", True),
        ("preFilter", "InterPodAffinity", True),
        ("preFilter", "DynamicResources", True),
        ("preFilter", "NodeDeclaredFeatures", True),
        ("preScore", "TaintToleration", True),
        ("preScore", "NodeAffinity", True),
        ("preScore", "NodeResourcesFit", False),
        ("preScore", "NodeResourcesBalancedAllocation", False),
        ("preScore", "PodTopologySpread", True),
        ("preScore", "InterPodAffinity", True),
    ],
)
def test_what_depends_on_it_is_an_error(point: str, plugin: str, fails: bool) -> None:
    cluster = cluster_without(point, plugin)
    for name in ("a", "b"):
        cluster.cache.add_node(make_node(name).obj())
    if fails:
        with pytest.raises(CycleError, match=r"not found|cannot read"):
            decided(cluster)
    else:
        assert len(decided(cluster).rows) == 2


@pytest.mark.parametrize(
    ("plugin", "node", "message"),
    [
        ("NodePorts", make_node("n").taint("k"), "0/1 nodes are available: 1 node(s) had untolerated taint(s)."),
        ("NodeDeclaredFeatures", make_node("n").capacity(cpu="0"), "0/1 nodes are available: 1 Insufficient cpu."),
        ("NodePorts", make_node("n").capacity(cpu="0"), None),
        ("VolumeRestrictions", make_node("n").capacity(cpu="0"), "0/1 nodes are available: 1 Insufficient cpu."),
        ("VolumeRestrictions", make_node("n"), None),
    ],
)
def test_only_nodes_that_come_as_far_meet_the_error(plugin: str, node: Any, message: str | None) -> None:
    cluster = cluster_without("preFilter", plugin)
    cluster.cache.add_node(node.obj())
    if message is None:
        with pytest.raises(CycleError):
            decided(cluster)
    else:
        assert decided(cluster).diagnosis.message(post_filter=False) == message


def test_a_filter_after_the_one_that_fails_does_not_hide_it() -> None:
    cluster = cluster_without("preFilter", "InterPodAffinity", filter={"enabled": [{"name": "InterPodAffinity"}]})
    cluster.cache.add_node(make_node("n").capacity(cpu="0").obj())
    with pytest.raises(CycleError, match="InterPodAffinity"):
        decided(cluster)


def ephemeral_case(**node: Any) -> Cluster:
    """A node with a pod whose ephemeral claim belongs to somebody else, and one without."""
    cluster = Cluster()
    cluster.cache.add_node(make_node("fine").obj())
    bad = make_node("bad")
    if node.get("taint"):
        bad = bad.taint("k")
    cluster.cache.add_node(bad.obj())
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    there = make_pod("there").node("bad")
    there.json["spec"]["volumes"] = [volume]
    cluster.add("pods", there.json)
    claim = {"metadata": {"name": "there-v", "namespace": "default"}, "spec": {"accessModes": []}, "status": {}}
    cluster.add("pvcs", claim)
    bound = {
        "metadata": {"name": "c", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }
    cluster.add("pvcs", bound)
    csi = {"driver": "d", "volumeHandle": "h"}
    cluster.add("pvs", {"metadata": {"name": "pv"}, "spec": {"csi": csi, "capacity": {"storage": "1Gi"}}})
    for name in ("fine", "bad"):
        drivers = [{"name": "d", "nodeID": name, "allocatable": {"count": 3}}]
        cluster.add("csiNodes", {"metadata": {"name": name}, "spec": {"drivers": drivers}})
    return cluster


def claiming() -> Pod:
    pod = make_pod("p")
    pod.json["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return pod.obj()


def test_a_pod_there_whose_volumes_cannot_be_told_ends_the_cycle() -> None:
    with pytest.raises(CycleError, match="was not created for pod"):
        decided(ephemeral_case(), claiming())


def test_unless_its_node_is_rejected_before() -> None:
    search = decided(ephemeral_case(taint=True), claiming())
    assert [search.table.names[row] for row in search.rows] == ["fine"]


def test_what_was_said_of_the_nominated_node_stays() -> None:
    """It is looked at first, though the search is narrowed to other names afterwards."""
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.cache.add_node(make_node(name).capacity(cpu="0").obj())
    pod = make_pod("p").req(cpu="1").nominated("c")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod.json["spec"]["affinity"] = {"nodeAffinity": required}
    assert decided(cluster, pod.obj()).diagnosis.message(post_filter=False) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
