"""TopologyPlacementGenerator: a group stays within one topology domain. Upstream: `plugins/topologyaware`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from skedge import names
from skedge.api.scheduling import PodGroup
from skedge.framework.status import PluginError
from skedge.framework.workloads import Placement

UNDETERMINED: Final = "cannot determine domain for already scheduled pods: "


class TopologyPlacementGenerator:
    """One placement a domain; where pods of the group are scheduled already, theirs alone."""

    name = names.TOPOLOGY_PLACEMENT_GENERATOR

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def placement_generate(self, group: PodGroup, parent: Placement) -> Sequence[Placement]:
        constraints = group.spec.scheduling_constraints
        topology = constraints.topology if constraints is not None else None
        if not topology:
            return [parent]
        key = topology[0].key
        column = self._handle.table.label_column(key)
        ids = column.ids[parent.rows]
        only = self._domain_of_scheduled(group, key)
        found = {}
        for ident in np.unique(ids[ids >= 0]).tolist():
            name = column.values.values[ident]
            if only is None or name == only:
                found[name] = Placement(name, parent.rows[ids == ident])
        return [found[name] for name in sorted(found)]

    def _domain_of_scheduled(self, group: PodGroup, key: str) -> str | None:
        meta = group.metadata
        state = self._handle.pod_groups.get(meta.namespace, meta.name)
        domains = set()
        for pod, node_name in state.places() if state is not None else ():
            node = self._handle.table.node(node_name)
            if node is None:
                text = f'getting node for pod {pod}: nodeinfo not found for node name "{node_name}"'
                raise PluginError(UNDETERMINED + text)
            domain = (node.metadata.labels or {}).get(key)
            if domain is None:
                raise PluginError(f"{UNDETERMINED}no topology domain found for pod {pod}")
            domains.add(domain)
        if len(domains) > 1:
            raise PluginError(f"{UNDETERMINED}more than 1 domain found for pod group: {', '.join(sorted(domains))}")
        return next(iter(domains), None)
