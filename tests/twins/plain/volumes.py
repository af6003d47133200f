"""The four volume plugins."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from twins.plain.objects import (
    CycleFailed,
    Json,
    Unclear,
    annotations,
    controller,
    key,
    labels,
    name,
    namespace,
    node_selector_matches,
    selects,
    terminating,
    uid,
)
from twins.plain.resources import amount

UU, U = "UnschedulableAndUnresolvable", "Unschedulable"
Verdict = tuple[str, list[str]] | None
ZONES = ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
         "topology.kubernetes.io/zone", "topology.kubernetes.io/region"]  # fmt: skip
INLINE = {"awsElasticBlockStore": "ebs.csi.aws.com", "gcePersistentDisk": "pd.csi.storage.gke.io"}
MIGRATABLE = (
    "awsElasticBlockStore",
    "gcePersistentDisk",
    "azureDisk",
    "azureFile",
    "cinder",
    "vsphereVolume",
    "portworxVolume",
)
IN_TREE = "kubernetes.io/"


def volumes(pod: Json) -> Sequence[Json]:
    return pod["spec"].get("volumes") or ()


def claim_name(pod: Json, volume: Json) -> str | None:
    if volume.get("persistentVolumeClaim") is not None:
        return volume["persistentVolumeClaim"]["claimName"]  # type: ignore[no-any-return]
    return f"{name(pod)}-{volume['name']}" if volume.get("ephemeral") is not None else None


class Stores:
    """The objects that volumes are made of."""

    def __init__(self, world: Json) -> None:
        self.claims = {key(o): o for o in world.get("pvcs", ())}
        self.pvs = {name(o): o for o in world.get("pvs", ())}
        self.classes = {name(o): o for o in world.get("storageClasses", ())}
        self.csi_nodes = {name(o): o for o in world.get("csiNodes", ())}
        self.drivers = {name(o): o for o in world.get("csiDrivers", ())}
        self.capacities = list(world.get("csiStorageCapacities", ()))
        self.attachments = list(world.get("volumeAttachments", ()))

    def claim(self, pod: Json, wanted: str) -> Json | None:
        return self.claims.get(f"{namespace(pod)}/{wanted}")


def class_of(obj: Json) -> str:
    beta = annotations(obj).get("volume.beta.kubernetes.io/storage-class")
    return beta if beta is not None else obj["spec"].get("storageClassName") or ""


def not_found(kind: str, wanted: str) -> tuple[str, list[str]]:
    return UU, [f'{kind} "{wanted}" not found']


def owned(pod: Json, claim: Json) -> bool:
    owner = controller(claim)
    return owner is not None and owner["uid"] == uid(pod)


# --- VolumeRestrictions -----------------------------------------------------------------------------------------------


def same_disk(one: Json, two: Json) -> bool:
    for kind, field in (("gcePersistentDisk", "pdName"), ("iscsi", "iqn")):
        a, b = one.get(kind), two.get(kind)
        if a and b and a[field] == b[field] and not (a.get("readOnly") and b.get("readOnly")):
            return True
    a, b = one.get("awsElasticBlockStore"), two.get("awsElasticBlockStore")
    if a and b and a["volumeID"] == b["volumeID"]:
        return True
    a, b = one.get("rbd"), two.get("rbd")
    if a and b and set(a["monitors"]) & set(b["monitors"]):
        same = (a.get("pool", "rbd"), a["image"]) == (b.get("pool", "rbd"), b["image"])
        return same and not (a.get("readOnly") and b.get("readOnly"))
    return False


class Restrictions:
    reason = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )

    def __init__(self, stores: Stores, pod: Json, nodes: Sequence[tuple[Json, Sequence[Json]]]) -> None:
        self.pod = pod
        self.rejection: Verdict = None
        self.exclusive = set()
        for volume in volumes(pod):
            if volume.get("persistentVolumeClaim") is None:
                continue
            wanted = volume["persistentVolumeClaim"]["claimName"]
            claim = stores.claim(pod, wanted)
            if claim is None:
                self.rejection = not_found("persistentvolumeclaim", wanted)
                return
            if "ReadWriteOncePod" in claim["spec"]["accessModes"]:
                self.exclusive.add(wanted)
        held = {
            claim_name(other, v) for _, there in nodes for other in there if namespace(other) == namespace(pod)
            for v in volumes(other)
        }  # fmt: skip
        self.conflicts = len(self.exclusive & held)

    @property
    def skips(self) -> bool:
        inline = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
        return not self.conflicts and not any(v.get(kind) for v in volumes(self.pod) for kind in inline)

    def clone(self) -> Restrictions:
        other = object.__new__(Restrictions)
        other.__dict__.update(self.__dict__)
        return other

    def update(self, node: Json, other: Json, sign: int) -> None:
        claims = [v["persistentVolumeClaim"]["claimName"] for v in volumes(other) if v.get("persistentVolumeClaim")]
        self.conflicts += sign * sum(c in self.exclusive for c in claims)

    def filter(self, node: Json, there: Sequence[Json]) -> Verdict:
        if any(same_disk(a, b) for a in volumes(self.pod) for other in there for b in volumes(other)):
            return U, ["node(s) had no available disk"]
        return (U, [self.reason]) if self.conflicts > 0 else None


# --- NodeVolumeLimits -------------------------------------------------------------------------------------------------


def migrated(stores: Stores, node: Json, plugin: str) -> bool:
    csi_node = stores.csi_nodes.get(name(node))
    text = annotations(csi_node).get("storage.alpha.kubernetes.io/migrated-plugins", "") if csi_node else ""
    if plugin in text.split(","):
        raise Unclear("migrated volumes")
    return False


class Limits:
    def __init__(self, stores: Stores, pod: Json) -> None:
        self.stores, self.pod = stores, pod

    @property
    def skips(self) -> bool:
        return not any(
            claim_name(self.pod, v) is not None or any(v.get(kind) for kind in MIGRATABLE) for v in volumes(self.pod)
        )

    def clone(self) -> Limits:
        return self

    def update(self, node: Json, other: Json, sign: int) -> None:
        pass

    def _keys(self, pod: Json, node: Json, new: bool) -> tuple[set[tuple[str, str]], Verdict]:
        found: set[tuple[str, str]] = set()
        for volume in volumes(pod):
            wanted = claim_name(pod, volume)
            if wanted is None:
                for kind, driver in INLINE.items():
                    if volume.get(kind):
                        migrated(self.stores, node, driver)
                continue
            claim = self.stores.claim(pod, wanted)
            if claim is None:
                if new:
                    text = f'looking up PVC {namespace(pod)}/{wanted}: persistentvolumeclaim "{wanted}" not found'
                    return found, (UU, [text])
                continue
            if volume.get("ephemeral") is not None and not owned(pod, claim):
                raise CycleFailed(f"PVC {key(claim)} was not created for pod {key(pod)} (pod is not owner)")
            pv = self.stores.pvs.get(claim["spec"].get("volumeName") or "")
            if pv is not None:
                csi = pv["spec"].get("csi")
                if csi is not None:
                    found.add((csi["driver"], csi["volumeHandle"]))
                elif any(pv["spec"].get(kind) for kind in MIGRATABLE):
                    raise Unclear("migratable volume")
                continue
            storage_class = self.stores.classes.get(class_of(claim))
            if storage_class is not None:
                if (
                    storage_class["provisioner"].startswith(IN_TREE)
                    and "no-provisioner" not in storage_class["provisioner"]
                ):
                    raise Unclear("migratable class")
                found.add((storage_class["provisioner"], f"unbound {key(claim)}"))
        return found, None

    def filter(self, node: Json, there: Sequence[Json]) -> Verdict:
        new, verdict = self._keys(self.pod, node, new=True)
        if verdict is not None:
            return verdict
        if not new:
            return None
        csi_node = self.stores.csi_nodes.get(name(node))
        most = {
            d["name"]: d["allocatable"]["count"]
            for d in ((csi_node or {}).get("spec") or {}).get("drivers") or ()
            if (d.get("allocatable") or {}).get("count") is not None
        }
        if not most:
            return None
        attached: set[tuple[str, str]] = set()
        for other in there:
            attached |= self._keys(other, node, new=False)[0]
        new -= attached
        for each in self.stores.attachments:
            pv = self.stores.pvs.get(each["spec"]["source"].get("persistentVolumeName") or "")
            if each["spec"]["nodeName"] == name(node) and pv is not None and pv["spec"].get("csi") is not None:
                attached.add((each["spec"]["attacher"], pv["spec"]["csi"]["volumeHandle"]))
        for driver in {d for d, _ in new}:
            n = sum(d == driver for d, _ in new)
            if driver in most and sum(d == driver for d, _ in attached) + n > most[driver]:
                return U, ["node(s) exceed max volume count"]
        return None


# --- VolumeBinding ----------------------------------------------------------------------------------------------------


def _bytes(obj: Json) -> Fraction:
    spec = obj["spec"]
    given = spec["capacity"] if "capacity" in spec else (spec.get("resources") or {}).get("requests")
    return amount(str((given or {}).get("storage", "0")))


def _is_bound(claim: Json) -> bool:
    return bool(claim["spec"].get("volumeName")) and "pv.kubernetes.io/bind-completed" in annotations(claim)


class Binding:
    def __init__(self, stores: Stores, pod: Json) -> None:
        self.stores, self.pod = stores, pod
        self.rejection = self._reject()
        if self.rejection is None:
            wanted = [w for v in volumes(pod) if (w := claim_name(pod, v)) is not None]
            claims = [self.stores.claims[f"{namespace(pod)}/{w}"] for w in wanted]
            self.bound = [c for c in claims if _is_bound(c)]
            self.delayed = [c for c in claims if not _is_bound(c)]
            if any(not self._is_delayed(c) for c in self.delayed):
                self.rejection = UU, ["pod has unbound immediate PersistentVolumeClaims"]

    def _is_delayed(self, claim: Json) -> bool:
        storage_class = self.stores.classes.get(class_of(claim))
        return (
            not claim["spec"].get("volumeName")
            and storage_class is not None
            and storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
        )

    def _reject(self) -> Verdict:
        for volume in volumes(self.pod):
            wanted = claim_name(self.pod, volume)
            if wanted is None:
                continue
            claim = self.stores.claim(self.pod, wanted)
            ephemeral = volume.get("ephemeral") is not None
            if claim is None:
                if ephemeral:
                    text = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
                    return UU, [f'{text} "{wanted}"']
                return not_found("persistentvolumeclaim", wanted)
            if claim["status"].get("phase") == "Lost":
                pv = claim["spec"].get("volumeName", "")
                return UU, [f'persistentvolumeclaim "{wanted}" bound to non-existent persistentvolume "{pv}"']
            if terminating(claim):
                return UU, [f'persistentvolumeclaim "{wanted}" is being deleted']
            if ephemeral and not owned(self.pod, claim):
                return UU, [f"PVC {key(claim)} was not created for pod {key(self.pod)} (pod is not owner)"]
        return None

    @property
    def skips(self) -> bool:
        return not any(claim_name(self.pod, v) is not None for v in volumes(self.pod))

    def clone(self) -> Binding:
        return self

    def update(self, node: Json, other: Json, sign: int) -> None:
        pass

    def filter(self, node: Json, there: Sequence[Json]) -> Verdict:
        reasons = []
        gone = apart = False
        for claim in self.bound:
            pv = self.stores.pvs.get(claim["spec"]["volumeName"])
            if pv is None:
                gone = True
                break
            if not self._reaches(pv, node):
                apart = True
                break
        conflict, small = self._unbound(node)
        if apart:
            reasons.append("node(s) didn't match PersistentVolume's node affinity")
        if conflict:
            reasons.append("node(s) didn't find available persistent volumes to bind")
        if small:
            reasons.append("node(s) did not have enough free storage")
        if gone:
            reasons.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
        return (UU, reasons) if reasons else None

    def _reaches(self, pv: Json, node: Json) -> bool:
        required = (pv["spec"].get("nodeAffinity") or {}).get("required")
        return required is None or node_selector_matches(required, node)

    def _unbound(self, node: Json) -> tuple[bool, bool]:
        """(no volume to bind, not enough storage)"""
        to_make, to_match = [], []
        for claim in self.delayed:
            selected = annotations(claim).get("volume.kubernetes.io/selected-node")
            if selected is None:
                to_match.append(claim)
            elif selected != name(node):
                return True, False
            else:
                to_make.append(claim)
        taken: set[str] = set()
        for claim in sorted(to_match, key=_bytes):
            pv = self._volume_for(claim, node, taken)
            if pv is None:
                to_make.append(claim)
            else:
                taken.add(name(pv))
        for claim in to_make:
            found = self._can_make(claim, node)
            if found != (False, False):
                return found
        return False, False

    def _volume_for(self, claim: Json, node: Json, taken: set[str]) -> Json | None:
        best: list[Json] = []
        for pv in self.stores.pvs.values():
            spec = pv["spec"]
            ref = spec.get("claimRef")
            is_its = (
                ref is not None
                and (ref.get("namespace"), ref.get("name")) == (namespace(claim), name(claim))
                and ref.get("uid", "") in ("", uid(claim))
            )
            if name(pv) in taken or class_of(pv) != class_of(claim) or (ref is not None and not is_its):
                continue
            if _bytes(pv) < _bytes(claim) or terminating(pv):
                continue
            if (spec.get("volumeMode") or "Filesystem") != (claim["spec"].get("volumeMode") or "Filesystem"):
                continue
            if is_its:
                return pv if self._reaches(pv, node) else None
            selector = claim["spec"].get("selector")
            if pv["status"].get("phase") != "Available" or (selector is not None and not selects(selector, labels(pv))):
                continue
            if not self._reaches(pv, node) or not set(claim["spec"]["accessModes"]) <= set(spec["accessModes"]):
                continue
            if best and _bytes(pv) == _bytes(best[0]):
                best.append(pv)
            elif not best or _bytes(pv) < _bytes(best[0]):
                best = [pv]
        if len(best) > 1 and len(self.delayed) > 1:
            raise Unclear("volumes of equal size")
        return best[0] if best else None

    def _can_make(self, claim: Json, node: Json) -> tuple[bool, bool]:
        storage_class = self.stores.classes[class_of(claim)]
        if storage_class["provisioner"] in ("", "kubernetes.io/no-provisioner"):
            return True, False
        terms = storage_class.get("allowedTopologies") or []
        own: dict[str, Any] = labels(node)
        if terms and not any(
            t.get("matchLabelExpressions") and all(own.get(e["key"]) in e["values"] for e in t["matchLabelExpressions"])
            for t in terms
        ):
            return True, False
        driver = self.stores.drivers.get(storage_class["provisioner"])
        if driver is None or not driver["spec"].get("storageCapacity"):
            return False, False
        for each in self.stores.capacities:
            limit = each.get("maximumVolumeSize") or each.get("capacity")
            if each["storageClassName"] != name(storage_class) or not selects(each.get("nodeTopology"), own):
                continue
            if limit is not None and amount(str(limit)) >= _bytes(claim):
                return False, False
        return False, True


# --- VolumeZone -------------------------------------------------------------------------------------------------------


class Zone:
    def __init__(self, stores: Stores, pod: Json) -> None:
        self.rejection: Verdict = None
        self.wanted: list[tuple[str, list[str]]] = []
        for volume in volumes(pod):
            if volume.get("persistentVolumeClaim") is None:
                continue
            wanted = volume["persistentVolumeClaim"]["claimName"]
            claim = stores.claim(pod, wanted)
            if claim is None:
                self.rejection = not_found("persistentvolumeclaim", wanted)
                return
            bound = claim["spec"].get("volumeName") or ""
            if not bound:
                storage_class = stores.classes.get(class_of(claim))
                if not class_of(claim):
                    self.rejection = UU, ["PersistentVolumeClaim had no pv name and storageClass name"]
                elif storage_class is None:
                    self.rejection = not_found("storageclass.storage.k8s.io", class_of(claim))
                elif storage_class["volumeBindingMode"] == "WaitForFirstConsumer":
                    continue
                else:
                    self.rejection = UU, ["PersistentVolume had no name"]
                return
            pv = stores.pvs.get(bound)
            if pv is None:
                self.rejection = not_found("persistentvolume", bound)
                return
            for k in ZONES:
                if k in labels(pv):
                    parts = [part.strip() for part in labels(pv)[k].split("__")]
                    if "" not in parts:
                        self.wanted.append((k, parts))

    @property
    def skips(self) -> bool:
        return not self.wanted

    def clone(self) -> Zone:
        return self

    def update(self, node: Json, other: Json, sign: int) -> None:
        pass

    def filter(self, node: Json, there: Sequence[Json]) -> Verdict:
        own = labels(node)
        if not any(k in own for k in ZONES):
            return None
        for k, parts in self.wanted:
            value = own.get(k)
            if value is None and k.startswith("failure-domain.beta."):
                value = own.get(k.replace("failure-domain.beta.", "topology."))
            if value not in parts:
                return UU, ["node(s) had no available volume zone"]
        return None
