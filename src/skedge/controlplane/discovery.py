"""Version, health, and which resources there are (`staging/src/k8s.io/apiserver/pkg/endpoints/discovery`)."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from skedge.controlplane import kinds
from skedge.controlplane.kinds import Resource
from skedge.controlplane.store import encode

JSON = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

VERSION: JSON = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2026-06-01T00:00:00Z",
    "goVersion": "go1.26.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}

# the checks kube-apiserver names, in its order; a hook this server does not have is trivially done
_HOOK_NAMES = """
start-apiserver-admission-initializer generic-apiserver-start-informers priority-and-fairness-config-consumer
priority-and-fairness-filter storage-object-count-tracker-hook start-apiextensions-informers
start-apiextensions-controllers crd-informer-synced start-system-namespaces-controller
peer-endpoint-reconciler-controller start-cluster-authentication-info-controller
start-kube-apiserver-identity-lease-controller start-kube-apiserver-identity-lease-garbage-collector storage-readiness
start-legacy-token-tracking-controller start-service-ip-repair-controllers rbac/bootstrap-roles
scheduling/bootstrap-system-priority-classes priority-and-fairness-config-producer bootstrap-controller
start-kubernetes-service-cidr-controller start-kube-aggregator-informers apiservice-status-local-available-controller
apiservice-status-remote-available-controller apiservice-registration-controller apiservice-wait-for-first-sync
apiservice-discovery-controller kube-apiserver-autoregistration autoregister-completion apiservice-openapi-controller
apiservice-openapiv3-controller
"""
_NO_HOOK = "autoregister-completion"


def _checks(name: str) -> list[str]:
    hooks = [hook if hook == _NO_HOOK else f"poststarthook/{hook}" for hook in _HOOK_NAMES.split()]
    if name == "readyz":
        return ["ping", "log", "informer-sync", *hooks, "shutdown"]
    return ["ping", "log", "loopback-serving-certificate", "etcd", *hooks]


def health(name: str, verbose: bool, stopping: bool) -> tuple[int, str]:
    """Code and text of healthz, livez and readyz."""
    checks = _checks(name)
    failed = stopping and name == "readyz"
    if not verbose and not failed:
        return 200, "ok"
    lines = [f"[-]{c} failed: reason withheld" if failed and c == "shutdown" else f"[+]{c} ok" for c in checks]
    end = f"{name} check failed" if failed else f"{name} check passed"
    return (500 if failed else 200), "\n".join([*lines, end, ""])


@functools.cache
def api_versions(server: str) -> bytes:
    """/api"""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server}]
    return encode({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses})


def _group(group: str) -> JSON:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in kinds.GROUPS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


@functools.cache
def groups() -> bytes:
    """/apis"""
    listed = [_group(group) for group in kinds.GROUPS if group]
    return encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


@functools.cache
def group(name: str) -> bytes | None:
    """/apis/GROUP"""
    if name not in kinds.GROUPS or not name:
        return None
    return encode({"kind": "APIGroup", "apiVersion": "v1", **_group(name)})


@functools.cache
def resources(group: str, version: str) -> bytes | None:
    """/api/v1 and /apis/GROUP/VERSION"""
    served = kinds.GROUPS.get(group, {}).get(version)
    if served is None:
        return None
    listed: list[JSON] = []
    for resource in sorted(served.values(), key=lambda r: r.plural):
        listed.append(_resource(resource))
        listed.extend(_subresource(resource, sub) for sub in sorted(resource.subresources))
    body: JSON = {"kind": "APIResourceList"}
    if group:
        body["apiVersion"] = "v1"
    body.update(groupVersion=f"{group}/{version}" if group else version, resources=listed)
    return encode(body)


def _resource(resource: Resource) -> JSON:
    entry: JSON = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.stored:
        entry["storageVersionHash"] = resource.storage_version_hash
    return entry


def _subresource(resource: Resource, name: str) -> JSON:
    sub = resource.subresources[name]
    entry: JSON = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    if sub.group:
        entry.update(group=sub.group, version=sub.version)
    entry.update(kind=sub.kind, verbs=list(sub.verbs))
    return entry


@functools.cache
def aggregated(core: bool) -> tuple[bytes, str]:
    """All groups in one document, and its ETag: what kubectl asks /api and /apis for."""
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [_version(version, served) for version, served in versions.items()],
        }
        for group, versions in kinds.GROUPS.items()
        if (group == "") is core
    ]
    body = encode(
        {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    )
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def _version(version: str, served: dict[str, Resource]) -> JSON:
    listed = []
    for resource in sorted(served.values(), key=lambda r: r.plural):
        entry: JSON = {
            "resource": resource.plural,
            "responseKind": {"group": "", "version": "", "kind": resource.kind},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": resource.singular,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        if resource.subresources:
            entry["subresources"] = [
                {
                    "subresource": name,
                    "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                    "verbs": list(sub.verbs),
                }
                for name, sub in sorted(resource.subresources.items())
            ]
        listed.append(entry)
    return {"version": version, "resources": listed, "freshness": "Current"}
