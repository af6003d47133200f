"""Defaults of a pod template or a pod's spec (`pkg/apis/core/v1/defaults.go`)."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def default_pod_spec(spec: JSON) -> None:
    """Fill in a pod spec in place."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    host_network = spec.get("hostNetwork", False)
    for container in spec.get("containers") or ():
        _container(container, host_network)
    for container in spec.get("initContainers") or ():
        _container(container, host_network)
    for container in spec.get("ephemeralContainers") or ():
        _container(container, False)
    for volume in spec.get("volumes") or ():
        _volume(volume)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("whenUnsatisfiable", "")
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            term.setdefault("topologyKey", "")
    _pod_level_requests(spec)


def _container(container: JSON, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = "Always" if _latest(container.get("image", "")) else "IfNotPresent"
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")
    resources = container.setdefault("resources", {})
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, quantity in limits.items():
            requests.setdefault(name, quantity)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            _probe(container[probe])
    for env in container.get("env") or ():
        source = (env.get("valueFrom") or {}).get("fieldRef")
        if source is not None:
            source.setdefault("apiVersion", "v1")


def _latest(image: str) -> bool:
    last = image.rpartition("/")[2]
    if "@" in last:
        return False
    _, colon, tag = last.partition(":")
    return not colon or tag == "latest"


def _probe(probe: JSON) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


_SOURCES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def _volume(volume: JSON) -> None:
    if not any(key for key in volume if key != "name"):
        volume["emptyDir"] = {}
    for source in _SOURCES_WITH_MODE:
        if source in volume:
            volume[source].setdefault("defaultMode", 420)
    host_path = volume.get("hostPath")
    if host_path is not None:
        host_path.setdefault("type", "")
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    for part in (volume.get("projected") or {}).get("sources") or ():
        if "serviceAccountToken" in part:
            part["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _pod_level_requests(spec: JSON) -> None:
    resources = spec.get("resources")
    if resources and resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name in ("cpu", "memory"):
            if name in resources["limits"]:
                requests.setdefault(name, resources["limits"][name])


def quality_of_service(spec: JSON) -> str:
    """Guaranteed, Burstable or BestEffort (`pkg/apis/core/v1/helper/qos`)."""
    level = spec.get("resources")
    if level and (level.get("requests") or level.get("limits")):
        parts = [level]
    else:
        containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
        parts = [container.get("resources") or {} for container in containers]
    guaranteed, anything = True, False
    for resources in parts:
        requests = {k: v for k, v in (resources.get("requests") or {}).items() if k in ("cpu", "memory") and v != "0"}
        limits = {k: v for k, v in (resources.get("limits") or {}).items() if k in ("cpu", "memory") and v != "0"}
        anything = anything or bool(requests or limits)
        if set(limits) != {"cpu", "memory"} or any(requests.get(k, limits[k]) != limits[k] for k in limits):
            guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
