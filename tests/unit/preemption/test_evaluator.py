"""Eligibility, messages, budgets and samples of preemption on small clusters."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.api.core import Pod
from skedge.framework.status import Code
from skedge.plugins.noderesources.fit import NodeResourcesFit
from skedge.preemption.choice import Candidate
from skedge.preemption.evaluator import Evaluator, Outcome, restrict
from skedge.profiles.search import Search
from skedge.profiles.trials import Trials
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.cases import Cluster


def node(name: str, cpu: str = "2", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": {"cpu": cpu, "pods": "10"}}}


def pod(name: str, priority: int, cpu: str, on: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"priority": priority, "nodeName": on, "containers": [container], **more.pop("spec", {})}
    meta = {"name": name, "namespace": "d", "uid": name, "labels": more.pop("labels", None), **more.pop("meta", {})}
    status = {"startTime": more.pop("start", "2026-01-01T00:00:00Z") if on else None, **more.pop("status", {})}
    assert not more
    return {"metadata": meta, "spec": spec, "status": status}


def budget(name: str, labels: dict[str, str] | None, allowed: int, *excused: str) -> dict[str, Any]:
    selector = {"matchLabels": labels} if labels is not None else {}
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(excused, "2026-01-01T00:00:00Z")}
    return {"metadata": {"name": name, "namespace": "d"}, "spec": {"selector": selector}, "status": status}


def cluster(*objects: tuple[str, dict[str, Any]], args: dict[str, Any] | None = None) -> Cluster:
    plugins = {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}
    config: dict[str, Any] = {"schedulerName": "default-scheduler", "plugins": plugins}
    if args is not None:
        config["pluginConfig"] = [{"name": "DefaultPreemption", "args": args}]
    made = Cluster(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [config]}
    )
    for field, obj in objects:
        made.add(field, obj)
    return made


def preempt(made: Cluster, preemptor: dict[str, Any]) -> tuple[Search, Any, Outcome]:
    search = Search(made.profiles["default-scheduler"], PodInfo(msgspec.convert(preemptor, Pod)), made.nominator)
    search.run()
    assert not len(search.rows)
    return search, *search.preempt()


def victims(outcome: Outcome) -> dict[str, list[str]]:
    return {name: [victim.name for victim in c.victims] for name, c in outcome.candidates.items()}


def test_pitfall_103_policy_never_leaves_the_nomination_alone() -> None:
    made = cluster(("nodes", node("n")), ("pods", pod("low", 0, "2", "n")))
    search, result, _ = preempt(made, pod("p", 10, "1", spec={"preemptionPolicy": "Never"}))
    assert result is None
    assert search.diagnosis.message() == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    )


def test_pitfall_104_no_candidate_clears_the_nomination() -> None:
    made = cluster(
        ("nodes", node("n1")),
        ("nodes", node("n2", taints=[{"key": "k", "effect": "NoSchedule"}])),
        ("nodes", node("n3", cpu="1500m")),
        ("pods", pod("low", 0, "500m", "n1")),
        ("pods", pod("high", 10, "1", "n1")),
    )
    search, result, outcome = preempt(made, pod("p", 10, "2"))
    assert result.nominate == ""
    assert outcome.chosen is None
    assert search.diagnosis.message().endswith(
        "preemption: 0/3 nodes are available: 1 Insufficient cpu, 2 Preemption is not helpful for scheduling."
    )


GOING = {"deletionTimestamp": "2026-01-02T00:00:00Z"}
TARGET = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


@pytest.mark.parametrize(
    ("pitfall", "conditions", "priority", "eligible"),
    [
        (106, [TARGET], 0, False),
        (105, [], 0, True),
        (105, [{**TARGET, "reason": "DeletionByTaintManager"}], 0, True),
        (105, [{**TARGET, "reason": "x"}, TARGET], 0, True),
        (106, [TARGET], 10, True),  # not of lower priority
    ],
)
def test_a_victim_that_is_going_on_the_nominated_node(
    pitfall: int, conditions: list[Any], priority: int, eligible: bool
) -> None:
    going = pod("going", priority, "1", "n1", meta=GOING, status={"conditions": conditions})
    made = cluster(
        ("nodes", node("n1")), ("pods", going), ("pods", pod("low", 0, "1", "n1")), ("nodes", node("n2")),
        ("pods", pod("low2", 0, "2", "n2")),
    )  # fmt: skip
    search, result, _ = preempt(made, pod("p", 10, "2", status={"nominatedNodeName": "n1"}))
    if eligible:
        assert result.nominate
    else:
        assert result is None
        assert search.diagnosis.post_filter_message == (
            "preemption: not eligible due to a terminating pod on the nominated node."
        )


def test_an_unresolvable_nominated_node_does_not_hold_up() -> None:
    going = pod("going", 0, "1", "n1", meta=GOING, status={"conditions": [TARGET]})
    made = cluster(
        ("nodes", node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])), ("pods", going), ("nodes", node("n2")),
        ("pods", pod("low", 0, "2", "n2")),
    )  # fmt: skip
    _, result, _ = preempt(made, pod("p", 10, "2", status={"nominatedNodeName": "n1"}))
    assert result.nominate == "n2"


def test_pitfall_109_110_words_of_nodes_where_it_does_not_help() -> None:
    made = cluster(
        ("nodes", node("equal")), ("pods", pod("a", 10, "2", "equal")),
        ("nodes", node("short")), ("pods", pod("b", 0, "500m", "short")), ("pods", pod("c", 20, "1500m", "short")),
    )  # fmt: skip
    _, _, outcome = preempt(made, pod("p", 10, "2"))
    assert {name: (status.code, status.reasons) for name, status in outcome.rejected.items()} == {
        "equal": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("No preemption victims found for incoming pod",)),
        "short": (Code.UNSCHEDULABLE, ("Insufficient cpu",)),
    }


WEB, DB = {"app": "web"}, {"app": "db"}


@pytest.mark.parametrize(
    ("labels", "budgets", "broken"),
    [
        ([WEB, WEB], [budget("b", WEB, 1)], 1),
        ([WEB, WEB], [budget("b", WEB, 0)], 2),
        ([WEB, WEB], [budget("b", WEB, 1, "v0")], 0),  # pitfall 113
        ([None, WEB], [budget("b", WEB, 0)], 1),  # pitfall 112
        ([WEB, WEB], [budget("b", None, 0)], 0),  # pitfall 112
        ([{"app": "web", "tier": "x"}, {"tier": "x"}], [budget("p1", WEB, 0), budget("p2", {"tier": "x"}, 1)], 2),
        ([WEB, DB], [budget("b", WEB, 1), budget("c", DB, 1)], 0),
    ],
)
def test_budgets(labels: list[Any], budgets: list[dict[str, Any]], broken: int) -> None:
    made = cluster(
        ("nodes", node("n")),
        *(("pdbs", each) for each in budgets),
        *(
            ("pods", pod(f"v{i}", 0, "1", "n", labels=each, start=f"2026-01-01T00:00:0{i}Z"))
            for i, each in enumerate(labels)
        ),
    )
    _, _, outcome = preempt(made, pod("p", 10, "2"))
    assert outcome.chosen is not None
    assert outcome.chosen.num_pdb_violations == broken


def test_a_budget_that_changes_is_seen() -> None:
    made = cluster(("nodes", node("n")), ("pdbs", budget("b", WEB, 0)), ("pods", pod("v", 0, "2", "n", labels=WEB)))
    assert preempt(made, pod("p", 10, "2"))[2].candidates["n"].num_pdb_violations == 1
    made.add("pdbs", budget("b", WEB, 1))
    assert preempt(made, pod("p", 10, "2"))[2].candidates["n"].num_pdb_violations == 0
    made.add("pdbs", budget("b", DB, 0))
    made.add("pods", pod("w", 0, "0", "n", labels=DB))
    assert preempt(made, pod("p", 10, "2"))[2].candidates["n"].num_pdb_violations == 0


def test_pitfall_111_protected_pods_come_back_first() -> None:
    made = cluster(
        ("nodes", node("n")),
        ("pdbs", budget("b", WEB, 0)),
        ("pods", pod("protected", 0, "1", "n", labels=WEB)),
        ("pods", pod("free", 5, "1", "n")),
    )
    assert victims(preempt(made, pod("p", 10, "1"))[2]) == {"n": ["free"]}


def test_a_victim_comes_back_when_there_is_room() -> None:
    made = cluster(
        ("nodes", node("n")), ("pods", pod("mid", 5, "1800m", "n")), ("pods", pod("low", 0, "200m", "n")),
    )  # fmt: skip
    assert victims(preempt(made, pod("p", 10, "1"))[2]) == {"n": ["mid"]}


def full(nodes: int, args: dict[str, Any] | None) -> Cluster:
    objects: list[tuple[str, dict[str, Any]]] = []
    for i in range(nodes):
        objects += [("nodes", node(f"n{i}")), ("pods", pod(f"low{i}", 0, "2", f"n{i}"))]
    return cluster(*objects, args=args)


@pytest.mark.parametrize(
    ("args", "candidates"),
    [
        (None, 5),
        ({"minCandidateNodesPercentage": 40, "minCandidateNodesAbsolute": 1}, 2),
        ({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 3}, 3),
        ({"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}, 5),
    ],
)
def test_how_many_candidates(args: dict[str, Any] | None, candidates: int) -> None:
    assert len(preempt(full(5, args), pod("p", 10, "1"))[2].candidates) == candidates


def test_a_sample_goes_on_until_a_candidate_breaks_no_budget() -> None:
    made = full(4, {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1})
    made.add("pdbs", budget("b", WEB, 0))
    for i in range(3):
        made.cache.remove_pod(made.cache.find_pod(f"low{i}"))  # type: ignore[arg-type]
        made.add("pods", pod(f"web{i}", 0, "2", f"n{i}", labels=WEB))
    for _ in range(5):
        _, result, outcome = preempt(made, pod("p", 10, "1"))
        assert result.nominate == "n3"
        assert len(outcome.candidates) <= 2  # at most one that breaks a budget is kept


def test_pitfall_108_prefilter_unschedulable_makes_every_node_potential() -> None:
    made = cluster(("nodes", node("n")), ("pods", pod("low", 0, "2", "n")))
    search = Search(made.profiles["default-scheduler"], PodInfo(msgspec.convert(pod("p", 10, "1"), Pod)))
    search.run()
    search.diagnosis.pre_filter = search.diagnosis.groups()[0].status
    assert search.diagnosis.potential().tolist() == [made.cache.table.row_of["n"]]
    result = search.post_filter()
    assert result is not None
    assert result.nominate == "n"


def test_pitfall_117_extenders_reply_without_victims() -> None:
    empty = {"n": Candidate("n", [], 0)}
    assert restrict(empty, ignorable=True) == {}
    with pytest.raises(ValueError, match='expected at least one victim pod on node "n"'):
        restrict(empty, ignorable=False)


def test_extenders_leave_some_or_none() -> None:
    made = full(3, None)
    plugin = made.profiles["default-scheduler"].post_filter[-1]
    _, _, outcome = preempt(made, pod("p", 10, "1"))
    outcome.chosen = None
    plugin.evaluator.choose_among(outcome, {"n1": outcome.candidates["n1"]})
    assert outcome.nominated == "n1"
    plugin.evaluator.choose_among(outcome, {})
    assert outcome.status.message == "no candidate node for preemption"


def evaluator_of(made: Cluster, at_once: int) -> Evaluator:
    """With only so many changed nodes looked at in one go."""
    found: Evaluator = next(
        p.evaluator for p in made.profiles["default-scheduler"].plugins if p.name == "DefaultPreemption"
    )
    found.changed_at_once = at_once
    return found


def crowd(number: int, *, more: int = 0, priority: int = 0) -> Cluster:
    """Full nodes; the pods of the last `more` of them are protected by no budget, all others by one."""
    made = cluster(("pdbs", budget("b", WEB, 0)))
    for i in range(number):
        made.add("nodes", node(f"n{i}"))
        made.add("pods", pod(f"there{i}", priority, "2", f"n{i}", labels=WEB if i < number - more else DB))
    return made


def test_many_changed_nodes_are_looked_at_piece_by_piece() -> None:
    made = crowd(7, more=7)
    evaluator_of(made, 2)
    seen: list[int] = []
    for _ in range(5):
        _, result, outcome = preempt(made, pod("p", 10, "2"))
        assert result.nominate in outcome.candidates
        seen.append(len(outcome.candidates))
    assert seen == [2, 4, 6, 7, 7]  # those looked at before are looked at again
    made.cache.remove_pod(next(iter(made.cache.pods())))
    made.add("pods", pod("new", 0, "2", made.cache.table.names[0]))
    _, _, outcome = preempt(made, pod("p", 10, "2"))
    assert len(outcome.candidates) == 7


def test_pieces_follow_until_a_candidate_breaks_no_budget() -> None:
    made = crowd(9, more=1)
    evaluator_of(made, 2)
    _, result, outcome = preempt(made, pod("p", 10, "2"))
    assert result.nominate == "n8"
    assert outcome.chosen.num_pdb_violations == 0
    made = crowd(9)
    evaluator_of(made, 2)
    _, result, outcome = preempt(made, pod("p", 10, "2"))
    assert len(outcome.candidates) == 9
    assert outcome.chosen.num_pdb_violations == 1


def test_piece_by_piece_no_node_is_left_out_of_the_words() -> None:
    made = crowd(5, priority=20)
    evaluator_of(made, 2)
    search, result, outcome = preempt(made, pod("p", 10, "2"))
    assert result.nominate == ""
    assert len(outcome.rejected) == 5
    assert search.diagnosis.message().endswith(
        "preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod."
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_runs_of_equal_victims_come_to_the_same_as_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    made = cluster(*[("pdbs", budget("b", WEB, rng.randrange(3)))] * rng.randrange(2))
    for i in range(5):
        made.add("nodes", node(f"n{i}", cpu="4"))
        for k in range(rng.randrange(1, 12)):
            start = f"2026-01-01T00:00:{rng.randrange(3):02}Z"
            cpu, labels = rng.choice(["300m", "100m"]), rng.choice([WEB, None])
            made.add("pods", pod(f"v{i}-{k}", rng.choice([0, 0, 5]), cpu, f"n{i}", start=start, labels=labels))
        if rng.random() < 0.3:
            promised = PodInfo(msgspec.convert(pod(f"promised{i}", 10, "500m"), Pod))
            made.nominator.add(PlacedPod(promised, f"n{i}"))
    wanted = pod("p", 10, f"{rng.randrange(20, 45)}00m")

    def found() -> Any:
        search = Search(made.profiles["default-scheduler"], PodInfo(msgspec.convert(wanted, Pod)), made.nominator)
        search.run()
        if len(search.rows):
            return None
        _, outcome = search.preempt()
        by_node = {name: ([v.key for v in c.victims], c.num_pdb_violations) for name, c in outcome.candidates.items()}
        return by_node, {name: status.reasons for name, status in outcome.rejected.items()}

    with_runs = found()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(NodeResourcesFit, "by_amounts", False)
        assert found() == with_runs


def test_amounts_that_may_wrap_are_tried_one_by_one() -> None:
    for cpu, expected in (("500m", True), (str(1 << 52), False)):
        made = cluster(("nodes", node("n")), ("pods", pod("there", 0, "2", "n")), ("pods", pod("wide", 0, cpu, "n")))
        search = Search(made.profiles["default-scheduler"], PodInfo(msgspec.convert(pod("p", 10, "2"), Pod)))
        search.run()
        assert Trials(search).only_amounts is expected
