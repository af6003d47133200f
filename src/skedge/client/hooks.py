"""What the client tells whoever watches it: empty methods to override, for metrics and tests.

Nothing here is awaited, and the client does not depend on what a hook does.
"""

from __future__ import annotations


class ClientHooks:
    """Requests (`rest_client_*`), reflectors and informers (`informer_*`). Durations are in seconds."""

    def request(self, verb: str, host: str, code: str, seconds: float, sent: int, received: int) -> None:
        """A request was answered; `code` is `<error>` when it was not. `sent` and `received` are bytes."""

    def streamed(self, verb: str, host: str, code: str) -> None:
        """A watch was opened, or was not; `code` is `<error>` when there was no answer."""

    def retried(self, verb: str, host: str, code: str) -> None:
        """A request will be sent again."""

    def throttled(self, verb: str, host: str, seconds: float) -> None:
        """A request waited for the client-side rate limit, 0 seconds when it did not have to."""

    def undecodable(self, resource: str, name: str) -> None:
        """An object could not be decoded and was left out."""

    def watch_ended(self, resource: str, reason: str) -> None:
        """A watch ended: `closed`, `expired`, `short`, `refused`, `throttled` or `error`."""

    def delivered(self, resource: str, events: int, version: str) -> None:
        """A batch reached the store, which is now at `version`."""


class QueueHooks:
    """A work queue (`workqueue_*`). Durations are in seconds."""

    def added(self, depth: int) -> None:
        """An item began to wait; `depth` items wait now."""

    def retried(self) -> None:
        """An item was added by `add_rate_limited`."""

    def got(self, depth: int, waited: float) -> None:
        """An item was handed to a worker after `waited` seconds."""

    def done(self, worked: float) -> None:
        """A worker finished an item."""


class LeaderHooks:
    """Leader election (`leader_election_*`)."""

    def leading(self, on: bool) -> None:
        """We lead, or no longer do (`leader_election_master_status`)."""

    def slow_path(self) -> None:
        """A renewal needed a GET (`leader_election_slowpath_total`)."""
