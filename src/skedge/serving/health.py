"""`/healthz`, `/livez`, `/readyz` and their single checks. Upstream: `apiserver/pkg/server/healthz`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from skedge.clock import Clock
from skedge.serving import answers
from skedge.serving.answers import Answer, Mux, Request
from skedge.telemetry.logs import get_logger
from skedge.telemetry.metrics import Metrics

log = get_logger(__name__)

_ELECTION_TOLERANCE: Final = 20.0


@dataclass(frozen=True)
class Check:
    """A named check: its function answers "" while all is well, else the reason why not."""

    name: str
    reason: Callable[[], str]


PING: Final = Check("ping", lambda: "")


def shutdown_check(stopping: Callable[[], bool]) -> Check:
    """Fails once the process was asked to end."""
    return Check("shutdown", lambda: "process is shutting down" if stopping() else "")


def handler_sync_check(synced: Callable[[], bool]) -> Check:
    """Fails until the initial lists reached every event handler."""
    return Check("sched-handler-sync", lambda: "" if synced() else "handlers are not fully synchronized")


def informer_sync_check(unsynced: Callable[[], Sequence[str]]) -> Check:
    """Fails while informers (named) have not got their initial lists."""

    def reason() -> str:
        names = unsynced()
        return f"{len(names)} informers not started yet: [{' '.join(names)}]" if names else ""

    return Check("informer-sync", reason)


def leader_election_check(clock: Clock, lease: str, duration: float, renewed: Callable[[], float | None]) -> Check:
    """Fails when this process leads but has not renewed for the lease's duration and 20 s.

    `renewed`: `clock.monotonic()` of the last renewal while leading, None otherwise.
    """

    def reason() -> str:
        last = renewed()
        late = last is not None and clock.monotonic() - last > duration + _ELECTION_TOLERANCE
        return f"failed election to renew leadership on lease {lease}" if late else ""

    return Check("leaderElection", reason)


class HealthEndpoint:
    """One of the three endpoints: runs checks in order, counts each, words the answer."""

    def __init__(self, name: str, checks: Sequence[Check], metrics: Metrics) -> None:
        self.name = name
        self._checks = tuple(checks)
        self._state = metrics.gauge("kubernetes_healthcheck")
        self._count = metrics.counter("kubernetes_healthchecks_total")

    def install(self, mux: Mux) -> None:
        """Register the endpoint and its single checks."""
        mux.handle(f"/{self.name}", self.all)
        for check in self._checks:
            mux.handle(f"/{self.name}/{check.name}", self._single(check))

    async def all(self, request: Request) -> Answer:
        """All checks but those excluded."""
        parameters = request.parameters()
        excluded = set(parameters.get("exclude", ()))
        lines, failed = [], False
        for check in self._checks:
            if check.name in excluded:
                excluded.discard(check.name)
                lines.append(f"[+]{check.name} excluded: ok\n")
            elif reason := self._run(check):
                failed = True
                lines.append(f"[-]{check.name} failed: reason withheld\n")
                if log.v(2):
                    log.info("Health check failed", endpoint=self.name, check=check.name, reason=reason)
            else:
                lines.append(f"[+]{check.name} ok\n")
        if excluded:
            names = ",".join(f'"{name}"' for name in sorted(excluded))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            return answers.error("".join(lines) + f"{self.name} check failed", 500)
        if "verbose" in parameters:
            return answers.text("".join(lines) + f"{self.name} check passed\n")
        return answers.text("ok")

    def _single(self, check: Check) -> answers.Handler:
        async def handle(_: Request) -> Answer:
            reason = self._run(check)
            return answers.error(f"internal server error: {reason}", 500) if reason else answers.text("ok")

        return handle

    def _run(self, check: Check) -> str:
        try:
            reason = check.reason()
        except Exception as error:
            log.error(error, "Health check broke", check=check.name)
            reason = f"check broke: {error}"
        self._state.labels(check.name, self.name).set(0 if reason else 1)
        self._count.labels(check.name, self.name, "error" if reason else "success").inc()
        return reason


def install_health(
    mux: Mux, metrics: Metrics, ready: Sequence[Check], leader_election: Check | None, *, ping: Check = PING
) -> None:
    """The three endpoints; `ready`: what `/readyz` checks after leader election."""
    elected = (leader_election,) if leader_election else ()
    for name, checks in (("healthz", elected or (ping,)), ("livez", (ping,)), ("readyz", (*elected, *ready))):
        HealthEndpoint(name, checks, metrics).install(mux)
