"""What is kept of pods and nodes for extenders: all their fields, and no more objects than are asked about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skedge.app.bodies import Bodies
from skedge.app.watches import NODES, PODS, as_kept
from skedge.client.informer import Tombstone
from skedge.config.types import Extender
from skedge.testing.builders import make_node, make_pod

FILTERS = Extender(url_prefix="http://x", filter_verb="filter")
PREEMPTS = Extender(url_prefix="http://x", preempt_verb="preempt")
KNOWS = Extender(url_prefix="http://x", filter_verb="filter", preempt_verb="preempt", node_cache_capable=True)
BINDS = Extender(url_prefix="http://x", bind_verb="bind")


def raw_pod(name: str, node: str = "") -> dict[str, Any]:
    pod = make_pod(name).uid(f"uid-{name}").json
    if node:
        pod["spec"]["nodeName"] = node
    pod["spec"]["unknown"] = ["kept"]
    pod["metadata"]["managedFields"] = [{"manager": "x"}]
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def raw_node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", **make_node(name).json, "unknown": True}


@pytest.mark.parametrize(
    ("extenders", "pending", "placed", "node"),
    [
        ([FILTERS], True, False, True),
        ([PREEMPTS], True, True, False),
        ([KNOWS], True, False, False),
        ([BINDS], True, False, False),
        ([KNOWS, FILTERS, PREEMPTS], True, True, True),
    ],
)
def test_what_is_kept(extenders: list[Extender], pending: bool, placed: bool, node: bool) -> None:
    bodies = Bodies(extenders)
    pods, nodes = bodies.of_pods(PODS, as_kept), bodies.of_nodes(NODES)
    assert (nodes is NODES) is not node
    assert pods.selectors() == PODS.selectors()
    assert pods.transform is not None
    kept = [pods.transform(raw_pod("p")), pods.transform(raw_pod("placed", "n"))]
    whole = ["unknown" in json.loads(bodies.pod(each)).get("spec", {}) for each in kept]
    assert whole == [pending, placed]
    if nodes.transform is not None:
        nodes.transform(raw_node("n"))
    assert ("unknown" in json.loads(bodies.node("n"))) is node


def test_a_body_is_what_a_client_of_the_api_sends_on() -> None:
    bodies = Bodies([FILTERS])
    transform = bodies.of_pods(PODS, as_kept).transform
    assert transform is not None
    body = json.loads(bodies.pod(transform(raw_pod("p"))))
    assert body.keys() & {"kind", "apiVersion"} == set()
    assert "managedFields" not in body["metadata"]
    assert body["spec"]["unknown"] == ["kept"]


def test_what_is_gone_is_forgotten() -> None:
    bodies = Bodies([FILTERS])
    pods, nodes = bodies.of_pods(PODS, as_kept), bodies.of_nodes(NODES)
    assert pods.transform is not None
    assert nodes.transform is not None
    kept, bound, node = pods.transform(raw_pod("p")), pods.transform(raw_pod("q")), nodes.transform(raw_node("n"))
    bodies.forget_pod(Tombstone("default/p", kept))
    pods.transform(raw_pod("q", "n"))
    bodies.forget_node(node)
    bodies.replaced(bound, bound)
    assert json.loads(bodies.pod(kept)) == {"metadata": {"name": "p", "namespace": "default", "uid": "uid-p"}}
    assert "spec" not in json.loads(bodies.pod(bound))
    assert json.loads(bodies.node("n")) == {"metadata": {"name": "n"}}


def test_another_pod_of_the_same_name() -> None:
    bodies = Bodies([FILTERS])
    transform = bodies.of_pods(PODS, as_kept).transform
    assert transform is not None
    old = transform(raw_pod("p"))
    other = raw_pod("p")
    other["metadata"]["uid"] = "uid-other"
    new = transform(other)
    bodies.replaced(old, new)
    assert "spec" not in json.loads(bodies.pod(old))
    assert "spec" in json.loads(bodies.pod(new))


def test_nothing_is_kept_without_extenders() -> None:
    assert not Bodies([])
