"""NodeDeclaredFeatures: what pods need, which nodes declare it, and whom a change wakes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from skedge.api.core import Node, Pod
from skedge.framework.events import QueueingHint
from skedge.framework.plugin import UNRESOLVABLE
from skedge.framework.state import CycleState
from skedge.plugins.node_declared_features import NodeDeclaredFeatures, required_features
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Row, Rows

RESTART = "RestartAllContainersOnContainerExits"
USERNS = "UserNamespacesHostNetworkSupport"
RULES = {"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}


def pod(**spec: Any) -> PodInfo:
    return PodInfo(msgspec.convert({"metadata": {"name": "p", "uid": "p"}, "spec": spec}, Pod))


def node(*features: str, name: str = "n", **labels: str) -> Node:
    value = {"metadata": {"name": name, "labels": labels}, "status": {"declaredFeatures": features}}
    return msgspec.convert(value, Node)


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({}, ()),
        ({"containers": [RULES]}, (RESTART,)),
        ({"initContainers": [RULES]}, (RESTART,)),
        ({"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}, ()),
        ({"hostNetwork": True, "hostUsers": False}, (USERNS,)),
        ({"hostNetwork": True}, ()),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"hostUsers": False}, ()),
        ({"hostNetwork": True, "hostUsers": False, "containers": [RULES]}, (RESTART, USERNS)),
    ],
)
def test_required(spec: dict[str, Any], features: tuple[str, ...]) -> None:
    asking, plugin = pod(**spec), NodeDeclaredFeatures()
    assert required_features(asking) == features
    assert plugin.pre_filter(CycleState(), asking, Rows(NodeTable()))[1].skip == (not features)


def test_filter_follows_the_nodes() -> None:
    table, plugin = NodeTable(), NodeDeclaredFeatures()
    asking = pod(containers=[RULES])
    table.set_node(node("Other", RESTART, name="yes"))
    table.set_node(node("Other", name="no"))
    state = CycleState()
    plugin.pre_filter(state, asking, Rows(table))
    assert plugin.filter(state, asking, Rows(table)).tolist() == [0, UNRESOLVABLE]
    position = table.log.position
    table.set_node(node(RESTART, name="no", some="label"))  # features change together with something else
    assert table.log.since(position, plugin.reads) == {1}
    assert plugin.filter(state, asking, Row(table, 1)) == 0


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, node("a"), QueueingHint.QUEUE),
        (node("a"), node("a"), QueueingHint.QUEUE_SKIP),
        (node("a"), node("a", "b"), QueueingHint.QUEUE),
    ],
)
def test_node_changes(old: Node | None, new: Node, hint: QueueingHint) -> None:
    assert NodeDeclaredFeatures().after_node_change(pod(containers=[RULES]), old, new) is hint


def test_own_pod_changes() -> None:
    plugin, asking = NodeDeclaredFeatures(), pod(containers=[RULES])
    assert plugin.after_pod_change(asking, asking, pod()) is QueueingHint.QUEUE
    assert plugin.after_pod_change(asking, asking, asking) is QueueingHint.QUEUE_SKIP
    other = PodInfo(msgspec.convert({"metadata": {"name": "o", "uid": "o"}}, Pod))
    assert plugin.after_pod_change(asking, asking, other) is QueueingHint.QUEUE_SKIP
