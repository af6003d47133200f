"""What a plugin is given when it is made: stores, columns, clock, gates, ports. Upstream: `framework.Handle`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from skedge.clock import Clock
from skedge.framework.plugin import Nominator
from skedge.framework.ports import Ports, Preemptor
from skedge.framework.workloads import PodGroupState, PodGroupStates, WaitingPods
from skedge.snapshot.counters import Counters
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.stores.store import Store, by_namespace
from skedge.telemetry.hooks import SchedulerHooks

T = TypeVar("T")


class Listers:
    """One store a kind that plugins read besides nodes and pods; filled by the event handlers."""

    def __init__(self) -> None:
        self.namespaces: Store[Any] = Store()
        self.services: Store[Any] = Store({"namespace": by_namespace})
        self.replication_controllers: Store[Any] = Store({"namespace": by_namespace})
        self.replica_sets: Store[Any] = Store({"namespace": by_namespace})
        self.stateful_sets: Store[Any] = Store({"namespace": by_namespace})
        self.pod_disruption_budgets: Store[Any] = Store({"namespace": by_namespace})
        self.persistent_volumes: Store[Any] = Store()
        self.persistent_volume_claims: Store[Any] = Store({"namespace": by_namespace})
        self.storage_classes: Store[Any] = Store()
        self.csi_nodes: Store[Any] = Store()
        self.csi_drivers: Store[Any] = Store()
        self.csi_storage_capacities: Store[Any] = Store({"namespace": by_namespace})
        self.volume_attachments: Store[Any] = Store()
        self.resource_claims: Store[Any] = Store({"namespace": by_namespace})
        self.resource_slices: Store[Any] = Store()
        self.device_classes: Store[Any] = Store()
        self.device_taint_rules: Store[Any] = Store()
        self.pod_groups: Store[Any] = Store({"namespace": by_namespace})


class NoGroups:
    """For tools without a queue: no pod group is known."""

    def of(self, pod: PodInfo | PlacedPod) -> PodGroupState | None:
        return None

    def get(self, namespace: str, name: str) -> PodGroupState | None:
        return None


class NoneWaiting:
    """For tools without Permit: no pod is held back."""

    def allow(self, uid: str, plugin: str) -> None:
        pass


class Handle:
    """Shared by the plugins of all profiles; `profile` is set on the copy each profile's plugins get."""

    def __init__(
        self,
        *,
        table: NodeTable,
        listers: Listers,
        gates: Any,
        clock: Clock,
        rng: random.Random,
        ports: Ports | None,
        nominator: Nominator | None = None,
        hooks: SchedulerHooks | None = None,
        pod_lister: Callable[[str], PodInfo | PlacedPod | None] | None = None,
    ) -> None:
        self.table = table
        self.listers = listers
        self.counters = Counters(table, listers.namespaces)
        self.gates = gates
        self.clock = clock
        self.rng = rng
        self.ports = ports
        self.nominator = nominator
        self.hooks = hooks or SchedulerHooks()
        self.preemptor: Preemptor | None = None
        """None where nothing is to happen (simulation)."""
        self.pod_lister = pod_lister
        self.pod_groups: PodGroupStates = NoGroups()
        self.waiting_pods: WaitingPods = NoneWaiting()
        self.activate: Callable[[Iterable[PodInfo]], None] = lambda pods: None
        """Has pods tried again at once, whatever they wait for."""
        self._shared: dict[Callable[[Handle], Any], Any] = {}

    def shared(self, make: Callable[[Handle], T]) -> T:
        """What plugins of all profiles have in common: made when one first asks for it, from this handle."""
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast(T, self._shared[make])
