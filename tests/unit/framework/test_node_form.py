"""Plugins in node form: asked about feasible rows only, equal to a twin in array form; all ways to answer wrong."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from skedge.config.defaults import default_configuration
from skedge.config.types import Plugin
from skedge.framework.node_form import NodePlugin, NodeView, lifted
from skedge.framework.plugin import UNRESOLVABLE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.profiles.search import Search
from skedge.simulate.cluster import Cluster
from skedge.snapshot.pods import PlacedPod
from skedge.snapshot.views import DeltaView, Row, Rows
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

LIMIT = "node(s) had too many pods of the team"


class Fair:
    """At most two pods a node of the pod's team, and none at all on nodes that the team is banned from."""

    name = "Fair"

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        self.asked: list[str] = []

    def filter_node(self, state: CycleState, pod: Any, node: NodeView) -> Status | None:
        self.asked.append(node.name)
        team = pod.labels.get("team")
        if node.labels.get("banned") == team:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, f"node(s) banned team {team}")
        if sum(other.labels.get("team") == team for other in node.pods) >= 2:
            return Status(Code.UNSCHEDULABLE, LIMIT)
        return None

    def score_node(self, state: CycleState, pod: Any, node: NodeView) -> int:
        return 100 - 10 * node.requested.get("pods", 0)


class FairRows:
    """The twin in array form."""

    name = "Fair"
    depends = Depends.CLUSTER
    normalizer = None

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        pass

    def filter(self, state: CycleState, pod: Any, view: Any) -> Any:
        team = pod.labels.get("team")
        codes = []
        for row in view.rows.tolist():
            node = view.table.nodes[row]
            labels = (node.metadata.labels or {}) if node is not None else {}
            crowd = sum(other.labels.get("team") == team for other in view.pods(row))
            codes.append(1 | UNRESOLVABLE if labels.get("banned") == team else 2 if crowd >= 2 else 0)
        return np.array(codes, np.int64)

    def filter_status(self, state: CycleState, pod: Any, code: int) -> Status:
        if code == 2:
            return Status(Code.UNSCHEDULABLE, LIMIT)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, f"node(s) banned team {pod.labels.get('team')}")

    def score(self, state: CycleState, pod: Any, view: Any) -> Any:
        return 100 - 10 * view.pod_count


def cluster(factory: Any, seed: int, percentage: int) -> Cluster:
    config = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.append(Plugin("Fair", 3))
    config.percentage_of_nodes_to_score = percentage
    made = Cluster(config, out_of_tree={"Fair": factory})
    rng = random.Random(seed)
    for i in range(12):
        node = make_node(f"n{i}").capacity(cpu=rng.choice("124"))
        made.add_node((node.label(banned=rng.choice("ab")) if rng.random() < 0.3 else node).obj())
    for i in range(rng.randrange(40)):
        pod = make_pod(f"p{i}").label(team=rng.choice("ab")).req(cpu="250m").node(f"n{rng.randrange(12)}")
        made.add_pod(pod.obj())
    return made


@pytest.mark.parametrize("percentage", [100, 50])
@pytest.mark.parametrize("seed", range(20))
def test_node_form_is_array_form(seed: int, percentage: int) -> None:
    found = []
    for factory in (Fair, FairRows):
        made = cluster(factory, seed, percentage)
        profile = made.profiles["default-scheduler"]
        for cpu in ("100m", "1", "3"):
            search = Search(profile, make_pod("new").label(team="a").req(cpu=cpu).info())
            search.run()
            rows = search.rows.tolist()
            scores = search.scores().tolist() if rows else []
            search.explain()
            groups = {name: status.message for name, status in search.diagnosis.node_statuses().items() if not rows}
            found.append((cpu, rows, scores, groups, search.diagnosis.message() if not rows else ""))
    assert found[: len(found) // 2] == found[len(found) // 2 :]


def test_only_nodes_that_all_array_filters_passed_are_asked_about() -> None:
    plugin = Fair()
    config = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.insert(1, Plugin("Fair", 1))  # wherever it stands
    made = Cluster(config, out_of_tree={"Fair": lambda args, handle: plugin})
    made.add_node(make_node("small").capacity(cpu="1").obj())
    made.add_node(make_node("tainted").taint("a").obj())
    made.add_node(make_node("fine").obj())
    search = Search(made.profiles["default-scheduler"], make_pod("p").label(team="a").req(cpu="2").info())
    search.run()
    assert plugin.asked == ["fine"]
    assert [made.cache.table.names[row] for row in search.rows] == ["fine"]


def test_what_a_node_shows_also_in_hypothetical_worlds() -> None:
    made = cluster(Fair, 0, 100)
    made.add_node(make_node("n").capacity(cpu="4", memory="1Gi", pods="10").label(zone="z").taint("t").obj())
    made.add_pod(make_pod("there").req(cpu="500m", memory="1Mi").node("n").obj())
    table = made.cache.table
    row = table.row_of["n"]
    seen: list[NodeView] = []

    class Looking:
        name = "Looking"

        def filter_node(self, state: CycleState, pod: Any, node: NodeView) -> None:
            seen.append(node)

    plugin = lifted(Looking())
    rows = np.array([row], np.int64)
    more = PlacedPod(make_pod("more").req(cpu="1").info(), "n")
    there = next(iter(table.pods[row].values()))
    for view in (Rows(table, rows), Row(table, row), DeltaView(table, rows, {row: [more]}, {row: [there]})):
        assert plugin.filter(CycleState(), make_pod("p").info(), view).tolist() == [0]
    one, same, other = seen
    assert (one.name, one.labels["zone"], one.taints[0].key, one.unschedulable) == ("n", "z", "t", False)
    assert one.allocatable == same.allocatable == {"cpu": 4000, "memory": 1 << 30, "pods": 10}
    assert one.requested == same.requested == {"cpu": 500, "memory": 1 << 20, "pods": 1}
    assert other.requested == {"cpu": 1000, "pods": 1}
    assert [pod.name for pod in one.pods] == ["there"]
    assert [pod.name for pod in other.pods] == ["more"]


@pytest.mark.parametrize(
    ("filter_answer", "score_answer", "message"),
    [
        (Status.from_error(ValueError("no thermometer")), 1, 'running Filter plugin "Odd" on node n: no thermometer'),
        (Status(Code.WAIT), 1, 'Filter plugin "Odd" returned Wait, which is no answer to a filter'),
        (SUCCESS, 1.5, 'running Score plugins: Score plugin "Odd" returned 1.5 for node n, expected an int'),
        (
            SUCCESS,
            101,
            'applying score defaultWeights on Score plugins: plugin "Odd" returns an invalid score 101, '
            "it should in the range of [0, 100] after normalizing",
        ),
    ],
)
@pytest.mark.asyncio
async def test_wrong_answers_end_the_attempt(filter_answer: Any, score_answer: Any, message: str) -> None:
    class Odd:
        name = "Odd"

        def filter_node(self, state: CycleState, pod: Any, node: NodeView) -> Any:
            return filter_answer if node.name == "n" else None

        def score_node(self, state: CycleState, pod: Any, node: NodeView) -> Any:
            return score_answer

    config = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.append(Plugin("Odd", 1))
    async with Harness(config, out_of_tree={"Odd": lambda args, handle: Odd()}) as h:
        h.add_node(make_node("n"))
        h.add_node(make_node("m"))
        h.add_pod(make_pod("p"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert (condition["reason"], condition["message"]) == ("SchedulerError", message)
        h.validate()


def test_other_points_are_the_plugin_s_own() -> None:
    class Both(Fair):
        def filter(self) -> None: ...

    class Reserving(Fair):
        def reserve(self, state: Any, pod: Any, node_name: str) -> Status:
            return SUCCESS

    assert lifted(FairRows()).__class__ is FairRows
    made = lifted(Reserving())
    assert isinstance(made, NodePlugin)
    assert made.reserve(None, None, "n") is SUCCESS
    assert not hasattr(made, "permit")
    with pytest.raises(ValueError, match="both filter and filter_node"):
        lifted(Both())
