"""DefaultBinder: posts the Binding. Upstream: `plugins/defaultbinder`."""

from __future__ import annotations

from typing import Any

from skedge import names
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Status
from skedge.snapshot.pods import PodInfo


class DefaultBinder:
    name = names.DEFAULT_BINDER

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        try:
            await self._handle.ports.binder.bind(pod, node_name)
        except Exception as error:  # whatever the port says: the pod goes back to the queue
            return Status.from_error(error)
        return SUCCESS
