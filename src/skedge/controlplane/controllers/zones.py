"""How fast the nodes of a zone may lose their pods: slowly where much of the zone is down, not at all where all is.

    fewer than 55 % down   one node in 10 s          everything down everywhere   nobody: it is more likely us
    55 % down              one in 100 s, or none     all of a zone down           one node in 10 s
                           in a zone of up to 50

Upstream: `pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`handleDisruption`, `ComputeZoneState`).
"""

from __future__ import annotations

from collections.abc import Iterable

from skedge.clock import Clock
from skedge.controlplane.controllers.objects import Node

RATE, SECONDARY_RATE = 0.1, 0.01
"""Nodes a second, of each zone."""
_LARGE, _THRESHOLD = 50, 0.55
_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"


class Zones:
    """`assess` the nodes from time to time; ask `wait` before the pods of a node are told to go."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rates: dict[str, float] = {}
        self._next: dict[str, float] = {}
        self.all_down = False

    def assess(self, nodes: Iterable[Node]) -> bool:
        """Take in how the zones are; whether it has come or gone that everything is down."""
        counts: dict[str, tuple[int, int]] = {}
        for node in nodes:
            condition = node.condition("Ready")
            if condition is None:
                continue
            zone = zone_of(node)
            ready, down = counts.get(zone, (0, 0))
            is_ready = condition.status == "True"
            counts[zone] = (ready + is_ready, down + (not is_ready))
        before, self.all_down = self.all_down, bool(counts) and all(not ready for ready, _ in counts.values())
        self._rates = {zone: 0.0 if self.all_down else _rate(*each) for zone, each in counts.items()}
        return before != self.all_down

    def wait(self, node: Node) -> float | None:
        """Seconds until the pods of a node may be told to go; 0 grants it. None: not as things stand."""
        zone, now = zone_of(node), self._clock.monotonic()
        rate = self._rates.get(zone, RATE)
        if not rate:
            return None
        left = self._next.get(zone, now) - now
        if left > 0:
            return left
        self._next[zone] = now + 1 / rate
        return 0.0


def _rate(ready: int, down: int) -> float:
    if ready and down > 2 and down / (ready + down) >= _THRESHOLD:
        return SECONDARY_RATE if ready + down > _LARGE else 0.0
    return RATE


def zone_of(node: Node) -> str:
    """Region and zone of a node, as one text."""
    labels = node.metadata.labels or {}
    return f"{labels.get(_REGION, '')}:{labels.get(_ZONE, '')}"
