"""The Leases by which nodes show that they live, and the times in their conditions: one task for all nodes.

A node renews every 10 s, like a kubelet; of more than a thousand nodes each renews less often, so that together they
send at most 100 requests a second, and says so in its lease (`leaseDurationSeconds` is four times the interval), which
node lifecycle respects. Every five minutes its conditions say that they still hold (`nodeStatusReportFrequency`).
Upstream: `component-helpers/apimachinery/lease`, `pkg/kubelet/kubelet_node_status.go`.
"""

from __future__ import annotations

import heapq
import logging
import random
from collections.abc import Callable
from typing import Any

from skedge.client import aio
from skedge.client.errors import ApiError, ClientError, NotFound, one_line
from skedge.client.rest import STRATEGIC_MERGE_PATCH, RestClient
from skedge.client.timefmt import micro_time, rfc3339
from skedge.controlplane.controllers.kinds import LEASE, NODE, NODE_LEASES
from skedge.controlplane.controllers.objects import Node
from skedge.controlplane.controllers.owning import together

log = logging.getLogger(__name__)

JSON = dict[str, Any]

INTERVAL = 10.0
REPORT = 300.0
RATE = 100.0
"""Renewals a second, of all nodes together."""
_TICK = 0.5
_AT_ONCE = 16


class Heartbeats:
    """`add` and `remove` nodes; `run` it as a task. `get` finds a node by name."""

    def __init__(self, client: RestClient, rng: random.Random, get: Callable[[str], Node | None]) -> None:
        self._client, self._clock, self._rng, self._get = client, client.clock, rng, get
        self._uids: dict[str, str] = {}
        self._report_at: dict[str, float] = {}
        self._due: list[tuple[float, str, str]] = []  # when, name, UID

    @property
    def interval(self) -> float:
        """Seconds between two renewals of a node."""
        return max(INTERVAL, len(self._uids) / RATE)

    def add(self, name: str, uid: str) -> None:
        """Let a node's heart beat, from now on."""
        if self._uids.get(name) != uid:
            self._uids[name] = uid
            now = self._clock.monotonic()
            heapq.heappush(self._due, (now, name, uid))
            self._report_at[name] = now + REPORT * self._rng.uniform(0.5, 1.0)

    def remove(self, name: str) -> None:
        """The node stops, or is gone."""
        self._uids.pop(name, None)
        self._report_at.pop(name, None)

    async def run(self) -> None:
        """Renew until cancelled; what fails is tried again at the next turn."""
        while True:
            due = self._take_due()
            for start in range(0, len(due), _AT_ONCE):
                await together(self._renew(name, uid) for name, uid in due[start : start + _AT_ONCE])
            await aio.sleep(self._clock, _TICK)

    def _take_due(self) -> list[tuple[str, str]]:
        now, taken = self._clock.monotonic(), []
        while self._due and self._due[0][0] <= now:
            _, name, uid = heapq.heappop(self._due)
            if self._uids.get(name) != uid:
                continue
            taken.append((name, uid))
            # Chance spreads nodes that came together.
            heapq.heappush(self._due, (now + self.interval * self._rng.uniform(0.8, 1.0), name, uid))
        return taken

    async def _renew(self, name: str, uid: str) -> None:
        spec = {"leaseDurationSeconds": round(self.interval * 4), "renewTime": micro_time(self._clock.now())}
        try:
            try:
                await self._client.request(
                    "PATCH",
                    LEASE.path(NODE_LEASES, name),
                    body={"spec": spec},
                    content_type="application/merge-patch+json",
                )
            except NotFound:
                await self._client.request("POST", LEASE.path(NODE_LEASES), body=_lease(name, uid, spec))
            await self._report(name, uid)
        except ApiError as error:
            log.warning("lease of node %s: %s", name, one_line(error))
        except ClientError as error:
            log.debug("lease of node %s: %s", name, one_line(error))

    async def _report(self, name: str, uid: str) -> None:
        """Renew the times in a node's conditions when they are old; those that somebody else gave up are left."""
        now, node = self._clock.monotonic(), self._get(name)
        if now < self._report_at.get(name, now + 1) or node is None or node.metadata.uid != uid:
            return
        self._report_at[name] = now + REPORT
        time = rfc3339(self._clock.now())
        conditions = [
            {"type": each.type, "lastHeartbeatTime": time}
            for each in node.status.conditions or ()
            if each.last_heartbeat_time is not None and each.status != "Unknown"
        ]
        if conditions:
            body = {"metadata": {"uid": uid}, "status": {"conditions": conditions}}
            path = NODE.path(name=name, subresource="status")
            await self._client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)


def _lease(name: str, uid: str, spec: JSON) -> JSON:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.name,
        "metadata": {"name": name, "namespace": NODE_LEASES, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, **spec},
    }
