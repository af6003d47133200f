"""Host ports: what a pod wants and when two collide. Upstream: `pkg/scheduler/framework/types.go` (`HostPortInfo`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from skedge.api.core import Pod

ANY_IP: Final = "0.0.0.0"
"""Collides with every address of the same protocol and port. `::` is an address like any other."""


class HostPort(NamedTuple):
    """One occupied port of a node; pods that share a key occupy it once."""

    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of regular containers and sidecars, in order and without repeats."""
    spec = pod.spec
    containers = [*(spec.containers or ())]
    containers += [each for each in spec.init_containers or () if each.restart_policy == "Always"]
    found = {
        HostPort(port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port): None
        for container in containers
        for port in container.ports or ()
        if port.host_port > 0
    }
    return tuple(found)


def collide(a: HostPort, b: HostPort) -> bool:
    """Whether the two can't be on the same node."""
    return a.port == b.port and a.protocol == b.protocol and (a.ip == b.ip or ANY_IP in (a.ip, b.ip))


def any_collide(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether any wanted port collides with a used one."""
    taken = tuple(used)
    return any(collide(a, b) for a in wanted for b in taken)
