"""The resources this server serves: names, verbs, subresources and how their objects are stored.

One table, in the order of discovery. Facts of `staging/src/k8s.io/api` and `pkg/registry`; no behaviour lives here.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")

# group version plural Kind scope short-names categories subresources; `-` for none. Namespaced resources have scope N,
# cluster-wide ones C; a lower-case scope marks resources that are created only and never stored.
_TABLE = """
- v1 bindings Binding n - - -
- v1 configmaps ConfigMap N cm - -
- v1 endpoints Endpoints N ep - -
- v1 events Event N ev - -
- v1 limitranges LimitRange N limits - -
- v1 namespaces Namespace C ns - finalize,status
- v1 nodes Node C no - status
- v1 persistentvolumeclaims PersistentVolumeClaim N pvc - status
- v1 persistentvolumes PersistentVolume C pv - status
- v1 pods Pod N po all binding,ephemeralcontainers,eviction,exec,log,status
- v1 podtemplates PodTemplate N - - -
- v1 replicationcontrollers ReplicationController N rc all scale,status
- v1 resourcequotas ResourceQuota N quota - status
- v1 secrets Secret N - - -
- v1 serviceaccounts ServiceAccount N sa - -
- v1 services Service N svc all status
apps v1 controllerrevisions ControllerRevision N - - -
apps v1 daemonsets DaemonSet N ds all status
apps v1 deployments Deployment N deploy all scale,status
apps v1 replicasets ReplicaSet N rs all scale,status
apps v1 statefulsets StatefulSet N sts all scale,status
events.k8s.io v1 events Event N ev - -
authentication.k8s.io v1 selfsubjectreviews SelfSubjectReview c - - -
authentication.k8s.io v1 tokenreviews TokenReview c - - -
authorization.k8s.io v1 selfsubjectaccessreviews SelfSubjectAccessReview c - - -
authorization.k8s.io v1 selfsubjectrulesreviews SelfSubjectRulesReview c - - -
authorization.k8s.io v1 subjectaccessreviews SubjectAccessReview c - - -
batch v1 cronjobs CronJob N cj all status
batch v1 jobs Job N - all status
policy v1 poddisruptionbudgets PodDisruptionBudget N pdb - status
rbac.authorization.k8s.io v1 clusterrolebindings ClusterRoleBinding C - - -
rbac.authorization.k8s.io v1 clusterroles ClusterRole C - - -
rbac.authorization.k8s.io v1 rolebindings RoleBinding N - - -
rbac.authorization.k8s.io v1 roles Role N - - -
storage.k8s.io v1 csidrivers CSIDriver C - - -
storage.k8s.io v1 csinodes CSINode C - - -
storage.k8s.io v1 csistoragecapacities CSIStorageCapacity N - - -
storage.k8s.io v1 storageclasses StorageClass C sc - -
storage.k8s.io v1 volumeattachments VolumeAttachment C - - status
storage.k8s.io v1 volumeattributesclasses VolumeAttributesClass C vac - -
scheduling.k8s.io v1 priorityclasses PriorityClass C pc - -
scheduling.k8s.io v1alpha2 podgroups PodGroup N - - status
scheduling.k8s.io v1alpha2 workloads Workload N - - -
coordination.k8s.io v1 leases Lease N - - -
discovery.k8s.io v1 endpointslices EndpointSlice N - - -
resource.k8s.io v1 deviceclasses DeviceClass C - - -
resource.k8s.io v1 resourceclaims ResourceClaim N - - status
resource.k8s.io v1 resourceclaimtemplates ResourceClaimTemplate N - - -
resource.k8s.io v1 resourceslices ResourceSlice C - - -
resource.k8s.io v1beta2 devicetaintrules DeviceTaintRule C - - status
"""

# kind, group/version and verbs of subresources that speak another kind than their parent
_SUBRESOURCES = {
    "binding": ("Binding", "", "", ("create",)),
    "eviction": ("Eviction", "policy", "v1", ("create",)),
    "scale": ("Scale", "autoscaling", "v1", STATUS_VERBS),
    "exec": ("PodExecOptions", "", "", ("create", "get")),
    "log": ("", "", "", ("get",)),
    "finalize": ("", "", "", ("update",)),
    "status": ("", "", "", STATUS_VERBS),
    "ephemeralcontainers": ("", "", "", STATUS_VERBS),
}
# storage versions other than the served version, by (group, plural); they only show in discovery hashes
_STORED_AS = {("events.k8s.io", "events"): ("", "v1")}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: its kind, the group and version of that kind ("" = the parent's) and its verbs."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resource:
    """One served resource of one group version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    stored: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    subresources: dict[str, Subresource]
    singular: str
    verbs: tuple[str, ...]
    api_version: str
    qualified: str  # `deployments.apps`
    storage: str  # the collection its objects live in; core and events.k8s.io events share one
    head: bytes = field(repr=False)  # first bytes of an encoded object: `{"kind":"Pod","apiVersion":"v1",`

    @property
    def storage_version_hash(self) -> str:
        """As discovery shows it: a digest of the storage group, version and kind."""
        group, version = _STORED_AS.get((self.group, self.plural), (self.group, self.version))
        digest = hashlib.sha256(f"{group}/{version}/{self.kind}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()


def _resource(line: str) -> Resource:
    group, version, plural, kind, scope, short, categories, subs = ("" if w == "-" else w for w in line.split())
    stored = scope.isupper()
    verbs: tuple[str, ...] = ALL_VERBS if stored else ("create",)
    if plural == "namespaces":
        verbs = tuple(v for v in ALL_VERBS if v != "deletecollection")
    subresources = {}
    for name in filter(None, subs.split(",")):
        sub_kind, sub_group, sub_version, sub_verbs = _SUBRESOURCES[name]
        subresources[name] = Subresource(name, sub_kind or kind, sub_group, sub_version, sub_verbs)
    api_version = f"{group}/{version}" if group else version
    stored_group = _STORED_AS.get((group, plural), (group, version))[0]
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=scope.upper() == "N",
        stored=stored,
        short_names=tuple(filter(None, short.split(","))),
        categories=tuple(filter(None, categories.split(","))),
        subresources=subresources,
        singular=kind.lower(),
        verbs=verbs,
        api_version=api_version,
        qualified=f"{plural}.{group}" if group else plural,
        storage=f"{plural}.{stored_group}" if stored_group else plural,
        head=f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode(),
    )


RESOURCES: tuple[Resource, ...] = tuple(_resource(line) for line in _TABLE.strip().splitlines())

# {group: {version: {plural: Resource}}}, in discovery order
GROUPS: dict[str, dict[str, dict[str, Resource]]] = {}
for _r in RESOURCES:
    GROUPS.setdefault(_r.group, {}).setdefault(_r.version, {})[_r.plural] = _r

# storage name -> the resource whose form objects are stored in
BY_STORAGE: dict[str, Resource] = {}
for _r in RESOURCES:
    if _r.stored:
        BY_STORAGE.setdefault(_r.storage, _r)


def find(group: str, version: str, plural: str) -> Resource | None:
    """The resource of a request path, or None."""
    return GROUPS.get(group, {}).get(version, {}).get(plural)
