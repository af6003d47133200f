"""Where people get it wrong, from the specification: by number, input and what has to come out. Other pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scenes import Scene, expression, node, pod, required
from skedge.testing.builders import NodeBuilder, PodBuilder

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FOO = {"foo": ""}
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"

MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEWED = "node(s) didn't match pod topology spread constraints"


def constraint(key: str = ZONE, skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": FOO}}
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, **selector, **more}


def spreading(*constraints: dict[str, Any], labels: Mapping[str, str] = FOO, **spec: Any) -> PodBuilder:
    return pod(labels, topologySpreadConstraints=list(constraints), **spec)


def zones(**of: str) -> list[NodeBuilder]:
    return [node(name, {ZONE: zone, HOST: name}) for name, zone in of.items()]


SPREAD: dict[str, tuple[Scene, PodBuilder, dict[str, str]]] = {
    "68 no key": (Scene(node("a")), spreading(constraint()), {"a": MISSING}),
    "69 nodes lacking one of the keys are not counted": (
        Scene(*zones(a="1"), node("b", {ZONE: "2"}), node("c", {ZONE: "1", "rack": "r"}), pods=[pod(FOO, on="b")]),
        spreading(constraint(), constraint("rack")),
        {"a": MISSING, "b": MISSING, "c": ""},
    ),
    "70 an empty selector": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a")] * 1),
        spreading(constraint(labelSelector={})),
        {"a": "", "b": ""},
    ),
    "71 no selector": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a"), pod(FOO, on="a")]),
        spreading(constraint(labelSelector=None)),
        {"a": "", "b": ""},
    ),
    "72 other namespaces and terminating pods": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a", namespace="x"), pod(FOO, on="a").terminating()]),
        spreading(constraint()),
        {"a": "", "b": ""},
    ),
    "73 more domains wanted than there are": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a"), pod(FOO, on="b")]),
        spreading(constraint(minDomains=3)),
        {"a": SKEWED, "b": SKEWED},
    ),
    "74 domains the pod may not use do not exist": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a")]),
        spreading(constraint(), affinity=required(expression(ZONE, "In", "1"))),
        {"a": "", "b": AFFINITY},
    ),
    "75 tainted domains count by default": (
        Scene(*zones(a="1"), zones(b="2")[0].taint("k"), pods=[pod(FOO, on="a")]),
        spreading(constraint()),
        {"a": SKEWED, "b": TAINTED},
    ),
    "75 or do not": (
        Scene(*zones(a="1"), zones(b="2")[0].taint("k"), pods=[pod(FOO, on="a")]),
        spreading(constraint(nodeTaintsPolicy="Honor")),
        {"a": "", "b": TAINTED},
    ),
    "76 a cordoned node counts": (
        Scene(*zones(a="1"), zones(b="2")[0].unschedulable(), pods=[pod(FOO, on="a")]),
        spreading(constraint(nodeTaintsPolicy="Honor")),
        {"a": SKEWED, "b": CORDONED},
    ),
    "77 a pod that does not match itself": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a")]),
        spreading(constraint(), labels={}),
        {"a": "", "b": ""},
    ),
    "78 a key of matchLabelKeys that the pod lacks": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a")]),
        spreading(constraint(matchLabelKeys=["hash"])),
        {"a": SKEWED, "b": ""},
    ),
}


@pytest.mark.parametrize("case", SPREAD)
def test_spread(case: str) -> None:
    scene, asking, want = SPREAD[case]
    assert scene.says(asking) == want


def service(selector: Mapping[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": dict(selector)}}


SOFT = {"when": "ScheduleAnyway"}
SPREAD_SCORES: dict[str, tuple[Scene, PodBuilder, list[int]]] = {
    "80 a bare pod has no defaults": (Scene(*zones(a="1", b="2")), pod(FOO), []),
    "80 one with a service has": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a")], services=[service(FOO)]),
        pod(FOO),
        [132, 200],
    ),
    "85 nothing anywhere": (Scene(*zones(a="1", b="2")), spreading(constraint(**SOFT)), [200, 200]),
    "84 a zone without a feasible node": (
        Scene(*zones(a="1"), zones(b="1")[0], zones(c="2")[0].taint("k"), pods=[pod(FOO, on="c")]),
        spreading(constraint(**SOFT)),
        [200, 200],
    ),
    "88 a node lacking a key is worst": (
        Scene(*zones(a="1"), node("b"), pods=[pod(FOO, on="a")]),
        spreading(constraint(**SOFT)),
        [200, 0],
    ),
    "86 a larger skew evens out": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a")]),
        spreading(constraint(skew=9, **SOFT)),
        [176, 200],
    ),
}


@pytest.mark.parametrize("case", SPREAD_SCORES)
def test_spread_scores(case: str) -> None:
    scene, asking, want = SPREAD_SCORES[case]
    assert scene.scores(asking, "PodTopologySpread") == want


# --- affinity ---------------------------------------------------------------------------------------------------------

NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
THEIRS = "node(s) didn't satisfy existing pods anti-affinity rules"
IS_FOO = {"matchLabels": FOO}


def term(key: str = ZONE, selector: Any = IS_FOO, **more: Any) -> dict[str, Any]:
    found = {"topologyKey": key, **more}
    return found if selector is None else {**found, "labelSelector": selector}


def near(*terms: Any, labels: Mapping[str, str] | None = None, **more: Any) -> PodBuilder:
    listed = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return pod(labels, affinity={"podAffinity": listed}, **more)


def far(*terms: Any, labels: Mapping[str, str] | None = None, **more: Any) -> PodBuilder:
    listed = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return pod(labels, affinity={"podAntiAffinity": listed}, **more)


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


BAR = {"matchLabels": {"bar": ""}}
NOT_IN = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
PODS: dict[str, tuple[Scene, PodBuilder, dict[str, str]]] = {
    "89 one pod has to match both terms": (
        Scene(*zones(a="1", b="1"), pods=[pod(FOO, on="a"), pod({"bar": ""}, on="b")]),
        near(term(), term(selector=BAR)),
        {"a": NEAR, "b": NEAR},
    ),
    "90 a matching pod where there is no key": (
        Scene(*zones(a="1"), node("b"), pods=[pod(FOO, on="b")]),
        near(term(), labels=FOO),
        {"a": "", "b": NEAR},
    ),
    "91 the first pod needs the keys": (
        Scene(*zones(a="1"), node("b")),
        near(term(), labels=FOO),
        {"a": "", "b": NEAR},
    ),
    "92 anti-affinity where there is no key": (Scene(node("a"), pods=[pod(FOO, on="a")]), far(term()), {"a": ""}),
    "93 of pods that are there": (
        Scene(*zones(a="1"), pods=[far(term(), on="a")]),
        pod(FOO),
        {"a": THEIRS},
    ),
    "94 all namespaces": (
        Scene(*zones(a="1"), pods=[pod(FOO, on="a", namespace="x")]),
        far(term(namespaceSelector={})),
        {"a": FAR},
    ),
    "94 its own": (Scene(*zones(a="1"), pods=[pod(FOO, on="a", namespace="x")]), far(term()), {"a": ""}),
    "95 its own is not implied": (
        Scene(*zones(a="1"), pods=[pod(FOO, on="a")], namespaces=[namespace("x", team="t")]),
        far(term(namespaces=["y"], namespaceSelector={"matchLabels": {"team": "t"}})),
        {"a": ""},
    ),
    "95 names and selected ones": (
        Scene(*zones(a="1"), pods=[pod(FOO, on="a", namespace="x")], namespaces=[namespace("x", team="t")]),
        far(term(namespaces=["y"], namespaceSelector={"matchLabels": {"team": "t"}})),
        {"a": FAR},
    ),
    "96 no selector: affinity": (Scene(*zones(a="1")), near(term(selector=None), labels=FOO), {"a": NEAR}),
    "96 no selector: anti-affinity": (
        Scene(*zones(a="1"), pods=[pod(FOO, on="a")]),
        far(term(selector=None)),
        {"a": ""},
    ),
    "96 an empty selector": (Scene(*zones(a="1"), pods=[pod(on="a")]), far(term(selector={})), {"a": FAR}),
    "97 a selector that matches no labels": (
        Scene(*zones(a="1"), pods=[pod(FOO, on="a", namespace="x")], namespaces=[namespace("x", team="x")]),
        far(term(namespaceSelector=NOT_IN)),
        {"a": FAR},
    ),
    "98 terminating pods": (
        Scene(*zones(a="1"), pods=[pod(FOO, on="a").terminating()]),
        far(term()),
        {"a": FAR},
    ),
}


@pytest.mark.parametrize("case", PODS)
def test_pods(case: str) -> None:
    scene, asking, want = PODS[case]
    assert scene.says(asking) == want


def liking(weight: int, *, anti: bool = False, on: str = "", labels: Mapping[str, str] | None = None) -> PodBuilder:
    listed = [{"weight": weight, "podAffinityTerm": term()}]
    kind = "podAntiAffinity" if anti else "podAffinity"
    return pod(labels, on, affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": listed}})


POD_SCORES: dict[str, tuple[Scene, PodBuilder, list[int]]] = {
    "99 required affinity of pods that are there": (
        Scene(*zones(a="1", b="2"), pods=[near(term(), on="a")]),
        pod(FOO),
        [200, 0],
    ),
    "100 negative ones": (
        Scene(*zones(a="1", b="2"), pods=[pod(FOO, on="a")]),
        liking(7, anti=True),
        [0, 200],
    ),
    "100 all equal": (Scene(*zones(a="1", b="1"), pods=[pod(FOO, on="a")]), liking(7), [0, 0]),
    "101 truncated": (
        Scene(*zones(a="1", b="2", c="3"), pods=[pod(FOO, on="a"), *(pod(FOO, on="b") for _ in range(3))]),
        liking(1),
        [66, 200, 0],
    ),
    "102 nothing matches": (Scene(*zones(a="1", b="2")), liking(7), []),
    "103 nodes without labels": (Scene(node("a"), node("b"), pods=[pod(FOO, on="a")]), liking(7), []),
    "104 preferences of pods that are there": (
        Scene(*zones(a="1", b="2"), pods=[liking(3, on="b")]),
        pod(FOO),
        [0, 200],
    ),
}


@pytest.mark.parametrize("case", POD_SCORES)
def test_pod_scores(case: str) -> None:
    scene, asking, want = POD_SCORES[case]
    assert scene.scores(asking, "InterPodAffinity") == want
