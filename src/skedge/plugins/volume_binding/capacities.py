"""Where a volume of some size can be made: allowed topologies and published storage capacities.

Upstream: `plugins/volumebinding/binder.go` (checkVolumeProvisions, hasEnoughCapacity).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from skedge.api.labels import IN, Requirement, Selector, SelectorError, compile_selector
from skedge.api.quantity import QuantityError, value
from skedge.api.storage import CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from skedge.framework.handle import Handle
from skedge.framework.status import PluginError
from skedge.plugins.helpers.node_match import selector_holds
from skedge.plugins.helpers.volumes import NO_PROVISIONER, class_of, requested
from skedge.snapshot.lookup import ByValue

FEASIBLE: Final = 0
NOT_POSSIBLE: Final = 1
NO_SPACE: Final = 2

UNKNOWN: Final = -1
"""Instead of a capacity: the claim's driver does not publish capacities."""


class _Segment(NamedTuple):
    """A published capacity: on which nodes it can be reached, how large a volume may be, how much there is."""

    selector: Selector
    limit: int
    capacity: int


def volume_limit(published: CSIStorageCapacity) -> int | None:
    """The largest volume, in bytes; None when nothing is said."""
    text = published.maximum_volume_size if published.maximum_volume_size is not None else published.capacity
    return None if text is None else value(text)


class Capacities:
    """Published capacities by class and key; what can't be reached from any node is left out."""

    def __init__(self, handle: Handle) -> None:
        self._drivers = handle.listers.csi_drivers
        self._segments: dict[str, dict[str, _Segment]] = {}
        for published in handle.listers.csi_storage_capacities:
            self._changed(None, published)
        handle.listers.csi_storage_capacities.observers.append(self._changed)

    def _changed(self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> None:
        if old is not None:
            self._segments.get(old.storage_class_name, {}).pop(_key(old), None)
        if new is None or new.node_topology is None:
            return
        try:
            limit = volume_limit(new)
            segment = _Segment(compile_selector(new.node_topology), limit or 0, value(new.capacity or "0"))
        except (SelectorError, QuantityError):
            return
        if limit is not None:
            self._segments.setdefault(new.storage_class_name, {})[_key(new)] = segment

    def enough(self, storage_class: StorageClass, size: int | None, view: Any) -> Any:
        """Whether there is room on each row for a volume of so many bytes (None: it does not say); 0 or 1."""
        if size is None or not self._tracked(storage_class):
            return 1
        return _on_any(view, (segment.selector for segment in self._sufficient(storage_class, size)))

    def reached(self, storage_class: StorageClass, size: int | None, view: Any) -> Any:
        """The capacity of the segment that lets each row have the volume; UNKNOWN where none is looked at."""
        known = view.full(UNKNOWN)
        if size is not None and self._tracked(storage_class):
            by_label: dict[str, dict[str, int]] = {}
            for segment in self._sufficient(storage_class, size):
                label = _single_label(segment.selector)
                if label is not None:
                    for text in label.values:
                        by_label.setdefault(label.key, {}).setdefault(text, segment.capacity)
                else:
                    here = (selector_holds(view, segment.selector) != 0) & (known == UNKNOWN)
                    known = np.where(here, segment.capacity, known)
            for key, capacities in by_label.items():
                known = np.where(known == UNKNOWN, view.by_label(key, ByValue(capacities, UNKNOWN)), known)
        return known

    def _tracked(self, storage_class: StorageClass) -> bool:
        driver = self._drivers.get(storage_class.provisioner)
        return driver is not None and bool(driver.spec.storage_capacity)

    def _sufficient(self, storage_class: StorageClass, size: int) -> Iterator[_Segment]:
        segments = self._segments.get(storage_class.metadata.name, {})
        return (segment for segment in segments.values() if segment.limit >= size)


class Provisioning(NamedTuple):
    """A claim for which a volume would be made."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    size: int | None

    def codes(self, capacities: Capacities, view: Any) -> Any:
        """FEASIBLE, NOT_POSSIBLE or NO_SPACE, by row (or one for all)."""
        if self.storage_class.provisioner in ("", NO_PROVISIONER):
            return NOT_POSSIBLE
        space = capacities.enough(self.storage_class, self.size, view)
        allowed = _allowed(self.storage_class, view)
        return np.where(allowed == 0, NOT_POSSIBLE, np.where(space == 0, NO_SPACE, FEASIBLE))


def provisioning(claim: PersistentVolumeClaim, classes: Any) -> Provisioning:
    """Raises PluginError when the claim's class is not known."""
    name = class_of(claim)
    if not name:
        raise PluginError(f'no class for claim "{claim.metadata.namespace}/{claim.metadata.name}"')
    storage_class: StorageClass | None = classes.get(name)
    if storage_class is None:
        raise PluginError(f'failed to find storage class "{name}"')
    amount = requested(claim)
    return Provisioning(claim, storage_class, None if amount is None else amount.value())


def _allowed(storage_class: StorageClass, view: Any) -> Any:
    """Whether the class lets volumes be made for each row's node; 0 or 1."""
    terms = storage_class.allowed_topologies or ()
    if not terms:
        return 1
    selectors = (
        Selector(Requirement(each.key, IN, each.values or ()) for each in term.match_label_expressions)
        for term in terms
        if term.match_label_expressions
    )
    return _on_any(view, selectors)


def _on_any(view: Any, selectors: Iterable[Selector]) -> Any:
    """Whether one of the selectors matches each row's labels. Those of a single label are looked up together."""
    holds = view.full(0)
    by_label: dict[str, set[str]] = {}
    for selector in selectors:
        label = _single_label(selector)
        if label is not None:
            by_label.setdefault(label.key, set()).update(label.values)
        else:
            holds = holds | selector_holds(view, selector)
    for key, values in by_label.items():
        holds = holds | view.by_label(key, ByValue(dict.fromkeys(values, 1), 0))
    return holds


def _single_label(selector: Selector) -> Requirement | None:
    if len(selector.requirements) == 1 and selector.requirements[0].operator == IN:
        return selector.requirements[0]
    return None


def _key(published: CSIStorageCapacity) -> str:
    return f"{published.metadata.namespace}/{published.metadata.name}"
