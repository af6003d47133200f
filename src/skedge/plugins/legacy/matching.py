"""Services and controllers that select a pod. Upstream (v1.20): `plugins/helper/spread.go`, the listers' expansions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skedge.api.labels import EVERYTHING, Requirement, Selector, SelectorError, compile_selector, from_set
from skedge.snapshot.pods import PodInfo


def services_of(services: Any, pod: PodInfo) -> Iterator[Any]:
    """The services of the pod's namespace whose selector the pod matches; one without a selector selects nothing."""
    for service in services.by_index("namespace", pod.namespace):
        if service.spec.selector is not None and _holds(service.spec.selector, pod.labels):
            yield service


def common_selector(listers: Any, pod: PodInfo) -> Selector:
    """What all services, replication controllers, replica sets and stateful sets select that select the pod.

    *Everything* where there is none.
    """
    wanted: dict[str, str] = {}
    for service in services_of(listers.services, pod):
        wanted.update(service.spec.selector)
    for controller in listers.replication_controllers.by_index("namespace", pod.namespace):
        if controller.spec.selector and _holds(controller.spec.selector, pod.labels):
            wanted.update(controller.spec.selector)
    more: list[Requirement] = []
    for store in (listers.replica_sets, listers.stateful_sets):
        more += _requirements(store.by_index("namespace", pod.namespace), pod)
    return from_set(wanted).plus(more) if wanted or more else EVERYTHING


def _requirements(owners: Iterable[Any], pod: PodInfo) -> Iterator[Requirement]:
    for owner in owners:
        try:
            selector = compile_selector(owner.spec.selector)
        except SelectorError:
            continue
        if not selector.empty and selector.matches(pod.labels):
            yield from selector.requirements


def _holds(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())
