"""Reported bugs about volumes and claims. Named after their ids."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bugs.placing import message, no_flush, placed
from skedge.testing.builders import PodBuilder, make_node, make_pod
from skedge.testing.harness import Harness
from volume_objects import EBS, Json, claim, csi_node, storage_class, volume

pytestmark = pytest.mark.asyncio
SELECTED = "volume.kubernetes.io/selected-node"
CLAIM, VOLUME = ("PersistentVolumeClaim", "default/c"), ("PersistentVolume", "v")
AWS = "kubernetes.io/aws-ebs"
BACKOFF = 10.0


def bind_claim(h: Harness) -> None:
    """What the volume controller does: claim c is bound to volume v."""
    value = copy.deepcopy(h.objects[CLAIM])
    value["spec"]["volumeName"] = "v"
    notes = value["metadata"].get("annotations") or {}
    value["metadata"]["annotations"] = {**notes, "pv.kubernetes.io/bind-completed": "yes"}
    h.put(CLAIM[0], value)


def one_node() -> Harness:
    h = no_flush()
    h.add_node(make_node("n"))
    h.put("StorageClass", storage_class("late"))
    h.put("StorageClass", storage_class("static", "kubernetes.io/no-provisioner"))
    return h


@pytest.mark.parametrize("in_time", [True, False])
async def test_b056_the_bind_waits_for_a_claim_that_names_its_node(in_time: bool) -> None:
    async with one_node() as h:
        h.put(CLAIM[0], claim("c", storage_class="late"))
        assert await placed(h, make_pod("p").pvc("c")) == [""]
        assert h.objects[CLAIM]["metadata"]["annotations"] == {SELECTED: "n"}
        await h.settle(599.0)
        assert (h.bindings, message(h)) == ([], "")
        if not in_time:
            await h.settle(2.0)
            assert h.bindings == []
            assert message(h).endswith("binding volumes: context deadline exceeded")
            assert h.scheduler.queue.find("default/p") is not None
        h.put(VOLUME[0], volume("v", csi="d"))
        bind_claim(h)
        await h.settle(0.0 if in_time else BACKOFF)
        assert h.bindings == [("default/p", "n")]
        h.validate()


async def test_b058_the_same_names_fifty_times_in_any_order() -> None:
    """Two pods share the claim; what was assumed of the claims and volumes before does not count for the new ones."""
    rng = random.Random(58)
    async with one_node() as h:
        for turn in range(50):
            pv, pvc = volume("v", storage_class="static"), claim("c", storage_class="static")
            pv["metadata"]["uid"], pvc["metadata"]["uid"] = f"pv-{turn}", f"pvc-{turn}"
            births: list[Callable[[], Any]] = [
                partial(h.put, VOLUME[0], pv),
                partial(h.put, CLAIM[0], pvc),
                *(partial(h.add_pod, make_pod(name).uid(f"{name}-{turn}").pvc("c")) for name in "pq"),
            ]
            rng.shuffle(births)
            for happens in births:
                happens()
                if rng.random() < 0.5:
                    await h.settle()
            await h.settle(BACKOFF)
            assert h.objects[VOLUME]["spec"]["claimRef"]["uid"] == f"pvc-{turn}"
            if turn % 3:  # else it all goes while the claim is promised, and not bound yet
                bind_claim(h)
                await h.settle(BACKOFF)
                assert (h.node_of("p"), h.node_of("q")) == ("n", "n"), turn
            h.validate()
            deaths: list[Callable[[], None]] = [
                partial(h.remove, VOLUME[0], "v"),
                partial(h.remove, CLAIM[0], "c", "default"),
                partial(h.delete_pod, "p"),
                partial(h.delete_pod, "q"),
            ]
            rng.shuffle(deaths)
            for happens in deaths:
                happens()
                await h.settle()
            assert h.scheduler.cache.statistics()["assumed_pods"] == 0


@pytest.mark.parametrize("storage", ["static", None])
async def test_b059_pod_claim_and_volume_made_together(storage: str | None) -> None:
    """The controller binds the claim: at once, or when the scheduler has promised it the volume."""
    rng = random.Random(59)
    async with one_node() as h:
        for turn in range(200):
            h.add_pod(make_pod("p").uid(f"pod-{turn}").pvc("c"))
            await h.settle(rng.uniform(0.0, 0.5))
            pvc = claim("c", storage_class=storage)
            pvc["metadata"]["uid"] = f"pvc-{turn}"
            h.put(CLAIM[0], pvc)
            await h.settle(rng.uniform(0.0, 0.5))
            pv = volume("v", storage_class=storage or "")
            pv["metadata"]["uid"] = f"pv-{turn}"
            h.put(VOLUME[0], pv)
            await h.settle(rng.uniform(0.0, 0.5))
            if storage is not None:
                await h.settle(BACKOFF)
                assert h.objects[VOLUME]["spec"]["claimRef"]["uid"] == f"pvc-{turn}"
            bind_claim(h)
            await h.settle(BACKOFF)
            assert h.node_of("p") == "n", (turn, message(h))
            h.delete_pod("p")
            h.remove(CLAIM[0], "c", "default")
            h.remove(VOLUME[0], "v")
        h.validate()


def ephemeral(name: str) -> PodBuilder:
    return with_volume(name, {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})


def migrated(name: str) -> PodBuilder:
    return with_volume(name, {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}})


def with_volume(name: str, source: Json) -> PodBuilder:
    made = make_pod(name).uid(f"uid-{name}")
    made.json["spec"]["volumes"] = [{"name": "v", **source}]
    return made


@pytest.mark.parametrize("made", [ephemeral, migrated])
async def test_b062_ephemeral_and_migrated_volumes_count_against_the_limit(made: Callable[[str], PodBuilder]) -> None:
    async with no_flush() as h:
        h.add_node(make_node("n1"))
        h.put("CSINode", csi_node("n1", AWS, ebs__csi__aws__com=2))
        for name in "abc":
            owner = {"kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
            h.put(VOLUME[0], volume(f"pv-{name}", csi=EBS))
            h.put(CLAIM[0], claim(f"{name}-v", f"pv-{name}", ownerReferences=[owner]))
        assert await placed(h, made("a"), made("b"), made("c")) == ["n1", "n1", ""]
        assert message(h, "c").startswith("0/1 nodes are available: 1 node(s) exceed max volume count.")
        h.delete_pod("a")
        await h.settle(BACKOFF)
        assert h.node_of("c") == "n1"
