"""Pods (`pkg/registry/core/pod/strategy.go`)."""

from __future__ import annotations

from typing import Any

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import FieldError
from skedge.controlplane.strategies import podvalidation
from skedge.controlplane.strategies.base import Strategy
from skedge.controlplane.strategies.podspec import default_pod_spec, quality_of_service

JSON = dict[str, Any]

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class Pods(Strategy):
    """Status is the server's at first; deletion is graceful once the pod has a node."""

    generation = True
    own_status = True
    graceful = True
    returns_deleted = True

    def default(self, obj: JSON) -> None:
        spec = obj["spec"]
        default_pod_spec(spec)
        spec.setdefault("enableServiceLinks", True)

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        spec = obj["spec"]
        status: JSON = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [{**_GATED, "lastTransitionTime": cluster.timestamp()}]
        _merge_match_label_keys(spec, obj["metadata"].get("labels") or {})
        obj["status"] = status

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["status"] = old["status"]

    def validate(self, obj: JSON) -> list[FieldError]:
        return podvalidation.validate_pod(obj)

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        return podvalidation.validate_pod_update(new, old)

    def validate_status(self, new: JSON, old: JSON) -> list[FieldError]:
        return podvalidation.validate_pod_status(new, old)

    def grace(self, obj: JSON, asked: int | None) -> int:
        spec = obj["spec"]
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
        if not spec.get("nodeName") or obj["status"].get("phase") in ("Failed", "Succeeded"):
            return 0
        return 1 if period < 0 else int(period)


def _merge_match_label_keys(spec: JSON, labels: dict[str, str]) -> None:
    """Turn matchLabelKeys and mismatchLabelKeys into terms of the selector beside them."""
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, "matchLabelKeys", "In", labels)
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        weighted = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [w["podAffinityTerm"] for w in weighted if "podAffinityTerm" in w]
        for term in terms:
            _merge(term, "matchLabelKeys", "In", labels)
            _merge(term, "mismatchLabelKeys", "NotIn", labels)


def _merge(holder: JSON, keys: str, operator: str, labels: dict[str, str]) -> None:
    selector = holder.get("labelSelector")
    if selector is None:
        return
    for key in holder.get(keys) or ():
        if key in labels:
            term = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(term)
