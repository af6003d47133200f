"""InterPodAffinity: facts of filter, score, hints, signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import InterPodAffinityArgs
from skedge.framework.events import QueueingHint
from skedge.framework.handle import Handle
from skedge.framework.state import CycleState
from skedge.framework.status import Code, PluginError
from skedge.plugins.inter_pod_affinity.plugin import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING,
    InterPodAffinity,
)
from skedge.snapshot.by_domain import gathered
from skedge.snapshot.views import Rows
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.cases import Cluster

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
WORDS = {REASON_AFFINITY: "affinity", REASON_ANTI_AFFINITY: "anti", REASON_EXISTING: "existing"}
Nodes = Mapping[str, Mapping[str, str]]

TWO: Nodes = {"a": {"region": "r1", "zone": "z1", "host": "a"}, "b": {"region": "r1", "zone": "z2", "host": "b"}}
THREE: Nodes = {**TWO, "c": {"region": "r2", "zone": "z3", "host": "c"}}


def cluster_of(nodes: Nodes, pods: Sequence[PodBuilder]) -> Cluster:
    cluster = Cluster()
    cluster.add("namespaces", {"metadata": {"name": "default", "labels": {"team": "one"}}})
    for name, labels in nodes.items():
        cluster.cache.add_node(make_node(name).labels(dict(labels)).obj())
    for pod in pods:
        cluster.cache.add_pod(pod.placed())
    return cluster


def plugin_of(cluster: Cluster, **args: Any) -> InterPodAffinity:
    handle = Handle(
        table=cluster.cache.table,
        listers=cluster.listers,
        gates=FeatureGates(),
        clock=cluster.clock,
        rng=None,  # type: ignore[arg-type]
        ports=None,
    )
    return InterPodAffinity(InterPodAffinityArgs(**args), handle)


def verdicts(cluster: Cluster, pod: PodBuilder) -> str:
    """`node:P` passes, else which rule rejects it."""
    plugin, state, info = plugin_of(cluster), CycleState(), pod.info()
    view = Rows(cluster.cache.table)
    _, status = plugin.pre_filter(state, info, view)
    if status.skip:
        return "skip"
    assert status.ok, status
    found = []
    for name, code in zip(
        cluster.cache.table.names, np.broadcast_to(plugin.filter(state, info, view), view.size), strict=True
    ):
        word = "P"
        if code:
            said = plugin.filter_status(state, info, int(code))
            word = WORDS[said.reasons[0]]
            assert (said.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == (word == "affinity")
        found.append(f"{name}:{word}")
    return " ".join(found)


def pod(name: str = "p", namespace: str = "default", **labels: str) -> PodBuilder:
    return make_pod(name, namespace).labels(labels)


def with_term(builder: PodBuilder, kind: str, **term: Any) -> PodBuilder:
    """A required term in full."""
    affinity = builder.json["spec"].setdefault("affinity", {}).setdefault(kind, {})
    affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)
    return builder


S = {"service": "s"}
SELECTS_S = {"labelSelector": {"matchLabels": S}}
NOT_S = {"labelSelector": {"matchExpressions": [{"key": "service", "operator": "NotIn", "values": ["s"]}]}}
ABSENT_TEAM = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["one"]}]}}

FILTER: dict[str, tuple[Nodes, list[PodBuilder], PodBuilder, str]] = {
    "nothing": (THREE, [pod("1", service="s").node("a")], pod(), "skip"),
    "affinity in the region": (
        THREE,
        [pod("1", service="s").node("a")],
        pod().pod_affinity("region", S),
        "a:P b:P c:affinity",
    ),
    "other namespace": (
        TWO,
        [pod("1", service="s").node("a")],
        with_term(pod(), "podAffinity", topologyKey="region", namespaces=["other"], **SELECTS_S),
        "a:affinity b:affinity",
    ),
    "one pod must match all terms": (
        TWO,
        [pod("1", x="1").node("a"), pod("2", y="1").node("b")],
        pod().pod_affinity("region", {"x": "1"}).pod_affinity("zone", {"y": "1"}),
        "a:affinity b:affinity",
    ),
    "one pod matches both terms": (
        TWO,
        [pod("1", x="1", y="1").node("a")],
        pod().pod_affinity("region", {"x": "1"}).pod_affinity("region", {"y": "1"}),
        "a:P b:P",
    ),
    "pairs count, whichever pod made them": (
        THREE,
        [pod("1", x="1").node("a"), pod("2", x="1").node("b")],
        pod().pod_affinity("region", {"x": "1"}).pod_affinity("zone", {"x": "1"}),
        "a:P b:P c:affinity",
    ),
    "first pod of its kind": (THREE, [], pod(service="s").pod_affinity("region", S), "a:P b:P c:P"),
    "first pod, other kinds there": (
        TWO,
        [pod("1", x="1").node("a")],
        pod(x="1", y="1").pod_affinity("region", {"x": "1"}).pod_affinity("region", {"y": "1"}),
        "a:P b:P",
    ),
    "first pod, key missing": (
        {"a": {"zone": "z1"}, "b": {}},
        [],
        pod(service="s").pod_affinity("zone", S),
        "a:P b:affinity",
    ),
    "a match on a node without the key is none": (
        {"a": {"zone": "z1"}, "b": {}},
        [pod("1", service="s").node("b")],
        pod(service="s").pod_affinity("zone", S),
        "a:P b:affinity",
    ),
    "not matching itself": (TWO, [], pod(service="s").pod_affinity("region", {"x": "1"}), "a:affinity b:affinity"),
    "null selector": (
        TWO,
        [pod("1").node("a")],
        with_term(pod(), "podAffinity", topologyKey="region"),
        "a:affinity b:affinity",
    ),
    "empty selector": (
        THREE,
        [pod("1").node("a")],
        with_term(pod(), "podAffinity", topologyKey="region", labelSelector={}),
        "a:P b:P c:affinity",
    ),
    "anti in the region": (
        THREE,
        [pod("1", service="s").node("a")],
        pod().pod_affinity("region", S, anti=True),
        "a:anti b:anti c:P",
    ),
    "anti, key missing": (TWO, [pod("1", service="s").node("a")], pod().pod_affinity("rack", S, anti=True), "a:P b:P"),
    "affinity is looked at first": (
        TWO,
        [pod("1", service="s").node("a")],
        pod().pod_affinity("host", S).pod_affinity("region", S, anti=True),
        "a:anti b:affinity",
    ),
    "existing anti": (
        TWO,
        [pod("1").pod_affinity("zone", S, anti=True).node("a")],
        pod(service="s"),
        "a:existing b:P",
    ),
    "existing anti of a terminating pod": (
        TWO,
        [pod("1").pod_affinity("zone", S, anti=True).node("a").terminating()],
        pod(service="s"),
        "a:existing b:P",
    ),
    "existing anti, no match": (TWO, [pod("1").pod_affinity("zone", S, anti=True).node("a")], pod(), "skip"),
    "existing anti, key missing": (
        TWO,
        [pod("1").pod_affinity("rack", S, anti=True).node("a")],
        pod(service="s"),
        "skip",
    ),
    "existing anti NotIn": (
        TWO,
        [with_term(pod("1").node("a"), "podAntiAffinity", topologyKey="zone", **NOT_S)],
        pod(service="s"),
        "skip",
    ),
    "existing anti, two terms": (
        TWO,
        [
            pod("1")
            .pod_affinity("zone", {"foo": ""}, anti=True)
            .pod_affinity("region", {"bar": ""}, anti=True)
            .node("a")
        ],
        pod(foo="", bar=""),
        "a:existing b:existing",
    ),
    "namespace selector": (
        THREE,
        [pod("1", service="s").node("a")],
        with_term(
            pod("p", "other"),
            "podAntiAffinity",
            topologyKey="region",
            namespaceSelector={"matchLabels": {"team": "one"}},
            **SELECTS_S,
        ),
        "a:anti b:anti c:P",
    ),
    "namespace selector of none": (
        TWO,
        [pod("1", "unknown", service="s").node("a")],
        with_term(
            pod(),
            "podAffinity",
            topologyKey="region",
            namespaceSelector={"matchLabels": {"team": "two"}},
            **SELECTS_S,
        ),
        "a:affinity b:affinity",
    ),
    "namespace selector of all": (
        TWO,
        [pod("1", "unknown", service="s").node("a")],
        with_term(pod(), "podAntiAffinity", topologyKey="zone", namespaceSelector={}, **SELECTS_S),
        "a:anti b:P",
    ),
    "a selector that no labels satisfy takes every namespace": (
        TWO,
        [pod("1", service="s").node("a")],
        with_term(pod(), "podAntiAffinity", topologyKey="zone", **ABSENT_TEAM, **SELECTS_S),
        "a:anti b:P",
    ),
    "... but not for terms of pods that are there": (
        TWO,
        [with_term(pod("1").node("a"), "podAntiAffinity", topologyKey="zone", **ABSENT_TEAM, **SELECTS_S)],
        pod(service="s"),
        "skip",
    ),
}


@pytest.mark.parametrize("name", FILTER)
def test_filter(name: str) -> None:
    nodes, pods, incoming, expected = FILTER[name]
    assert verdicts(cluster_of(nodes, pods), incoming) == expected


def test_bad_selectors() -> None:
    plugin, view = plugin_of(cluster := cluster_of(TWO, [])), Rows(cluster.cache.table)
    bad = pod().pod_affinity("zone", {"service": "{{.bad-value.}}"})
    _, status = plugin.pre_filter(CycleState(), bad.info(), view)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith(
        'parsing pod: requiredAffinityTerms: values[0][service]: Invalid value: "{{.bad-value.}}": a valid label'
    )
    bad = pod().prefer_pods(1, "zone", {"service": "{{.bad-value.}}"})
    status = plugin.pre_score(CycleState(), bad.info(), view)
    assert status.code is Code.ERROR
    assert status.message.startswith("failed to parse pod: preferredAffinityTerms: ")


def test_without_pre_filter_and_pre_score() -> None:
    plugin, info, view = plugin_of(cluster := cluster_of(TWO, [])), pod().info(), Rows(cluster.cache.table)
    with pytest.raises(PluginError, match='error reading "PreFilterInterPodAffinity" from cycleState: not found'):
        plugin.filter(CycleState(), info, view)
    with pytest.raises(PluginError, match='failed to read "PreScoreInterPodAffinity" from cycleState: not found'):
        plugin.score(CycleState(), info, view)


# --- score ------------------------------------------------------------------------------------------------------------

COUNTRIES: Nodes = {
    "n1": {"region": "china"},
    "n2": {"region": "india"},
    "n3": {"region": "china"},
    "n4": {"region": "china"},
    "n5": {"region": "india"},
}
S1, S2 = {"s": "1"}, {"s": "2"}

SCORE: dict[str, tuple[Nodes, list[PodBuilder], PodBuilder, dict[str, Any], list[int]]] = {
    # name: (nodes, pods, pod, args, scores; none: skip)
    "prefer a region": (
        {"n1": {"region": "china"}, "n2": {"region": "india"}, "n3": {}},
        [pod("1", **S1).node("n1"), pod("2", **S2).node("n2")],
        pod().prefer_pods(5, "region", S1),
        {},
        [100, 0, 0],
    ),
    "more pods": (
        COUNTRIES,
        [pod(f"p{i}", **S1).node(n) for i, n in enumerate(["n1", "n3", "n4", "n4", "n2", "n5"])],
        pod().prefer_pods(5, "region", S1),
        {},
        [100, 0, 100, 100, 0],
    ),
    "two terms": (
        {"n1": {"region": "china"}, "n2": {"region": "india"}, "n3": {}},
        [pod("1", **S1).node("n1"), pod("2", **S2).node("n2")],
        pod().prefer_pods(2, "region", S1).prefer_pods(8, "region", S2),
        {},
        [25, 100, 0],
    ),
    "symmetry": (
        {"n1": {"region": "china"}, "n2": {"region": "india"}, "n3": {}},
        [pod("1").prefer_pods(5, "region", S2).node("n2")],
        pod(**S2),
        {},
        [0, 100, 0],
    ),
    "symmetry of required terms": (
        {"n1": {"region": "china"}, "n2": {"region": "india"}, "n3": {}},
        [pod("1").pod_affinity("region", S1).node("n1"), pod("2").pod_affinity("region", S1).node("n2")],
        pod(**S1),
        {},
        [100, 100, 0],
    ),
    "required terms weigh nothing": (
        {"n1": {"region": "china"}, "n2": {"region": "india"}},
        [pod("1").pod_affinity("region", S1).node("n1")],
        pod(**S1),
        {"hard_pod_affinity_weight": 0},
        [],
    ),
    "anti": (
        {"n1": {"az": "1"}, "n2": {"az": "2"}},
        [pod("1", **S1).node("n1")],
        pod().prefer_pods(5, "az", S1, anti=True),
        {},
        [0, 100],
    ),
    "anti symmetry": (
        {"n1": {"az": "1"}, "n2": {"az": "2"}},
        [pod("1").prefer_pods(5, "az", S2, anti=True).node("n1")],
        pod(**S2),
        {},
        [0, 100],
    ),
    "for and against": (
        {"n1": {"region": "china"}, "n2": {"region": "india"}},
        [pod("1", **S1).node("n1"), pod("2", **S1).node("n2"), pod("3", **S2).node("n2")],
        pod().prefer_pods(8, "region", S1).prefer_pods(5, "region", S2, anti=True),
        {},
        [100, 0],
    ),
    "all equal": (
        {"n1": {"region": "china"}, "n2": {"region": "china"}},
        [pod("1", **S1).node("n1")],
        pod().prefer_pods(5, "region", S1),
        {},
        [0, 0],
    ),
    "floats": (
        {"n1": {"h": "1"}, "n2": {"h": "2"}, "n3": {}},
        [pod("1", **S1).node("n1"), pod("2", **S2).node("n2")],
        pod().prefer_pods(29, "h", S1).prefer_pods(50, "h", S2),
        {},
        [57, 100, 0],
    ),
    "no match": (COUNTRIES, [pod("1", **S2).node("n1")], pod().prefer_pods(5, "region", S1), {}, []),
    "existing terms are ignored": (
        COUNTRIES,
        [pod("1").prefer_pods(5, "region", S2).node("n2")],
        pod(**S2),
        {"ignore_preferred_terms_of_existing_pods": True},
        [],
    ),
    "existing terms are not ignored for a pod with terms": (
        {"n1": {"region": "china"}, "n2": {"region": "india"}},
        [pod("1").prefer_pods(5, "region", S2).node("n2")],
        pod(**S2).prefer_pods(5, "region", S1),
        {"ignore_preferred_terms_of_existing_pods": True},
        [0, 100],
    ),
}


@pytest.mark.parametrize("name", SCORE)
def test_score(name: str) -> None:
    nodes, pods, incoming, args, expected = SCORE[name]
    plugin, state, info = plugin_of(cluster := cluster_of(nodes, pods), **args), CycleState(), incoming.info()
    view = Rows(cluster.cache.table)
    status = plugin.pre_score(state, info, view)
    if not expected:
        assert status.skip
        return
    assert status.ok
    raw = np.broadcast_to(gathered(plugin.score(state, info, view)), view.size)
    assert plugin.normalizer.apply(raw, plugin.normalizer.bounds(raw)).tolist() == expected


# --- hints ------------------------------------------------------------------------------------------------------------

NEAR = with_term(
    pod("own"),
    "podAffinity",
    topologyKey="zone",
    labelSelector={"matchExpressions": [{"key": "service", "operator": "In", "values": ["s", "v2"]}]},
)
NEAR_BOTH = pod("own").pod_affinity("zone", {"aaa": "1"}).pod_affinity("zone", {"bbb": "1"})
FAR = pod("own", service="x").pod_affinity("zone", S, anti=True)


BROKEN = pod("own").pod_affinity("zone", {"service": "{{.bad-value.}}"})


def there(**labels: str) -> PodBuilder:
    return pod("q", **labels).node("a")


POD_HINTS: dict[str, tuple[PodBuilder, Any, Any, QueueingHint]] = {
    "added": (NEAR, None, there(service="s"), QUEUE),
    "added, no match": (NEAR, None, there(service="x"), SKIP),
    "added, unscheduled": (NEAR, None, pod("q", service="s"), SKIP),
    "added, no affinity terms": (FAR, None, there(service="s"), SKIP),
    "comes to match": (NEAR, there(service="aaa"), there(service="s"), QUEUE),
    "matches before and after": (NEAR, there(service="s"), there(service="v2"), SKIP),
    "comes to match both": (NEAR_BOTH, there(aaa="1"), there(aaa="1", bbb="1"), QUEUE),
    "own labels": (NEAR, pod("own"), pod("own", x="1"), QUEUE),
    "anti, ceases to match": (FAR, there(service="s"), there(service="aaaa"), QUEUE),
    "anti, comes to match": (FAR, there(service="bbb"), there(service="s"), SKIP),
    "anti, deleted": (FAR, there(service="s"), None, QUEUE),
    "anti, other deleted": (FAR, there(service="t"), None, SKIP),
    "deleted pod kept this one away": (FAR, there().pod_affinity("zone", {"service": "x"}, anti=True), None, QUEUE),
    "own terms can not be read": (BROKEN, None, there(), QUEUE),
    "deleted pod kept others away": (FAR, there().pod_affinity("zone", {"service": "y"}, anti=True), None, SKIP),
}


@pytest.mark.parametrize("name", POD_HINTS)
def test_hints_of_pods(name: str) -> None:
    own, old, new, expected = POD_HINTS[name]
    plugin = plugin_of(Cluster())
    assert plugin.after_pod_change(own.info(), old and old.info(), new and new.info()) is expected


def labelled(**labels: str) -> Any:
    return make_node("n").labels(labels)


NODE_HINTS: dict[str, tuple[PodBuilder, Any, Any, QueueingHint]] = {
    "added with the key": (NEAR, None, labelled(zone="1"), QUEUE),
    "added without": (NEAR, None, labelled(), SKIP),
    "value changes": (NEAR, labelled(zone="1"), labelled(zone="2"), QUEUE),
    "key gained": (NEAR, labelled(), labelled(zone="1"), QUEUE),
    "key kept": (NEAR, labelled(zone="1"), labelled(zone="1", x="1"), SKIP),
    "own terms can not be read": (BROKEN, labelled(), labelled(x="1"), QUEUE),
    "anti, added": (FAR, None, labelled(), QUEUE),
    "anti, key gained": (FAR, labelled(), labelled(zone="1"), SKIP),
    "anti, key lost": (FAR, labelled(zone="1"), labelled(), QUEUE),
    "anti, value changes": (FAR, labelled(zone="1"), labelled(zone="2"), QUEUE),
}


@pytest.mark.parametrize("name", NODE_HINTS)
def test_hints_of_nodes(name: str) -> None:
    own, old, new, expected = NODE_HINTS[name]
    assert plugin_of(Cluster()).after_node_change(own.info(), old and old.obj(), new.obj()) is expected


def test_events() -> None:
    actions = {e.event.resource: e.event.action for e in plugin_of(Cluster()).events_to_register()}
    assert actions == {"Pod": 1 | 2 | 256, "Node": 1 | 8}


def test_signature() -> None:
    plugin = plugin_of(Cluster())
    assert plugin.sign(FAR.info())[1].message == "pods with InterPodAffinity are not signable"
    assert plugin.sign(pod(a="b").info())[0] == {"v1.Pod.Labels": {"a": "b"}}
    ignoring = plugin_of(Cluster(), ignore_preferred_terms_of_existing_pods=True)
    assert ignoring.sign(pod(a="b").info())[0] == {}
