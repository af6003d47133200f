"""What a controller did that its informer has not shown yet, so that it does nothing twice.

Upstream: `pkg/controller/controller_utils.go` (`ControllerExpectations`, `UIDTrackingControllerExpectations`).
"""

from __future__ import annotations

from skedge.clock import Clock

TIMEOUT = 300.0
"""Seconds after which expectations count as met: news that have not come by then won't."""


class _Expected:
    __slots__ = ("creations", "deletions", "since")

    def __init__(self, since: float) -> None:
        self.creations = 0
        self.deletions: set[str] = set()
        self.since = since


class Expectations:
    """Creations are counted, deletions known by the UID of what goes; each by the key of the controlling object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_key: dict[str, _Expected] = {}

    def met(self, key: str) -> bool:
        """Whether everything expected was seen, or waited for long enough."""
        expected = self._by_key.get(key)
        if expected is None:
            return True
        if expected.creations <= 0 and not expected.deletions:
            del self._by_key[key]
            return True
        return self._clock.monotonic() - expected.since > TIMEOUT

    def expect_creations(self, key: str, count: int) -> None:
        """`count` objects are about to be created."""
        expected = self._expected(key)
        expected.creations = max(expected.creations, 0) + count

    def expect_deletion(self, key: str, uid: str) -> None:
        """An object is about to be deleted."""
        self._expected(key).deletions.add(uid)

    def created(self, key: str, count: int = 1) -> None:
        """Objects were seen, or could not be created."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.creations -= count

    def deleted(self, key: str, uid: str) -> None:
        """An object was seen going, or could not be deleted."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.deletions.discard(uid)

    def forget(self, key: str) -> None:
        self._by_key.pop(key, None)

    def _expected(self, key: str) -> _Expected:
        expected = self._by_key.get(key)
        if expected is None:
            expected = self._by_key[key] = _Expected(self._clock.monotonic())
        expected.since = self._clock.monotonic()
        return expected
