"""NodeLabel."""

import pytest

from legacy_clusters import feasible, fill, plugin_cluster, policy_cluster, scores, search
from skedge import names
from skedge.config.legacy.args import NodeLabelArgs
from skedge.framework.status import Code, Status
from skedge.testing.builders import make_node, make_pod

NODES = {"both": {"rack": "1", "retired": "x"}, "rack": {"rack": ""}, "retired": {"retired": "y"}, "none": {}}


def nodes() -> list:  # type: ignore[type-arg]
    return [make_node(name).labels(labels) for name, labels in NODES.items()]


@pytest.mark.parametrize(
    ("present", "absent", "expected"),
    [
        ([], [], ["both", "none", "rack", "retired"]),
        (["rack"], [], ["both", "rack"]),
        ([], ["retired"], ["none", "rack"]),
        (["rack"], ["retired"], ["rack"]),
        (["rack", "row"], [], []),
    ],
)
def test_filter(present: list[str], absent: list[str], expected: list[str]) -> None:
    cluster = plugin_cluster(names.NODE_LABEL, NodeLabelArgs(present_labels=present, absent_labels=absent))
    fill(cluster, nodes())
    assert feasible(cluster, make_pod()) == expected


@pytest.mark.parametrize(
    ("present", "absent", "expected"),
    [
        (["rack"], [], {"both": 100, "rack": 100, "retired": 0, "none": 0}),
        ([], ["retired"], {"both": 0, "rack": 100, "retired": 0, "none": 100}),
        (["rack", "row"], ["retired"], {"both": 33, "rack": 66, "retired": 0, "none": 33}),
    ],
)
def test_score(present: list[str], absent: list[str], expected: dict[str, int]) -> None:
    args = NodeLabelArgs(present_labels_preference=present, absent_labels_preference=absent)
    cluster = plugin_cluster(names.NODE_LABEL, args)
    fill(cluster, nodes())
    assert scores(cluster, make_pod(), names.NODE_LABEL) == expected


def test_through_a_policy() -> None:
    cluster = policy_cluster("""
predicates: [{name: NeedRack, argument: {labelsPresence: {labels: [rack], presence: true}}}]
priorities:
- {name: NotRetired, weight: 3, argument: {labelPreference: {label: retired, presence: false}}}
- {name: HasRow, weight: 3, argument: {labelPreference: {label: row, presence: true}}}
""")
    fill(cluster, nodes())
    found = search(cluster, make_pod())
    expected = Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "node(s) didn't have the requested labels", plugin=names.NODE_LABEL
    )
    assert found.explain().node_statuses() == {"retired": expected, "none": expected}
    assert scores(cluster, make_pod(), names.NODE_LABEL) == {"both": 0, "rack": 300}


def test_a_label_change_is_seen_in_kept_answers() -> None:
    cluster = plugin_cluster(names.NODE_LABEL, NodeLabelArgs(present_labels=["rack"]))
    fill(cluster, nodes())
    assert feasible(cluster, make_pod()) == ["both", "rack"]
    fill(cluster, [make_node("none").label(rack="7"), make_node("both")])
    assert feasible(cluster, make_pod()) == ["none", "rack"]
