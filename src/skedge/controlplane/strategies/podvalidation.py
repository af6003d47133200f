"""Validation of pods: what matters to scheduling, in upstream's words (`pkg/apis/core/validation/validation.go`)."""

from __future__ import annotations

import re
from typing import Any

from skedge.controlplane import names
from skedge.controlplane.errors import FieldError, duplicate, forbidden_field, invalid_value, required, unsupported
from skedge.controlplane.quantities import value as quantity
from skedge.controlplane.strategies.affinityvalidation import validate_affinity, validate_selector
from skedge.controlplane.strategies.poddiff import spec_diff

JSON = dict[str, Any]

_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def validate_pod(pod: JSON) -> list[FieldError]:
    """Findings about a new pod."""
    return validate_pod_spec(pod["spec"], "spec")


def validate_pod_spec(spec: JSON, path: str) -> list[FieldError]:
    """Findings about a pod spec, of a pod or a template."""
    errors: list[FieldError] = []
    volumes = _volumes(spec.get("volumes") or [], f"{path}.volumes", errors)
    if not spec.get("containers"):
        errors.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(kind) or []):
            _container(container, f"{path}.{kind}[{i}]", seen, volumes, errors)
    policies = ["Always", "OnFailure", "Never"]
    if spec.get("restartPolicy") not in policies:
        errors.append(unsupported(f"{path}.restartPolicy", spec.get("restartPolicy", ""), policies))
    dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]
    if spec.get("dnsPolicy") not in dns:
        errors.append(unsupported(f"{path}.dnsPolicy", spec.get("dnsPolicy", ""), dns))
    for key, value in (spec.get("nodeSelector") or {}).items():
        errors.extend(invalid_value(f"{path}.nodeSelector", key, p) for p in names.label_key_problems(key))
        errors.extend(invalid_value(f"{path}.nodeSelector", value, p) for p in names.label_value_problems(value))
    if spec.get("nodeName"):
        name = spec["nodeName"]
        errors.extend(invalid_value(f"{path}.nodeName", name, p) for p in names.subdomain_problems(name))
    if spec.get("affinity") is not None:
        errors.extend(validate_affinity(spec["affinity"], f"{path}.affinity"))
    for i, toleration in enumerate(spec.get("tolerations") or []):
        _toleration(toleration, f"{path}.tolerations[{i}]", errors)
    if spec.get("priorityClassName"):
        name = spec["priorityClassName"]
        errors.extend(invalid_value(f"{path}.priorityClassName", name, p) for p in names.subdomain_problems(name))
    _gates(spec, path, errors)
    _spread(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints", errors)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        text = "must be between 1 and 2147483647, inclusive"
        errors.append(invalid_value(f"{path}.activeDeadlineSeconds", deadline, text))
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        errors.append(unsupported(f"{path}.preemptionPolicy", policy, ["PreemptLowerPriority", "Never"]))
    return errors


def _volumes(volumes: list[JSON], path: str, errors: list[FieldError]) -> set[str]:
    seen: set[str] = set()
    for i, volume in enumerate(volumes):
        name = volume.get("name", "")
        if not name:
            errors.append(required(f"{path}[{i}].name"))
        else:
            errors.extend(invalid_value(f"{path}[{i}].name", name, p) for p in names.label_problems(name))
        if name in seen:
            errors.append(duplicate(f"{path}[{i}].name", name))
        seen.add(name)
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            errors.append(required(f"{path}[{i}].persistentVolumeClaim.claimName"))
    return seen


def _container(container: JSON, path: str, seen: set[str], volumes: set[str], errors: list[FieldError]) -> None:
    name = container.get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        errors.extend(invalid_value(f"{path}.name", name, p) for p in names.label_problems(name))
    if name and name in seen:
        errors.append(duplicate(f"{path}.name", name))
    seen.add(name)
    image = container.get("image", "")
    if not image:
        errors.append(required(f"{path}.image"))
    elif image != image.strip():
        errors.append(invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace"))
    for i, port in enumerate(container.get("ports") or []):
        _port(port, f"{path}.ports[{i}]", errors)
    pull = ["Always", "IfNotPresent", "Never"]
    if container.get("imagePullPolicy") not in pull:
        errors.append(unsupported(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), pull))
    for i, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            errors.append(
                FieldError(
                    "FieldValueNotFound", f'Not found: "{mount.get("name", "")}"', f"{path}.volumeMounts[{i}].name"
                )
            )
        if not mount.get("mountPath"):
            errors.append(required(f"{path}.volumeMounts[{i}].mountPath"))
    validate_resources(container.get("resources") or {}, f"{path}.resources", errors)


def _port(port: JSON, path: str, errors: list[FieldError]) -> None:
    number = port.get("containerPort", 0)
    if not number:
        errors.append(required(f"{path}.containerPort"))
    elif not 1 <= number <= 65535:
        errors.append(invalid_value(f"{path}.containerPort", number, "must be between 1 and 65535, inclusive"))
    host = port.get("hostPort")
    if host and not 1 <= host <= 65535:
        errors.append(invalid_value(f"{path}.hostPort", host, "must be between 1 and 65535, inclusive"))
    if port.get("protocol") not in ("TCP", "UDP", "SCTP"):
        errors.append(unsupported(f"{path}.protocol", port.get("protocol", ""), ["SCTP", "TCP", "UDP"]))


def _native(resource: str) -> bool:
    return "/" not in resource or resource.startswith("kubernetes.io/") or ".kubernetes.io/" in resource


def validate_resources(resources: JSON, path: str, errors: list[FieldError]) -> None:
    """Findings about requests and limits."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, values in (("limits", limits), ("requests", requests)):
        for name, text in values.items():
            where = f"{path}.{kind}.{name}"
            problems = names.label_key_problems(name)
            errors.extend(invalid_value(where, name, p) for p in problems)
            if not problems and _native(name) and not (name in _STANDARD or name.startswith("hugepages-")):
                errors.append(invalid_value(where, name, "must be a standard resource for containers"))
            amount = quantity(text)
            if amount < 0:
                errors.append(invalid_value(where, text, "must be greater than or equal to 0"))
            if not _native(name) and amount.denominator != 1:
                errors.append(invalid_value(where, text, "must be an integer"))
    for name, text in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _native(name):
                text_ = "Limit must be set for non overcommitable resources"
                errors.append(required(f"{path}.limits", text_))
            continue
        asked, allowed = quantity(text), quantity(limit)
        overcommit = _native(name) and not name.startswith("hugepages-")
        if not overcommit and asked != allowed:
            errors.append(invalid_value(f"{path}.requests", text, f"must be equal to {name} limit of {limit}"))
        elif overcommit and asked > allowed:
            why = f"must be less than or equal to {name} limit of {limit}"
            errors.append(invalid_value(f"{path}.requests", text, why))


def _toleration(toleration: JSON, path: str, errors: list[FieldError]) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        errors.extend(invalid_value(f"{path}.key", key, p) for p in names.label_key_problems(key))
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid_value(f"{path}.operator", operator, text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid_value(f"{path}.effect", effect, text))
    if operator in ("Equal", ""):
        if problems := names.label_value_problems(value):
            errors.append(invalid_value(f"{path}.operator", value, ";".join(problems)))
    elif operator == "Exists":
        if value:
            errors.append(invalid_value(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'"))
    elif operator in ("Lt", "Gt"):
        if not re.fullmatch(r"-?(0|[1-9][0-9]*)", value):
            text = f'strconv.ParseInt: parsing "{value}": invalid syntax'
            errors.append(invalid_value(f"{path}.value", value, text))
    else:
        errors.append(unsupported(f"{path}.operator", operator, ["Equal", "Exists", "Lt", "Gt"]))
    if effect and effect not in _EFFECTS:
        errors.append(unsupported(f"{path}.effect", effect, _EFFECTS))


def _gates(spec: JSON, path: str, errors: list[FieldError]) -> None:
    gates = spec.get("schedulingGates") or []
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name", "")
        where = f"{path}.schedulingGates[{i}]"
        errors.extend(invalid_value(where, name, p) for p in names.label_key_problems(name))
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    if gates and spec.get("nodeName"):
        errors.append(forbidden_field(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))


def _spread(constraints: list[JSON], path: str, errors: list[FieldError]) -> None:
    actions = ["DoNotSchedule", "ScheduleAnyway"]
    policies = ["Honor", "Ignore"]
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        where = f"{path}[{i}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        action, least = constraint.get("whenUnsatisfiable", ""), constraint.get("minDomains")
        if skew <= 0:
            errors.append(invalid_value(f"{where}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        else:
            errors.extend(invalid_value(f"{where}.topologyKey", key, p) for p in names.label_key_problems(key))
        if action not in actions:
            errors.append(unsupported(f"{where}.whenUnsatisfiable", action, actions))
        if (key, action) in seen:
            pair = f"{{{key}, {action}}}"
            errors.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", pair))
        seen.add((key, action))
        if least is not None:
            if least <= 0:
                errors.append(invalid_value(f"{where}.minDomains", least, "must be greater than zero"))
            if action != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid_value(f"{where}.minDomains", least, text))
        errors.extend(
            unsupported(f"{where}.{field}", constraint[field], policies)
            for field in ("nodeAffinityPolicy", "nodeTaintsPolicy")
            if constraint.get(field) is not None and constraint[field] not in policies
        )
        if constraint.get("labelSelector") is not None:
            errors.extend(validate_selector(constraint["labelSelector"], f"{where}.labelSelector"))
        _label_keys(constraint, where, errors)


def _label_keys(constraint: JSON, where: str, errors: list[FieldError]) -> None:
    keys = constraint.get("matchLabelKeys") or []
    if keys and constraint.get("labelSelector") is None:
        errors.append(forbidden_field(f"{where}.matchLabelKeys", "must not be specified when labelSelector is not set"))
    for i, key in enumerate(keys):
        errors.extend(invalid_value(f"{where}.matchLabelKeys[{i}]", key, p) for p in names.label_key_problems(key))


# --- updates --------------------------------------------------------------------------------------------------------


def validate_pod_update(new: JSON, old: JSON) -> list[FieldError]:
    """Findings about a change of a pod that is not a status update."""
    spec, before = new["spec"], old["spec"]
    errors = _gate_changes(spec, before)
    errors += _toleration_changes(spec, before)
    allowed = {**spec}
    for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _copy(allowed, before, key)
    for kind in ("containers", "initContainers"):
        if kind in allowed and len(allowed[kind] or []) == len(before.get(kind) or []):
            pairs = zip(allowed[kind] or [], before.get(kind) or [], strict=True)
            allowed[kind] = [{**c, "image": b.get("image")} for c, b in pairs]
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        _copy(allowed, before, "terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        if _selector_narrowed(spec, before):
            _copy(allowed, before, "nodeSelector")
        allowed["affinity"] = _allowed_affinity(spec, before, errors)
        if allowed["affinity"] is None:
            del allowed["affinity"]
    for kind in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(kind) or []):
            if not container.get("image"):
                errors.append(required(f"spec.{kind}[{i}].image"))
    if allowed != before and not errors:
        errors.append(forbidden_field("spec", _FIXED + spec_diff(before, allowed)))
    deadline, was = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if was is not None and (deadline is None or deadline > was):
        if deadline is None:
            text = "must not update from a positive integer to nil value"
            errors.append(invalid_value("spec.activeDeadlineSeconds", deadline, text))
        else:
            text = f"must be less than or equal to previous value {was}"
            errors.append(invalid_value("spec.activeDeadlineSeconds", deadline, text))
    return errors


def _copy(target: JSON, source: JSON, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _gate_changes(spec: JSON, before: JSON) -> list[FieldError]:
    had = {gate["name"] for gate in before.get("schedulingGates") or []}
    return [
        forbidden_field(
            f"spec.schedulingGates[{i}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for i, gate in enumerate(spec.get("schedulingGates") or [])
        if gate["name"] not in had
    ]


def _toleration_changes(spec: JSON, before: JSON) -> list[FieldError]:
    now = spec.get("tolerations") or []
    had, has = (
        {frozenset((k, v) for k, v in each.items() if k != "tolerationSeconds") for each in tolerations}
        for tolerations in (before.get("tolerations") or [], now)
    )
    if not had <= has:
        text = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", text)]
    errors: list[FieldError] = []
    for i, toleration in enumerate(now):
        _toleration(toleration, f"spec.tolerations[{i}]", errors)
    return errors


def _selector_narrowed(spec: JSON, before: JSON) -> bool:
    now = spec.get("nodeSelector") or {}
    return all(now.get(k) == v for k, v in (before.get("nodeSelector") or {}).items())


def _required_terms(spec: JSON) -> list[JSON] | None:
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    need = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if need is None else need.get("nodeSelectorTerms") or []


def _allowed_affinity(spec: JSON, before: JSON, errors: list[FieldError]) -> JSON | None:
    """The affinity to compare with: node affinity of a gated pod may be narrowed."""
    old_terms, new_terms = _required_terms(before), _required_terms(spec)
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if old_terms and new_terms is not None:
        if len(new_terms) != len(old_terms):
            text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
            errors.append(invalid_value(f"{path}.nodeSelectorTerms", new_terms, text))
        else:
            for i, (new, old) in enumerate(zip(new_terms, old_terms, strict=True)):
                kept = all(
                    (new.get(k) or [])[: len(old.get(k) or [])] == (old.get(k) or [])
                    for k in ("matchExpressions", "matchFields")
                )
                if not kept:
                    text = "only additions are allowed (no mutations or deletions)"
                    errors.append(invalid_value(f"{path}.nodeSelectorTerms[{i}]", new, text))
    affinity: JSON | None = before.get("affinity")
    now = spec.get("affinity")
    if affinity is None and now is not None and set(now) <= {"nodeAffinity"}:
        return None
    if affinity is not None and now is not None:
        others = {k: v for k, v in now.items() if k != "nodeAffinity"}
        if "nodeAffinity" in affinity:
            others["nodeAffinity"] = affinity["nodeAffinity"]
        return others
    return now


def validate_pod_status(new: JSON, old: JSON) -> list[FieldError]:
    """Findings about a status update."""
    errors: list[FieldError] = []
    nominated = new["status"].get("nominatedNodeName")
    if nominated:
        errors.extend(
            invalid_value("status.nominatedNodeName", nominated, p) for p in names.subdomain_problems(nominated)
        )
    return errors
