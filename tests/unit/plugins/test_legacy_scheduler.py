"""A scheduler made from a legacy Policy: pods are bound by it, and wake when what turned them down has changed."""

import msgspec
import pytest

from legacy_clusters import service
from skedge.api.workloads import Service
from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.config.legacy.apply import use_policy
from skedge.config.legacy.policy import decode_policy
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import KubeSchedulerConfiguration
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

POLICY = """
kind: Policy
apiVersion: v1
predicates:
- {name: GeneralPredicates}
- {name: ZoneTogether, argument: {serviceAffinity: {labels: [zone]}}}
- {name: NeedRack, argument: {labelsPresence: {labels: [rack], presence: true}}}
priorities:
- {name: LeastRequestedPriority, weight: 1}
- {name: MostRequestedPriority, weight: 1}
- {name: NodePreferAvoidPodsPriority, weight: 10000}
- {name: SpreadRack, weight: 2, argument: {serviceAntiAffinity: {label: rack}}}
alwaysCheckAllPredicates: true
"""


@pytest.fixture
def config() -> KubeSchedulerConfiguration:
    made = default_configuration()
    use_policy(made, decode_policy(POLICY), args_types=PLUGIN_ARGS, gates=FeatureGates())
    return made


@pytest.mark.asyncio
async def test_pods_of_a_service_go_to_one_zone_and_over_its_racks(config: KubeSchedulerConfiguration) -> None:
    async with Harness(config) as h:
        h.listers.services.set(msgspec.convert(service("s", app="x"), Service))
        for name, zone, rack in (("a", "z1", "1"), ("b", "z1", "2"), ("c", "z2", "1"), ("d", "z2", "2")):
            h.add_node(make_node(name).label(zone=zone, rack=rack))
        for i in range(4):
            h.add_pod(make_pod(f"p{i}").label(app="x").req(cpu="100m"))
            await h.settle()
        nodes = sorted(h.node_of(f"p{i}") for i in range(4))
        assert nodes in (["a", "a", "b", "b"], ["c", "c", "d", "d"])
        h.validate()


@pytest.mark.asyncio
async def test_all_reasons_are_told_and_a_node_change_wakes_the_pod(config: KubeSchedulerConfiguration) -> None:
    async with Harness(config) as h:
        h.listers.services.set(msgspec.convert(service("s", app="x"), Service))
        h.add_node(make_node("a").label(zone="z1"))
        h.add_node(make_node("b").label(zone="z2", rack="2"))
        h.add_pod(make_pod("first").label(app="x").node("a"))
        h.add_pod(make_pod("p").label(app="x"))
        await h.settle()
        condition = h.condition("p")
        assert condition is not None
        assert condition["message"].startswith(
            "0/2 nodes are available: 1 node(s) didn't have the requested labels, "
            "1 node(s) didn't match service affinity."
        )
        h.update_node(make_node("a").label(zone="z1", rack="1"))
        await h.settle(20.0)
        assert h.node_of("p") == "a"


@pytest.mark.asyncio
async def test_preemption_follows_the_pods_of_the_service(config: KubeSchedulerConfiguration) -> None:
    async with Harness(config) as h:
        h.listers.services.set(msgspec.convert(service("s", app="x"), Service))
        h.add_node(make_node("a").label(zone="z1", rack="1").capacity(cpu="1"))
        h.add_node(make_node("b").label(zone="z2", rack="2").capacity(cpu="1"))
        h.add_pod(make_pod("member").label(app="x").node("a").req(cpu="100m").priority(100))
        h.add_pod(make_pod("other").node("a").req(cpu="900m"))
        h.add_pod(make_pod("p").label(app="x").req(cpu="500m").priority(10))
        await h.settle()
        await h.settle(20.0)
        assert h.deleted == ["default/other"]
        assert h.node_of("p") == "a"
