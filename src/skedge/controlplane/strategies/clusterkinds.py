"""Nodes, namespaces, priority classes, events, leases and other kinds that are not workloads."""

from __future__ import annotations

import re
from typing import Any

from skedge.controlplane import names
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import FieldError, forbidden_field, invalid_value, required, too_long, unsupported
from skedge.controlplane.quantities import value as quantity
from skedge.controlplane.strategies.base import Strategy
from skedge.controlplane.usage import counted_by

JSON = dict[str, Any]

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
_SYSTEM_PRIORITY = 1_000_000_000


class Nodes(Strategy):
    """Status may be given at creation (a node registers itself); every new node starts out tainted as not ready
    (`plugin/pkg/admission/nodetaint`)."""

    own_status = True
    create_status = True

    def default(self, obj: JSON) -> None:
        status = obj["status"]
        if not status.get("allocatable") and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        taints = obj["spec"].setdefault("taints", [])
        if not any(t.get("key") == _NOT_READY["key"] and t.get("effect") == _NOT_READY["effect"] for t in taints):
            taints.append(dict(_NOT_READY))

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["status"] = old["status"]

    def validate(self, obj: JSON) -> list[FieldError]:
        errors = _taints(obj["spec"].get("taints") or [])
        for kind in ("capacity", "allocatable"):
            for name, text in (obj["status"].get(kind) or {}).items():
                if quantity(text) < 0:
                    where = f"status.{kind}.{name}"
                    errors.append(invalid_value(where, text, "must be greater than or equal to 0"))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        # create and update validation both look at the taints; the answer lists their findings twice
        errors = self.validate(new)
        errors += _taints(new["spec"].get("taints") or [])
        before, now = old["spec"].get("podCIDR"), new["spec"].get("podCIDR")
        if before and now != before:
            errors.append(
                forbidden_field("spec.podCIDR", 'node updates may not change podCIDR except from "" to valid')
            )
        if old["spec"].get("providerID") and old["spec"]["providerID"] != new["spec"].get("providerID"):
            text = 'node updates may not change providerID except from "" to valid'
            errors.append(forbidden_field("spec.providerID", text))
        return errors


def _taints(taints: list[JSON]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        path = f"metadata.taints[{i}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        errors.extend(invalid_value(f"{path}.key", key, p) for p in names.label_key_problems(key))
        if problems := names.label_value_problems(taint.get("value", "")):
            errors.append(invalid_value(f"{path}.value", taint.get("value", ""), ";".join(problems)))
        if not effect:
            errors.append(required(f"{path}.effect"))
        elif effect not in _EFFECTS:
            errors.append(unsupported(f"{path}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            text = "taints must be unique by key and effect pair"
            errors.append(FieldError("FieldValueDuplicate", f"Duplicate value: {text}", path))
        seen.add((key, effect))
    return errors


class Namespaces(Strategy):
    """A namespace carries its name as a label and is finalized by the namespace controller."""

    own_status = True

    def name_problems(self, name: str) -> list[str]:
        return names.label_problems(name)

    def default(self, obj: JSON) -> None:
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        self.default(obj)
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["spec"]["finalizers"] = old["spec"].get("finalizers", [])
        if not new["spec"]["finalizers"]:
            del new["spec"]["finalizers"]
        new["status"] = old["status"]


class PriorityClasses(Strategy):
    """Values are fixed at creation; user classes stay below the system's."""

    generation = True

    def default(self, obj: JSON) -> None:
        obj.setdefault("value", 0)
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate(self, obj: JSON) -> list[FieldError]:
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        errors: list[FieldError] = []
        if name.startswith("system-"):
            if name not in ("system-cluster-critical", "system-node-critical"):
                text = "priority class names with 'system-' prefix are reserved for system use only. error: "
                text += f"{name} is not a known system priority class"
                errors.append(forbidden_field("metadata.name", text))
        elif value > _SYSTEM_PRIORITY:
            text = f"maximum allowed value of a user defined priority is {_SYSTEM_PRIORITY}"
            errors.append(forbidden_field("value", text))
        policy = obj.get("preemptionPolicy")
        if policy not in ("PreemptLowerPriority", "Never"):
            errors.append(unsupported("preemptionPolicy", policy, ["PreemptLowerPriority", "Never"]))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        if new.get("value", 0) != old.get("value", 0):
            errors.append(invalid_value("value", new.get("value", 0), "may not be changed in an update."))
        if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
            policy = new.get("preemptionPolicy")
            errors.append(invalid_value("preemptionPolicy", policy, "field is immutable"))
        return errors


class Events(Strategy):
    """Events of both groups, in core form. Those with an eventTime follow the stricter rules of events.k8s.io
    (`pkg/apis/core/validation/events.go`)."""

    tracks_fields = False
    update_creates = True

    def validate_as(self, group: str, obj: JSON) -> list[FieldError]:
        if group == "events.k8s.io" and not obj.get("eventTime"):
            return [required("eventTime")]
        return []

    def validate(self, obj: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        involved = obj.get("involvedObject") or {}
        namespace = obj["metadata"].get("namespace", "")
        about = involved.get("namespace", "")
        elsewhere = about != namespace and not (about == "" and namespace == "default")
        if elsewhere and (about or obj.get("eventTime")):
            errors.append(invalid_value("involvedObject.namespace", about, "does not match event.namespace"))
        if not obj.get("eventTime"):
            return errors
        if not obj.get("reportingComponent"):
            errors.append(required("reportingController"))
        if not obj.get("reportingInstance"):
            errors.append(required("reportingInstance"))
        if not obj.get("action"):
            errors.append(required("action"))
        if not obj.get("reason"):
            errors.append(required("reason"))
        kind = obj.get("type", "")
        if kind not in ("Normal", "Warning"):
            errors.append(invalid_value("type", kind, "has invalid value: "))
        return errors


class Leases(Strategy):
    """Leases (`pkg/apis/coordination/validation`)."""

    tracks_fields = False
    update_creates = True

    def validate(self, obj: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        spec = obj.get("spec") or {}
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            errors.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            text = "must be greater than or equal to 0"
            errors.append(invalid_value("spec.leaseTransitions", transitions, text))
        return errors


class DisruptionBudgets(Strategy):
    """Budgets (`pkg/apis/policy/validation`)."""

    generation = True
    own_status = True

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        zeros = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        obj["status"] = dict.fromkeys(zeros, 0)

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            value = {k: spec[k] for k in ("minAvailable", "selector", "maxUnavailable") if k in spec}
            errors.append(invalid_value("spec", value, "minAvailable and maxUnavailable cannot be both set"))
        for key, bound in (("minAvailable", least), ("maxUnavailable", most)):
            if isinstance(bound, str) and not re.fullmatch(r"[0-9]+%", bound):
                text = "a valid percent string must be a numeric string followed by an ending '%' "
                text += "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                errors.append(invalid_value(f"spec.{key}", bound, text))
            elif isinstance(bound, int) and bound < 0:
                errors.append(invalid_value(f"spec.{key}", bound, "must be greater than or equal to 0"))
        return errors


DATA_LIMIT = 1 << 20
"""Bytes of data of a config map or a secret."""
_CONFIG_KEY = "[-._a-zA-Z0-9]+"


def config_key_errors(obj: JSON, field: str) -> list[FieldError]:
    """Findings about the keys of a config map's or a secret's data."""
    errors: list[FieldError] = []
    for key in obj.get(field) or {}:
        path = f"{field}[{key}]"
        if len(key) > 253:
            errors.append(invalid_value(path, key, "must be no more than 253 characters"))
        if not re.fullmatch(_CONFIG_KEY, key):
            text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            text += f"'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
            errors.append(invalid_value(path, key, text))
        elif key in (".", "..") or key.startswith(".."):
            errors.append(
                invalid_value(path, key, f"must not be '{key}'" if len(key) < 3 else "must not start with '..'")
            )
    return errors


def decoded_length(base64: str) -> int:
    """The bytes that a base64 text stands for."""
    return len(base64) * 3 // 4 - base64.count("=", -2)


class ConfigMaps(Strategy):
    """ConfigMaps: immutable ones stay as they are."""

    def validate(self, obj: JSON) -> list[FieldError]:
        errors = config_key_errors(obj, "data") + config_key_errors(obj, "binaryData")
        both = (obj.get("data") or {}).keys() & (obj.get("binaryData") or {}).keys()
        errors += [invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData") for key in sorted(both)]
        size = sum(len(text.encode()) for text in (obj.get("data") or {}).values())
        size += sum(map(decoded_length, (obj.get("binaryData") or {}).values()))
        return [*errors, too_long("[]", DATA_LIMIT)] if size > DATA_LIMIT else errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(new)
        if old.get("immutable"):
            if not new.get("immutable"):
                errors.append(forbidden_field("immutable", "field is immutable when `immutable` is set"))
            errors.extend(
                forbidden_field(key, "field is immutable when `immutable` is set")
                for key in ("data", "binaryData")
                if new.get(key) != old.get(key)
            )
        return errors


class ReturnsDeleted(Strategy):
    """Kinds whose deletion answers with the object: quotas, service accounts, pod templates."""

    returns_deleted = True


class Quotas(ReturnsDeleted):
    """Quotas have a status that a controller fills."""

    own_status = True

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        obj["status"] = {}

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["status"] = old["status"]

    def validate(self, obj: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        for name, text in ((obj.get("spec") or {}).get("hard") or {}).items():
            path = f"spec.hard[{name}]"
            problems = names.label_key_problems(name)
            if not problems and "/" not in name and not counted_by(name):
                problems = [
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for quota",
                ]
            errors += [invalid_value(path, name, problem) for problem in problems]
            if quantity(text) < 0:
                errors.append(invalid_value(path, text, "must be greater than or equal to 0"))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(new)
        now, before = (sorted((obj.get("spec") or {}).get("scopes") or []) for obj in (new, old))
        if now != before:
            errors.append(invalid_value("spec.scopes", now, "field is immutable"))
        return errors


class LimitRanges(Strategy):
    """Limit ranges: defaults follow from limits (`pkg/apis/core/v1/defaults.go`)."""

    def default(self, obj: JSON) -> None:
        for item in (obj.get("spec") or {}).get("limits") or ():
            if item.get("type") != "Container":
                continue
            defaults = item.setdefault("default", {})
            for name, value in (item.get("max") or {}).items():
                defaults.setdefault(name, value)
            requests = item.setdefault("defaultRequest", {})
            for name, value in (*defaults.items(), *(item.get("min") or {}).items()):
                requests.setdefault(name, value)
            for key in ("default", "defaultRequest"):
                if not item[key]:
                    del item[key]
