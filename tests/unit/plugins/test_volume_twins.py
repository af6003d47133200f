"""The volume plugins, kept current in a living cluster, against their slow twins."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.api.core import Node, Pod
from skedge.framework.state import CycleState
from skedge.plugins import node_volume_limits, volume_restrictions, volume_zone
from skedge.plugins.volume_binding.filtering import REASONS
from skedge.plugins.volume_binding.plugin import VolumeBinding
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import DeltaView, Rows
from twins import volumes as twin
from twins.furnished import Furnished, placed

SEEDS = st.integers(0, 2**32 - 1)
WORDS = {
    volume_restrictions.REASON_DISK: twin.DISK,
    volume_restrictions.REASON_ONE_POD: twin.ONE_POD,
    node_volume_limits.REASON: twin.EXCEEDED,
    volume_zone.REASON: twin.WRONG_ZONE,
    **dict(zip(REASONS.values(), ("node conflict", "bind conflict", "no space", "volume missing"), strict=True)),
}


def plugin_of(furnished: Furnished, name: str) -> Any:
    return next(p for p in furnished.cluster.profiles["default-scheduler"].plugins if p.name == name)


def words(plugin: Any, state: CycleState, info: PodInfo, code: int) -> set[str]:
    if not code:
        return set()
    reasons = plugin.filter_status(state, info, code).reasons
    return {twin.MISSING if reason.startswith("looking up PVC") else WORDS[reason] for reason in reasons}


def verdicts(plugin: Any, state: CycleState, info: PodInfo, view: Any, skipped: bool) -> list[set[str]]:
    codes = np.broadcast_to(0 if skipped else plugin.filter(state, info, view), (view.size,))
    return [words(plugin, state, info, int(code)) for code in codes]


def expected(furnished: Furnished, name: str, pod: Pod, node: Node, added: list[Pod], removed: list[Pod]) -> set[str]:
    world = furnished.world
    there = [other for other in world.on(node) if other not in removed] + added
    if name == "VolumeBinding":
        return twin.binding(world, pod, node)[0]
    said = {
        "VolumeRestrictions": lambda: twin.restrictions(world, pod, node, there, added, removed),
        "NodeVolumeLimits": lambda: twin.limits(world, pod, node, there),
        "VolumeZone": lambda: twin.zone(world, pod, node),
    }[name]()
    return {said} - {""}


def compare(furnished: Furnished, pod: Pod) -> None:
    """On all nodes as they are, on some of them, and with pods added and removed."""
    rng, table = furnished.rng, furnished.cluster.cache.table
    info, everything = PodInfo(pod), Rows(table)
    rows = np.array([table.row_of[name] for name in furnished.world.nodes], np.int64)
    rng.shuffle(rows)
    for name in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"):
        plugin, state = plugin_of(furnished, name), CycleState()
        _, status = plugin.pre_filter(state, info, everything)
        if not (status.ok or status.skip):
            continue
        added: dict[int, list[PlacedPod]] = {}
        removed: dict[int, list[PlacedPod]] = {}
        for row in rows.tolist():
            if rng.random() < 0.6:
                there = [*table.pods[row].values()]
                removed[row] = rng.sample(there, rng.randrange(len(there) + 1))
                added[row] = [placed(furnished.pod(table.names[row])) for _ in range(rng.randrange(3))]
        more = {pod.uid: pod for pods in added.values() for pod in pods}
        views = [everything, Rows(table, rows)]
        if not status.skip:  # who skips the pod as things are is not asked about other worlds either
            views.append(DeltaView(table, rows, added, removed))
        for view in views:
            for row, said in zip(view.rows, verdicts(plugin, state, info, view, status.skip), strict=True):
                node = table.nodes[int(row)]
                if node is None:
                    continue
                came: list[Pod] = []
                gone: list[Pod] = []
                if isinstance(view, DeltaView):
                    came = [whole(furnished, more[p.uid]) for p in added.get(int(row), ())]
                    gone = [furnished.world.pods[p.uid] for p in removed.get(int(row), ())]
                assert said == expected(furnished, name, pod, node, came, gone), (name, node.metadata.name, type(view))


def whole(furnished: Furnished, pod: PlacedPod) -> Pod:
    """A pod with the volumes of a record."""
    meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    made = msgspec.convert({"metadata": meta}, Pod)
    made.spec.volumes = pod.volumes
    return made


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_filters_are_their_twins(seed: int) -> None:
    furnished = Furnished(seed)
    for _ in range(10):
        for _ in range(furnished.rng.randrange(8)):
            furnished.step()
        compare(furnished, furnished.pod())


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_what_is_reserved_is_what_the_twin_chooses(seed: int) -> None:
    furnished = Furnished(seed)
    for _ in range(furnished.rng.randrange(30)):
        furnished.step()
    plugin: VolumeBinding = plugin_of(furnished, "VolumeBinding")
    table, finder = furnished.cluster.cache.table, plugin._finder
    for _ in range(6):
        pod = furnished.pod()
        state, info = CycleState(), PodInfo(pod)
        _, status = plugin.pre_filter(state, info, Rows(table))
        if not status.ok:
            continue
        for name, node in furnished.world.nodes.items():
            reasons, chosen = twin.binding(furnished.world, pod, node)
            if reasons:
                continue
            before = {each.metadata.name: each for each in finder.volumes}
            assert plugin.reserve(state, info, name).ok
            found = state.read("VolumeBinding").decision
            got = {}
            if found is not None:
                got = {promise.claim.metadata.name: promise.volume.metadata.name for promise in found.promises}
                got |= {claim.metadata.name: "" for claim in found.provisions}
            assert got == chosen
            for claim_name, volume_name in got.items():
                if volume_name:
                    ref = finder.volumes.get(volume_name).spec.claim_ref
                    assert (ref.name, ref.uid) == (claim_name, f"uid-{claim_name}")
                else:
                    annotations = finder.claims.get(claim_name, "one").metadata.annotations
                    assert annotations["volume.kubernetes.io/selected-node"] == name
            plugin.unreserve(state, info, name)
            assert {each.metadata.name: each for each in finder.volumes} == before
        compare(furnished, pod)
