"""Standing counters: exact under any change, bounded, found by labels."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.api.core import Affinity, Namespace, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from skedge.api.labels import EVERYTHING, NOTHING, Requirement, Selector, from_set
from skedge.api.meta import LabelSelector, LabelSelectorRequirement
from skedge.cache.cache import Cache
from skedge.framework.handle import Listers
from skedge.snapshot import counters as counters_module
from skedge.snapshot.affinity_terms import NO_TERMS, Scope, pod_terms, scope_in
from skedge.snapshot.counters import Counters, Kind
from skedge.snapshot.counters_index import SelectorIndex, anchor
from skedge.snapshot.counters_recent import Recent
from skedge.snapshot.counters_rows import RowCounts
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod
from skedge.snapshot.views import Row
from skedge.testing.builders import make_node, make_pod
from skedge.testing.cases import Cluster
from twins.growing import KEYS, NAMESPACES, Growing

ZONE = "topology.kubernetes.io/zone"


def a_cluster() -> tuple[Cache, Counters, Listers]:
    cache, listers = Cache(), Listers()
    return cache, Counters(cache.table, listers.namespaces), listers


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_exact_after_every_kind_of_change(seed: int) -> None:
    growing = Growing(seed)
    rng, table = growing.rng, growing.cluster.cache.table
    counters = Counters(table, growing.cluster.listers.namespaces)
    selectors = [
        from_set({"app": "a"}),
        Selector([Requirement("app", "In", ("a", "b"))]),
        Selector([Requirement("tier", "Exists")]),
        EVERYTHING,
        NOTHING,
    ]
    namespace_selectors = [NOTHING, NOTHING, EVERYTHING, from_set({"team": "red"}), from_set({"env": "prod"})]
    for _ in range(60):
        growing.step()
        scopes = tuple(
            Scope(
                frozenset(rng.sample(NAMESPACES, rng.randrange(3))),
                rng.choice(namespace_selectors),
                rng.choice(selectors),
            )
            for _ in range(rng.choice([1, 1, 2]))
        )
        count = counters.pods(scopes, live=rng.random() < 0.5)
        key = rng.choice(KEYS)
        rule = rng.choice([None, lambda view: view.pick(view.table.taint_ids) % 2 == 0])
        count.sums(counters.domains(key, rule=rule, fragment=rule is None, empty_for_missing=rng.random() < 0.3))
        if rng.random() < 0.1:
            counters.validate()
    counters.validate()


def test_rows_are_used_again_and_ghosts_count_for_no_domain() -> None:
    cache, counters, _ = a_cluster()
    count = counters.pods((scope_in("default", from_set({"app": "a"})),))
    sums = count.sums(counters.domains(ZONE))
    early = make_pod("early").label(app="a").node("n1").placed()
    cache.add_pod(early)  # before its node
    assert count.total == 1
    assert count.sums(sums.domains).total == 0
    cache.add_node(make_node("n1").labels({ZONE: "z1"}).obj())
    assert count.sums(sums.domains).total == 1
    cache.remove_node(make_node("n1").obj())
    assert count.sums(sums.domains).total == 0
    cache.remove_pod(early)
    cache.add_node(make_node("n2").labels({ZONE: "z2"}).obj())
    assert cache.table.row_of["n2"] == 0, "the row is used again"
    assert count.array()[0] == 0
    assert count.sums(sums.domains).domains.count == 1
    counters.validate()


def test_many_rows_many_changes() -> None:
    """Growth of the table, sparse numbers that become dense, more changes than the journal remembers."""
    cache, counters, _ = a_cluster()
    count = counters.pods((scope_in("default", from_set({"app": "a"})),))
    for i in range(200):
        cache.add_node(make_node(f"n{i}").labels({ZONE: f"z{i % 3}"}).obj())
    domains = counters.domains(ZONE)
    assert count.sums(domains).total == 0
    assert count.few == {}
    pods = [make_pod(f"p{i}").label(app="a").node(f"n{i % 150}").placed() for i in range(1500)]
    for pod in pods:
        cache.add_pod(pod)
    assert count.few is None
    assert count.sums(domains).by_domain.tolist() == [500, 500, 500, 0]
    assert count.sums(domains).extremes == (500, 500)
    for pod in pods[:100]:
        cache.remove_pod(pod)
    assert count.sums(domains).total == 1400
    counters.validate()


def test_extremes_and_what_is_positive_of_many_domains() -> None:
    """Kept change by change where there are more domains than are looked at one by one."""
    cache, counters, _ = a_cluster()
    count = counters.pods((scope_in("default", from_set({"app": "a"})),))
    for i in range(100):
        cache.add_node(make_node(f"n{i}").labels({ZONE: f"z{i}"}).obj())
    domains, rng = counters.domains(ZONE), random.Random(4)
    pods = [make_pod(f"p{i}").label(app="a").node(f"n{rng.randrange(100)}").placed() for i in range(400)]
    there: list[PlacedPod] = []
    for pod in pods:
        cache.add_pod(pod)
        there.append(pod)
        if rng.random() < 0.3:
            cache.remove_pod(there.pop(rng.randrange(len(there))))
        sums = count.sums(domains)
        numbers = sums.by_domain[:-1].tolist()
        assert sums.extremes == (min(numbers), max(numbers))
        assert sums.positive.tolist() == [int(number > 0) for number in sums.by_id.tolist()]
        assert count.fewest == min(count.array()[: cache.table.size].tolist())
        row = rng.randrange(100)
        assert count.on(Row(cache.table, row)) == count.array()[row]
    cache.add_node(make_node("n0").labels({ZONE: "new"}).obj())
    assert (len(count.sums(domains).by_id), len(count.sums(domains).positive)) == (len(domains.column.values) + 1,) * 2
    counters.validate()


def test_a_column_that_was_built_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many label keys push a column out; when it is built again ids may mean other values."""
    monkeypatch.setattr(NodeTable, "MAX_LABEL_COLUMNS", 2)
    cache, counters, _ = a_cluster()
    count = counters.pods((scope_in("default", from_set({"app": "a"})),))
    for i, zone in enumerate(("z1", "z0", "z1")):
        cache.add_node(make_node(f"n{i}").labels({ZONE: zone, "a": "x", "b": "y"}).obj())
        cache.add_pod(make_pod(f"p{i}").label(app="a").node(f"n{i}").placed())
    domains = counters.domains(ZONE)
    assert count.sums(domains).total == 3
    cache.remove_pod(next(iter(cache.table.pods[0].values())))
    cache.remove_node(make_node("n0").obj())
    cache.add_node(make_node("n3").labels({ZONE: "z2"}).obj())
    for key in ("a", "b"):
        cache.table.label_column(key)
    column = cache.table.label_column(ZONE)
    sums = count.sums(domains)
    assert domains.column is column
    assert {column.values.values[i]: n for i, n in enumerate(sums.by_domain.tolist()) if n} == {"z0": 1, "z1": 1}
    counters.validate()


def test_counts_that_were_given_up_or_terms_that_came_and_went_make_a_new_version() -> None:
    cache, counters, listers = a_cluster()
    cache.add_node(make_node("n").obj())
    versions = [counters.version]

    def moved() -> bool:
        versions.append(counters.version)
        return versions[-1] != versions[-2]

    counters.pods((scope_in("default", from_set({"app": "a"})),))
    plain = make_pod("plain").label(app="a").node("n").placed()
    cache.add_pod(plain)
    assert not moved()
    holder = make_pod("holder").pod_affinity(ZONE, {"app": "a"}, anti=True).node("n").placed()
    cache.add_pod(holder)
    assert moved()
    cache.add_pod(make_pod("another").pod_affinity(ZONE, {"app": "a"}, anti=True).node("n").placed())
    assert not moved()
    cache.remove_pod(holder)
    assert not moved()
    cache.remove_pod(next(pod for pod in cache.table.pods[0].values() if pod.name == "another"))
    assert moved()
    listers.namespaces.set(msgspec.convert({"metadata": {"name": "new"}}, Namespace))
    assert moved()
    counters._forget(counters._counts.values()[0])
    assert moved()


def test_an_id_with_a_new_meaning() -> None:
    """A label value that dies gives its id to the next one; sums move with the rows."""
    cache, counters, _ = a_cluster()
    count = counters.pods((scope_in("default", from_set({"app": "a"})),))
    for i in range(2):
        cache.add_node(make_node(f"n{i}").labels({ZONE: f"z{i}"}).obj())
        cache.add_pod(make_pod(f"p{i}").label(app="a").node(f"n{i}").placed())
    domains = counters.domains(ZONE)
    assert count.sums(domains).by_domain.tolist() == [1, 1, 0]
    cache.add_node(make_node("n0").labels({ZONE: "new"}).obj())
    cache.add_node(make_node("n1").labels({ZONE: "new"}).obj())
    column = cache.table.label_column(ZONE)
    sums = count.sums(domains)
    assert {column.values.values[i]: n for i, n in enumerate(sums.by_domain.tolist()) if n} == {"new": 2}
    counters.validate()


def test_namespaces_come_and_go() -> None:
    cache, counters, listers = a_cluster()
    cluster = Cluster()
    cluster.listers = listers

    def label(name: str, **labels: str) -> None:
        cluster.add("namespaces", {"metadata": {"name": name, "labels": labels}})

    for name in ("one", "two"):
        cache.add_pod(make_pod("p", name).label(app="a").node("n").placed())
    scope = Scope(frozenset(), from_set({"team": "red"}), from_set({"app": "a"}))
    count = counters.pods((scope,))
    assert count.total == 0
    label("one", team="red")
    assert counters.pods((scope,)).total == 1
    label("two", team="red")
    label("one", team="blue")
    assert counters.pods((scope,)) is count
    assert count.total == 1
    assert counters.names(scope) == {"two"}
    counters.validate()


def test_a_selector_of_no_labels_means_every_namespace() -> None:
    _, counters, _ = a_cluster()
    absent = Selector([Requirement("team", "NotIn", ("red",))])
    assert counters.names(Scope(frozenset({"one"}), absent, EVERYTHING)) is None
    assert counters.names(Scope(frozenset({"one"}), NOTHING, EVERYTHING)) == {"one"}


def test_terminating_pods() -> None:
    cache, counters, _ = a_cluster()
    scopes = (scope_in("default", from_set({"app": "a"})),)
    every, live = counters.pods(scopes), counters.pods(scopes, live=True)
    pod = make_pod("p").label(app="a").node("n")
    cache.add_pod(pod.placed())
    assert (every.total, live.total) == (1, 1)
    pod.json["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cache.update_pod(pod.placed())
    assert (every.total, live.total) == (1, 0)
    counters.validate()


def test_a_bind_touches_only_the_counters_of_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, counters, _ = a_cluster()
    for i in range(100):
        counters.pods((scope_in("default", from_set({"app": f"a{i}"})),))
    touched: list[int] = []
    bump = RowCounts.bump
    monkeypatch.setattr(RowCounts, "bump", lambda self, row, delta: (touched.append(row), bump(self, row, delta))[1])
    asked: list[object] = []
    counts = counters_module.PodCount.counts
    monkeypatch.setattr(
        counters_module.PodCount, "counts", lambda self, pod: (asked.append(self), counts(self, pod))[1]
    )
    cache.add_pod(make_pod("p").label(app="a7", tier="x").node("n").placed())
    assert (len(touched), len(asked)) == (1, 1)


def test_counts_are_dropped_when_they_are_too_large_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counters, "LIMIT", 10_000)
    cache, counters, _ = a_cluster()
    cache.add_pod(make_pod("p").label(app="a3").node("n").placed())
    for i in range(50):
        counters.pods((scope_in("default", from_set({"app": f"a{i}"})),))
    assert counters.statistics()["pod_counts"] <= 17
    assert counters.pods((scope_in("default", from_set({"app": "a3"})),)).total == 1
    counters.validate()


def term(app: str, key: str = ZONE) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels={"app": app}))


def test_held_terms_are_found_by_what_they_are() -> None:
    cache, counters, _ = a_cluster()
    assert not counters.held(Kind.ANTI)
    for i in range(3):
        cache.add_pod(make_pod(f"p{i}").pod_affinity(ZONE, {"app": "a"}, anti=True).node("n").placed())
    cache.add_pod(make_pod("q").pod_affinity(ZONE, {"app": "b"}, anti=True).node("n").placed())
    (holders,) = counters.matching(Kind.ANTI, "default", {"app": "a", "tier": "x"})
    assert holders.total == 3
    assert counters.matching(Kind.ANTI, "other", {"app": "a"}) == []
    assert counters.matching(Kind.AFFINITY, "default", {"app": "a"}) == []
    for pod in list(cache.pods()):
        cache.remove_pod(pod)
    assert not counters.held(Kind.ANTI)
    assert counters.statistics()["held_terms"] == 0


def test_counters_of_a_table_that_has_pods_already() -> None:
    cache = Cache()
    cache.add_pod(make_pod("p").label(app="a").pod_affinity(ZONE, {"app": "a"}, anti=True).node("n").placed())
    counters = Counters(cache.table, Listers().namespaces)
    assert counters.held(Kind.ANTI)
    assert counters.pods((scope_in("default", from_set({"app": "a"})),)).total == 1
    counters.validate()


# --- index ------------------------------------------------------------------------------------------------------------


def test_anchor_is_the_narrowest_requirement() -> None:
    wide, narrow = Requirement("a", "In", ("1", "2")), Requirement("b", "In", ("1",))
    assert anchor([Selector([wide, Requirement("c", "Exists")]), Selector([narrow])]) == narrow
    assert anchor([Selector([Requirement("c", "NotIn", ("1",))])]) is None


def test_selector_index() -> None:
    index: SelectorIndex[str] = SelectorIndex()
    items = {
        "one": (from_set({"app": "a"}),),
        "two": (Selector([Requirement("app", "In", ("a", "b"))]),),
        "rest": (EVERYTHING,),
        "never": (NOTHING, from_set({"app": "a"})),
    }
    for item, selectors in items.items():
        index.add(item, selectors)
    assert sorted(index.candidates({"app": "a"})) == ["one", "rest", "two"]
    assert sorted(index.candidates({"app": "b", "x": "y"})) == ["rest", "two"]
    assert index.candidates({}) == ["rest"]
    for item, selectors in items.items():
        index.remove(item, selectors)
    assert not index
    assert index.candidates({"app": "a"}) == []


# --- terms ------------------------------------------------------------------------------------------------------------


def test_terms_are_shared() -> None:
    affinity = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term("a"),)))
    again = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term("a"),)))
    assert pod_terms(affinity, "default") is pod_terms(again, "default")
    assert pod_terms(affinity, "default") != pod_terms(affinity, "other")
    assert pod_terms(None, "default") is NO_TERMS
    assert pod_terms(Affinity(), "default") is NO_TERMS


def test_a_list_with_a_bad_term_is_empty_and_the_others_stay() -> None:
    bad = PodAffinityTerm(
        topology_key=ZONE,
        label_selector=LabelSelector(match_expressions=(LabelSelectorRequirement("app", "Is", ("x",)),)),
    )
    spec = Affinity(
        pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term("a"), bad)),
        pod_anti_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=(term("a"),),
            preferred_during_scheduling_ignored_during_execution=(WeightedPodAffinityTerm(7, term("b")),),
        ),
    )
    terms = pod_terms(spec, "default")
    assert terms.affinity == ()
    assert len(terms.anti) == 1
    assert [weight for weight, _ in terms.preferred] == [-7]
    assert terms.error == 'requiredAffinityTerms: "Is" is not a valid label selector operator'


def test_row_counts_stay_while_the_table_grows() -> None:
    table = NodeTable(capacity=2)
    counts = RowCounts(table, Recent(1 << 20))
    counts.bump(0, 2)
    counts.bump(1, 1)
    assert counts.few is None
    for i in range(9):
        table.set_node(make_node(f"n{i}").obj())
    counts.bump(8, 1)
    assert np.flatnonzero(counts.array()).tolist() == [0, 1, 8]
    assert len(counts.array()) == table.capacity
