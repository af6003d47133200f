"""Volumes, claims, classes, services and the rest (`pkg/apis/{core,storage}/v1/defaults.go`, `pkg/registry/*`)."""

from __future__ import annotations

import base64
from typing import Any

from skedge.controlplane import names
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import FieldError, forbidden_field, invalid_value, required, too_long, unsupported
from skedge.controlplane.strategies.affinityvalidation import validate_node_selector
from skedge.controlplane.strategies.base import PathNamed, Strategy, setdefaults
from skedge.controlplane.strategies.clusterkinds import DATA_LIMIT, config_key_errors, decoded_length

JSON = dict[str, Any]

_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]


class Volumes(Strategy):
    """PersistentVolumes."""

    own_status = True
    returns_deleted = True

    def default(self, obj: JSON) -> None:
        setdefaults(obj["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
        host_path = obj["spec"].get("hostPath")
        if host_path is not None:
            host_path.setdefault("type", "")

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": cluster.timestamp()}

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["status"] = old["status"]

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        if not spec.get("accessModes"):
            errors.append(required("spec.accessModes"))
        errors.extend(
            unsupported("spec.accessModes", mode, _MODES)
            for mode in spec.get("accessModes") or []
            if mode not in _MODES
        )
        if not spec.get("capacity"):
            errors.append(required("spec.capacity"))
        affinity = (spec.get("nodeAffinity") or {}).get("required")
        if affinity is not None:
            errors.extend(validate_node_selector(affinity, "spec.nodeAffinity.required"))
        return errors


class Claims(Strategy):
    """PersistentVolumeClaims: bound ones are fixed but for their requests."""

    own_status = True
    returns_deleted = True

    def default(self, obj: JSON) -> None:
        obj["spec"].setdefault("volumeMode", "Filesystem")

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        obj["status"] = {"phase": "Pending"}
        if "storageClassName" not in obj["spec"]:
            name = _default_class(cluster)
            if name:
                obj["spec"]["storageClassName"] = name

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["status"] = old["status"]

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        modes = spec.get("accessModes") or []
        if not modes:
            errors.append(required("spec.accessModes", "at least 1 access mode is required"))
        errors.extend(unsupported("spec.accessModes", mode, _MODES) for mode in modes if mode not in _MODES)
        if "storage" not in (spec.get("resources") or {}).get("requests", {}):
            errors.append(required("spec.resources[storage]"))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(new)
        changeable = ("resources", "volumeAttributesClassName")
        now = {k: v for k, v in new["spec"].items() if k not in changeable}
        before = {k: v for k, v in old["spec"].items() if k not in changeable}
        if not before.get("volumeName"):
            now.pop("volumeName", None)
        if before.get("storageClassName") is None:
            now.pop("storageClassName", None)
        if now != before:
            text = "spec is immutable after creation except resources.requests and volumeAttributesClassName "
            text += "for bound claims"
            errors.append(forbidden_field("spec", text))
        return errors


def _default_class(cluster: Cluster) -> str:
    """The newest storage class marked as default (`plugin/pkg/admission/storage/storageclass/setdefault`)."""
    found: list[tuple[str, str]] = []
    for stored in list(cluster.collection("storageclasses.storage.k8s.io").objects.values()):
        meta = stored.load()["metadata"]
        if (meta.get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true":
            found.append((meta["creationTimestamp"], stored.name))
    return max(found)[1] if found else ""


class StorageClasses(Strategy):
    def default(self, obj: JSON) -> None:
        setdefaults(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    def validate(self, obj: JSON) -> list[FieldError]:
        errors = [] if obj.get("provisioner") else [required("provisioner")]
        modes = ["Immediate", "WaitForFirstConsumer"]
        if obj.get("volumeBindingMode") not in modes:
            errors.append(unsupported("volumeBindingMode", obj.get("volumeBindingMode"), modes))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        return [
            forbidden_field(key, f"updates to {key} are forbidden.")
            for key in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
            if new.get(key) != old.get(key)
        ]


class Drivers(Strategy):
    """CSIDrivers."""

    def default(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        setdefaults(spec, attachRequired=True, podInfoOnMount=False, requiresRepublish=False, storageCapacity=False)
        setdefaults(
            spec, fsGroupPolicy="ReadWriteOnceWithFSType", volumeLifecycleModes=["Persistent"], seLinuxMount=False
        )


_NODE_PORTS = range(30000, 32768)


def _port_key(port: JSON) -> tuple[Any, Any]:
    return port.get("protocol"), port.get("port")


def _give_node_ports(spec: JSON, kept: dict[tuple[Any, Any], int], cluster: Cluster) -> None:
    """Give the ports of a service that nodes answer for the ones they had, or free ones; take them from others."""
    kind = spec.get("type")
    if kind == "ClusterIP":
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if kind != "NodePort" and (kind != "LoadBalancer" or spec.get("allocateLoadBalancerNodePorts") is False):
        return
    missing = [port for port in spec.get("ports") or () if not port.get("nodePort")]
    if not missing:
        return
    services = [stored.load() for stored in list(cluster.collection("services").objects.values())]
    taken = {port.get("nodePort") for each in [*services, {"spec": spec}] for port in each["spec"].get("ports") or ()}
    for port in missing:
        free = [number for number in _NODE_PORTS if number not in taken]
        number = kept.get(_port_key(port)) or (cluster.rng.choice(free) if free else None)
        if number is not None:
            port["nodePort"] = number
            taken.add(number)


class Services(Strategy):
    """Services get a cluster address and the usual defaults; ports are not proxied anywhere."""

    own_status = True
    returns_deleted = True

    def name_problems(self, name: str) -> list[str]:
        return names.label_problems(name)

    def default(self, obj: JSON) -> None:
        spec = obj["spec"]
        setdefaults(spec, sessionAffinity="None", type="ClusterIP")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] in ("NodePort", "LoadBalancer"):
            spec.setdefault("externalTrafficPolicy", "Cluster")

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        spec = obj["spec"]
        if spec["type"] != "ExternalName":
            if "clusterIP" not in spec:
                number = cluster.rng.randrange(256, 65534)
                spec["clusterIP"] = f"10.0.{number >> 8}.{number & 255}"
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
            setdefaults(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
        _give_node_ports(spec, {}, cluster)
        obj["status"] = {"loadBalancer": {}}

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if key in old["spec"]:
                new["spec"].setdefault(key, old["spec"][key])
        kept = {_port_key(port): port["nodePort"] for port in old["spec"].get("ports") or () if "nodePort" in port}
        _give_node_ports(new["spec"], kept, cluster)
        new["status"] = old["status"]

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        was, now = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        if was and now != was and new["spec"].get("type") != "ExternalName":
            text = "may not change once set"
            return [invalid_value("spec.clusterIPs[0]", new["spec"].get("clusterIPs"), text)]
        return []


class Secrets(Strategy):
    """Secrets: text given as stringData is stored as data."""

    def default(self, obj: JSON) -> None:
        obj.setdefault("type", "Opaque")
        for key, text in obj.pop("stringData", {}).items():
            obj.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()

    def validate(self, obj: JSON) -> list[FieldError]:
        errors = config_key_errors(obj, "data")
        if sum(map(decoded_length, (obj.get("data") or {}).values())) > DATA_LIMIT:
            errors.append(too_long("data", DATA_LIMIT))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        if new.get("type") != old.get("type"):
            errors.append(invalid_value("type", new.get("type"), "field is immutable"))
        if old.get("immutable"):
            text = "field is immutable when `immutable` is set"
            fixed = ["data"] if new.get("data") != old.get("data") else []
            fixed += [] if new.get("immutable") else ["immutable"]
            errors += [forbidden_field(key, text) for key in fixed]
        return errors + self.validate(new)


class Bindings(PathNamed):
    """Role bindings: the role they refer to is fixed."""

    def default(self, obj: JSON) -> None:
        obj.setdefault("roleRef", {}).setdefault("apiGroup", "rbac.authorization.k8s.io")
        for subject in obj.get("subjects") or ():
            if "apiGroup" not in subject and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = "rbac.authorization.k8s.io"

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        if new.get("roleRef") != old.get("roleRef"):
            return [invalid_value("roleRef", new.get("roleRef"), "cannot change roleRef")]
        return []


class Claimables(Strategy):
    """ResourceClaims: the spec is fixed, the status belongs to scheduler and drivers."""

    own_status = True
    returns_deleted = True

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        obj["status"] = {}

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["status"] = old["status"]

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        if new.get("spec") != old.get("spec"):
            return [invalid_value("spec", new.get("spec"), "field is immutable")]
        return []


class Generation1(Strategy):
    """Kinds with a generation and no status: device classes, resource slices."""

    generation = True


class StatusOnly(Strategy):
    """Kinds with a status of their own and nothing else: volume attachments, pod groups, taint rules."""

    own_status = True

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        obj["status"] = {}

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        if "status" in old:
            new["status"] = old["status"]
