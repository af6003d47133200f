"""Host ports in use, by port and row. Upstream: `framework/types.go` (HostPortInfo, NodeInfo.UsedPorts)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skedge.api.ports import ANY_IP, HostPort


class PortIndex:
    """(protocol, port) -> row -> address -> number of pods that hold it there."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        for ip, protocol, port in ports:
            addresses = self._used.setdefault((protocol, port), {}).setdefault(row, {})
            addresses[ip] = addresses.get(ip, 0) + 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        for ip, protocol, port in ports:
            rows = self._used[protocol, port]
            addresses = rows[row]
            addresses[ip] -= 1
            if not addresses[ip]:
                del addresses[ip]
                if not addresses:
                    del rows[row]
                    if not rows:
                        del self._used[protocol, port]

    def taken(self, wanted: Sequence[HostPort]) -> list[int]:
        """Rows where one of the wanted ports collides with a used one."""
        return [
            row
            for ip, protocol, port in wanted
            for row, addresses in self._used.get((protocol, port), {}).items()
            if ip == ANY_IP or ip in addresses or ANY_IP in addresses
        ]

    def taken_on(self, wanted: Sequence[HostPort], row: int) -> bool:
        for ip, protocol, port in wanted:
            addresses = self._used.get((protocol, port), {}).get(row)
            if addresses and (ip == ANY_IP or ip in addresses or ANY_IP in addresses):
                return True
        return False

    def __len__(self) -> int:
        return len(self._used)
