"""Plugins that want something of a pod: they are asked about pods that have it, and truly had nothing to say before."""

from __future__ import annotations

from typing import Any

import pytest

from skedge import names
from skedge.framework.plugin import Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SKIP, SUCCESS, Status
from skedge.profiles.profile import Enabled, Profile
from skedge.profiles.search import Search
from skedge.profiles.timed import timed_profile
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows
from skedge.testing.builders import make_node, make_pod
from skedge.testing.cases import Cluster

POINTS = (names.PRE_FILTER, names.FILTER, names.PRE_SCORE, names.SCORE, names.RESERVE, names.PRE_BIND)


class Wanting:
    """Notes where it is asked."""

    name = "Wanting"
    depends = Depends.CLUSTER
    wants = "volumes"
    normalizer = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, view: Any) -> tuple[None, Status]:
        self.asked.append(names.PRE_FILTER)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: Any) -> int:
        self.asked.append(names.FILTER)
        return 0

    def pre_score(self, state: CycleState, pod: PodInfo, view: Any) -> Status:
        self.asked.append(names.PRE_SCORE)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: Any) -> int:
        self.asked.append(names.SCORE)
        return 0

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, bool]:
        return SKIP, True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS


def a_profile(plugin: Any, *without: str) -> Profile:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.cache.add_node(make_node(name).obj())
    points = {point: [Enabled(plugin)] for point in POINTS if point not in without}
    return Profile("default-scheduler", points, cluster.cache.table)


def searched(profile: Profile, pod: PodInfo) -> Search:
    search = Search(profile, pod)
    search.run()
    search.scores()
    return search


def test_it_is_not_asked_about_pods_that_lack_it() -> None:
    plugin = Wanting()
    profile = a_profile(plugin)
    search = searched(profile, make_pod("plain").info())
    assert plugin.asked == []
    assert plugin.name in search.skip_filter & search.skip_score
    assert not any(search.asked[:-1])
    assert len(search.rows) == 2


def test_it_is_asked_about_pods_that_have_it() -> None:
    plugin = Wanting()
    search = searched(a_profile(plugin), make_pod("p").pvc("claim").info())
    assert plugin.asked == [*POINTS[:4]]
    assert search.asked.reserve == search.asked.pre_bind == (plugin,)
    assert not search.asked.spared


@pytest.mark.parametrize("without", [names.PRE_FILTER, names.PRE_SCORE])
def test_one_that_is_switched_off_where_it_would_say_so_is_asked_all_the_same(without: str) -> None:
    plugin = Wanting()
    searched(a_profile(plugin, without), make_pod("plain").info())
    assert plugin.asked == [point for point in POINTS[:4] if point != without]


def test_a_cycle_that_is_timed_asks_everybody() -> None:
    plugin = Wanting()
    timed = timed_profile(a_profile(plugin), lambda *_: None, lambda: 0.0)
    searched(timed, make_pod("plain").info())
    assert plugin.asked == [*POINTS[:4]]


def test_built_in_plugins_have_nothing_to_say_about_pods_that_lack_what_they_want() -> None:
    cluster = Cluster()
    cluster.cache.add_node(make_node("a").obj())
    profile = cluster.profiles["default-scheduler"]
    pod, view = make_pod("plain").label(app="a").req(cpu="1").info(), Rows(cluster.cache.table)
    wanting = [plugin for plugin in profile.plugins if hasattr(plugin, "wants")]
    assert len(wanting) == 5
    for plugin in wanting:
        state = CycleState()
        assert not getattr(pod, plugin.wants)
        assert plugin.pre_filter(state, pod, view)[1].skip
        assert not hasattr(plugin, "pre_score") or plugin.pre_score(state, pod, view).skip
        assert not hasattr(plugin, "reserve") or plugin.reserve(state, pod, "a").ok
        assert not hasattr(plugin, "pre_bind") or plugin.pre_bind_preflight(state, pod, "a")[0].skip
