"""What a JSON object looks like after a trip through the server's typed structs.

Undeclared fields and nulls go, empty optional values go, quantities become canonical, fields that are always written
(required ones, timestamps and structs without `omitempty`) appear. Driven by the field table; the few facts it does not
hold (which optional fields are pointers) stand in the tables below, read off `staging/src/k8s.io/api/*/types.go`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from skedge.controlplane import quantities
from skedge.controlplane.errors import bad_request
from skedge.controlplane.fields import validate_types
from skedge.controlplane.fields.table import Shape, Type, table

JSON = dict[str, Any]

# optional strings that are pointers: an empty string says something else than none
_STRING_POINTERS = frozenset(
    ["storageClassName", "volumeAttributesClassName", "runtimeClassName", "preemptionPolicy", "volumeMode", "nodeName"]
)
_NODE_NAME_PLAIN = frozenset(["core.v1.PodSpec"])
# optional booleans and integers that are plain values: false and zero are not written
_PLAIN = frozenset(
    [
        *("hostNetwork", "hostPID", "hostIPC", "unschedulable", "stdin", "stdinOnce", "tty", "readOnly", "paused"),
        *("minReadySeconds", "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
        *("unavailableReplicas", "fullyLabeledReplicas", "currentReplicas", "active", "succeeded", "failed", "count"),
        *("globalDefault", "hostPort", "deprecatedCount", "numberAvailable", "numberUnavailable", "generation"),
        *("updatedNumberScheduled", "publishNotReadyAddresses"),
    ]
)
_POINTER_IN = {"replicas": frozenset(["apps.v1.DeploymentSpec", "apps.v1.ReplicaSetSpec", "apps.v1.StatefulSetSpec"])}
_POINTER_IN["replicas"] |= {"core.v1.ReplicationControllerSpec"}

# values without omitempty that the schema calls optional: type -> fields
_ALWAYS: dict[str, tuple[str, ...]] = {
    "core.v1.NodeStatus": ("daemonEndpoints", "nodeInfo"),
    "core.v1.NodeDaemonEndpoints": ("kubeletEndpoint",),
    "core.v1.Container": ("resources",),
    "core.v1.EphemeralContainer": ("resources",),
    "core.v1.ContainerStatus": ("state", "lastState"),
    "core.v1.PersistentVolumeClaimSpec": ("resources",),
    "core.v1.Event": (
        *("source", "firstTimestamp", "lastTimestamp", "eventTime", "reportingComponent", "reportingInstance"),
    ),
    "policy.v1.PodDisruptionBudgetStatus": ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
    "core.v1.PodCondition": ("lastProbeTime", "lastTransitionTime"),
    "core.v1.NodeCondition": ("lastHeartbeatTime", "lastTransitionTime"),
    "core.v1.PodTemplateSpec": ("metadata", "spec"),
    "core.v1.ServiceStatus": ("loadBalancer",),
    "core.v1.ReplicationControllerCondition": ("lastTransitionTime",),
    "core.v1.PersistentVolumeClaimCondition": ("lastProbeTime", "lastTransitionTime"),
    "apps.v1.DeploymentSpec": ("strategy",),
    "apps.v1.StatefulSetSpec": ("updateStrategy",),
    "apps.v1.DaemonSetSpec": ("updateStrategy",),
    "apps.v1.DeploymentCondition": ("lastUpdateTime", "lastTransitionTime"),
    "apps.v1.ReplicaSetCondition": ("lastTransitionTime",),
    "apps.v1.StatefulSetCondition": ("lastTransitionTime",),
    "apps.v1.DaemonSetCondition": ("lastTransitionTime",),
    "batch.v1.JobCondition": ("lastProbeTime", "lastTransitionTime"),
    "events.v1.Event": ("eventTime", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"),
}
_OPTIONAL_STATUS = frozenset(["policy.v1.Eviction"])
_TIMES = ("apis.meta.v1.Time", "apis.meta.v1.MicroTime")


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")


class _Mismatch(Exception):
    """A JSON value of the wrong type; `validate_types` finds the words."""


def normal(obj: JSON, gvk: str, kind: str, version: str) -> JSON:
    """A new object in the server's form. Raises 400 naming what cannot be read."""
    type_ = table().kind(gvk)
    try:
        result: JSON = _struct(obj, type_)
    except (_Mismatch, quantities.BadQuantity) as e:
        problem = next(iter(validate_types(gvk, obj)), str(e))
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}') from None
    for name in ("spec", "status"):
        field = type_.fields.get(name)
        wanted = field is not None and field.type.shape is Shape.STRUCT and type_.name not in _OPTIONAL_STATUS
        if wanted and field is not None and name not in result:
            result[name] = _struct({}, field.type)
    return result


def zero(gvk: str) -> JSON:
    """The body of an object in which nothing is set (what a bookmark carries), without metadata."""
    result = normal({}, gvk, "", "")
    result.pop("metadata", None)
    return result


def _value(value: Any, type_: Type) -> Any:
    shape = type_.shape
    if shape is Shape.ANY:
        return value
    if shape is Shape.SCALAR:
        return _scalar(value, type_.name)
    elem = type_.elem
    if shape is Shape.LIST:
        if not isinstance(value, list):
            raise _Mismatch
        if elem.shape is Shape.SCALAR:
            name = elem.name
            return [_scalar(item, name) for item in value]
        return [_value({} if item is None else item, elem) for item in value]
    if not isinstance(value, dict):
        raise _Mismatch
    if shape is Shape.STRUCT:
        return _struct(value, type_)
    if elem.shape is Shape.SCALAR:
        name = elem.name
        return {key: _scalar(item, name) for key, item in value.items()}
    return {key: _value(item, elem) for key, item in value.items() if item is not None}


def _struct(value: JSON, type_: Type) -> JSON:
    result: JSON = {}
    name = type_.name
    for key, field in type_.fields.items():
        item = value.get(key)
        if item is None:
            if field.required and key not in ("metadata",):
                result[key] = _zero(field.type)
            continue
        child = field.type
        if child.shape is Shape.SCALAR:
            item = _scalar(item, child.name)
        else:
            item = _value(item, child)
        if not field.required and not item and _omitted(item, key, child, name):
            continue
        result[key] = item
    for key in _ALWAYS.get(name, ()):
        if key not in result:
            result[key] = _zero(type_.fields[key].type) if key in type_.fields else None
    return result


def _omitted(item: Any, key: str, type_: Type, owner: str) -> bool:
    """Whether an empty optional value is left out when written."""
    if type_.shape is Shape.STRUCT or type_.shape is Shape.ANY:
        return False
    if item == "":
        return key not in _STRING_POINTERS or (key == "nodeName" and owner in _NODE_NAME_PLAIN)
    if item is False or (isinstance(item, int) and item == 0):
        return key in _PLAIN and owner not in _POINTER_IN.get(key, ())
    return isinstance(item, (list, dict))


def _zero(type_: Type) -> Any:
    if type_.shape is Shape.STRUCT:
        return _struct({}, type_)
    if type_.shape is not Shape.SCALAR:
        return None
    name = type_.name
    if name in _TIMES:
        return None
    if name.startswith(("integer", "number")):
        return 0
    if name == "boolean":
        return False
    if name == "api.resource.Quantity":
        return "0"
    return 0 if name.endswith("IntOrString") else ""


def _scalar(value: Any, name: str) -> Any:
    if value is None:
        return _zero(Type(Shape.SCALAR, name))
    if name == "string":
        if not isinstance(value, str):
            raise _Mismatch
        return value
    if name.startswith("integer"):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise _Mismatch
        return int(value)
    if name == "boolean":
        if not isinstance(value, bool):
            raise _Mismatch
        return value
    if name == "api.resource.Quantity":
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = repr(value)
        if not isinstance(value, str):
            raise _Mismatch
        return quantities.canonical(value)
    if name in _TIMES:
        return _time(value, name)
    return value


def _time(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise _Mismatch
    if value.endswith("Z") and len(value) == (20 if name == _TIMES[0] else 27):
        return value
    moment = datetime.fromisoformat(value.replace(",", ".")).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if name == _TIMES[0] else "%Y-%m-%dT%H:%M:%S.%fZ")
