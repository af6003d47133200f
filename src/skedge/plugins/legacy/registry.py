"""The legacy plugins by name. Upstream (v1.20): `plugins/registry.go`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skedge.plugins.legacy.node_label import NodeLabel
from skedge.plugins.legacy.node_prefer_avoid_pods import NodePreferAvoidPods
from skedge.plugins.legacy.resources import (
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from skedge.plugins.legacy.selector_spread import SelectorSpread
from skedge.plugins.legacy.service_affinity import ServiceAffinity

LEGACY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    plugin.name: plugin
    for plugin in (
        NodeLabel,
        ServiceAffinity,
        SelectorSpread,
        NodePreferAvoidPods,
        NodeResourcesLeastAllocated,
        NodeResourcesMostAllocated,
        RequestedToCapacityRatio,
    )
}
"""The class of a plugin is its factory."""
