"""Reported bugs about where pods may go: spread, affinity, resources, ports, scores. Named after their ids."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bugs.placing import HOST, ZONE, app, fits, message, no_flush, placed
from skedge.api.core import Node, Pod
from skedge.api.quantity import milli_value, value
from skedge.config.defaults import default_configuration
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.profiles.search import Search
from skedge.simulate.cluster import Cluster
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import PodBuilder, make_node, make_pod

pytestmark = pytest.mark.asyncio
LATER = 30.0


# --- spread -----------------------------------------------------------------------------------------------------------


async def test_b007_a_deleted_node_wakes_pods_that_spread() -> None:
    async with no_flush() as h:
        h.add_node(make_node("a1").zone("A"))
        h.add_node(make_node("b1").zone("B").capacity(pods="0"))
        for i in range(2):
            h.add_pod(app(f"e{i}", "x").node("a1"))
        assert await placed(h, app("p", "x").spread(ZONE, {"app": "x"})) == [""]
        h.delete_node("b1")
        await h.settle(LATER)
        assert h.node_of("p") == "a1"


async def test_b037_nodes_the_pod_cannot_use_are_no_domains() -> None:
    async with no_flush() as h:
        h.add_node(make_node("a1").zone("A").label(disk="ssd"))
        h.add_node(make_node("b1").zone("B").label(disk="hdd"))
        h.add_pod(app("e", "x").node("a1"))
        pod = app("p", "x").node_selector(disk="ssd").spread(ZONE, {"app": "x"})
        assert await placed(h, pod) == ["a1"]


@pytest.mark.parametrize(("policy", "fits_"), [(None, False), ("Honor", True)])
async def test_b038_tainted_nodes_count_as_domains_unless_told_otherwise(policy: str | None, fits_: bool) -> None:
    async with no_flush() as h:
        for i in range(3):
            h.add_node(make_node(f"w{i}"))
            h.add_pod(app(f"e{i}", "x").node(f"w{i}"))
            h.add_node(make_node(f"c{i}").taint("control-plane"))
        more = {} if policy is None else {"nodeTaintsPolicy": policy}
        (node,) = await placed(h, app("p", "x").spread(HOST, {"app": "x"}, **more))
        assert node.startswith("w") is fits_
        if not fits_:
            assert message(h).startswith(
                "0/6 nodes are available: 3 node(s) didn't match pod topology spread constraints, "
                "3 node(s) had untolerated taint(s)."
            )


async def test_b040_two_constraints_block_each_other() -> None:
    async with no_flush() as h:
        for name, zone in (("n1", "A"), ("n2", "A"), ("n3", "B")):
            h.add_node(make_node(name).zone(zone))
        pods = [app(f"p{i}", "x").spread(ZONE, {"app": "x"}).spread(HOST, {"app": "x"}) for i in range(7)]
        nodes = await placed(h, *pods)
        assert nodes.count("") == 2
        assert nodes.count("n3") == 2
        assert message(h, "p6").startswith("0/3 nodes are available: 3 node(s) didn't match pod topology spread constr")


@pytest.mark.parametrize("zones", [False, True])
async def test_b041_default_spreading_without_zones(zones: bool) -> None:
    async with no_flush() as h:
        for i in range(4):
            node = make_node(f"n{i}")
            h.add_node(node.zone(f"z{i % 2}") if zones else node)
        h.put("Service", {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "w"}}})
        nodes = await placed(h, *(app(f"p{i}", "w") for i in range(8)))
        assert sorted(nodes.count(f"n{i}") for i in range(4)) == [2, 2, 2, 2]


async def test_b043_match_label_keys_without_a_selector_do_not_crash() -> None:
    pod = app("p", "x").spread(HOST, {}, matchLabelKeys=["app"])
    del pod.json["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    async with no_flush() as h:
        h.add_node(make_node("n"))
        assert await placed(h, pod) == ["n"]


@pytest.mark.parametrize("sizes", [(3, 1), (7, 1, 0), (1, 5, 9)])
async def test_b044_every_node_is_looked_at_once_whatever_the_zones(sizes: tuple[int, ...]) -> None:
    config = default_configuration()
    config.percentage_of_nodes_to_score = 50
    async with no_flush(config=config) as h:
        for zone, count in enumerate(sizes):
            for i in range(count):
                h.add_node(make_node(f"n{zone}-{i}").zone(f"z{zone}"))
        (pod, node) = (make_pod("p").node_selector(**{HOST: "n1-0"}), "n1-0")
        assert await placed(h, pod) == [node]
        sampler = h.scheduler.profiles["default-scheduler"].sampler
        assert sampler is not None
        assert sorted(sampler.rows()) == list(range(sum(sizes)))


# --- affinity ---------------------------------------------------------------------------------------------------------


async def test_b046_the_first_pod_of_a_group_that_wants_itself() -> None:
    def replica(name: str) -> PodBuilder:
        pod = make_pod(name).label(app="a", tier="b")
        return pod.pod_affinity(ZONE, {"app": "a"}).pod_affinity(ZONE, {"tier": "b"})

    async with no_flush() as h:
        for name, zone in (("n1", "A"), ("n2", "B")):
            h.add_node(make_node(name).zone(zone))
        nodes = await placed(h, *(replica(f"p{i}") for i in range(3)))
        assert nodes[0] != ""
        assert len(set(nodes)) == 1


async def test_b047_each_term_of_anti_affinity_counts_alone() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n"))
        h.add_pod(app("e", "a").node("n"))
        pod = make_pod("p").pod_affinity(HOST, {"app": "a"}, anti=True).pod_affinity(HOST, {"app": "b"}, anti=True)
        assert await placed(h, pod) == [""]


async def test_b049_anti_affinity_is_about_the_pods_own_namespace() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n"))
        pods = [make_pod("web", ns).label(app="w").pod_affinity(HOST, {"app": "w"}, anti=True) for ns in ("a", "b")]
        assert await placed(h, *pods) == ["n", "n"]


async def test_b050_terms_of_node_affinity_are_alternatives() -> None:
    pod = make_pod("p")
    impossible = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("node1", "node2")]
    terms = [{"matchFields": impossible}, {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod.json["spec"]["affinity"] = {"nodeAffinity": required}
    async with no_flush() as h:
        h.add_node(make_node("node1"))
        h.add_node(make_node("node2").label(foo="bar"))
        assert await placed(h, pod) == ["node2"]


@pytest.mark.parametrize(
    ("label", "matches"), [("5", True), ("abc", False), (None, False), ("07", True), ("99999999999999999999", False)]
)
async def test_b052_greater_than_with_odd_labels(label: str | None, matches: bool) -> None:
    pod = make_pod("p")
    term = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["4"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod.json["spec"]["affinity"] = {"nodeAffinity": required}
    async with no_flush() as h:
        h.add_node(make_node("n") if label is None else make_node("n").label(gen=label))
        assert (await placed(h, pod) == ["n"]) is matches


# --- resources --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sidecar_first", [True, False])
async def test_b064_sidecars_count_as_long_as_the_pod(sidecar_first: bool) -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    once = {"name": "o", "resources": {"requests": {"cpu": "500m"}}}
    pod = make_pod("p").req(cpu="1")
    pod.json["spec"]["initContainers"] = [sidecar, once] if sidecar_first else [once, sidecar]
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="2"))
        assert await placed(h, pod, make_pod("q").req(cpu="100m")) == ["n", ""]


async def test_b065_init_containers_of_running_pods_count() -> None:
    running = make_pod("r").req(cpu="100m").node("n")
    running.json["spec"]["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "7"}}}]
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="8"))
        h.add_pod(running)
        assert await placed(h, make_pod("p").req(cpu="5")) == [""]


@pytest.mark.parametrize(("amount", "node"), [("9Ei", ""), ("9223372036854775807", ""), ("50E", "n"), ("1e30", "n")])
async def test_b067_huge_amounts_of_memory_do_not_wrap(amount: str, node: str) -> None:
    """Recorded of 1.36: decimal amounts beyond int64 still count as 0 there, so here too."""
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(memory="8Gi"))
        h.add_pod(make_pod("e").req(memory="1Gi").node("n"))
        assert await placed(h, make_pod("p").req(memory=amount)) == [node]
        assert ("Insufficient memory" in message(h)) is (node == "")


@pytest.mark.parametrize(("amount", "node"), [("9223372036854775", ""), ("1E", "n"), ("9223372036854776", "n")])
async def test_b068_huge_amounts_of_cpu(amount: str, node: str) -> None:
    """Open upstream, and recorded of 1.36: beyond int64 the milli value is 0 or negative."""
    async with no_flush() as h:
        h.add_node(make_node("n"))
        assert await placed(h, make_pod("p").req(cpu=amount)) == [node]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0.5Gi", 1 << 29),
        (".5Gi", 1 << 29),
        ("1.5Ti", 3 << 39),
        ("1e3", 1000),
        ("12E-1", 2),
        ("100m", 1),
        ("2Pi", 2 << 50),
        ("+1", 1),
        ("1.", 1),
    ],
)
async def test_b070_quantities_in_every_form(text: str, amount: int) -> None:
    assert value(text) == amount
    assert milli_value("1.5") == 1500


@pytest.mark.parametrize("left", [{"nvidia.com/gpu": "3"}, {}])
async def test_b071_less_than_is_in_use(left: dict[str, str]) -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").resource("nvidia.com/gpu", "4"))
        for i in range(4):
            h.add_pod(make_pod(f"e{i}").resource("nvidia.com/gpu", "1").node("n"))
        node = make_node("n")
        for name, amount in left.items():
            node.resource(name, amount)
        h.update_node(node)
        assert await placed(h, make_pod("p").resource("nvidia.com/gpu", "1")) == [""]
        assert "Insufficient nvidia.com/gpu" in message(h)


async def test_b074_most_allocated_caps_what_is_requested() -> None:
    config = default_configuration()
    args = PLUGIN_ARGS["NodeResourcesFit"].default(None)
    strategy = msgspec.structs.replace(args.scoring_strategy, type="MostAllocated")
    next(c for c in config.profiles[0].plugin_config if c.name == "NodeResourcesFit").args = msgspec.structs.replace(
        args, scoring_strategy=strategy
    )
    cluster = Cluster(config)
    cluster.add_node(make_node("small").capacity(cpu="200m", memory="400Mi").obj())
    cluster.add_node(make_node("big").obj())
    for i in range(3):
        cluster.add_pod(make_pod(f"e{i}").node("small").obj())
    search = Search(cluster.profiles["default-scheduler"], make_pod("p").info())
    search.run()
    scores = dict(
        zip(
            (cluster.cache.table.names[row] for row in search.rows),
            search.scores_by_plugin()["NodeResourcesFit"].tolist(),
            strict=True,
        )
    )
    assert scores["small"] > scores["big"]


# --- ports and taints -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (("TCP", "10.1.1.1"), ("TCP", "10.1.1.2"), True),
        (("TCP", ""), ("UDP", ""), True),
        (("TCP", "0.0.0.0"), ("TCP", "10.1.1.1"), False),
        (("TCP", ""), ("TCP", "127.0.0.1"), False),
    ],
)
async def test_b079_ports_by_protocol_and_address(first: Any, second: Any, both: bool) -> None:
    async with no_flush() as h:
        h.add_node(make_node("n"))
        pods = [make_pod(name).host_port(8080, *port) for name, port in (("a", first), ("b", second))]
        assert (await placed(h, *pods) == ["n", "n"]) is both


async def test_b080_ports_of_init_containers_are_not_reserved() -> None:
    init = make_pod("a")
    ports = [{"containerPort": 8081, "hostPort": 8081, "protocol": "TCP"}]
    init.json["spec"]["initContainers"] = [{"name": "i", "ports": ports}]
    async with no_flush() as h:
        h.add_node(make_node("n"))
        assert await placed(h, init, make_pod("b").host_port(8081)) == ["n", "n"]


async def test_b082_taints_are_not_named() -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").taint("k", "v"))
        await placed(h, make_pod("p"))
        assert message(h).startswith("0/1 nodes are available: 1 node(s) had untolerated taint(s).")


async def test_b094_counts_add_up_to_the_number_of_nodes() -> None:
    pod = make_pod("p").host_port(80)
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n8"]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    pod.json["spec"]["affinity"] = {"nodeAffinity": required}
    async with no_flush() as h:
        for i in range(9):
            h.add_node(make_node(f"n{i}"))
        h.add_pod(make_pod("e").host_port(80).node("n8"))
        await placed(h, pod)
        assert message(h).startswith(
            "0/9 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, "
            "8 node(s) didn't satisfy plugin(s) [NodeAffinity]."
        )


# --- scores and shared answers ----------------------------------------------------------------------------------------


async def test_b112_a_pod_for_one_node_has_one_status() -> None:
    cluster = Cluster()
    for i in range(500):
        cluster.add_node(make_node(f"n{i}").capacity(cpu="1").obj())
    pod = make_pod("p").req(cpu="2")
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    pod.json["spec"]["affinity"] = {"nodeAffinity": required}
    search = Search(cluster.profiles["default-scheduler"], pod.info())
    search.run()
    assert search.evaluated_nodes == 1
    assert set(search.diagnosis.node_statuses()) == {"n7"}


@pytest.mark.parametrize(("one", "other"), [({"priority": 1}, {"priority": 257}), ({"port": 80}, {"port": 336})])
async def test_b116_pods_that_differ_in_high_bits_share_no_answer(one: Any, other: Any) -> None:
    def pod(name: str, priority: int = 0, port: int = 0) -> PodInfo:
        made = make_pod(name).priority(priority)
        return (made.host_port(port) if port else made).info()

    cluster = Cluster()
    cluster.add_node(make_node("n").obj())
    cluster.add_pod(make_pod("e").host_port(80).node("n").obj())
    profile = cluster.profiles["default-scheduler"]
    fits_ = []
    for name, options in (("a", one), ("b", other)):
        search = Search(profile, pod(name, **options))
        search.run()
        fits_.append(len(search.rows) == 1)
    assert fits_ == [options.get("port") != 80 for options in (one, other)]


async def test_b125_an_image_weighs_the_same_as_volume_and_as_container() -> None:
    cluster = Cluster()
    cluster.add_node(make_node("n1").image("x:latest", 500 << 20).obj())
    cluster.add_node(make_node("n2").obj())
    profile = cluster.profiles["default-scheduler"]

    def scores(pod: PodBuilder) -> list[int]:
        search = Search(profile, pod.info())
        search.run()
        found: list[int] = search.scores_by_plugin()["ImageLocality"].tolist()
        return found

    volume = make_pod("v").image("none")
    volume.json["spec"]["volumes"] = [{"name": "i", "image": {"reference": "x:latest"}}]
    container = make_pod("c").image("none").container("x:latest")
    assert scores(volume)[0] > 0
    assert scores(container)[0] > 0
    assert scores(volume)[1] == scores(container)[1] == 0


async def test_b061_beta_zone_labels_of_volumes() -> None:
    async with no_flush() as h:
        h.add_node(make_node("a").zone("us-1a"))
        h.add_node(make_node("b").zone("us-1b"))
        labels = {"failure-domain.beta.kubernetes.io/zone": "us-1a"}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "s"}
        ref = {"namespace": "default", "name": "c", "uid": "u"}
        h.put("StorageClass", {"metadata": {"name": "s"}, "provisioner": "x", "volumeBindingMode": "Immediate"})
        volume = {"metadata": {"name": "v", "labels": labels}, "spec": {**spec, "claimRef": ref}}
        h.put("PersistentVolume", {**volume, "status": {"phase": "Bound"}})
        h.put("PersistentVolumeClaim", claim("c", volume="v"))
        assert await placed(h, make_pod("p").pvc("c")) == ["a"]


def claim(name: str, volume: str = "", phase: str = "Bound") -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": "u"}
    if volume:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}  # type: ignore[assignment]
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
    return {"metadata": meta, "spec": {**spec, "volumeName": volume}, "status": {"phase": phase}}


@pytest.mark.parametrize("phase", ["Bound", "Lost"])
async def test_b055_a_claim_whose_volume_is_gone(phase: str) -> None:
    async with no_flush() as h:
        h.add_node(make_node("n").capacity(cpu="1"))
        h.put("StorageClass", {"metadata": {"name": "s"}, "provisioner": "x", "volumeBindingMode": "Immediate"})
        h.put("PersistentVolumeClaim", claim("c", "pv-x", phase))
        h.add_pod(make_pod("low").req(cpu="1").node("n"))
        assert await placed(h, make_pod("p").priority(10).pvc("c")) == [""]
        assert h.deleted == []
        if phase == "Bound":
            spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "s"}
            ref = {"namespace": "default", "name": "c", "uid": "u"}
            volume = {"metadata": {"name": "pv-x"}, "spec": {**spec, "claimRef": ref}, "status": {"phase": "Bound"}}
            h.put("PersistentVolume", volume)
            await h.settle(LATER)
            assert h.node_of("p") == "n"


async def test_decoded_objects_are_what_the_helpers_make() -> None:
    assert isinstance(make_pod().obj(), Pod)
    assert isinstance(make_node().obj(), Node)
    assert await fits(make_pod("p").req(cpu="1"), cpu="1")
