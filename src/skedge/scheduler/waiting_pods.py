"""Pods that Permit plugins hold back. Upstream: `framework/runtime/waiting_pods_map.go`.

Each waiting plugin has its own deadline. The first signal wins: allowed by all, rejected, or preempted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from skedge.framework.status import SUCCESS, Code, Status
from skedge.snapshot.pods import PodInfo


def go_duration(seconds: float) -> str:
    """A duration as Go prints it: `5m0s`, `1h0m0s`, `1.5s`, `300ms`."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms" if seconds else "0s"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{int(hours)}h{int(minutes)}m{rest:g}s"
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"


class WaitingPod:
    """One pod on hold, for `plugins`: name -> seconds it may wait at most."""

    def __init__(self, pod: PodInfo, plugins: Mapping[str, float]) -> None:
        self.pod = pod
        loop = asyncio.get_running_loop()
        self._signal: asyncio.Future[Status] = loop.create_future()
        self._timers = {
            name: loop.call_later(seconds, self._timed_out, name, seconds) for name, seconds in plugins.items()
        }

    @property
    def pending_plugins(self) -> list[str]:
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        """One plugin lets the pod go; the last one sends it on its way."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._send(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """False when something else was said before."""
        return self._send(Status(Code.UNSCHEDULABLE, message, plugin=plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Ends the wait by an error: the pod gave way to another. False when something else was said before."""
        return self._send(Status(Code.ERROR, message, plugin=plugin))

    async def wait_for_signal(self) -> Status:
        return await self._signal

    def _timed_out(self, plugin: str, seconds: float) -> None:
        self.reject(plugin, f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}")

    def _send(self, status: Status) -> bool:
        for timer in self._timers.values():
            timer.cancel()
        if self._signal.done():
            return False
        self._signal.set_result(status)
        return True


class WaitingPods:
    """All pods on hold, by UID; shared by all profiles."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def add(self, pod: WaitingPod) -> None:
        self._pods[pod.pod.uid] = pod

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def allow(self, uid: str, plugin: str) -> None:
        """A plugin lets a pod go, if it holds it."""
        pod = self._pods.get(uid)
        if pod is not None:
            pod.allow(plugin)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))
