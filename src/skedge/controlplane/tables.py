"""Printer columns: what `kubectl get` shows (`pkg/printers/internalversion/printers.go`), without descriptions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from skedge.controlplane import rarecolumns as rare
from skedge.controlplane.ages import age, duration, since
from skedge.controlplane.podcolumns import pod_cells
from skedge.controlplane.selectors import selector_text

JSON = dict[str, Any]

_NONE, _UNKNOWN = "<none>", "<unknown>"
Cells = Callable[[JSON, float], list[Any]]


def _containers(spec: JSON) -> tuple[str, str]:
    containers = spec.get("containers") or []
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def _node(obj: JSON, now: float) -> list[Any]:
    meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
    ready = [c for c in status.get("conditions") or [] if c.get("type") == "Ready"]
    state = "Unknown" if not ready else ("Ready" if ready[0].get("status") == "True" else "NotReady")
    if spec.get("unschedulable"):
        state += ",SchedulingDisabled"
    labels = meta.get("labels") or {}
    roles = sorted(
        {key.removeprefix("node-role.kubernetes.io/") for key in labels if key.startswith("node-role.kubernetes.io/")}
        | ({labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set())
    )
    info = status.get("nodeInfo") or {}
    addresses = {a.get("type"): a.get("address") for a in reversed(status.get("addresses") or [])}
    return [
        meta["name"],
        state,
        ",".join(roles) or _NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _namespace(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), age(obj, now)]


def _deployment(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    names, images = _containers(spec["template"]["spec"])
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        names,
        images,
        selector_text(spec.get("selector")) or _NONE,
    ]


def _replica_set(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    names, images = _containers(spec["template"]["spec"])
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [
        obj["metadata"]["name"],
        *counts,
        age(obj, now),
        names,
        images,
        selector_text(spec.get("selector")) or _NONE,
    ]


def _stateful_set(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    names, images = _containers(spec["template"]["spec"])
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), names, images]


def _daemon_set(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    names, images = _containers(spec["template"]["spec"])
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    numbers = [status.get(key, 0) for key in (*counts, "numberAvailable")]
    selector = selector_text({"matchLabels": spec["template"]["spec"].get("nodeSelector") or {}}) or _NONE
    wide = [names, images, selector_text(spec.get("selector")) or _NONE]
    return [obj["metadata"]["name"], *numbers, selector, age(obj, now), *wide]


def _job(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    done = status.get("succeeded", 0)
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or []}
    if conditions.get("Complete") == "True":
        state = "Complete"
    elif conditions.get("Failed") == "True":
        state = "Failed"
    elif obj["metadata"].get("deletionTimestamp"):
        state = "Terminating"
    elif conditions.get("Suspended") == "True":
        state = "Suspended"
    elif conditions.get("FailureTarget") == "True":
        state = "FailureTarget"
    elif conditions.get("SuccessCriteriaMet") == "True":
        state = "SuccessCriteriaMet"
    else:
        state = "Running"
    if spec.get("completions") is not None:
        completions = f"{done}/{spec['completions']}"
    elif (spec.get("parallelism") or 0) > 1:
        completions = f"{done}/1 of {spec['parallelism']}"
    else:
        completions = f"{done}/1"
    took = ""
    if status.get("startTime"):
        start = datetime.fromisoformat(status["startTime"]).timestamp()
        end = status.get("completionTime")
        took = duration((datetime.fromisoformat(end).timestamp() if end else now) - start)
    names, images = _containers(spec["template"]["spec"])
    wide = [names, images, selector_text(spec.get("selector")) or _NONE]
    return [obj["metadata"]["name"], state, completions, took, age(obj, now), *wide]


def _cron_job(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    last = since(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else _NONE
    names, images = _containers(spec["jobTemplate"]["spec"]["template"]["spec"])
    suspend = "True" if spec.get("suspend") else "False"
    active = len(status.get("active") or [])
    zone = spec.get("timeZone") or _NONE
    return [
        *(obj["metadata"]["name"], spec.get("schedule", ""), zone, suspend, active, last, age(obj, now)),
        *(names, images, _NONE),
    ]


def _event(obj: JSON, now: float) -> list[Any]:
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = (
        (obj.get("series") or {}).get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime") or first
    )
    count = (obj.get("series") or {}).get("count") or obj.get("count") or 1
    involved, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent", "")
    instance = source.get("host") or obj.get("reportingInstance", "")
    about = involved.get("kind", "").lower()
    about += f"/{involved['name']}" if involved.get("name") else ""
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        about,
        involved.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        obj.get("message", "").strip(),
        since(first, now),
        count,
        obj["metadata"]["name"],
    ]


def _lease(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity", ""), age(obj, now)]


def _priority_class(obj: JSON, now: float) -> list[Any]:
    default = bool(obj.get("globalDefault"))
    return [obj["metadata"]["name"], obj.get("value", 0), default, age(obj, now), obj.get("preemptionPolicy", "")]


def _budget(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    least = str(spec["minAvailable"]) if "minAvailable" in spec else "N/A"
    most = str(spec["maxUnavailable"]) if "maxUnavailable" in spec else "N/A"
    return [obj["metadata"]["name"], least, most, status.get("disruptionsAllowed", 0), age(obj, now)]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: list[str] | None) -> str:
    return ",".join(_MODES[m] for m in _MODES if m in (modes or []))


def _volume(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef")
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(obj: JSON, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        obj["metadata"]["name"],
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _storage_class(obj: JSON, now: float) -> list[Any]:
    meta = obj["metadata"]
    name = meta["name"]
    if (meta.get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true":
        name += " (default)"
    policy, mode = obj.get("reclaimPolicy", ""), obj.get("volumeBindingMode", "")
    return [name, obj.get("provisioner", ""), policy, mode, bool(obj.get("allowVolumeExpansion")), age(obj, now)]


def _csi_node(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], len((obj.get("spec") or {}).get("drivers") or []), age(obj, now)]


def _service(obj: JSON, now: float) -> list[Any]:
    spec = obj["spec"]
    ports = ",".join(
        f"{p.get('port')}" + (f":{p['nodePort']}" if p.get("nodePort") else "") + f"/{p.get('protocol', 'TCP')}"
        for p in spec.get("ports") or []
    )
    external = ",".join(spec.get("externalIPs") or []) or ("<pending>" if spec.get("type") == "LoadBalancer" else _NONE)
    selector = selector_text({"matchLabels": spec.get("selector") or {}}) or _NONE
    address = spec.get("clusterIP") or _NONE
    return [obj["metadata"]["name"], spec.get("type", ""), address, external, ports or _NONE, age(obj, now), selector]


def _data_count(obj: JSON, now: float) -> list[Any]:
    count = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [obj["metadata"]["name"], count, age(obj, now)]


def _secret(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or {}), age(obj, now)]


def _service_account(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("secrets") or []), age(obj, now)]


def _claim_state(obj: JSON, now: float) -> list[Any]:
    status = obj.get("status") or {}
    states = ["deleted"] if obj["metadata"].get("deletionTimestamp") else []
    if status.get("allocation"):
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    else:
        states.append("pending")
    return [obj["metadata"]["name"], ",".join(states), age(obj, now)]


def _slice(obj: JSON, now: float) -> list[Any]:
    spec = obj["spec"]
    node = spec.get("nodeName") or ("<all>" if spec.get("allNodes") else _NONE)
    pool = spec.get("pool") or {}
    return [obj["metadata"]["name"], node, spec.get("driver", ""), pool.get("name", ""), age(obj, now)]


def _created_at(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp", "")]


def _role_binding(obj: JSON, now: float) -> list[Any]:
    ref = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or []
    listed = [", ".join(s.get("name", "") for s in subjects if s.get("kind") == kind) for kind in ("User", "Group")]
    accounts = [f"{s.get('namespace', '')}/{s.get('name', '')}" for s in subjects if s.get("kind") == "ServiceAccount"]
    return [
        obj["metadata"]["name"],
        f"{ref.get('kind', '')}/{ref.get('name', '')}",
        age(obj, now),
        *listed,
        ", ".join(accounts),
    ]


def _scale(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], obj["spec"].get("replicas", 0), obj["status"].get("replicas", 0), age(obj, now)]


def _name_age(obj: JSON, now: float) -> list[Any]:
    return [obj["metadata"]["name"], age(obj, now)]


SCALE = "scale"
"""Stands for the storage name of what is not stored: scales."""

# storage -> (columns, cells). A column: its name; `#` marks integers, `+` those shown by -o wide only, `?` booleans.
_TABLES: dict[str, tuple[str, Cells]] = {
    "pods": ("Name|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates", pod_cells),
    "nodes": (
        "Name|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime",
        _node,
    ),
    "namespaces": ("Name|Status|Age", _namespace),
    "deployments.apps": ("Name|Ready|Up-to-date|Available|Age|+Containers|+Images|+Selector", _deployment),
    "replicasets.apps": ("Name|#Desired|#Current|#Ready|Age|+Containers|+Images|+Selector", _replica_set),
    "replicationcontrollers": ("Name|#Desired|#Current|#Ready|Age|+Containers|+Images|+Selector", _replica_set),
    "statefulsets.apps": ("Name|Ready|Age|+Containers|+Images", _stateful_set),
    "daemonsets.apps": (
        "Name|#Desired|#Current|#Ready|#Up-to-date|#Available|Node Selector|Age|+Containers|+Images|+Selector",
        _daemon_set,
    ),
    "jobs.batch": ("Name|Status|Completions|Duration|Age|+Containers|+Images|+Selector", _job),
    "cronjobs.batch": (
        "Name|Schedule|Timezone|?Suspend|#Active|Last Schedule|Age|+Containers|+Images|+Selector",
        _cron_job,
    ),
    "events": ("Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name", _event),
    "leases.coordination.k8s.io": ("Name|Holder|Age", _lease),
    "priorityclasses.scheduling.k8s.io": ("Name|#Value|?Global-Default|Age|PreemptionPolicy", _priority_class),
    "poddisruptionbudgets.policy": ("Name|Min Available|Max Unavailable|#Allowed Disruptions|Age", _budget),
    "persistentvolumes": (
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age"
        "|+VolumeMode",
        _volume,
    ),
    "persistentvolumeclaims": (
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|+VolumeMode",
        _claim,
    ),
    "storageclasses.storage.k8s.io": (
        "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
        _storage_class,
    ),
    "csinodes.storage.k8s.io": ("Name|#Drivers|Age", _csi_node),
    "services": ("Name|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector", _service),
    "configmaps": ("Name|#Data|Age", _data_count),
    "secrets": ("Name|Type|#Data|Age", _secret),
    "serviceaccounts": ("Name|#Secrets|Age", _service_account),
    "resourceclaims.resource.k8s.io": ("Name|State|Age", _claim_state),
    "resourceslices.resource.k8s.io": ("Name|Node|Driver|Pool|Age", _slice),
    "roles.rbac.authorization.k8s.io": ("Name|Created At", _created_at),
    "clusterroles.rbac.authorization.k8s.io": ("Name|Created At", _created_at),
    "rolebindings.rbac.authorization.k8s.io": ("Name|Role|Age|+Users|+Groups|+ServiceAccounts", _role_binding),
    SCALE: ("Name|#Desired|#Available|Age", _scale),
    "limitranges": ("Name|Created At", _created_at),
    "resourcequotas": ("Name|Request|Limit|Age", rare.quota_cells),
    "controllerrevisions.apps": ("Name|Controller|Revision|Age", rare.revision_cells),
    "podtemplates": ("Name|Containers|Images|Pod Labels", rare.template_cells),
    "endpoints": ("Name|Endpoints|Age", rare.endpoints_cells),
    "endpointslices.discovery.k8s.io": ("Name|AddressType|Ports|Endpoints|Age", rare.slice_cells),
    "volumeattachments.storage.k8s.io": ("Name|Attacher|PV|Node|?Attached|Age", rare.attachment_cells),
    "csidrivers.storage.k8s.io": (
        "Name|?AttachRequired|?PodInfoOnMount|?StorageCapacity|TokenRequests|?RequiresRepublish|Modes|Age",
        rare.driver_cells,
    ),
    "csistoragecapacities.storage.k8s.io": ("Name|StorageClassName|Capacity", rare.capacity_cells),
    "volumeattributesclasses.storage.k8s.io": ("Name|DriverName|Age", rare.attributes_cells),
    "clusterrolebindings.rbac.authorization.k8s.io": ("Name|Role|Age|+Users|+Groups|+ServiceAccounts", _role_binding),
}
_DEFAULT: tuple[str, Cells] = ("Name|Age", _name_age)


def columns(storage: str) -> list[JSON]:
    """Column definitions of a kind."""
    found = []
    for text in _TABLES.get(storage, _DEFAULT)[0].split("|"):
        name = text.lstrip("#+?")
        marks = text[: len(text) - len(name)]
        kind = "integer" if "#" in marks else "boolean" if "?" in marks else "string"
        found.append(
            {
                "name": name,
                "type": kind,
                "format": "name" if name in ("Name", "Attacher") else "",
                "description": "",
                "priority": 1 if "+" in marks else 0,
            }
        )
    return found


def cells(storage: str, obj: JSON, now: float) -> list[Any]:
    """The cells of one row; `now` in seconds since 1970."""
    return _TABLES.get(storage, _DEFAULT)[1](obj, now)
