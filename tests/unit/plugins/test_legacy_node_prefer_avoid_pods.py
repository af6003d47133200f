"""NodePreferAvoidPods."""

import json

import pytest

from legacy_clusters import fill, policy_cluster, scores
from skedge import names
from skedge.plugins.legacy.node_prefer_avoid_pods import ANNOTATION, avoided_by
from skedge.simulate.cluster import Cluster
from skedge.testing.builders import NodeBuilder, make_node, make_pod

POLICY = "predicates: []\npriorities: [{name: NodePreferAvoidPodsPriority, weight: 10000}]"


def annotated(name: str, text: str) -> NodeBuilder:
    node = make_node(name)
    node.json["metadata"]["annotations"] = {ANNOTATION: text}
    return node


def avoiding(*owners: tuple[str, str]) -> str:
    entries = [{"podSignature": {"podController": {"kind": k, "name": "x", "uid": u}}} for k, u in owners]
    return json.dumps({"preferAvoidPods": entries})


@pytest.fixture
def cluster() -> Cluster:
    cluster = policy_cluster(POLICY)
    fill(cluster, [annotated("avoids", avoiding(("ReplicaSet", "u1"), ("StatefulSet", "u2")))])
    fill(cluster, [annotated("broken", "{"), make_node("plain")])
    return cluster


@pytest.mark.parametrize(
    ("kind", "uid", "avoided"),
    [
        ("ReplicaSet", "u1", True),
        ("ReplicaSet", "u3", False),
        ("ReplicationController", "u1", False),
        ("StatefulSet", "u2", False),
        ("", "", False),
    ],
)
def test_score(cluster: Cluster, kind: str, uid: str, avoided: bool) -> None:
    pod = make_pod().owner(kind, "x", uid) if kind else make_pod()
    expected = {"avoids": 0 if avoided else 1_000_000, "broken": 1_000_000, "plain": 1_000_000}
    assert scores(cluster, pod, names.NODE_PREFER_AVOID_PODS) == expected


def test_annotations_that_come_and_go(cluster: Cluster) -> None:
    pod = make_pod().owner("ReplicaSet", "x", "u1")
    assert scores(cluster, pod, names.NODE_PREFER_AVOID_PODS)["avoids"] == 0
    fill(cluster, [make_node("avoids"), annotated("plain", avoiding(("ReplicaSet", "u1")))])
    found = scores(cluster, pod, names.NODE_PREFER_AVOID_PODS)
    assert found == {"avoids": 1_000_000, "broken": 1_000_000, "plain": 0}


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"preferAvoidPods": null}', '{"preferAvoidPods": [{}]}'])
def test_annotations_that_say_nothing(text: str) -> None:
    assert avoided_by(text) == frozenset()
