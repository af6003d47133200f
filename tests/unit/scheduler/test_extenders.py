"""Extenders in the scheduler; ids that begin with a number are those of the list of pitfalls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from skedge.config.defaults import default_configuration
from skedge.config.fields import ConfigError
from skedge.config.types import Extender as ExtenderConfig
from skedge.config.types import ManagedResource
from skedge.framework.ports import ExtenderError, ExtenderFiltered, ExtenderVictims
from skedge.scheduler.extenders import Extenders
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.harness import Harness

pytestmark = pytest.mark.asyncio


class Fake:
    """An extender in memory. `rejects`, `unresolvable`: node -> reason; `fails`: verbs that answer nothing."""

    def __init__(
        self,
        name: str = "http://one",
        *,
        rejects: Mapping[str, str] | None = None,
        unresolvable: Mapping[str, str] | None = None,
        scores: Mapping[str, int] | None = None,
        weight: int = 1,
        ignorable: bool = False,
        managed: Sequence[str] = (),
        preempts: Sequence[str] | None = None,
        binds: bool = False,
        fails: Sequence[str] = (),
        as_objects: bool = False,
    ) -> None:
        self.name = name
        self.weight = weight
        self.ignorable = ignorable
        self.managed_resources = frozenset(managed)
        self.filters = True
        self.prioritizes = scores is not None
        self.preempts = preempts is not None
        self.binds = binds
        self.calls: list[tuple[str, list[str]]] = []
        self.gate: asyncio.Event | None = None
        self.bound: list[tuple[str, str]] = []
        self.harness: Harness | None = None
        self._rejects, self._unresolvable = rejects or {}, unresolvable or {}
        self._scores, self._left, self._fails = scores or {}, preempts, fails
        self._as_objects = as_objects

    async def _called(self, verb: str, nodes: Sequence[str]) -> None:
        self.calls.append((verb, sorted(nodes)))
        if self.gate is not None:
            await self.gate.wait()
        if verb in self._fails:
            raise ExtenderError(f"{verb} broke")

    async def filter(self, pod: PodInfo, nodes: Sequence[str]) -> ExtenderFiltered:
        await self._called("filter", nodes)
        out = {**self._rejects, **self._unresolvable}
        return ExtenderFiltered(
            [node for node in nodes if node not in out], self._rejects, self._unresolvable, self._as_objects
        )

    async def prioritize(self, pod: PodInfo, nodes: Sequence[str]) -> Mapping[str, int]:
        await self._called("prioritize", nodes)
        return self._scores

    async def preempt(
        self, pod: PodInfo, candidates: Mapping[str, tuple[Sequence[PlacedPod], int]]
    ) -> Mapping[str, ExtenderVictims]:
        await self._called("preempt", list(candidates))
        assert self._left is not None
        return {
            node: ExtenderVictims([pod.uid for pod in victims], violations)
            for node, (victims, violations) in candidates.items()
            if node in self._left
        }

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self._called("bind", [node_name])
        self.bound.append((pod.key, node_name))
        if self.harness is not None:
            await self.harness.bind(pod, node_name)


def harness(*extenders: Fake, nodes: int = 3) -> Harness:
    config = default_configuration()
    config.extenders = [ExtenderConfig(url_prefix=each.name) for each in extenders]
    made = Harness(config, extenders=extenders)
    for each in extenders:
        each.harness = made
    for i in range(nodes):
        made.add_node(make_node(f"n{i}"))
    return made


async def scheduled(*extenders: Fake, pod: PodBuilder | None = None, nodes: int = 3) -> tuple[str, str]:
    """(node, message of the condition) of a pod."""
    async with harness(*extenders, nodes=nodes) as h:
        h.add_pod(pod or make_pod("p").req(cpu="1"))
        await h.settle()
        h.validate()
        condition = h.condition("p") or {}
        return h.node_of("p"), condition.get("message", "")


@pytest.mark.parametrize(
    ("extenders", "node", "message"),
    [
        pytest.param([Fake(rejects={"n0": "no", "n1": "no"})], "n2", "", id="filter"),
        pytest.param(
            [Fake(rejects={"n0": "no"}), Fake("http://two", unresolvable={"n1": "never"})], "n2", "", id="one by one"
        ),
        pytest.param([Fake(scores={"n1": 10})], "n1", "", id="prioritize"),
        pytest.param([Fake(scores={"n1": 9}), Fake("http://two", scores={"n2": 10}, weight=2)], "n2", "", id="weights"),
        pytest.param(
            [Fake(scores={"n1": 10}, fails=["prioritize"], rejects={"n0": "", "n1": ""})], "n2", "", id="pitfall 134"
        ),
        pytest.param([Fake(fails=["filter"])], "", "filter broke", id="error"),
        pytest.param(
            [Fake(fails=["filter"], ignorable=True), Fake("http://two", rejects={"n0": "a", "n1": "b"})],
            "n2",
            "",
            id="ignorable",
        ),
        pytest.param(
            [Fake(rejects={"n0": "no", "n1": "no"}, unresolvable={"n1": "never", "n2": "never"})],
            "",
            "0/3 nodes are available: 1 no, 2 never. no new claims to deallocate, preemption: 0/3 nodes are available: "
            "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
            id="nothing left",
        ),
    ],
)
async def test_decisions(extenders: list[Fake], node: str, message: str) -> None:
    assert await scheduled(*extenders) == (node, message)


async def test_ignorable_extenders_come_last() -> None:
    """pitfall 132: whatever their order in the configuration."""
    one, two = Fake("http://one", ignorable=True), Fake("http://two")
    h = harness(one, two)
    assert [each.name for each in h.scheduler.extenders.all] == ["http://two", "http://one"]


async def test_share_of_the_total() -> None:
    """133: score x weight x 10, next to plugin scores of 0 to 100 x weight."""
    extender = Fake(scores={"n0": 10}, weight=3)
    h = harness(extender)
    search = _search(h)
    shares, touched = await h.scheduler.extenders.shares(search)
    assert shares["http://one"].tolist() == [300, 0, 0]
    assert touched.tolist() == [True, False, False]


def _search(h: Harness) -> Any:
    from skedge.profiles.search import Search

    search = Search(h.scheduler.profiles["default-scheduler"], make_pod("p").info())
    search.run()
    return search


@pytest.mark.parametrize(
    ("pod", "asked"),
    [
        pytest.param(make_pod().req(cpu="1"), False, id="135-other resources"),
        pytest.param(make_pod().resource("example.com/gpu", "1"), True, id="135-requests"),
    ],
)
async def test_managed_resources(pod: PodBuilder, asked: bool) -> None:
    h = harness(Fake(managed=["example.com/gpu"]), nodes=0)
    assert bool(h.scheduler.extenders.of(pod.info())) is asked


async def test_limits_alone_count_for_managed_resources() -> None:
    """135"""
    pod = make_pod().container()
    pod.json["spec"]["initContainers"] = [{"name": "i", "resources": {"limits": {"example.com/gpu": "1"}}}]
    extenders = Extenders([Fake(managed=["example.com/gpu"])], harness().scheduler.cache, harness().scheduler.rng)
    assert extenders.of(pod.info())


async def test_ignored_resources_are_no_business_of_the_filter() -> None:
    config = default_configuration()
    managed = [ManagedResource("example.com/gpu", ignored_by_scheduler=True)]
    config.extenders = [ExtenderConfig(url_prefix="http://one", managed_resources=managed)]
    async with Harness(config, extenders=[Fake(managed=["example.com/gpu"])]) as h:
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p").resource("example.com/gpu", "1"))
        await h.settle()
        assert h.node_of("p") == "n"
    assert config.profiles[0].args_of("NodeResourcesFit").ignored_resources == ["example.com/gpu"]  # type: ignore[attr-defined]
    config.profiles[0].plugin_config = []
    with pytest.raises(
        ConfigError, match=r"^couldn't build extenders: can't find NodeResourcesFitArgs in plugin config$"
    ):
        Harness(config)


async def test_a_single_node_is_not_scored() -> None:
    """66"""
    extender = Fake(scores={"n0": 1})
    assert await scheduled(extender, nodes=1) == ("n0", "")
    assert extender.calls == [("filter", ["n0"])]


async def test_nominated_node_is_asked_about_alone() -> None:
    extender = Fake(rejects={"n1": "no"})
    assert (await scheduled(extender, pod=make_pod("p").nominated("n1")))[0] in ("n0", "n2")
    assert extender.calls == [("filter", ["n1"]), ("filter", ["n0", "n1", "n2"])]


async def test_error_about_the_nominated_node_is_only_logged() -> None:
    extender = Fake(fails=["filter"], ignorable=False)
    assert await scheduled(extender, pod=make_pod("p").nominated("n1")) == ("", "filter broke")
    assert [nodes for _, nodes in extender.calls] == [["n1"], ["n0", "n1", "n2"]]


async def test_nodes_that_come_back_as_objects_may_be_strangers() -> None:
    class Stranger(Fake):
        async def filter(self, pod: PodInfo, nodes: Sequence[str]) -> ExtenderFiltered:
            return ExtenderFiltered(["stranger", "n0"], {}, {}, True)

    async with harness(Stranger(scores={"n0": 10})) as h:
        h.add_pod(make_pod("p").req(cpu="1"))
        await h.settle()
        assert h.node_of("p") == "n0"
        assert "stranger" not in h.scheduler.cache.table.row_of
        h.validate()


@pytest.mark.parametrize(
    ("extenders", "extender_binds", "message"),
    [
        ([Fake(binds=True)], True, ""),
        pytest.param([Fake(binds=True, fails=["bind"], ignorable=True)], False, "", id="99-DefaultBinder binds"),
        ([Fake(binds=True, fails=["bind"])], False, "bind broke"),
        ([Fake(binds=True, managed=["example.com/gpu"])], False, ""),
    ],
)
async def test_bind(extenders: list[Fake], extender_binds: bool, message: str) -> None:
    node, found = await scheduled(*extenders, nodes=1)
    assert (node, found) == ("" if message else "n0", message)
    assert bool(extenders[0].bound) is extender_binds


async def test_rejection_by_an_extender_waits_for_what_extenders_wait_for() -> None:
    async with harness(Fake(rejects={"n0": "no", "n1": "no", "n2": "no"})) as h:
        h.add_pod(make_pod("p").req(cpu="1"))
        await h.settle()
        record = h.scheduler.queue.find("default/p")
        assert record is not None
        assert record.rejectors == {"Extender"}
        h.add_node(make_node("n3"))
        await h.settle(advance=2)
        assert h.node_of("p") == "n3"


@pytest.mark.parametrize(
    ("extenders", "victim", "message"),
    [
        ([Fake(preempts=["n1"])], "low1", ""),
        ([Fake(preempts=["n0", "n1"]), Fake("http://two", preempts=["n0", "n2"])], "low0", ""),
        ([Fake(preempts=[])], "", "no candidate node for preemption"),
        ([Fake(preempts=["n1"], fails=["preempt"])], "", "preempt broke"),
        ([Fake(preempts=["n2"]), Fake("http://two", preempts=["n1"], fails=["preempt"], ignorable=True)], "low2", ""),
        ([Fake(preempts=[], managed=["example.com/gpu"])], "any", ""),
    ],
)
async def test_preempt(extenders: list[Fake], victim: str, message: str) -> None:
    async with harness(*extenders) as h:
        for i in range(3):
            h.add_pod(make_pod(f"low{i}").req(cpu="4").node(f"n{i}"))
        h.add_pod(make_pod("p").req(cpu="4").priority(10))
        await h.settle()
        assert (["any"] if h.deleted and victim == "any" else [key.split("/")[1] for key in h.deleted]) == (
            [victim] if victim else []
        )
        text = (h.condition("p") or {})["message"]
        assert message in text if message else "preemption" not in text


@pytest.mark.parametrize(
    ("uid", "node", "message"),
    [
        (
            "nobody",
            "n0",
            "extender: http://one claims to preempt pod (UID: nobody) on node: n0, but the pod is not found on that "
            "node",
        ),
        ("nobody", "gone", 'nodeinfo not found for node name "gone"'),
        ("", "n0", 'expected at least one victim pod on node "n0"'),
    ],
)
async def test_victims_that_an_extender_makes_up(uid: str, node: str, message: str) -> None:
    class Liar(Fake):
        async def preempt(self, pod: PodInfo, candidates: Any) -> Mapping[str, ExtenderVictims]:
            return {node: ExtenderVictims([uid] if uid else [], 0)}

    async with harness(Liar(preempts=[]), nodes=1) as h:
        h.add_pod(make_pod("low").req(cpu="4").node("n0"))
        h.add_pod(make_pod("p").req(cpu="4").priority(10))
        await h.settle()
        assert message in (h.condition("p") or {})["message"]
        assert h.deleted == []


async def test_the_world_waits_while_an_extender_thinks() -> None:
    """Events, and what bindings come to, happen after the cycle; then they do happen, in their order."""
    extender = Fake()
    extender.gate = asyncio.Event()
    async with harness(extender, nodes=1) as h:
        slow = asyncio.Event()
        h.bind_delay = lambda pod: slow
        h.fail_bind = lambda pod, node: RuntimeError("refused") if pod.name == "first" else None
        h.add_pod(make_pod("first").req(cpu="3"))
        extender.gate.set()
        await h.settle()
        extender.gate.clear()
        h.add_pod(make_pod("second").req(cpu="1"))
        cycle = asyncio.create_task(h.scheduler.work())
        while len(extender.calls) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        h.add_node(make_node("late"))
        h.add_pod(make_pod("third"))
        slow.set()
        for _ in range(20):
            await asyncio.sleep(0)
        table = h.scheduler.cache.table
        assert "late" not in table.row_of
        assert h.scheduler.queue.find("default/third") is None
        assert table.pod_count.sum() == 1  # the failed binding has not given its room back yet
        assert len(h.inbox) == 3
        extender.gate.set()
        await cycle
        assert "late" in table.row_of
        await h.settle(advance=20)
        assert all(h.node_of(name) for name in ("second", "third"))
        h.validate()


async def test_equal_nodes_that_were_scored_are_equally_likely() -> None:
    chosen = set()
    for seed in range(12):
        h = harness(Fake(scores={"n0": 5, "n1": 5, "n2": 4}))
        h.scheduler.rng.seed(seed)
        async with h:
            h.add_pod(make_pod("p").req(cpu="1"))
            await h.settle()
            chosen.add(h.node_of("p"))
    assert chosen == {"n0", "n1"}
