"""What the server writes of a kind even when nobody set it.

Go structs that are fields by value, and fields without `omitempty`, are always there: nobody comes to own them by
creating an object, only what is below them or differs from this. Only fields reachable without a pointer, list or map
count. (`staging/src/k8s.io/api/*/types.go`)
"""

from __future__ import annotations

from skedge.controlplane.fields.table import Obj

_TEMPLATE: Obj = {"metadata": {}, "spec": {"containers": None}}
_WORKLOAD: Obj = {"selector": None, "template": _TEMPLATE}
_ACCESS_REVIEW: Obj = {"spec": {}, "status": {"allowed": False}}
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
_DEVICES: Obj = {"devices": {}}

_BODIES: dict[str, Obj] = {
    "v1/Pod": {"spec": {"containers": None}, "status": {}},
    "v1/PodTemplate": {"template": _TEMPLATE},
    "v1/Node": {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
        },
    },
    "v1/Namespace": {"spec": {}, "status": {}},
    "v1/Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "v1/ReplicationController": {"spec": {}, "status": {"replicas": 0}},
    "v1/PersistentVolume": {"spec": {}, "status": {}},
    "v1/PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "v1/ResourceQuota": {"spec": {}, "status": {}},
    "v1/LimitRange": {"spec": {"limits": None}},
    "v1/Event": {
        "eventTime": None,
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "events.k8s.io/v1/Event": {
        "eventTime": None,
        "regarding": {},
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    },
    "apps/v1/Deployment": {"spec": {**_WORKLOAD, "strategy": {}}, "status": {}},
    "apps/v1/ReplicaSet": {"spec": {"selector": None, "template": _TEMPLATE}, "status": {"replicas": 0}},
    "apps/v1/StatefulSet": {
        "spec": {**_WORKLOAD, "updateStrategy": {}, "serviceName": ""},
        "status": {"replicas": 0, "availableReplicas": 0},
    },
    "apps/v1/DaemonSet": {
        "spec": {**_WORKLOAD, "updateStrategy": {}},
        "status": {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
    },
    "apps/v1/ControllerRevision": {"revision": 0},
    "batch/v1/Job": {"spec": {"template": _TEMPLATE}, "status": {}},
    "batch/v1/CronJob": {
        "spec": {"schedule": "", "jobTemplate": {"metadata": {}, "spec": {"template": _TEMPLATE}}},
        "status": {},
    },
    "authentication.k8s.io/v1/TokenReview": {"spec": {}, "status": {"user": {}}},
    "authentication.k8s.io/v1/SelfSubjectReview": {"status": {"userInfo": {}}},
    "authorization.k8s.io/v1/SubjectAccessReview": _ACCESS_REVIEW,
    "authorization.k8s.io/v1/SelfSubjectAccessReview": _ACCESS_REVIEW,
    "authorization.k8s.io/v1/SelfSubjectRulesReview": {
        "spec": {},
        "status": {"resourceRules": None, "nonResourceRules": None, "incomplete": False},
    },
    "coordination.k8s.io/v1/Lease": {"spec": {}},
    "discovery.k8s.io/v1/EndpointSlice": {"addressType": "", "endpoints": None, "ports": None},
    "policy/v1/PodDisruptionBudget": {
        "spec": {},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    },
    "rbac.authorization.k8s.io/v1/ClusterRole": {"rules": None},
    "rbac.authorization.k8s.io/v1/Role": {"rules": None},
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": {"roleRef": {"apiGroup": "", "kind": "", "name": ""}},
    "rbac.authorization.k8s.io/v1/RoleBinding": {"roleRef": {"apiGroup": "", "kind": "", "name": ""}},
    "resource.k8s.io/v1/DeviceClass": {"spec": {}},
    "resource.k8s.io/v1/ResourceClaim": {"spec": _DEVICES, "status": {}},
    "resource.k8s.io/v1/ResourceClaimTemplate": {"spec": {"metadata": {}, "spec": _DEVICES}},
    "resource.k8s.io/v1/ResourceSlice": {
        "spec": {"driver": "", "pool": {"name": "", "generation": 0, "resourceSliceCount": 0}}
    },
    "resource.k8s.io/v1beta2/DeviceTaintRule": {"spec": {"taint": {"key": "", "effect": ""}}, "status": {}},
    "scheduling.k8s.io/v1/PriorityClass": {"value": 0},
    "scheduling.k8s.io/v1alpha2/PodGroup": {"spec": {"schedulingPolicy": {}}, "status": {}},
    "scheduling.k8s.io/v1alpha2/Workload": {"spec": {"podGroupTemplates": None}},
    "storage.k8s.io/v1/StorageClass": {"provisioner": ""},
    "storage.k8s.io/v1/CSIDriver": {"spec": {}},
    "storage.k8s.io/v1/CSINode": {"spec": {"drivers": None}},
    "storage.k8s.io/v1/CSIStorageCapacity": {"storageClassName": ""},
    "storage.k8s.io/v1/VolumeAttachment": {
        "spec": {"attacher": "", "source": {}, "nodeName": ""},
        "status": {"attached": False},
    },
    "storage.k8s.io/v1/VolumeAttributesClass": {"driverName": ""},
}

_ZEROS: dict[str, Obj] = {gvk: {"metadata": {}, **body} for gvk, body in _BODIES.items()}
_PLAIN: Obj = {"metadata": {}}


def zero(gvk: str) -> Obj:
    """The empty object of a kind as the server would write it, less apiVersion and kind. Not to be changed."""
    return _ZEROS.get(gvk, _PLAIN)
