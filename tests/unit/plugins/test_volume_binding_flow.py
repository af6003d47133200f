"""From Reserve to bound claims: what is assumed, written, waited for, and given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness
from volume_objects import Json, claim, storage_class, volume

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
CLAIM, VOLUME = ("PersistentVolumeClaim", "default/c"), ("PersistentVolume", "v")
NOT_PLACED = ""


def harness(*nodes: str, timeout: int | None = None) -> Harness:
    config = default_configuration(FeatureGates())
    if timeout is not None:
        for entry in config.profiles:
            arguments = entry.args_of("VolumeBinding")
            arguments.bind_timeout_seconds = timeout
    h = Harness(config)
    for name in nodes:
        h.add_node(make_node(name))
    h.put("StorageClass", storage_class("late"))
    h.put("StorageClass", storage_class("static", "kubernetes.io/no-provisioner"))
    return h


def annotations(h: Harness, key: tuple[str, str]) -> dict[str, str]:
    return h.objects[key]["metadata"].get("annotations") or {}


def change(h: Harness, key: tuple[str, str], how: Callable[[Json], None]) -> None:
    value = msgspec.json.decode(msgspec.json.encode(h.objects[key]))
    how(value)
    h.put(key[0], value)


def bind(h: Harness, volume_name: str = "v") -> None:
    """What the volume controller does once it agrees."""

    def bound(value: Json) -> None:
        value["spec"]["volumeName"] = volume_name
        value["metadata"].setdefault("annotations", {})
        value["metadata"]["annotations"] = {**(value["metadata"]["annotations"] or {}), COMPLETED: "yes"}

    change(h, CLAIM, bound)


def failure(h: Harness) -> str:
    condition = h.condition("p")
    return "" if condition is None else f"{condition['reason']}: {condition['message']}"


async def waiting(h: Harness, storage: str) -> None:
    """A pod whose claim was given to node n, and is not bound yet."""
    h.put(CLAIM[0], claim("c", storage_class=storage))
    h.add_pod(make_pod("p").pvc("c"))
    await h.settle()
    assert h.node_of("p") == NOT_PLACED


@pytest.mark.asyncio
async def test_a_volume_is_made_for_the_chosen_node() -> None:
    async with harness("n") as h:
        await waiting(h, "late")
        assert h.patches == [("default/p", {"status": {"nominatedNodeName": "n"}})]
        assert annotations(h, CLAIM) == {SELECTED: "n"}
        h.put(VOLUME[0], volume("v", csi="d"))
        bind(h)
        await h.settle()  # no clock has moved: the claim itself wakes the pod
        assert h.node_of("p") == "n"
        h.validate()


@pytest.mark.asyncio
async def test_a_free_volume_is_promised_to_the_claim() -> None:
    async with harness("n") as h:
        h.put(VOLUME[0], {**volume("v", storage_class="static"), "unknown": {"kept": True}})
        await waiting(h, "static")
        written = h.objects[VOLUME]
        version = written["spec"]["claimRef"].pop("resourceVersion")
        assert version.isdigit()
        assert written["spec"]["claimRef"] == {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": "default",
            "name": "c",
            "uid": "uid-c",
        }
        assert written["metadata"]["annotations"] == {BY_CONTROLLER: "yes"}
        assert written["unknown"] == {"kept": True}
        assert annotations(h, CLAIM) == {}
        bind(h)
        await h.settle()
        assert h.node_of("p") == "n"


@pytest.mark.asyncio
@pytest.mark.parametrize(("uid", "written"), [("uid-c", False), ("", True)])
async def test_a_volume_that_somebody_promised_to_the_claim(uid: str, written: bool) -> None:
    async with harness("n") as h:
        ref = {"namespace": "default", "name": "c", "uid": uid}
        h.put(VOLUME[0], volume("v", storage_class="static", claim_ref=ref, phase="Available"))
        before = h.objects[VOLUME]
        await waiting(h, "static")
        assert (h.objects[VOLUME] != before) is written
        assert h.objects[VOLUME]["spec"]["claimRef"]["uid"] == "uid-c"
        assert BY_CONTROLLER not in annotations(h, VOLUME)  # not our idea
        bind(h)
        await h.settle()
        assert h.node_of("p") == "n"


@pytest.mark.asyncio
async def test_bound_claims_cost_no_write() -> None:
    async with harness("n") as h:
        h.put(VOLUME[0], volume("v", csi="d"))
        h.put(CLAIM[0], claim("c", "v"))
        h.add_pod(make_pod("p").pvc("c"))
        await h.settle()
        assert h.node_of("p") == "n"
        assert h.patches == []


@pytest.mark.asyncio
async def test_two_pods_do_not_get_the_same_volume() -> None:
    async with harness("n") as h:
        h.put(VOLUME[0], volume("v", storage_class="static"))
        for name in ("c", "d"):
            h.put(CLAIM[0], claim(name, storage_class="static"))
        h.add_pod(make_pod("p").pvc("c"))
        h.add_pod(make_pod("q").pvc("d"))
        await h.settle()
        condition = h.condition("q")
        assert condition is not None
        assert "node(s) didn't find available persistent volumes to bind" in condition["message"]
        h.put(VOLUME[0], volume("w", storage_class="static"))
        await h.settle(1.1)
        assert h.objects["PersistentVolume", "w"]["spec"]["claimRef"]["name"] == "d"
        for name, of in (("c", "v"), ("d", "w")):
            key = (CLAIM[0], f"default/{name}")
            change(h, key, lambda value, of=of: value["spec"].update(volumeName=of))  # type: ignore[misc]
            change(h, key, lambda value: value["metadata"].update(annotations={COMPLETED: "yes"}))
        await h.settle()
        assert (h.node_of("p"), h.node_of("q")) == ("n", "n")


@pytest.mark.asyncio
async def test_a_refused_write_gives_the_volume_back() -> None:
    async with harness("n") as h:
        h.put(VOLUME[0], volume("v", storage_class="static"))
        h.put(CLAIM[0], claim("c", storage_class="static"))
        refusals = [RuntimeError("etcd is full")]
        h.fail_update = lambda kind, obj: refusals.pop() if refusals else None
        h.add_pod(make_pod("p").pvc("c"))
        await h.settle()
        assert failure(h) == 'SchedulerError: running PreBind plugin "VolumeBinding": etcd is full'
        assert "claimRef" not in h.objects[VOLUME]["spec"]
        await h.settle(2.5)  # after the backoff
        assert h.objects[VOLUME]["spec"]["claimRef"]["name"] == "c"
        bind(h)
        await h.settle()
        assert h.node_of("p") == "n"


@pytest.mark.asyncio
async def test_the_first_write_stays_when_the_second_is_refused() -> None:
    async with harness("n") as h:
        h.put(VOLUME[0], volume("v", storage_class="static"))
        h.put(CLAIM[0], claim("c", storage_class="static"))
        h.put(CLAIM[0], claim("d", storage_class="late"))
        refuse = True
        h.fail_update = lambda kind, obj: RuntimeError("no") if refuse and kind == CLAIM[0] else None
        h.add_pod(make_pod("p").pvc("c").pvc("d"))
        await h.settle()
        assert h.objects[VOLUME]["spec"]["claimRef"]["name"] == "c"
        assert annotations(h, (CLAIM[0], "default/d")) == {}
        refuse = False
        await h.settle(2.5)
        assert annotations(h, (CLAIM[0], "default/d")) == {SELECTED: "n"}


def unset(*path: str) -> Callable[[Json], None]:
    def apply(value: Json) -> None:
        for name in path[:-1]:
            value = value[name]
        value.pop(path[-1], None)

    return apply


def set_affinity(value: Json) -> None:
    value["spec"]["nodeAffinity"] = volume("x", affinity=("kubernetes.io/hostname", ["m"]))["spec"]["nodeAffinity"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("storage", "key", "how", "text"),
    [
        ("static", VOLUME, unset("spec", "claimRef"), 'ClaimRef got reset for pv "v"'),
        ("static", VOLUME, unset("spec", "claimRef", "uid"), 'ClaimRef got reset for pv "v"'),
        (
            "static",
            VOLUME,
            set_affinity,
            'pv "v" node affinity doesn\'t match node "n": no matching NodeSelectorTerms',
        ),
        ("late", CLAIM, unset("metadata", "annotations", SELECTED), 'provisioning failed for PVC "c"'),
        ("late", CLAIM, unset("metadata", "annotations"), 'selectedNode annotation reset for PVC "c"'),
    ],
)
async def test_a_binding_that_is_undone_fails(storage: str, key: Any, how: Callable[[Json], None], text: str) -> None:
    async with harness("n") as h:
        h.put(VOLUME[0], volume("v", storage_class="static"))
        await waiting(h, storage)
        change(h, key, how)
        await h.settle(1.0)
        assert failure(h) == f'SchedulerError: running PreBind plugin "VolumeBinding": binding volumes: {text}'
        assert not h.scheduler.pre_binding or h.node_of("p") == NOT_PLACED
        h.validate()


@pytest.mark.asyncio
async def test_what_vanishes_meanwhile() -> None:
    async with harness("n") as h:
        h.put(VOLUME[0], volume("v", storage_class="static"))
        await waiting(h, "static")
        h.remove(*CLAIM[:1], "c", "default")
        await h.settle()
        assert "failed to check binding: " in failure(h)
    async with harness("n") as h:
        h.put(VOLUME[0], volume("v", storage_class="static"))
        await waiting(h, "static")
        h.remove("PersistentVolume", "v")
        await h.settle(1.0)
        assert "failed to check binding: " in failure(h)
    async with harness("n", "m") as h:
        await waiting(h, "late")
        chosen = annotations(h, CLAIM)[SELECTED]
        h.delete_node(chosen)
        await h.settle(1.0)
        assert f'binding volumes: failed to get node "{chosen}": node "{chosen}" not found' in failure(h)
    async with harness("n") as h:
        await waiting(h, "late")
        h.delete_pod("p")
        await h.settle(1.0)
        assert not h.scheduler.pre_binding
        assert not h.bindings
        h.validate()


@pytest.mark.asyncio
async def test_waiting_has_an_end() -> None:
    async with harness("n", timeout=5) as h:
        await waiting(h, "late")
        await h.settle(4.0)
        assert failure(h) == ""
        await h.settle(1.5)
        assert failure(h) == (
            'SchedulerError: running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        )
        bind(h)
        h.put(VOLUME[0], volume("v"))
        await h.settle(2.0)
        assert h.node_of("p") == "n"


@pytest.mark.asyncio
async def test_a_bound_claim_waits_until_its_volume_is_seen() -> None:
    async with harness("n") as h:
        await waiting(h, "late")
        bind(h)
        await h.settle(3.0)
        assert h.node_of("p") == NOT_PLACED
        h.put(VOLUME[0], volume("v", claim_ref={"namespace": "default", "name": "c", "uid": "uid-c"}))
        await h.settle()
        assert h.node_of("p") == "n"


@pytest.mark.asyncio
async def test_pods_that_wait_for_volumes_do_not_hold_up_others() -> None:
    async with harness("n") as h:
        count = h.scheduler.dispatcher.limit + 4
        for i in range(count):
            h.put(CLAIM[0], claim(f"c{i}", storage_class="late"))
            h.add_pod(make_pod(f"w{i}").pvc(f"c{i}"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert h.node_of("p") == "n"
        assert h.scheduler.dispatcher.unfinished_bindings == count


@pytest.mark.asyncio
async def test_the_same_names_again_and_again() -> None:
    """Assumed objects do not outlive what they were made from."""
    async with harness("n") as h:
        for turn in range(8):
            h.put(VOLUME[0], {**volume("v", storage_class="static"), "turn": turn})
            value = claim("c", storage_class="static")
            value["metadata"]["uid"] = f"uid-{turn}"
            h.put(CLAIM[0], value)
            h.add_pod(make_pod("p").uid(f"pod-{turn}").pvc("c"))
            await h.settle(1.0)
            assert h.objects[VOLUME]["spec"]["claimRef"]["uid"] == f"uid-{turn}"
            bind(h)
            await h.settle(1.0)
            assert h.node_of("p") == "n"
            h.delete_pod("p")
            h.remove(CLAIM[0], "c", "default")
            h.remove("PersistentVolume", "v")
            h.validate()


@pytest.mark.asyncio
async def test_order_of_arrival_does_not_matter() -> None:
    """Pod, claim, volume: whatever comes last wakes the pod."""
    async with harness("n") as h:
        h.add_pod(make_pod("p").pvc("c"))
        await h.settle()
        assert "persistentvolumeclaim" in failure(h)
        h.put(CLAIM[0], claim("c", "v", bound=False))
        await h.settle(1.1)
        assert "pod has unbound immediate PersistentVolumeClaims" in failure(h)
        bind(h)
        await h.settle(2.1)
        assert "persistentvolume" in failure(h)
        h.put(VOLUME[0], volume("v"))
        await h.settle(10.0)
        assert h.node_of("p") == "n"
