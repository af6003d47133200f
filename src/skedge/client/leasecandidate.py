"""Coordinated leader election, the candidate's half: "I could lead"; a controller of the control plane chooses.

A LeaseCandidate is renewed every 5 minutes, and at once when the controller pings it (`pingTime` after `renewTime`).
Used with `LeaderElector(coordinated=True)`. Upstream: `client-go/tools/leaderelection/leasecandidate.go`.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

from skedge.client.errors import NotFound
from skedge.client.informer import Informer
from skedge.client.rest import RestClient
from skedge.client.timefmt import micro_time
from skedge.client.watch import Resource
from skedge.client.workqueue import WorkQueue

RENEW_SECONDS = 300.0


class LeaseCandidate:
    """Publishes one candidate and keeps it alive; `run` it as a task. Fields that we don't know survive."""

    def __init__(
        self,
        client: RestClient,
        *,
        namespace: str,
        name: str,
        lease_name: str,
        binary_version: str,
        emulation_version: str,
        strategy: str = "OldestEmulationVersion",
    ) -> None:
        """Versions have three parts (`1.36.2`). `name` is the identity that the lease will name as holder."""
        self._client = client
        self._name, self._namespace = name, namespace
        self._spec = {
            "leaseName": lease_name,
            "binaryVersion": binary_version,
            "emulationVersion": emulation_version,
            "strategy": strategy,
        }
        self._collection = f"/apis/coordination.k8s.io/v1beta1/namespaces/{quote(namespace, safe='')}/leasecandidates"
        self._answered = ""
        self._queue: WorkQueue[str] = WorkQueue(clock=client.clock)
        selector = f"metadata.name={name}"
        resource: Resource[dict[str, Any]] = Resource.of(self._collection, dict, field_selector=selector)
        self._informer = Informer(client, resource)
        self._informer.add_handler(on_update=self._changed)

    async def run(self) -> None:
        """Publish and renew until cancelled; failures are tried again with growing delays."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run(), name=f"candidate {self._name}")
            await self._informer.wait_for_sync()
            self._queue.add(self._name)
            await self._queue.run(self._ensure)

    async def wait_for_sync(self) -> None:
        """Wait until the candidates were listed (`/readyz` calls this `informer-sync`)."""
        await self._informer.wait_for_sync()

    def _changed(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        spec = new.get("spec") or {}
        ping = spec.get("pingTime") or ""
        # Both times have the same form and compare as text. A ping from a clock ahead of ours is answered once.
        if ping > (spec.get("renewTime") or "") and ping != self._answered:
            self._queue.add(self._name)

    async def _ensure(self, name: str) -> None:
        now = micro_time(self._client.clock.now())
        path = f"{self._collection}/{quote(name, safe='')}"
        try:
            found = await self._client.get(path)
        except NotFound:
            candidate = {
                "kind": "LeaseCandidate",
                "apiVersion": "coordination.k8s.io/v1beta1",
                "metadata": {"name": name, "namespace": self._namespace},
                "spec": self._spec | {"renewTime": now},
            }
            await self._client.create(self._collection, candidate)
        else:
            spec = found.get("spec") or {}
            self._answered = spec.get("pingTime") or ""
            await self._client.update(path, found | {"spec": spec | {"renewTime": now}})
        self._queue.add_after(name, RENEW_SECONDS)
