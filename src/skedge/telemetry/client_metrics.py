"""What the API client, its work queues and leader election count: the implementing side of the client's hooks.

Method names are those hooks' own, so that `class Hooks(ClientMetrics, ClientHooks)` is all it takes to join them.
Upstream: `client-go/tools/metrics`, `component-base/metrics/prometheus`.
"""

from __future__ import annotations

from collections.abc import Callable

from skedge.telemetry.metrics import Metrics


class ClientMetrics:
    """Requests, watches and exec plugins of the API client, in the words of the client's own hooks."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds = metrics.histogram("rest_client_request_duration_seconds")
        self._limiter_seconds = metrics.histogram("rest_client_rate_limiter_duration_seconds")
        self._sent = metrics.histogram("rest_client_request_size_bytes")
        self._received = metrics.histogram("rest_client_response_size_bytes")
        self._requests = metrics.counter("rest_client_requests_total")
        self._retries = metrics.counter("rest_client_request_retries_total")
        self._undecodable = metrics.counter("skedge_undecodable_objects_total")
        self._watches = metrics.counter("skedge_watches_ended_total")

    def request(self, verb: str, host: str, code: str, seconds: float, sent: int, received: int) -> None:
        """A request was answered; `code` is `<error>` when it was not. `sent` and `received` are bytes."""
        self._requests.labels(code, verb, host).inc()
        self._seconds.labels(verb, host).observe(seconds)
        self._sent.labels(verb, host).observe(sent)
        self._received.labels(verb, host).observe(received)

    def streamed(self, verb: str, host: str, code: str) -> None:
        """A watch was opened, or was not: counted, but neither timed nor measured, for it lasts as it likes."""
        self._requests.labels(code, verb, host).inc()

    def retried(self, verb: str, host: str, code: str) -> None:
        """A request will be sent again."""
        self._retries.labels(code, verb, host).inc()

    def throttled(self, verb: str, host: str, seconds: float) -> None:
        """A request waited for the client-side rate limit (0 when it did not have to)."""
        self._limiter_seconds.labels(verb, host).observe(seconds)

    def undecodable(self, resource: str, name: str) -> None:
        """An object could not be decoded and was left out."""
        self._undecodable.labels(resource).inc()

    def watch_ended(self, resource: str, reason: str) -> None:
        """A watch ended."""
        self._watches.labels(resource, reason).inc()


class WorkQueueMetrics:
    """One work queue. `unfinished` and `longest` are read at scrape: seconds spent on items not finished yet."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._depth = metrics.gauge("workqueue_depth").labels(name)
        self._adds = metrics.counter("workqueue_adds_total").labels(name)
        self._retries = metrics.counter("workqueue_retries_total").labels(name)
        self._waited = metrics.histogram("workqueue_queue_duration_seconds").labels(name)
        self._worked = metrics.histogram("workqueue_work_duration_seconds").labels(name)
        self._metrics, self._name = metrics, name

    def read_running(self, unfinished: Callable[[], float], longest: Callable[[], float]) -> None:
        """Callbacks: seconds spent so far on all items not finished yet, and on the longest of them."""
        key = (self._name,)
        self._metrics.gauge("workqueue_unfinished_work_seconds").read_from(lambda: {key: unfinished()})
        self._metrics.gauge("workqueue_longest_running_processor_seconds").read_from(lambda: {key: longest()})

    def added(self, depth: int) -> None:
        """An item began to wait; `depth` items wait now."""
        self._adds.inc()
        self._depth.set(depth)

    def retried(self) -> None:
        """An item was added again after a failure."""
        self._retries.inc()

    def got(self, depth: int, waited: float) -> None:
        """An item was handed to a worker after `waited` seconds."""
        self._depth.set(depth)
        self._waited.observe(waited)

    def done(self, worked: float) -> None:
        """A worker finished an item."""
        self._worked.observe(worked)


class LeaderMetrics:
    """One leader election; `name` is the lease's."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._status = metrics.gauge("leader_election_master_status").labels(name)
        self._slow_path = metrics.counter("leader_election_slowpath_total")
        self._name = name

    def leading(self, on: bool) -> None:
        """We lead, or no longer do."""
        self._status.set(1 if on else 0)

    def slow_path(self) -> None:
        """A renewal needed a read first."""
        self._slow_path.labels(self._name).inc()
