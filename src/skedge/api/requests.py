"""What a pod asks of a node: effective requests, and the classes of resource names.

Amounts are in scheduler units: cpu in thousandths, every other resource whole. As in the reference, quantities are
added and compared exactly and converted (rounding up) once at the end; where all amounts are whole in scheduler units,
which is nearly always, plain integers give the same.

Upstream: `staging/src/k8s.io/component-helpers/resource/helpers.go`, `pkg/scheduler/framework/types.go`,
`pkg/apis/core/v1/helper/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, Self, TypeVar

from skedge.api.core import Container, ContainerStatus, Pod, QuantityText, ResourceList, ResourceRequirements
from skedge.api.quantity import Quantity, milli_value, of_units, plain_milli_value, plain_value, quantity, value
from skedge.api.validation import qualified_name_problems

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
NONZERO_DEFAULTS: Final[Mapping[str, int]] = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY}
"""What scoring counts for a container that does not name the resource."""

# --- names ------------------------------------------------------------------------------------------------------------


def is_native(name: str) -> bool:
    """A resource of Kubernetes itself: without a slash or with `kubernetes.io/`."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """A resource with a foreign prefix, like `example.com/gpu`."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name_problems(f"requests.{name}")


def is_hugepages(name: str) -> bool:
    """`hugepages-*`."""
    return name.startswith("hugepages-")


def is_attachable(name: str) -> bool:
    """`attachable-volumes-*`."""
    return name.startswith("attachable-volumes-")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """A resource counted by name next to cpu, memory, ephemeral-storage and pods. Others are dropped altogether."""
    return is_hugepages(name) or is_attachable(name) or "kubernetes.io/" in name or is_extended(name)


def is_tracked(name: str) -> bool:
    """A resource that the scheduler counts at all."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS) or is_scalar(name)


def is_dra_extended(name: str) -> bool:
    """A resource that dynamic allocation may provide."""
    return is_extended(name) or name.startswith(DEVICE_CLASS_PREFIX)


def is_pod_level(name: str) -> bool:
    """A resource that may be requested for the pod as a whole."""
    return name in (CPU, MEMORY) or is_hugepages(name)


def units(name: str, amount: QuantityText) -> int:
    """An amount of a resource in scheduler units. Raises QuantityError."""
    return milli_value(amount) if name == CPU else value(amount)


def in_units(amounts: ResourceList | None) -> dict[str, int]:
    """All amounts of a resource list in scheduler units. Raises QuantityError."""
    return {name: units(name, amount) for name, amount in (amounts or {}).items()}


# --- requests ---------------------------------------------------------------------------------------------------------


def pod_requests(
    pod: Pod,
    *,
    pod_level: bool = True,
    use_status: bool = False,
    claim_status: bool = False,
    defaults: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The effective requests of a pod, by resource name, in scheduler units. Raises QuantityError.

    `pod_level`: requests of the pod as a whole replace what its containers add up to.
    `use_status`: what the status reports (resizing in place) counts where it is higher than the spec.
    `claim_status`: add what the status says of resource claims for node allocatable resources.
    `defaults`: amounts, in scheduler units, for containers that do not name the resource.
    """
    spec = pod.spec
    if not (spec.init_containers or spec.overhead or spec.resources or use_status or claim_status):
        plain = _plain(spec.containers or (), defaults)
        if plain is not None:
            return plain
    options = _Options(pod_level, use_status, claim_status, defaults or {})
    try:
        return _effective(pod, _whole, _whole_default, options)
    except _NotWhole:
        exact = _effective(pod, _exact, _exact_default, options)
        return {name: amount.milli_value() if name == CPU else amount.value() for name, amount in exact.items()}


def pod_limits(pod: Pod) -> dict[str, int]:
    """The effective limits of a pod, by resource name, in scheduler units. Raises QuantityError.

    Overhead counts only where there is a limit. Upstream: `PodLimits`.
    """
    spec = pod.spec
    if not (spec.init_containers or spec.resources) and not any(
        each.resources is not None and each.resources.limits for each in spec.containers or ()
    ):
        return {}

    def of(container: Container) -> dict[str, int]:
        return in_units(container.resources.limits if container.resources else None)

    total: dict[str, int] = {}
    for container in spec.containers or ():
        _add(total, of(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers or ():
        running = of(container)
        if container.restart_policy == "Always":
            _add(total, running)
            _add(sidecars, running)
            running = sidecars
        else:
            _add(running, sidecars)
        _raise(peak, running)
    _raise(total, peak)
    whole = in_units(spec.resources.limits if spec.resources else None)
    total.update((name, amount) for name, amount in whole.items() if is_pod_level(name))
    for name, amount in in_units(spec.overhead).items():
        if total.get(name):
            total[name] += amount
    return total


def nonzero_requests(
    pod: Pod, *, pod_level: bool = True, use_status: bool = False, requests: Mapping[str, int] | None = None
) -> tuple[int, int]:
    """(milli-cpu, memory) of a pod, where a container that names none counts 100 m and 200 MiB. Raises QuantityError.

    With requests of the pod as a whole the defaults are for a resource that the pod's requests lack entirely.
    `requests`: the result of `pod_requests` with the same options, if it is there already.
    """
    defaults = NONZERO_DEFAULTS
    if requests is not None and not (use_status or pod.spec.resources) and _names_cpu_and_memory(pod):
        return requests.get(CPU, 0), requests.get(MEMORY, 0)
    if pod_level and has_pod_level_requests(pod):
        if requests is None:
            requests = pod_requests(pod, pod_level=pod_level, use_status=use_status)
        defaults = {name: amount for name, amount in NONZERO_DEFAULTS.items() if name not in requests}
    full = pod_requests(pod, pod_level=pod_level, use_status=use_status, defaults=defaults)
    return full.get(CPU, 0), full.get(MEMORY, 0)


def _names_cpu_and_memory(pod: Pod) -> bool:
    """Whether every container requests both, so that no default counts for one."""
    return all(
        CPU in (requests := _requests(container.resources)) and MEMORY in requests
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    )


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod as a whole requests a resource that it may."""
    return any(is_pod_level(name) for name in _requests(pod.spec.resources))


def resize_infeasible(pod: Pod) -> bool:
    """Whether the node refused to resize the pod: the reason of its first PodResizePending condition decides."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


class _Options(NamedTuple):
    pod_level: bool
    use_status: bool
    claim_status: bool
    defaults: Mapping[str, int]


class _Number(Protocol):
    def __add__(self, other: Self, /) -> Self: ...
    def __gt__(self, other: Self, /) -> bool: ...


N = TypeVar("N", bound=_Number)


def _effective(
    pod: Pod, read: Callable[[str, QuantityText], N], default: Callable[[str, int], N], options: _Options
) -> dict[str, N]:
    """The rule itself, over whatever numbers `read` makes of amounts and `default` of defaults."""
    spec, status = pod.spec, pod.status
    infeasible = options.use_status and resize_infeasible(pod)
    statuses: dict[str, ContainerStatus] = {}
    if options.use_status:
        for group in (status.container_statuses, status.init_container_statuses):
            statuses.update((each.name, each) for each in group or ())

    def read_all(amounts: ResourceList | None) -> dict[str, N]:
        return {name: read(name, amount) for name, amount in (amounts or {}).items()}

    def of_container(container: Container, *, resizable: bool) -> dict[str, N]:
        amounts = read_all(_requests(container.resources))
        reported = statuses.get(container.name) if resizable else None
        if reported is not None and reported.resources is not None:
            if infeasible:
                amounts = {}
            _raise(amounts, read_all(reported.resources.requests))
            _raise(amounts, read_all(reported.allocated_resources))
        for name, amount in options.defaults.items():
            if name not in amounts:
                amounts[name] = default(name, amount)
        return amounts

    total: dict[str, N] = {}
    for container in spec.containers or ():
        _add(total, of_container(container, resizable=True))
    sidecars: dict[str, N] = {}
    peak: dict[str, N] = {}
    for container in spec.init_containers or ():
        sidecar = container.restart_policy == "Always"
        running = of_container(container, resizable=sidecar)
        if sidecar:
            _add(total, running)
            _add(sidecars, running)
            running = sidecars
        else:
            _add(running, sidecars)
        _raise(peak, running)
    _raise(total, peak)

    if options.claim_status:
        for claim in status.node_allocatable_resource_claim_statuses or ():
            _add(total, read_all(claim.resources))
    if options.pod_level and has_pod_level_requests(pod):
        whole = read_all(_requests(spec.resources))
        if options.use_status and status.resources is not None:
            if infeasible:
                whole = {}
            _raise(whole, read_all(status.resources.requests))
            _raise(whole, read_all(status.allocated_resources))
        total.update((name, amount) for name, amount in whole.items() if is_pod_level(name))
    _add(total, read_all(spec.overhead))
    return total


def _requests(resources: ResourceRequirements | None) -> ResourceList:
    return (resources.requests if resources else None) or {}


def _add(total: dict[str, N], more: Mapping[str, N]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: dict[str, N], others: Mapping[str, N]) -> None:
    for name, amount in others.items():
        if name not in total or amount > total[name]:
            total[name] = amount


# Numbers for the rule: whole scheduler units, or exact quantities.


class _NotWhole(Exception):
    """An amount is not a whole number of scheduler units, or is so large that sums may overflow."""


_SUMMABLE: Final = 1 << 48


@lru_cache(maxsize=1 << 16)
def _whole_units(amount: QuantityText, exponent: int) -> int | None:
    """The amount if sums of thousands of such can be neither rounded nor overflow, else None."""
    number = plain_value(amount) if exponent == 0 else plain_milli_value(amount)
    if number is None or number >= _SUMMABLE:
        number = quantity(amount).exact(exponent)
    return number if number is not None and number >= 0 else None


def _whole(name: str, amount: QuantityText) -> int:
    number = _whole_units(amount, -3 if name == CPU else 0)
    if number is None:
        raise _NotWhole
    return number


def _whole_default(name: str, amount: int) -> int:
    return amount


def _exact(name: str, amount: QuantityText) -> Quantity:
    return quantity(amount)


def _exact_default(name: str, amount: int) -> Quantity:
    return of_units(amount, -3 if name == CPU else 0)


def _plain(containers: Sequence[Container], defaults: Mapping[str, int] | None) -> dict[str, int] | None:
    """The sum over regular containers of whole amounts, or None: the usual pod, without ceremony."""
    total: dict[str, int] = {}
    for container in containers:
        requests = _requests(container.resources)
        for name, amount in requests.items():
            number = _whole_units(amount, -3 if name == CPU else 0)
            if number is None:
                return None
            total[name] = total.get(name, 0) + number
        for name, number in defaults.items() if defaults else ():
            if name not in requests:
                total[name] = total.get(name, 0) + number
    return total
