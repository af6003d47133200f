"""What the core tells whoever watches it: empty methods to call, and `SchedulerMetrics` that counts what it is told.

Method names are the words of the metrics they feed. Durations are seconds. Hot callers keep the child a `..._child`
method gives them and count on that. Nothing here decides anything. Upstream: `pkg/scheduler/metrics`.
"""

from __future__ import annotations

from collections.abc import Callable

from skedge.telemetry.families import Counter, Histogram, Readings
from skedge.telemetry.metrics import Metrics

_ATTEMPTS_SHOWN = 15
"""Attempts from this number on share one label value."""


class SchedulerHooks:
    """Watches a scheduler and does nothing: what simulation and most tests use."""

    # One attempt
    def schedule_attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt ended: scheduled, unschedulable or error."""

    def scheduling_algorithm(self, seconds: float) -> None:
        """A node was chosen, or it is certain that there is none."""

    def pod_scheduled(self, attempts: int, sli_seconds: float | None, after_flush: bool) -> None:
        """A pod was bound. `sli_seconds`: since its first attempt that no gate held back, None when unknown."""

    def extension_point(self, extension_point: str, status: str, profile: str, seconds: float) -> None:
        """All plugins of a point ran for one pod."""

    def plugin_execution(self, plugin: str, extension_point: str, status: str, seconds: float) -> None:
        """One plugin ran, in a sampled cycle."""

    def plugin_evaluation_child(self, plugin: str, extension_point: str, profile: str) -> Counter:
        """The counter of a plugin's evaluations at a point; asked for at construction: it shows from the start."""
        return Counter()

    def extension_point_child(self, extension_point: str, status: str, profile: str) -> Histogram:
        """The histogram behind `extension_point`, to be kept by hot callers."""
        return Histogram()

    def permit_wait(self, result: str, seconds: float) -> None:
        """A pod that waited at Permit waits no more."""

    def goroutines(self, operation: str, change: int) -> None:
        """`change` more (or fewer) pieces of work of this kind are under way."""

    # Events and queue
    def event_handling_child(self, event: str) -> Histogram:
        """The histogram of how long informer events of this label take to handle, to be kept by hot callers."""
        return Histogram()

    def queue_incoming(self, queue: str, event: str, pods: int = 1) -> None:
        """Pods were put into a part of the queue: active, backoff or unschedulable."""

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        """A plugin rejects `change` more (or fewer) parked pods."""

    def hint(self, plugin: str, event: str, result: str, seconds: float) -> None:
        """A queueing hint answered Queue, QueueSkip or Error."""

    # Preemption
    def preemption_attempt(self) -> None:
        """Preemption was asked to make room."""

    def preemption_victims(self, victims: int) -> None:
        """A candidate was chosen."""

    def preemption_goroutine(self, result: str, seconds: float) -> None:
        """A preemption beside the loop ended: success or error."""

    # Reuse of answers
    def batch_attempt(self, profile: str, result: str) -> None:
        """no_hint, hint_used or hint_not_used."""

    def batch_cache_flushed(self, profile: str, reason: str) -> None:
        """An earlier answer was dropped."""

    def get_node_hint(self, hinted: str, profile: str, seconds: float) -> None:
        """An earlier answer was looked up: hint or no_hint."""

    def store_schedule_results(self, profile: str, seconds: float) -> None:
        """An answer was kept."""

    # API calls, volumes, devices, groups
    def async_api_call(self, call_type: str, result: str, seconds: float) -> None:
        """A call of the dispatcher ended."""

    def pending_async_api_calls(self, call_type: str, change: int) -> None:
        """`change` more (or fewer) calls wait at the dispatcher."""

    def volume_binder_cache_request(self, operation: str) -> None:
        """An assumed volume was looked up."""

    def volume_scheduling_stage_error(self, operation: str) -> None:
        """predicate, assume or bind failed."""

    def resourceclaim_create(self, status: str) -> None:
        """A claim for an extended resource was created: success or failure."""

    def bindingconditions(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """An allocation's wait for device binding conditions ended."""

    def podgroup_schedule_attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt for a pod group ended."""

    def podgroup_scheduling_algorithm(self, seconds: float) -> None:
        """A pod group was placed, or it is certain that it cannot be."""

    # Ours
    def loop_lag(self, seconds: float) -> None:
        """A timer of the event loop fired this late."""

    def auditor_finding(self, kind: str) -> None:
        """Queue, cache and informer stores contradict each other."""

    def audit_repair(self, kind: str) -> None:
        """A finding was put right from the informer's object."""

    def audit_round(self, seconds: float) -> None:
        """The auditor looked at everything once; `seconds` it worked, pauses left out."""


class SchedulerMetrics(SchedulerHooks):
    """Counts what a scheduler does. Sizes are not told but read: `read_*` take callbacks asked at every scrape."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        counter, gauge, histogram = metrics.counter, metrics.gauge, metrics.histogram
        self._attempts = counter("scheduler_schedule_attempts_total")
        self._attempt_seconds = histogram("scheduler_scheduling_attempt_duration_seconds")
        self._algorithm_seconds = histogram("scheduler_scheduling_algorithm_duration_seconds").only
        self._sli_seconds = histogram("scheduler_pod_scheduling_sli_duration_seconds")
        self._pod_attempts = histogram("scheduler_pod_scheduling_attempts").only
        self._after_flush = counter("scheduler_pod_scheduled_after_flush_total").only
        self._point_seconds = histogram("scheduler_framework_extension_point_duration_seconds")
        self._plugin_seconds = histogram("scheduler_plugin_execution_duration_seconds")
        self._evaluations = counter("scheduler_plugin_evaluation_total")
        self._permit_seconds = histogram("scheduler_permit_wait_duration_seconds")
        self._goroutines = gauge("scheduler_goroutines")
        self._event_seconds = histogram("scheduler_event_handling_duration_seconds")
        self._incoming = counter("scheduler_queue_incoming_pods_total")
        self._unschedulable = gauge("scheduler_unschedulable_pods")
        self._hint_seconds = histogram("scheduler_queueing_hint_execution_duration_seconds")
        self._preemption_attempts = counter("scheduler_preemption_attempts_total").only
        self._victims = histogram("scheduler_preemption_victims").only
        self._preemption_seconds = histogram("scheduler_preemption_goroutines_duration_seconds")
        self._preemption_runs = counter("scheduler_preemption_goroutines_execution_total")
        self._batch_attempts = counter("scheduler_batch_attempts_total")
        self._batch_flushed = counter("scheduler_batch_cache_flushed_total")
        self._node_hint_seconds = histogram("scheduler_get_node_hint_duration_seconds")
        self._store_seconds = histogram("scheduler_store_schedule_results_duration_seconds")
        self._api_calls = counter("scheduler_async_api_call_execution_total")
        self._api_call_seconds = histogram("scheduler_async_api_call_execution_duration_seconds")
        self._api_pending = gauge("scheduler_pending_async_api_calls")
        self._volume_cache = counter("scheduler_volume_binder_cache_requests_total")
        self._volume_errors = counter("scheduler_volume_scheduling_stage_error_total")
        self._claims = counter("scheduler_resourceclaim_creates_total")
        self._conditions = counter("scheduler_dra_bindingconditions_allocations_total")
        self._condition_seconds = histogram("scheduler_dra_bindingconditions_wait_duration_seconds")
        self._group_attempts = counter("scheduler_podgroup_schedule_attempts_total")
        self._group_seconds = histogram("scheduler_podgroup_scheduling_attempt_duration_seconds")
        self._group_algorithm = histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds").only
        self._lag = metrics.histogram("skedge_loop_lag_seconds").only
        self._findings = metrics.counter("skedge_audit_findings_total")
        self._repairs = metrics.counter("skedge_audit_repairs_total")
        self._rounds = metrics.histogram("skedge_audit_round_duration_seconds").only

    def read_pending_pods(self, callback: Callable[[], Readings]) -> None:
        """`callback`: (queue,) → pods, for active, backoff, unschedulable and gated."""
        self._metrics.gauge("scheduler_pending_pods").read_from(callback)

    def read_inflight_events(self, callback: Callable[[], Readings]) -> None:
        """`callback`: (event,) → events kept; `PodPopped` is one of them."""
        self._metrics.gauge("scheduler_inflight_events").read_from(callback)

    def read_cache_size(self, callback: Callable[[], Readings]) -> None:
        """`callback`: (type,) → size, for nodes, pods and assumed_pods."""
        self._metrics.gauge("scheduler_cache_size").read_from(callback)

    def read_fragment_cache(self, held: Callable[[], Readings], limit: int) -> None:
        """`held`: bytes of cached answers now; `limit`: their bound."""
        self._metrics.gauge("skedge_fragment_cache_bytes").read_from(held)
        self._metrics.gauge("skedge_fragment_cache_limit_bytes").only.set(limit)

    def read_bindings_in_flight(self, count: Callable[[], Readings], limit: int) -> None:
        """`count`: unfinished binding cycles now; `limit`: where popping stops."""
        self._metrics.gauge("skedge_bindings_in_flight").read_from(count)
        self._metrics.gauge("skedge_bindings_in_flight_limit").only.set(limit)

    def schedule_attempt(self, result: str, profile: str, seconds: float) -> None:
        self._attempts.labels(result, profile).inc()
        self._attempt_seconds.labels(result, profile).observe(seconds)

    def scheduling_algorithm(self, seconds: float) -> None:
        self._algorithm_seconds.observe(seconds)

    def pod_scheduled(self, attempts: int, sli_seconds: float | None, after_flush: bool) -> None:
        self._pod_attempts.observe(attempts)
        if sli_seconds is not None:
            shown = str(attempts) if attempts < _ATTEMPTS_SHOWN else f"{_ATTEMPTS_SHOWN}+"
            self._sli_seconds.labels(shown).observe(sli_seconds)
        if after_flush:
            self._after_flush.inc()

    def extension_point(self, extension_point: str, status: str, profile: str, seconds: float) -> None:
        self._point_seconds.labels(extension_point, status, profile).observe(seconds)

    def plugin_execution(self, plugin: str, extension_point: str, status: str, seconds: float) -> None:
        self._plugin_seconds.labels(plugin, extension_point, status).observe(seconds)

    def plugin_evaluation_child(self, plugin: str, extension_point: str, profile: str) -> Counter:
        return self._evaluations.labels(plugin, extension_point, profile)

    def extension_point_child(self, extension_point: str, status: str, profile: str) -> Histogram:
        return self._point_seconds.labels(extension_point, status, profile)

    def permit_wait(self, result: str, seconds: float) -> None:
        self._permit_seconds.labels(result).observe(seconds)

    def goroutines(self, operation: str, change: int) -> None:
        self._goroutines.labels(operation).inc(change)

    def event_handling_child(self, event: str) -> Histogram:
        return self._event_seconds.labels(event)

    def queue_incoming(self, queue: str, event: str, pods: int = 1) -> None:
        self._incoming.labels(queue, event).inc(pods)

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self._unschedulable.labels(plugin, profile).inc(change)

    def hint(self, plugin: str, event: str, result: str, seconds: float) -> None:
        self._hint_seconds.labels(plugin, event, result).observe(seconds)

    def preemption_attempt(self) -> None:
        self._preemption_attempts.inc()

    def preemption_victims(self, victims: int) -> None:
        self._victims.observe(victims)

    def preemption_goroutine(self, result: str, seconds: float) -> None:
        self._preemption_seconds.labels(result).observe(seconds)
        self._preemption_runs.labels(result).inc()

    def batch_attempt(self, profile: str, result: str) -> None:
        self._batch_attempts.labels(profile, result).inc()

    def batch_cache_flushed(self, profile: str, reason: str) -> None:
        self._batch_flushed.labels(profile, reason).inc()

    def get_node_hint(self, hinted: str, profile: str, seconds: float) -> None:
        self._node_hint_seconds.labels(hinted, profile).observe(seconds)

    def store_schedule_results(self, profile: str, seconds: float) -> None:
        self._store_seconds.labels(profile).observe(seconds)

    def async_api_call(self, call_type: str, result: str, seconds: float) -> None:
        self._api_calls.labels(call_type, result).inc()
        self._api_call_seconds.labels(call_type, result).observe(seconds)

    def pending_async_api_calls(self, call_type: str, change: int) -> None:
        self._api_pending.labels(call_type).inc(change)

    def volume_binder_cache_request(self, operation: str) -> None:
        self._volume_cache.labels(operation).inc()

    def volume_scheduling_stage_error(self, operation: str) -> None:
        self._volume_errors.labels(operation).inc()

    def resourceclaim_create(self, status: str) -> None:
        self._claims.labels(status).inc()

    def bindingconditions(self, profile: str, driver: str, status: str, seconds: float) -> None:
        self._conditions.labels(profile, driver, status).inc()
        self._condition_seconds.labels(profile, driver, status).observe(seconds)

    def podgroup_schedule_attempt(self, result: str, profile: str, seconds: float) -> None:
        self._group_attempts.labels(result, profile).inc()
        self._group_seconds.labels(result, profile).observe(seconds)

    def podgroup_scheduling_algorithm(self, seconds: float) -> None:
        self._group_algorithm.observe(seconds)

    def loop_lag(self, seconds: float) -> None:
        self._lag.observe(seconds)

    def auditor_finding(self, kind: str) -> None:
        self._findings.labels(kind).inc()

    def audit_repair(self, kind: str) -> None:
        self._repairs.labels(kind).inc()

    def audit_round(self, seconds: float) -> None:
        self._rounds.observe(seconds)
