"""What scorers compare: requested and allocatable. Upstream: `noderesources/resource_allocation.go`."""

from __future__ import annotations

from typing import Any

from skedge.api.requests import NONZERO_DEFAULTS, is_scalar, pod_requests
from skedge.snapshot.pods import CPU, MEMORY, PodInfo
from skedge.snapshot.views import View

_CONTAINER_REQUESTS = "noderesources/container-requests"


def container_requests(pod: PodInfo) -> dict[str, int]:
    """The incoming pod's request as Fit scores it: containers with 100m and 200Mi where they ask for nothing, plus
    overhead. Pod-level requests are passed over, as the reference's scorer does."""
    memo = pod.shape.memo
    found: dict[str, int] | None = memo.get(_CONTAINER_REQUESTS)
    if found is None:
        found = memo[_CONTAINER_REQUESTS] = pod_requests(pod.pod, pod_level=False, defaults=NONZERO_DEFAULTS)
    return found


def counts(resource: str, request: int) -> bool:
    """Whether a resource takes part: one that the pod does not ask for is left out when it is a scalar one."""
    return request != 0 or not is_scalar(resource)


def used(view: View, resource: str, nonzero: bool) -> Any:
    """What the node's pods take of a resource; with `nonzero`, cpu and memory as if no container asked for none."""
    if nonzero and resource == CPU:
        return view.nonzero_cpu
    if nonzero and resource == MEMORY:
        return view.nonzero_memory
    return view.requested(resource)
