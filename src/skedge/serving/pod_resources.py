"""`/metrics/resources`: what each pod asks for and may use. Upstream: `pkg/scheduler/metrics/resources`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from skedge.telemetry.families import STABLE, FamilySample, MetricSpec, Sample

_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
REQUEST: Final = MetricSpec(
    "kube_pod_resource_request", "gauge", "Resources a pod asks for, in total over its containers.", _LABELS, STABLE
)
LIMIT: Final = MetricSpec(
    "kube_pod_resource_limit", "gauge", "Resources a pod is limited to, in total over its containers.", _LABELS, STABLE
)


class PodUsage(NamedTuple):
    """A pod's effective requests and limits by resource: cpu in thousandths of a core, all others in base units."""

    namespace: str
    name: str
    node: str
    scheduler: str
    priority: int | None
    requests: Mapping[str, int]
    limits: Mapping[str, int]


PodSource = Callable[[], Iterable[PodUsage]]
"""The pods to show, without those that have ended and had a node."""


def unit_of(resource: str) -> str:
    """What a resource is counted in: cores, bytes, integer, or "" for everything else."""
    if resource == "cpu":
        return "cores"
    if resource in ("memory", "storage", "ephemeral-storage") or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def pod_samples(pods: Iterable[PodUsage]) -> list[FamilySample]:
    """Both families; amounts of zero are left out, and so is a family without any."""
    requests: list[Sample] = []
    limits: list[Sample] = []
    for pod in pods:
        for samples, amounts in ((requests, pod.requests), (limits, pod.limits)):
            samples.extend(_sample(pod, resource, amount) for resource, amount in amounts.items() if amount)
    return [FamilySample(spec, found) for spec, found in ((LIMIT, limits), (REQUEST, requests)) if found]


def _sample(pod: PodUsage, resource: str, amount: int) -> Sample:
    labels = (
        ("namespace", pod.namespace),
        ("node", pod.node),
        ("pod", pod.name),
        ("priority", "" if pod.priority is None else str(pod.priority)),
        ("resource", resource),
        ("scheduler", pod.scheduler),
        ("unit", unit_of(resource)),
    )
    return Sample(labels, amount / 1000 if resource == "cpu" else amount)
