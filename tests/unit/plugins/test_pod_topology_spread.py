"""PodTopologySpread: facts of filter, score, hints, signature; default selectors of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from skedge.api.core import Toleration, TopologySpreadConstraint
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import PodTopologySpreadArgs, SpreadConstraint
from skedge.framework.events import QueueingHint
from skedge.framework.handle import Handle
from skedge.framework.plugin import UNRESOLVABLE
from skedge.framework.state import CycleState
from skedge.framework.status import Code
from skedge.plugins.helpers.spread import DefaultSelectors
from skedge.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, own_spread
from skedge.plugins.pod_topology_spread.plugin import REASON, REASON_MISSING, PodTopologySpread
from skedge.plugins.pod_topology_spread.scoring import SpreadNormalizer
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.cases import Cluster

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
HOSTNAME = "kubernetes.io/hostname"
FOO = {"foo": ""}
Nodes = Mapping[str, Mapping[str, str]]

ZONED: Nodes = {
    "a": {"zone": "1", "node": "a"},
    "b": {"zone": "1", "node": "b"},
    "x": {"zone": "2", "node": "x"},
    "y": {"zone": "2", "node": "y"},
}


def constrained(name: str, *, release: str = "1", honors: bool = False, action: str = "DoNotSchedule") -> PodInfo:
    spec = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": FOO},
        "matchLabelKeys": ["release"],
        "nodeTaintsPolicy": "Honor" if honors else "Ignore",
    }
    built = make_pod(name).label(release=release, **FOO).obj()
    constraint = msgspec.convert(spec, TopologySpreadConstraint)
    return PodInfo(
        msgspec.structs.replace(
            built, spec=msgspec.structs.replace(built.spec, topology_spread_constraints=(constraint,))
        )
    )


def test_constraints_are_compiled_once_for_pods_with_the_same_text() -> None:
    first = own_spread(constrained("p"), DO_NOT_SCHEDULE)
    assert own_spread(constrained("q"), DO_NOT_SCHEDULE) is first
    assert own_spread(constrained("q"), SCHEDULE_ANYWAY).constraints == ()
    other = own_spread(constrained("r", release="2"), DO_NOT_SCHEDULE)
    selectors = [each.constraints[0].selector for each in (first, other)]
    assert [selector.matches({"foo": "", "release": "2"}) for selector in selectors] == [False, True]


def test_eligibility_is_told_apart_by_what_a_constraint_honors() -> None:
    plain, tolerant = constrained("p", honors=True), constrained("q", honors=True)
    tolerant = PodInfo(
        msgspec.structs.replace(
            tolerant.pod,
            spec=msgspec.structs.replace(tolerant.pod.spec, tolerations=(Toleration(key="k", operator="Exists"),)),
        )
    )
    spread = own_spread(plain, DO_NOT_SCHEDULE)
    (one,), (two,) = spread.eligibilities(plain, False), spread.eligibilities(tolerant, False)
    assert one.fragment != two.fragment
    assert spread.eligibilities(plain, False)[0] is one
    indifferent = own_spread(constrained("p"), DO_NOT_SCHEDULE)
    assert indifferent.eligibilities(plain, False) is indifferent.eligibilities(tolerant, True)


def cluster_of(nodes: Nodes, pods: Sequence[PodBuilder]) -> Cluster:
    cluster = Cluster()
    for name, labels in nodes.items():
        node = make_node(name)
        node.json["metadata"]["labels"] = dict(labels)
        cluster.cache.add_node(node.obj())
    for pod in pods:
        cluster.cache.add_pod(pod.placed())
    return cluster


def foos(**counts: int) -> list[PodBuilder]:
    """So many pods labelled foo on each node."""
    return [make_pod(f"{node}-{i}").labels(FOO).node(node) for node, n in counts.items() for i in range(n)]


def plugin_of(cluster: Cluster, args: Any = None) -> PodTopologySpread:
    handle = Handle(
        table=cluster.cache.table,
        listers=cluster.listers,
        gates=FeatureGates(),
        clock=cluster.clock,
        rng=None,  # type: ignore[arg-type]
        ports=None,
    )
    return PodTopologySpread(args or PodTopologySpreadArgs.default(), handle)


def verdicts(cluster: Cluster, pod: PodBuilder, args: Any = None) -> str:
    """`name:P` passes, `U` unschedulable, `UU` unresolvable, for each node in order."""
    plugin, state, info = plugin_of(cluster, args), CycleState(), pod.info()
    view = Rows(cluster.cache.table)
    _, status = plugin.pre_filter(state, info, view)
    if status.skip:
        return "skip"
    assert status.ok, status
    codes = np.broadcast_to(plugin.filter(state, info, view), view.size).tolist()
    words = {0: "P"}
    for code in codes:
        if code:
            said = plugin.filter_status(state, info, code)
            unresolvable = said.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            assert unresolvable == bool(code & UNRESOLVABLE)
            assert said.reasons == ((REASON_MISSING,) if unresolvable else (REASON,))
            words[code] = "UU" if unresolvable else "U"
    return " ".join(f"{cluster.cache.table.names[i]}:{words[code]}" for i, code in enumerate(codes))


def foo_pod() -> PodBuilder:
    return make_pod("p").labels(FOO)


FILTER = {
    "no pods": (ZONED, [], foo_pod().spread("zone", FOO), "a:P b:P x:P y:P"),
    "one zone is full": (ZONED, foos(x=1, y=1), foo_pod().spread("zone", FOO), "a:P b:P x:U y:U"),
    "other namespaces": (
        ZONED,
        [make_pod("1", "other").labels(FOO).node("a"), *foos(b=1)],
        foo_pod().spread("node", FOO),
        "a:P b:U x:P y:P",
    ),
    "null selector": (ZONED, foos(x=3), foo_pod().spread("zone", {}, labelSelector=None), "a:P b:P x:P y:P"),
    "empty selector counts nothing": (ZONED, foos(x=3), foo_pod().spread("zone", {}), "a:P b:P x:P y:P"),
    "all alike": (ZONED, foos(a=2, b=1, x=3), foo_pod().spread("zone", FOO), "a:P b:P x:P y:P"),
    "key missing on one": (
        {**ZONED, "b": {"node": "b"}},
        foos(a=1, x=1, y=1),
        foo_pod().spread("zone", FOO),
        "a:P b:UU x:U y:U",
    ),
    "key missing on all": (ZONED, [], foo_pod().spread("rack", FOO), "a:UU b:UU x:UU y:UU"),
    "per node": (ZONED, foos(a=2, b=1, y=3), foo_pod().spread("node", FOO), "a:U b:U x:P y:U"),
    "skew of two": (ZONED, foos(a=2, b=1, y=3), foo_pod().spread("node", FOO, 2), "a:U b:P x:P y:U"),
    "not matching itself": (ZONED, foos(a=2, b=1, y=3), make_pod("p").spread("node", FOO), "a:U b:P x:P y:U"),
    "terminating": (ZONED, [*foos(b=1, x=1, y=1), foos(a=1)[0].terminating()], foo_pod().spread("node", FOO),
                    "a:P b:U x:U y:U"),
    "few domains": (
        {n: {"node": n} for n in "abc"},
        foos(a=2, b=2, c=1),
        foo_pod().spread("node", FOO, 2, minDomains=4),
        "a:U b:U c:P",
    ),
    "enough domains": (
        {n: {"node": n} for n in "abc"},
        foos(a=2, b=2, c=1),
        foo_pod().spread("node", FOO, 2, minDomains=2),
        "a:P b:P c:P",
    ),
    "policy honors node selector": (
        {**{n: {**ZONED[n], "s": "1"} for n in "abx"}, "y": ZONED["y"]},
        foos(a=1, b=1),
        foo_pod().node_selector(s="1").spread("node", FOO),
        "a:U b:U x:P y:P",
    ),
    "policy ignores node selector": (
        {**{n: {**ZONED[n], "s": "1"} for n in "abx"}, "y": ZONED["y"]},
        foos(a=1, b=1, y=1),
        foo_pod().node_selector(s="1").spread("node", FOO, nodeAffinityPolicy="Ignore"),
        "a:U b:U x:P y:U",
    ),
    "two constraints": (
        ZONED,
        foos(a=2, b=1, y=3),
        foo_pod().spread("zone", FOO).spread("node", FOO),
        "a:U b:U x:P y:U",
    ),
    "nodes need all keys": (
        {**ZONED, "x": {"zone": "2"}},
        foos(a=1, y=1),
        foo_pod().spread("zone", FOO).spread("node", FOO),
        "a:U b:P x:UU y:U",
    ),
    "match label keys": (
        ZONED,
        [make_pod("1").labels({**FOO, "v": "1"}).node("a"), *foos(x=2)],
        foo_pod().label(v="1").spread("zone", FOO, matchLabelKeys=["v", "absent"]),
        "a:U b:U x:P y:P",
    ),
    "soft constraints only": (ZONED, [], foo_pod().spread("zone", FOO, when="ScheduleAnyway"), "skip"),
    "no constraints": (ZONED, [], foo_pod(), "skip"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTER)
def test_filter(name: str) -> None:
    nodes, pods, pod, expected = FILTER[name]
    assert verdicts(cluster_of(nodes, pods), pod) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", "P"), (None, "U"), ("Ignore", "U")])
def test_tainted_nodes(policy: str | None, expected: str) -> None:
    """A tainted node without pods keeps the minimum at 0, unless taints are honored."""
    cluster = cluster_of({"a": {"node": "a"}}, foos(a=1))
    cluster.cache.add_node(make_node("b").labels({"node": "b"}).taint("t").obj())
    assert verdicts(cluster, foo_pod().spread("node", FOO, nodeTaintsPolicy=policy)) == f"a:{expected} b:P"


def test_list_defaults() -> None:
    args = PodTopologySpreadArgs(
        defaulting_type="List",
        default_constraints=[SpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")],
    )
    cluster = cluster_of(ZONED, foos(a=1))
    assert verdicts(cluster, foo_pod(), args) == "skip", "no service, no selector"
    cluster.add("services", {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": FOO}})
    assert verdicts(cluster, foo_pod(), args) == "a:U b:U x:P y:P"
    soft = foo_pod().spread("zone", FOO, when="ScheduleAnyway")
    assert verdicts(cluster, soft, args) == "skip", "own constraints replace all defaults"


BAD = {"labelSelector": {"matchExpressions": [{"key": "foo", "operator": "Is"}]}}


def test_bad_selectors_end_the_cycle() -> None:
    plugin, view = plugin_of(cluster := cluster_of(ZONED, [])), Rows(cluster.cache.table)
    _, status = plugin.pre_filter(CycleState(), foo_pod().spread("zone", FOO, **BAD).info(), view)
    assert status.code is Code.ERROR
    assert status.message == (
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Is" is not a valid label selector operator'
    )
    status = plugin.pre_score(CycleState(), foo_pod().spread("zone", FOO, when="ScheduleAnyway", **BAD).info(), view)
    assert status.code is Code.ERROR


# --- score ------------------------------------------------------------------------------------------------------------


def hosts(**labels: str) -> Nodes:
    return {name: {HOSTNAME: name, **({"zone": zone} if zone else {})} for name, zone in labels.items()}


def soft(key: str, skew: int = 1, match: Mapping[str, str] = FOO, **more: Any) -> PodBuilder:
    return foo_pod().spread(key, match, skew, "ScheduleAnyway", **more)


FOUR = hosts(a="1", b="1", x="2", y="2")
SCORE: dict[str, tuple[Nodes, list[PodBuilder], PodBuilder, str, list[int]]] = {
    # name: (nodes, pods, pod, feasible nodes, scores)
    "per host": (FOUR, foos(a=2, b=1, y=3), soft(HOSTNAME), "abxy", [20, 60, 100, 0]),
    "null selector": (FOUR, foos(a=2, y=3), soft(HOSTNAME, labelSelector=None), "abxy", [100] * 4),
    "skew of two": (FOUR, foos(a=2, b=1, y=3), soft(HOSTNAME, 2), "abxy", [33, 66, 100, 16]),
    "skew of three": (FOUR, foos(a=4, b=3, x=2, y=1), soft(HOSTNAME, 3), "abxy", [44, 66, 77, 100]),
    "one is not feasible": (FOUR, foos(a=4, b=2, x=1, y=3), soft(HOSTNAME), "abx", [33, 83, 100]),
    "a node without the key": (
        {"a": {HOSTNAME: "a"}, "b": {}, "x": {HOSTNAME: "x"}},
        foos(a=4, x=1),
        soft(HOSTNAME),
        "abx",
        [16, 0, 100],
    ),
    "per zone": (FOUR, foos(a=4, b=2, x=1, y=3), soft("zone"), "abx", [75, 75, 100]),
    "zone and host": (
        FOUR,
        foos(a=2, b=1, x=2, y=4),
        soft("zone").spread(HOSTNAME, FOO, 1, "ScheduleAnyway"),
        "ax",
        [100, 63],
    ),
    "terminating": (FOUR, [foos(a=1)[0].terminating(), *foos(b=1)], soft(HOSTNAME), "ab", [100, 0]),
    "other namespaces": (
        FOUR,
        [make_pod("1", "other").labels(FOO).node("a"), *foos(a=1, b=2)],
        soft(HOSTNAME),
        "ab",
        [100, 33],
    ),
    "minDomains plays no part": (FOUR, foos(a=2, b=2, x=1), soft("zone", 2, minDomains=10), "ax", [28, 100]),
}


def scores(cluster: Cluster, pod: PodBuilder, feasible: str) -> list[int]:
    plugin, state, info = plugin_of(cluster), CycleState(), pod.info()
    table = cluster.cache.table
    view = Rows(table, np.array([table.row_of[name] for name in feasible], np.int64))
    assert plugin.pre_score(state, info, view).ok
    raw = plugin.score(state, info, view)
    found: list[int] = plugin.normalizer.apply(raw, plugin.normalizer.bounds(raw)).tolist()
    return found


@pytest.mark.parametrize("name", SCORE)
def test_score(name: str) -> None:
    nodes, pods, pod, feasible, expected = SCORE[name]
    assert scores(cluster_of(nodes, pods), pod, feasible) == expected


def test_the_weight_is_that_of_domains_with_a_feasible_node() -> None:
    """Of three zones with a node each two are feasible: ln(2 + 2)."""
    cluster = cluster_of(hosts(a="1", b="2", x="3"), foos(a=10))
    plugin, state, info = plugin_of(cluster), CycleState(), soft("zone").info()
    view = Rows(cluster.cache.table, np.array([0, 1], np.int64))
    assert plugin.pre_score(state, info, view).ok
    assert plugin.score(state, info, view).tolist() == [14, 0]


def test_system_defaults() -> None:
    """Nodes without a zone are not ignored, they only get nothing for it."""
    cluster = cluster_of({n: {HOSTNAME: n} for n in "abxy"}, foos(a=4, b=3, x=2, y=1))
    plugin, view = plugin_of(cluster), Rows(cluster.cache.table)
    assert plugin.pre_score(CycleState(), foo_pod().info(), view).skip
    cluster.add("services", {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": FOO}})
    assert scores(cluster, foo_pod(), "abxy") == [44, 66, 77, 100]


def test_normalizer_of_ignored_rows() -> None:
    normalizer = SpreadNormalizer()
    for raw, expected in (([-1, -1], [0, 0]), ([0, 0], [100, 100]), ([-1, 0], [0, 100]), ([-1, 2, 4], [0, 100, 50])):
        scores = np.array(raw, np.int64)
        assert normalizer.apply(scores, normalizer.bounds(scores)).tolist() == expected


# --- hints ------------------------------------------------------------------------------------------------------------


def hint_plugin() -> PodTopologySpread:
    return plugin_of(Cluster())


ZONE_POD = foo_pod().spread("zone", FOO)
BOTH_POD = foo_pod().spread("zone", FOO).spread("node", FOO)
TAINTS_POD = foo_pod().spread("zone", FOO, nodeTaintsPolicy="Honor")


def on(name: str = "q", namespace: str = "default", **labels: str) -> PodBuilder:
    return make_pod(name, namespace).labels(labels).node("a")


POD_HINTS: dict[str, tuple[PodBuilder, Any, Any, QueueingHint]] = {
    "added": (ZONE_POD, None, on(foo=""), QUEUE),
    "added, unscheduled": (ZONE_POD, None, make_pod("q").labels(FOO), SKIP),
    "added, other namespace": (ZONE_POD, None, on(namespace="other", foo=""), SKIP),
    "added, no match": (ZONE_POD, None, on(bar=""), SKIP),
    "deleted": (ZONE_POD, on(foo=""), None, QUEUE),
    "deleted, nominated": (ZONE_POD, make_pod("q").labels(FOO).nominated("a"), None, QUEUE),
    "deleted, no match": (ZONE_POD, on(bar=""), None, SKIP),
    "label gone": (ZONE_POD, on(foo=""), on(), QUEUE),
    "label came": (ZONE_POD, on(), on(foo=""), QUEUE),
    "other label": (ZONE_POD, on(foo=""), on(foo="", bar=""), SKIP),
    "own label came": (make_pod("p").spread("zone", FOO), make_pod("p"), foo_pod(), QUEUE),
    "own toleration": (TAINTS_POD, TAINTS_POD, make_pod("p").labels(FOO).toleration("t"), QUEUE),
    "own toleration, taints ignored": (ZONE_POD, ZONE_POD, make_pod("p").labels(FOO).toleration("t"), SKIP),
}


@pytest.mark.parametrize("name", POD_HINTS)
def test_hints_of_pods(name: str) -> None:
    pod, old, new, expected = POD_HINTS[name]
    assert hint_plugin().after_pod_change(pod.info(), old and old.info(), new and new.info()) is expected


def labelled(**labels: str) -> Any:
    return make_node("n").labels(labels)


NODE_HINTS: dict[str, tuple[PodBuilder, Any, Any, QueueingHint]] = {
    "zone changes": (ZONE_POD, labelled(zone="1"), labelled(zone="2"), QUEUE),
    "no zone, other label": (ZONE_POD, labelled(a="1"), labelled(a="2"), SKIP),
    "zone, other label": (ZONE_POD, labelled(zone="1", a="1"), labelled(zone="1", a="2"), SKIP),
    "added with one of two": (BOTH_POD, None, labelled(zone="1"), SKIP),
    "added with both": (BOTH_POD, None, labelled(zone="1", node="n"), QUEUE),
    "deleted with both": (BOTH_POD, labelled(zone="1", node="n"), None, QUEUE),
    "deleted with one": (BOTH_POD, labelled(zone="1"), None, SKIP),
    "key lost": (BOTH_POD, labelled(zone="1", node="n"), labelled(zone="1"), QUEUE),
    "taints differ": (
        BOTH_POD,
        labelled(zone="1", node="n"),
        labelled(zone="1", node="n").taint("t"),
        QUEUE,
    ),
    "taints differ, one key": (BOTH_POD, labelled(zone="1"), labelled(zone="1").taint("t"), SKIP),
}


@pytest.mark.parametrize("name", NODE_HINTS)
def test_hints_of_nodes(name: str) -> None:
    pod, old, new, expected = NODE_HINTS[name]
    assert hint_plugin().after_node_change(pod.info(), old and old.obj(), new and new.obj()) is expected


def test_events() -> None:
    labels = {e.event.resource: e.event.action for e in hint_plugin().events_to_register()}
    assert labels == {"Pod": 1 | 2 | 256 | 1024, "Node": 1 | 2 | 8 | 16}


def test_signature() -> None:
    system = plugin_of(Cluster())
    bare = plugin_of(Cluster(), PodTopologySpreadArgs(defaulting_type="List"))
    assert system.sign(ZONE_POD.info())[1].message == "pods with topology constraints are not signable"
    assert system.sign(foo_pod().info())[1].message == "pods with default topology constraints are not signable"
    assert bare.sign(foo_pod().info()) == ({}, system.sign(foo_pod().info())[1].__class__())


# --- default selectors ------------------------------------------------------------------------------------------------

SERVICE = ("services", "s", {"selector": {"a": "b"}})
OTHER_SERVICE = ("services", "o", {"selector": {"a": "c"}})
EMPTY_SERVICE = ("services", "e", {"selector": {}})
RS = ("replicaSets", "rs", {"selector": {"matchLabels": {"r": "s"}}})
STS = ("statefulSets", "sts", {"selector": {"matchExpressions": [{"key": "t", "operator": "Exists"}]}})
RC = ("replicationControllers", "rc", {"selector": {"x": "y"}})
BAD_RS = ("replicaSets", "bad", {"selector": {"matchExpressions": [{"key": "t", "operator": "Is"}]}})


@pytest.mark.parametrize(
    ("objects", "owner", "expected"),
    [
        ([], None, ""),
        ([SERVICE, OTHER_SERVICE, EMPTY_SERVICE], None, "a=b"),
        ([SERVICE, RS], ("apps/v1", "ReplicaSet", "rs"), "a=b,r=s"),
        ([RS], ("apps/v1", "ReplicaSet", "rs"), "r=s"),
        ([SERVICE, RC], ("v1", "ReplicationController", "rc"), "a=b,x=y"),
        ([SERVICE, STS], ("apps/v1", "StatefulSet", "sts"), "a=b,t"),
        ([SERVICE, STS], ("apps/v1", "StatefulSet", "gone"), "a=b"),
        ([SERVICE, RS], ("other/v1", "ReplicaSet", "rs"), "a=b"),
        ([SERVICE, BAD_RS], ("apps/v1", "ReplicaSet", "bad"), "a=b"),
    ],
)
def test_default_selector(objects: list[Any], owner: tuple[str, str, str] | None, expected: str) -> None:
    cluster = Cluster()
    pod = make_pod("p").label(a="b")
    if owner is not None:
        version, kind, name = owner
        pod.owner(kind, name)
        pod.json["metadata"]["ownerReferences"][0]["apiVersion"] = version
    selectors = DefaultSelectors(cluster.listers)
    for field, name, spec in objects:
        assert selectors.of(pod.info()) is not None  # what is kept does not outlive a change
        cluster.add(field, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    assert str(selectors.of(pod.info())) == expected
    assert selectors.of(pod.info()) is selectors.of(pod.info())
