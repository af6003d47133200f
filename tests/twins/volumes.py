"""Twins of the volume plugins' filters: one pod, one node, straight from the objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skedge.api.core import Node, Pod, Volume
from skedge.api.labels import compile_selector
from skedge.api.node_selectors import NodeTerms
from skedge.api.quantity import parse
from skedge.api.storage import PersistentVolume, PersistentVolumeClaim
from twins.world import World, labels

DISK = "disk"
ONE_POD = "one pod"
EXCEEDED = "exceeded"
MISSING = "missing"
WRONG_ZONE = "zone"
ZONES = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"]
BETA = ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"]
AWS = "kubernetes.io/aws-ebs"
AWS_DRIVER = "ebs.csi.aws.com"
AWS_ZONE = "topology.ebs.csi.aws.com/zone"


class VolumeWorld(World):
    """The cluster with what volumes need; everything by key."""

    def __init__(self) -> None:
        super().__init__()
        self.pvs: dict[str, Any] = {}
        self.pvcs: dict[str, Any] = {}
        self.classes: dict[str, Any] = {}
        self.csi_nodes: dict[str, Any] = {}
        self.drivers: dict[str, Any] = {}
        self.capacities: dict[str, Any] = {}
        self.attachments: dict[str, Any] = {}

    def claim(self, pod: Pod, name: str) -> PersistentVolumeClaim | None:
        return self.pvcs.get(f"{pod.metadata.namespace}/{name}")


def claim_of(pod: Pod, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


# --- VolumeRestrictions -----------------------------------------------------------------------------------------------


def same_disk(one: Volume, two: Volume) -> bool:
    if one.gce_persistent_disk and two.gce_persistent_disk:
        a, b = one.gce_persistent_disk, two.gce_persistent_disk
        return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
    if one.aws_elastic_block_store and two.aws_elastic_block_store:
        return one.aws_elastic_block_store.volume_id == two.aws_elastic_block_store.volume_id
    if one.iscsi and two.iscsi:
        return one.iscsi.iqn == two.iscsi.iqn and not (one.iscsi.read_only and two.iscsi.read_only)
    if one.rbd and two.rbd:
        shared = set(one.rbd.monitors or ()) & set(two.rbd.monitors or ())
        same = (one.rbd.pool, one.rbd.image) == (two.rbd.pool, two.rbd.image)
        return bool(shared) and same and not (one.rbd.read_only and two.rbd.read_only)
    return False


def named_claims(pod: Pod) -> list[str]:
    volumes = pod.spec.volumes or ()
    return [v.persistent_volume_claim.claim_name for v in volumes if v.persistent_volume_claim is not None]


def restrictions(
    world: VolumeWorld,
    pod: Pod,
    node: Node,
    there: Sequence[Pod],
    added: Iterable[Pod] = (),
    removed: Iterable[Pod] = (),
) -> str:
    mine = pod.spec.volumes or ()
    if any(same_disk(one, two) for one in mine for other in there for two in other.spec.volumes or ()):
        return DISK
    exclusive = set()
    for name in named_claims(pod):
        claim = world.claim(pod, name)
        if claim is not None and "ReadWriteOncePod" in (claim.spec.access_modes or ()):
            exclusive.add(name)
    used = 0
    for name in exclusive:
        users = (
            other
            for _, other in world.placed()
            if other.metadata.namespace == pod.metadata.namespace
            and name in [claim_of(other, volume) for volume in other.spec.volumes or ()]
        )
        used += any(True for _ in users)
    used += sum(name in exclusive for other in added for name in named_claims(other))
    used -= sum(name in exclusive for other in removed for name in named_claims(other))
    return ONE_POD if used > 0 else ""


# --- NodeVolumeLimits -------------------------------------------------------------------------------------------------


def has_migrated(world: VolumeWorld, node: Node, plugin: str) -> bool:
    csi_node = world.csi_nodes.get(node.metadata.name)
    if csi_node is None:
        return False
    text = (csi_node.metadata.annotations or {}).get("storage.alpha.kubernetes.io/migrated-plugins", "")
    return plugin in text.split(",")


def counted(world: VolumeWorld, pod: Pod, node: Node) -> set[tuple[str, str]]:
    found = set()
    for volume in pod.spec.volumes or ():
        name = claim_of(pod, volume)
        if name is None:
            disk = volume.aws_elastic_block_store
            if disk is not None and has_migrated(world, node, AWS):
                found.add((AWS_DRIVER, disk.volume_id))
            continue
        claim = world.claim(pod, name)
        if claim is None:
            continue
        pv = world.pvs.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if pv is not None:
            if pv.spec.csi is not None:
                found.add((pv.spec.csi.driver, pv.spec.csi.volume_handle))
            elif pv.spec.aws_elastic_block_store is not None and has_migrated(world, node, AWS):
                found.add((AWS_DRIVER, pv.spec.aws_elastic_block_store.volume_id))
            continue
        storage_class = world.classes.get(claim.spec.storage_class_name or "")
        if storage_class is None:
            continue
        handle = f"unbound {claim.metadata.namespace}/{claim.metadata.name}"
        if storage_class.provisioner != AWS:
            found.add((storage_class.provisioner, handle))
        elif has_migrated(world, node, AWS):
            found.add((AWS_DRIVER, handle))
    return found


def limits(world: VolumeWorld, pod: Pod, node: Node, there: Sequence[Pod]) -> str:
    for volume in pod.spec.volumes or ():
        name = claim_of(pod, volume)
        if name is not None and world.claim(pod, name) is None:
            return MISSING
    new = counted(world, pod, node)
    attached = set().union(*(counted(world, other, node) for other in there))
    csi_node = world.csi_nodes.get(node.metadata.name)
    most = {}
    for driver in (csi_node.spec.drivers or ()) if csi_node is not None else ():
        if driver.allocatable is not None and driver.allocatable.count is not None:
            most[driver.name] = driver.allocatable.count
    new -= attached
    present = set(attached)
    for attachment in world.attachments.values():
        pv = world.pvs.get(attachment.spec.source.persistent_volume_name)
        if attachment.spec.node_name == node.metadata.name and pv is not None and pv.spec.csi is not None:
            present.add((attachment.spec.attacher, pv.spec.csi.volume_handle))
    for driver in {driver for driver, _ in new}:
        wanted = sum(driver == each for each, _ in new)
        if driver in most and sum(driver == each for each, _ in present) + wanted > most[driver]:
            return EXCEEDED
    return ""


# --- VolumeBinding ----------------------------------------------------------------------------------------------------


def is_usable(world: VolumeWorld, pv: PersistentVolume, node: Node) -> bool:
    affinity = pv.spec.node_affinity
    required = affinity.required if affinity is not None else None
    own = labels(node)
    written = pv.metadata.labels or {}
    zone = written.get(ZONES[0], written.get(BETA[0]))
    if pv.spec.aws_elastic_block_store is not None and has_migrated(world, node, AWS):
        terms = (required.node_selector_terms or ()) if required is not None else ()
        named = any(e.key == ZONES[0] for term in terms for e in term.match_expressions or ())
        if named:  # the label goes by another name on the node
            own = {**{k: v for k, v in own.items() if k != ZONES[0]}}
            if AWS_ZONE in own:
                own[ZONES[0]] = own[AWS_ZONE]
        elif zone is not None and own.get(AWS_ZONE) not in zone.split("__"):
            return False
    return required is None or NodeTerms(required).matches("", own)


def is_promised(pv: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    ref = pv.spec.claim_ref
    return (
        ref is not None
        and (ref.namespace, ref.name) == (claim.metadata.namespace, claim.metadata.name)
        and ref.uid in ("", claim.metadata.uid)
    )


def size(obj: Any) -> Any:
    amounts = obj.spec.capacity if isinstance(obj, PersistentVolume) else obj.spec.resources.requests
    return parse(str((amounts or {}).get("storage", "0")))


def match(world: VolumeWorld, claim: PersistentVolumeClaim, node: Node, taken: set[str]) -> PersistentVolume | None:
    best = None
    for pv in sorted(world.pvs.values(), key=size):  # of several promised to the claim the reference takes any
        name = claim.spec.storage_class_name or ""
        if pv.spec.storage_class_name != name or pv.metadata.name in taken or size(pv) < size(claim):
            continue
        if (pv.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
            continue
        if pv.metadata.deletion_timestamp is not None:
            continue
        if is_promised(pv, claim):
            return pv if is_usable_unmigrated(pv, node) else None
        if pv.spec.claim_ref is not None or pv.status.phase != "Available" or not is_usable_unmigrated(pv, node):
            continue
        if claim.spec.selector is not None and not compile_selector(claim.spec.selector).matches(pv.metadata.labels):
            continue
        if not set(claim.spec.access_modes or ()) <= set(pv.spec.access_modes or ()):
            continue
        if best is None or size(pv) < size(best):
            best = pv
    return best


def is_usable_unmigrated(pv: PersistentVolume, node: Node) -> bool:
    affinity = pv.spec.node_affinity
    return affinity is None or affinity.required is None or NodeTerms(affinity.required).matches("", labels(node))


def binding(world: VolumeWorld, pod: Pod, node: Node) -> tuple[set[str], dict[str, str]]:
    """Short reasons, and the volume that each claim would get ("": one is made)."""
    names = [name for volume in pod.spec.volumes or () if (name := claim_of(pod, volume)) is not None]
    claims = [claim for name in names if (claim := world.claim(pod, name)) is not None]
    reasons: set[str] = set()
    bound = [
        c for c in claims if c.spec.volume_name and "pv.kubernetes.io/bind-completed" in (c.metadata.annotations or {})
    ]
    for claim in bound:
        pv = world.pvs.get(claim.spec.volume_name)
        if pv is None or not is_usable(world, pv, node):
            reasons.add("volume missing" if pv is None else "node conflict")
            break
    chosen: dict[str, str] = {}
    to_make, to_match = [], []
    for claim in claims:
        if claim in bound:
            continue
        selected = (claim.metadata.annotations or {}).get("volume.kubernetes.io/selected-node")
        if selected is not None and selected != node.metadata.name:
            return reasons | {"bind conflict"}, {}
        (to_match if selected is None else to_make).append(claim)
    taken: set[str] = set()
    for claim in sorted(to_match, key=size):
        pv = match(world, claim, node, taken)
        if pv is None:
            to_make.append(claim)
        else:
            taken.add(pv.metadata.name)
            chosen[claim.metadata.name] = pv.metadata.name
    for claim in to_make:
        verdict = can_be_made(world, claim, node)
        if verdict:
            return reasons | {verdict}, {}
        chosen[claim.metadata.name] = ""
    return reasons, {} if reasons else chosen


def can_be_made(world: VolumeWorld, claim: PersistentVolumeClaim, node: Node) -> str:
    storage_class = world.classes[claim.spec.storage_class_name or ""]
    if storage_class.provisioner in ("", "kubernetes.io/no-provisioner"):
        return "bind conflict"
    terms = storage_class.allowed_topologies or ()
    allowed = [
        all(labels(node).get(e.key) in (e.values or ()) for e in term.match_label_expressions)
        for term in terms
        if term.match_label_expressions
    ]
    if terms and not any(allowed):
        return "bind conflict"
    driver = world.drivers.get(storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return ""
    for published in world.capacities.values():
        most = published.maximum_volume_size or published.capacity
        if (
            published.storage_class_name == storage_class.metadata.name
            and published.node_topology is not None
            and most is not None
            and parse(str(most)) >= size(claim)
            and compile_selector(published.node_topology).matches(labels(node))
        ):
            return ""
    return "no space"


# --- VolumeZone -------------------------------------------------------------------------------------------------------


def zone(world: VolumeWorld, pod: Pod, node: Node) -> str:
    own = labels(node)
    if not any(key in own for key in ZONES + BETA):
        return ""
    for name in named_claims(pod):
        claim = world.claim(pod, name)
        pv = world.pvs.get(claim.spec.volume_name) if claim is not None else None
        for key in (ZONES + BETA) if pv is not None else ():
            text = (pv.metadata.labels or {}).get(key)
            if text is None or "" in [each.strip() for each in text.split("__")]:
                continue
            value = own.get(key)
            if value is None and key in BETA:
                value = own.get(ZONES[BETA.index(key)])
            if value not in [each.strip() for each in text.split("__")]:
                return WRONG_ZONE
    return ""
