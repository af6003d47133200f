"""The table of every metric: kube-scheduler's own, those of the libraries it is made of, and ours (`skedge_*`).

Names, types, labels, buckets and stability are upstream's (`pkg/scheduler/metrics`, `component-base/metrics`,
`client-go`); the help texts are ours. `OMITTED` names what upstream's binary also shows and this one cannot mean.
"""

# A table is read by its columns: one row a line.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skedge.telemetry.families import ALPHA, BETA, STABLE, MetricSpec, exponential

_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_BATCH = exponential(0.00001, 2, 12)
_SLI = exponential(0.01, 2, 20)
_DEFAULT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZE = (64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0)
_DELEGATED = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_LATENCY = (0.001, *_DEFAULT)
_QUEUE = exponential(1e-8, 10, 10)
_DAY = 86400.0
_CERTIFICATE_AGE = (600.0, 1800.0, 3600.0, 14400.0, *(_DAY * days for days in (1, 7, 30, 90, 180, 360, 1440)))
_EXPIRATION = (
    0.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0,
    *(_DAY * days for days in (1, 2, 4, 7, 30, 90, 180, 360)),
)  # fmt: skip
_INFORMER = ("name", "group", "version", "resource")
_SLIS = frozenset({"slis"})

_ASYNC_API = "SchedulerAsyncAPICalls"
_GROUPS = "GenericWorkload"
_BATCHING = "OpportunisticBatching"
_ASYNC_PREEMPTION = "SchedulerAsyncPreemption"
_BINDING_CONDITIONS = "DRADeviceBindingConditions"
_EXTENDED = "DRAExtendedResource"


def _counter(name: str, labels: str, stability: str, text: str, gate: str = "") -> MetricSpec:
    return MetricSpec(name, "counter", text, tuple(labels.split()), stability, gate=gate)


def _gauge(name: str, labels: str, stability: str, text: str, gate: str = "") -> MetricSpec:
    return MetricSpec(name, "gauge", text, tuple(labels.split()), stability, gate=gate)


def _histogram(
    name: str, labels: str, buckets: tuple[float, ...], stability: str, text: str, gate: str = "", empty: bool = False
) -> MetricSpec:
    return MetricSpec(name, "histogram", text, tuple(labels.split()), stability, buckets, gate, show_empty=empty)


# fmt: off
SCHEDULER: Final = (
    _counter("scheduler_schedule_attempts_total", "result profile", STABLE, "Scheduling attempts by result."),
    _histogram("scheduler_scheduling_attempt_duration_seconds", "result profile", _ATTEMPT, STABLE, "From the start of an attempt to the end of its binding or failure handling."),
    _histogram("scheduler_scheduling_algorithm_duration_seconds", "", _ATTEMPT, ALPHA, "From the start of an attempt to a chosen node or the certainty that there is none."),
    _histogram("scheduler_event_handling_duration_seconds", "event", _POINT, ALPHA, "Handling of one informer event."),
    _histogram("scheduler_preemption_victims", "", exponential(1, 2, 7), STABLE, "Victims of a chosen preemption."),
    _counter("scheduler_preemption_attempts_total", "", STABLE, "Attempts to make room by preemption."),
    _gauge("scheduler_pending_pods", "queue", STABLE, "Pods in each part of the queue: active, backoff, unschedulable, gated."),
    _histogram("scheduler_pod_scheduling_sli_duration_seconds", "attempts", _SLI, BETA, "From a pod's first attempt that no gate held back to its binding, by attempts needed."),
    _histogram("scheduler_pod_scheduling_attempts", "", exponential(1, 2, 5), STABLE, "Attempts a bound pod needed."),
    _counter("scheduler_pod_scheduled_after_flush_total", "", ALPHA, "Pods bound right after they left the unschedulable pods by timeout only: each is a missed wake-up."),
    _histogram("scheduler_framework_extension_point_duration_seconds", "extension_point status profile", _POINT, STABLE, "All plugins of an extension point, for one pod."),
    _histogram("scheduler_plugin_execution_duration_seconds", "plugin extension_point status", _PLUGIN, ALPHA, "One plugin at one extension point, in a sample of the cycles."),
    _histogram("scheduler_queueing_hint_execution_duration_seconds", "plugin event hint", _PLUGIN, ALPHA, "One queueing hint, by its answer."),
    _counter("scheduler_queue_incoming_pods_total", "queue event", STABLE, "Pods put into each part of the queue, by the event that did it."),
    _gauge("scheduler_inflight_events", "event", ALPHA, "Events kept for pods that are being scheduled."),
    _gauge("scheduler_goroutines", "operation", BETA, "Work under way at the same time, by operation."),
    _histogram("scheduler_permit_wait_duration_seconds", "result", _ATTEMPT, BETA, "Time pods waited at Permit."),
    _gauge("scheduler_cache_size", "type", ALPHA, "Nodes, pods and assumed pods in the cache."),
    _gauge("scheduler_unschedulable_pods", "plugin profile", BETA, "Parked pods, once for each plugin that rejected them."),
    _counter("scheduler_plugin_evaluation_total", "plugin extension_point profile", BETA, "Evaluations by a plugin: nodes at Filter and Score, pods at PreFilter and PreScore."),
    _counter("scheduler_batch_attempts_total", "profile result", ALPHA, "Attempts by whether an earlier pod's answer was used.", _BATCHING),
    _counter("scheduler_batch_cache_flushed_total", "profile reason", ALPHA, "Earlier answers dropped, by reason.", _BATCHING),
    _histogram("scheduler_get_node_hint_duration_seconds", "hinted profile", _BATCH, ALPHA, "Looking up an earlier pod's answer.", _BATCHING),
    _histogram("scheduler_store_schedule_results_duration_seconds", "profile", _BATCH, ALPHA, "Keeping an answer for later pods.", _BATCHING),
    _histogram("scheduler_preemption_goroutines_duration_seconds", "result", _SLI, ALPHA, "Carrying out one preemption beside the scheduling loop.", _ASYNC_PREEMPTION),
    _counter("scheduler_preemption_goroutines_execution_total", "result", ALPHA, "Preemptions carried out beside the scheduling loop.", _ASYNC_PREEMPTION),
    _counter("scheduler_async_api_call_execution_total", "call_type result", ALPHA, "API calls carried out by the dispatcher.", _ASYNC_API),
    _histogram("scheduler_async_api_call_execution_duration_seconds", "call_type result", _ATTEMPT, ALPHA, "Duration of the dispatcher's API calls.", _ASYNC_API),
    _gauge("scheduler_pending_async_api_calls", "call_type", ALPHA, "API calls waiting at the dispatcher.", _ASYNC_API),
    _counter("scheduler_resourceclaim_creates_total", "status", ALPHA, "Claims the scheduler created for extended resources.", _EXTENDED),
    _counter("scheduler_dra_bindingconditions_allocations_total", "profile driver status", ALPHA, "Allocations that waited for device binding conditions.", _BINDING_CONDITIONS),
    _histogram("scheduler_dra_bindingconditions_wait_duration_seconds", "profile driver status", exponential(0.1, 2, 14), ALPHA, "Wait for device binding conditions.", _BINDING_CONDITIONS),
    _counter("scheduler_podgroup_schedule_attempts_total", "result profile", ALPHA, "Scheduling attempts of pod groups.", _GROUPS),
    _histogram("scheduler_podgroup_scheduling_attempt_duration_seconds", "result profile", _ATTEMPT, ALPHA, "One attempt to schedule a pod group.", _GROUPS),
    _histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds", "", _ATTEMPT, ALPHA, "From the start of a pod group's attempt to its placement.", _GROUPS),
    _counter("scheduler_volume_binder_cache_requests_total", "operation", ALPHA, "Look-ups in the assumed volumes."),
    _counter("scheduler_volume_scheduling_stage_error_total", "operation", ALPHA, "Errors of volume scheduling, by stage."),
)

LIBRARIES: Final = (
    _histogram("rest_client_request_duration_seconds", "verb host", _REQUEST, ALPHA, "Duration of API requests."),
    _histogram("rest_client_rate_limiter_duration_seconds", "verb host", _REQUEST, ALPHA, "Wait of API requests for the client's own rate limit."),
    _histogram("rest_client_dns_resolution_duration_seconds", "host", _REQUEST[:-1], ALPHA, "Resolution of the API server's name."),
    _histogram("rest_client_request_size_bytes", "verb host", _SIZE, ALPHA, "Bytes sent with API requests."),
    _histogram("rest_client_response_size_bytes", "verb host", _SIZE, ALPHA, "Bytes received for API requests."),
    _counter("rest_client_requests_total", "code method host", ALPHA, "API requests by status code."),
    _counter("rest_client_request_retries_total", "code verb host", ALPHA, "API requests sent again."),
    _gauge("rest_client_exec_plugin_ttl_seconds", "", ALPHA, "Lifetime left of the shortest-lived credential of an exec plugin; +Inf without one."),
    _histogram("rest_client_exec_plugin_certificate_rotation_age", "", _CERTIFICATE_AGE, ALPHA, "Age in seconds at which exec plugin certificates were replaced."),
    _counter("rest_client_exec_plugin_call_total", "code call_status", ALPHA, "Calls of exec plugins."),
    _counter("rest_client_exec_plugin_policy_call_total", "allowed denied", ALPHA, "Exec plugin calls checked against a policy."),
    _gauge("rest_client_transport_cache_entries", "", ALPHA, "Transports kept for reuse."),
    _counter("rest_client_transport_create_calls_total", "result", ALPHA, "Transports asked for, by whether one was kept."),
    _counter("rest_client_transport_ca_reload_total", "result reason", ALPHA, "Reloads of the API server's CA."),
    _counter("rest_client_transport_cert_rotation_gc_calls_total", "", ALPHA, "Certificate rotations stopped for unused transports."),
    _counter("rest_client_transport_cache_gc_calls_total", "result", ALPHA, "Kept transports dropped."),
    _gauge("workqueue_depth", "name", BETA, "Items waiting."),
    _gauge("workqueue_unfinished_work_seconds", "name", BETA, "Time spent so far on items not yet finished."),
    _gauge("workqueue_longest_running_processor_seconds", "name", BETA, "Time spent so far on the item worked on longest."),
    _counter("workqueue_adds_total", "name", BETA, "Items added."),
    _counter("workqueue_retries_total", "name", BETA, "Items added again after a failure."),
    _histogram("workqueue_queue_duration_seconds", "name", _QUEUE, BETA, "Wait of items for a worker.", empty=True),
    _histogram("workqueue_work_duration_seconds", "name", _QUEUE, BETA, "Work on one item.", empty=True),
    _gauge("leader_election_master_status", "name", ALPHA, "1 while this process leads, else 0."),
    _counter("leader_election_slowpath_total", "name", ALPHA, "Renewals of the lease that needed a read first."),
    _gauge("informer_queued_items", " ".join(_INFORMER), ALPHA, "Changes an informer has not handed on yet."),
    _gauge("informer_store_resource_version", " ".join(_INFORMER), ALPHA, "The version an informer's store is at."),
    _histogram("informer_processing_latency_seconds", " ".join(_INFORMER), _LATENCY, ALPHA, "From an informer's receipt of a change to its handling."),
    _gauge("kubernetes_build_info", "major minor git_version git_commit git_tree_state build_date go_version compiler platform", BETA, "The build, in labels; go_version names this runtime."),
    _gauge("kubernetes_feature_enabled", "name stage", BETA, "1 for a feature gate that is on, else 0."),
    _gauge("version_info", "component binary emulation min_compat", ALPHA, "The versions in effect, in labels."),
    _counter("registered_metrics_total", "stability_level deprecated_version", BETA, "Metrics registered."),
    _counter("disabled_metrics_total", "", BETA, "Metrics switched off by flag."),
    _counter("hidden_metrics_total", "", BETA, "Metrics hidden because deprecated."),
    _counter("cardinality_enforcement_unexpected_categorizations_total", "", ALPHA, "Label values replaced because no allow-list has them."),
    _counter("authenticated_user_requests", "username", ALPHA, "Authenticated requests, by class of user."),
    _counter("authentication_attempts", "result", ALPHA, "Authentication attempts: success, failure, error."),
    _histogram("authentication_duration_seconds", "result", _ATTEMPT, ALPHA, "Duration of authentication."),
    _counter("authorization_attempts_total", "result", ALPHA, "Authorization attempts: allowed, denied, no-opinion, error."),
    _histogram("authorization_duration_seconds", "result", _ATTEMPT, ALPHA, "Duration of authorization."),
    _counter("apiserver_delegated_authn_request_total", "code", ALPHA, "TokenReviews sent, by status code."),
    _histogram("apiserver_delegated_authn_request_duration_seconds", "code", _DELEGATED, ALPHA, "Duration of TokenReviews."),
    _counter("apiserver_delegated_authz_request_total", "code", ALPHA, "SubjectAccessReviews sent, by status code."),
    _histogram("apiserver_delegated_authz_request_duration_seconds", "code", _DELEGATED, ALPHA, "Duration of SubjectAccessReviews."),
    _gauge("authentication_token_cache_active_fetch_count", "status", ALPHA, "Token look-ups under way (in_flight) and waiting for one (blocked)."),
    _counter("authentication_token_cache_fetch_total", "status", ALPHA, "Token look-ups: ok, error."),
    _histogram("authentication_token_cache_request_duration_seconds", "status", _DEFAULT, ALPHA, "Duration of a request to the token cache: hit, miss."),
    _counter("authentication_token_cache_request_total", "status", ALPHA, "Requests to the token cache: hit, miss."),
    _histogram("apiserver_client_certificate_expiration_seconds", "", _EXPIRATION, ALPHA, "Lifetime left of the client certificates seen."),
    MetricSpec("kubernetes_healthcheck", "gauge", "1 for a health check that passes, else 0.", ("name", "type"), STABLE, endpoints=_SLIS),
    MetricSpec("kubernetes_healthchecks_total", "counter", "Health checks made, by outcome.", ("name", "type", "status"), STABLE, endpoints=_SLIS),
    MetricSpec("go_goroutines", "gauge", "Asyncio tasks and threads: what stands for goroutines here.", stability=""),
    MetricSpec("go_threads", "gauge", "Threads of the process.", stability=""),
)

OURS: Final = (
    _histogram("skedge_loop_lag_seconds", "", exponential(0.0001, 2, 15), ALPHA, "How late the event loop's timer fired: the time sockets had to wait."),
    _gauge("skedge_fragment_cache_bytes", "", ALPHA, "Memory held by cached filter and score answers."),
    _gauge("skedge_fragment_cache_limit_bytes", "", ALPHA, "The bound on skedge_fragment_cache_bytes."),
    _gauge("skedge_bindings_in_flight", "", ALPHA, "Binding cycles not finished yet."),
    _gauge("skedge_bindings_in_flight_limit", "", ALPHA, "Above this many unfinished bindings no pod is popped."),
    _counter("skedge_audit_findings_total", "kind", ALPHA, "Contradictions found between queue, cache and informer stores."),
    _counter("skedge_audit_repairs_total", "kind", ALPHA, "Contradictions that were put right from the informer's object."),
    _histogram("skedge_audit_round_duration_seconds", "", exponential(0.001, 2, 15), ALPHA, "Time the auditor worked to look at everything once."),
    _counter("skedge_undecodable_objects_total", "resource", ALPHA, "Objects from the API server that could not be decoded and were left out."),
    _counter("skedge_watches_ended_total", "resource reason", ALPHA, "Watches that ended, by reason."),
)
# fmt: on

OMITTED: Final[Mapping[str, str]] = {
    "aggregator_discovery_": "belongs to an aggregating API server",
    "apiserver_audit_": "an API server's audit log",
    "apiserver_envelope_encryption_": "an API server's storage",
    "apiserver_storage_": "an API server's storage",
    "apiserver_validation_": "an API server's validation",
    "apiserver_webhooks_": "an API server's webhooks",
    "go_": "Go's runtime; go_goroutines and go_threads have a meaning here and are shown, python_* take the others' place",
}
"""Prefixes of families of upstream's binary that are not shown, with the reason. All are linked in there, none is ever counted."""
