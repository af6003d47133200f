"""What every cluster has from the start: namespaces, the `kubernetes` service, system priorities, RBAC roles.

`pkg/controlplane/controller/systemnamespaces`, `pkg/registry/scheduling/rest`,
`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`.
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane import kinds
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.controllers.provisioning import PROVISIONER

JSON = dict[str, Any]

_GROUP = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_ALL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def _rule(verbs: list[str], groups: list[str], resources: list[str], names: list[str] | None = None) -> JSON:
    rule: JSON = {"verbs": verbs, "apiGroups": groups, "resources": resources}
    if names:
        rule["resourceNames"] = names
    return rule


def _paths(*paths: str) -> JSON:
    return {"verbs": ["get"], "nonResourceURLs": list(paths)}


_SCHEDULER = [
    _rule(["create", "patch", "update"], ["", "events.k8s.io"], ["events"]),
    _rule(["create"], ["coordination.k8s.io"], ["leases"]),
    _rule(["get", "list", "update", "watch"], ["coordination.k8s.io"], ["leases"], ["kube-scheduler"]),
    _rule(_ALL, ["coordination.k8s.io"], ["leasecandidates"]),
    _rule(_READ, [""], ["nodes"]),
    _rule(["delete", *_READ], [""], ["pods"]),
    _rule(["create"], [""], ["bindings", "pods/binding"]),
    _rule(["patch", "update"], [""], ["pods/status"]),
    _rule(_READ, [""], ["replicationcontrollers", "services"]),
    _rule(_READ, ["apps", "extensions"], ["replicasets"]),
    _rule(_READ, ["apps"], ["statefulsets"]),
    _rule(_READ, ["policy"], ["poddisruptionbudgets"]),
    _rule(_READ, [""], ["persistentvolumeclaims", "persistentvolumes"]),
    _rule(["create"], ["authentication.k8s.io"], ["tokenreviews"]),
    _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
    _rule(_READ, ["storage.k8s.io"], ["csinodes"]),
    _rule(_READ, ["storage.k8s.io"], ["volumeattachments"]),
    _rule(_READ, [""], ["namespaces"]),
    _rule(_READ, ["storage.k8s.io"], ["csidrivers"]),
    _rule(_READ, ["storage.k8s.io"], ["csistoragecapacities"]),
    _rule(_READ, ["resource.k8s.io"], ["deviceclasses"]),
    _rule(["get", "list", "patch", "update", "watch"], ["resource.k8s.io"], ["resourceclaims"]),
    _rule(["get", "list", "patch", "update", "watch"], ["resource.k8s.io"], ["resourceclaims/status"]),
    _rule(["update"], [""], ["pods/finalizers"]),
    _rule(_READ, ["resource.k8s.io"], ["resourceslices"]),
    _rule(["create", "delete"], ["resource.k8s.io"], ["resourceclaims"]),
    _rule(["patch", "update"], ["resource.k8s.io"], ["resourceclaims/binding"]),
    _rule(_READ, ["scheduling.k8s.io"], ["podgroups"]),
    _rule(["patch", "update"], ["scheduling.k8s.io"], ["podgroups/status"]),
]
_VOLUME_SCHEDULER = [
    _rule(["get", "list", "patch", "update", "watch"], [""], ["persistentvolumes"]),
    _rule(_READ, ["storage.k8s.io"], ["storageclasses"]),
    _rule(["get", "list", "patch", "update", "watch"], [""], ["persistentvolumeclaims"]),
]
_NOT_SEEN = ("secrets", "roles", "rolebindings")
_NOT_EDITED = (*_NOT_SEEN[1:], "resourcequotas", "limitranges", "events")


def _of_namespaces(verbs: list[str], left_out: tuple[str, ...], only: tuple[str, ...] = ()) -> list[JSON]:
    """Rules for what stands in namespaces, a group each."""
    names: dict[str, list[str]] = {}
    for each in kinds.RESOURCES:
        if each.namespaced and each.stored and each.plural not in left_out and (not only or each.plural in only):
            names.setdefault(each.group, []).append(each.plural)
            names[each.group] += [f"{each.plural}/{sub}" for sub in each.subresources]
    return [_rule(verbs, [group], sorted(dict.fromkeys(found))) for group, found in names.items()]


_VIEW = _of_namespaces(_READ, _NOT_SEEN)
_WRITE = [verb for verb in _ALL if verb not in _READ]
_EDIT = [*_VIEW, _rule(_READ, [""], ["secrets"]), *_of_namespaces(_WRITE, _NOT_EDITED)]
ROLES: dict[str, list[JSON]] = {
    "view": _VIEW,
    "edit": _EDIT,
    "admin": [*_EDIT, *_of_namespaces(_ALL, (), ("roles", "rolebindings"))],
    "cluster-admin": [_rule(["*"], ["*"], ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "system:kube-scheduler": _SCHEDULER,
    "system:volume-scheduler": _VOLUME_SCHEDULER,
    "system:auth-delegator": [
        _rule(["create"], ["authentication.k8s.io"], ["tokenreviews"]),
        _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
    ],
    "system:basic-user": [
        _rule(["create"], ["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        _rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
    ],
    "system:discovery": [
        _paths(
            "/api",
            "/api/*",
            "/apis",
            "/apis/*",
            "/healthz",
            "/livez",
            "/openapi",
            "/openapi/*",
            "/readyz",
            "/version",
            "/version/",
        )
    ],
    "system:monitoring": [
        _paths(
            *("/flagz", "/healthz", "/healthz/*", "/livez", "/livez/*"),
            *("/metrics", "/metrics/slis", "/readyz", "/readyz/*", "/statusz"),
        )
    ],
    "system:public-info-viewer": [_paths("/healthz", "/livez", "/readyz", "/version", "/version/")],
}
# binding -> role, subject kind, subject
BINDINGS: dict[str, tuple[str, str, str]] = {
    "cluster-admin": ("cluster-admin", "Group", "system:masters"),
    "system:kube-scheduler": ("system:kube-scheduler", "User", "system:kube-scheduler"),
    "system:volume-scheduler": ("system:volume-scheduler", "User", "system:kube-scheduler"),
    "system:basic-user": ("system:basic-user", "Group", "system:authenticated"),
    "system:discovery": ("system:discovery", "Group", "system:authenticated"),
    "system:monitoring": ("system:monitoring", "Group", "system:monitoring"),
    "system:public-info-viewer": ("system:public-info-viewer", "Group", "system:unauthenticated"),
}


def ensure(cluster: Cluster, *, rbac: bool) -> None:
    """Create what is missing. Roles only where they are evaluated."""
    for name in ("kube-system", "kube-public", "kube-node-lease", "default"):
        _add(
            cluster,
            "namespaces",
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            },
        )
    for name, value, text in (
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if "
            "necessary.",
        ),
    ):
        obj: JSON = {"metadata": {"name": name, "generation": 1}, "value": value, "description": text}
        _add(cluster, "priorityclasses.scheduling.k8s.io", {**obj, "preemptionPolicy": "PreemptLowerPriority"})
    _add(cluster, "services", _SERVICE)
    if rbac:
        for name, rules in ROLES.items():
            _add(cluster, f"clusterroles.{_GROUP}", {"metadata": _default_meta(name), "rules": rules})
        for name, (role, kind, subject) in BINDINGS.items():
            binding = {
                "metadata": _default_meta(name),
                "subjects": [{"kind": kind, "apiGroup": _GROUP, "name": subject}],
                "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
            }
            _add(cluster, f"clusterrolebindings.{_GROUP}", binding)
        for name, rules in _KUBE_SYSTEM_ROLES.items():
            meta = {**_default_meta(name), "namespace": "kube-system"}
            _add(cluster, f"roles.{_GROUP}", {"metadata": meta, "rules": rules})
        for name, role in _KUBE_SYSTEM_BINDINGS.items():
            local = {
                "metadata": {**_default_meta(name), "namespace": "kube-system"},
                "subjects": [{"kind": "User", "apiGroup": _GROUP, "name": "system:kube-scheduler"}],
                "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": role},
            }
            _add(cluster, f"rolebindings.{_GROUP}", local)


def add_storage_class(cluster: Cluster) -> None:
    """A default storage class, whose volumes are made when a pod is placed."""
    marks = {"storageclass.kubernetes.io/is-default-class": "true"}
    obj: JSON = {"metadata": {"name": "standard", "annotations": marks}, "provisioner": PROVISIONER}
    obj |= {"reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer"}
    _add(cluster, "storageclasses.storage.k8s.io", obj)


_KUBE_SYSTEM_ROLES: dict[str, list[JSON]] = {
    "extension-apiserver-authentication-reader": [
        _rule(_READ, [""], ["configmaps"], ["extension-apiserver-authentication"])
    ],
    "system::leader-locking-kube-scheduler": [
        _rule(["watch"], [""], ["configmaps"]),
        _rule(["get", "update"], [""], ["configmaps"], ["kube-scheduler"]),
    ],
}
_KUBE_SYSTEM_BINDINGS = {
    "system::extension-apiserver-authentication-reader": "extension-apiserver-authentication-reader",
    "system::leader-locking-kube-scheduler": "system::leader-locking-kube-scheduler",
}


def _default_meta(name: str) -> JSON:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }


_SERVICE: JSON = {
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    },
    "status": {"loadBalancer": {}},
}


def _add(cluster: Cluster, storage: str, obj: JSON) -> None:
    meta = dict(obj["metadata"])
    if cluster.find(storage, meta["name"], meta.get("namespace", "")) is None:
        meta.update(uid=cluster.uid(), creationTimestamp=cluster.timestamp())
        cluster.collection(storage).create({**obj, "metadata": meta})
