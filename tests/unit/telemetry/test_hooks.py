"""What hooks count, and that watching nothing costs nothing."""

from __future__ import annotations

import inspect

import pytest

from skedge.telemetry.client_metrics import ClientMetrics, LeaderMetrics, WorkQueueMetrics
from skedge.telemetry.exposition import render_text
from skedge.telemetry.hooks import SchedulerHooks, SchedulerMetrics
from skedge.telemetry.metrics import Metrics

GATES = (
    "OpportunisticBatching",
    "SchedulerAsyncPreemption",
    "SchedulerAsyncAPICalls",
    "GenericWorkload",
    "DRADeviceBindingConditions",
    "DRAExtendedResource",
)

CALLS = {
    "schedule_attempt": (
        ("scheduled", "default-scheduler", 0.003),
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1',
        "scheduler_scheduling_attempt_duration_seconds_bucket"
        '{profile="default-scheduler",result="scheduled",le="0.004"} 1',
    ),
    "scheduling_algorithm": ((0.003,), 'scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.002"} 0'),
    "pod_scheduled": (
        (15, 0.5, True),
        'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"} 1',
        'scheduler_pod_scheduling_attempts_bucket{le="16"} 1',
        "scheduler_pod_scheduled_after_flush_total 1",
    ),
    "extension_point": (
        ("Filter", "Success", "p", 0.0001),
        "scheduler_framework_extension_point_duration_seconds_bucket"
        '{extension_point="Filter",profile="p",status="Success",le="0.0001"} 1',
    ),
    "plugin_execution": (
        ("NodeName", "Filter", "Success", 1.0),
        "scheduler_plugin_execution_duration_seconds_bucket"
        '{extension_point="Filter",plugin="NodeName",status="Success",le="+Inf"} 1',
    ),
    "permit_wait": (("Success", 1.0), 'scheduler_permit_wait_duration_seconds_sum{result="Success"} 1'),
    "goroutines": (("binding", 2), 'scheduler_goroutines{operation="binding"} 2'),
    "queue_incoming": (
        ("active", "NodeAdd", 3),
        'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"} 3',
    ),
    "unschedulable_pods": (("Fit", "p", -1), 'scheduler_unschedulable_pods{plugin="Fit",profile="p"} -1'),
    "hint": (
        ("Fit", "NodeAdd", "Queue", 0.0),
        'scheduler_queueing_hint_execution_duration_seconds_count{event="NodeAdd",hint="Queue",plugin="Fit"} 1',
    ),
    "preemption_attempt": ((), "scheduler_preemption_attempts_total 1"),
    "preemption_victims": ((2,), 'scheduler_preemption_victims_bucket{le="2"} 1'),
    "preemption_goroutine": (
        ("success", 0.01),
        'scheduler_preemption_goroutines_duration_seconds_bucket{result="success",le="0.01"} 1',
        'scheduler_preemption_goroutines_execution_total{result="success"} 1',
    ),
    "batch_attempt": (("p", "no_hint"), 'scheduler_batch_attempts_total{profile="p",result="no_hint"} 1'),
    "batch_cache_flushed": (
        ("p", "expired"),
        'scheduler_batch_cache_flushed_total{profile="p",reason="expired"} 1',
    ),
    "get_node_hint": (
        ("hint", "p", 0.0),
        'scheduler_get_node_hint_duration_seconds_count{hinted="hint",profile="p"} 1',
    ),
    "store_schedule_results": (("p", 0.0), 'scheduler_store_schedule_results_duration_seconds_count{profile="p"} 1'),
    "async_api_call": (
        ("pod_binding", "success", 0.1),
        'scheduler_async_api_call_execution_total{call_type="pod_binding",result="success"} 1',
        'scheduler_async_api_call_execution_duration_seconds_sum{call_type="pod_binding",result="success"} 0.1',
    ),
    "pending_async_api_calls": (("c", 1), 'scheduler_pending_async_api_calls{call_type="c"} 1'),
    "volume_binder_cache_request": (("list",), 'scheduler_volume_binder_cache_requests_total{operation="list"} 1'),
    "volume_scheduling_stage_error": (("bind",), 'scheduler_volume_scheduling_stage_error_total{operation="bind"} 1'),
    "resourceclaim_create": (("success",), 'scheduler_resourceclaim_creates_total{status="success"} 1'),
    "bindingconditions": (
        ("p", "d", "timeout", 0.1),
        'scheduler_dra_bindingconditions_allocations_total{driver="d",profile="p",status="timeout"} 1',
        "scheduler_dra_bindingconditions_wait_duration_seconds_bucket"
        '{driver="d",profile="p",status="timeout",le="0.1"} 1',
    ),
    "podgroup_schedule_attempt": (
        ("scheduled", "p", 0.1),
        'scheduler_podgroup_schedule_attempts_total{profile="p",result="scheduled"} 1',
        'scheduler_podgroup_scheduling_attempt_duration_seconds_sum{profile="p",result="scheduled"} 0.1',
    ),
    "podgroup_scheduling_algorithm": ((0.1,), "scheduler_podgroup_scheduling_algorithm_duration_seconds_sum 0.1"),
    "loop_lag": ((0.1,), "skedge_loop_lag_seconds_sum 0.1"),
    "auditor_finding": (("ghost resources",), 'skedge_audit_findings_total{kind="ghost resources"} 1'),
    "audit_repair": (("lost",), 'skedge_audit_repairs_total{kind="lost"} 1'),
    "audit_round": ((0.5,), "skedge_audit_round_duration_seconds_count 1"),
}


def scrape(metrics: Metrics) -> list[str]:
    return render_text(metrics.registry.sample()).splitlines()


@pytest.mark.parametrize("method", CALLS)
def test_a_call_shows_in_its_families(method: str) -> None:
    arguments, *expected = CALLS[method]
    metrics = Metrics("1.36.2", GATES)
    getattr(SchedulerMetrics(metrics), method)(*arguments)
    lines = scrape(metrics)
    for line in expected:
        assert line in lines
    assert getattr(SchedulerHooks(), method)(*arguments) is None


def test_every_hook_is_implemented_and_tested() -> None:
    hooks = {name for name, _ in inspect.getmembers(SchedulerHooks, inspect.isfunction)}
    assert hooks <= set(vars(SchedulerMetrics))
    assert {name for name in hooks if not name.endswith("_child")} == set(CALLS)


def test_children_are_counted_on_directly() -> None:
    metrics = Metrics("1.36.2")
    hooks = SchedulerMetrics(metrics)
    evaluations = hooks.plugin_evaluation_child("Fit", "Filter", "p")
    assert 'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="Fit",profile="p"} 0' in scrape(metrics)
    handled = hooks.event_handling_child("NodeAdd")
    handled.observe(0.0)
    assert 'scheduler_event_handling_duration_seconds_count{event="NodeAdd"} 1' in scrape(metrics)
    evaluations.inc(5000)
    hooks.extension_point_child("Bind", "Success", "p").observe(0.1)
    lines = scrape(metrics)
    assert 'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="Fit",profile="p"} 5000' in lines
    assert (
        "scheduler_framework_extension_point_duration_seconds_sum"
        '{extension_point="Bind",profile="p",status="Success"} 0.1' in lines
    )
    nobody = SchedulerHooks()
    nobody.plugin_evaluation_child("Fit", "Filter", "p").inc()
    nobody.extension_point_child("Bind", "Success", "p").observe(1.0)


def test_sizes_are_read_at_scrape() -> None:
    metrics = Metrics("1.36.2")
    hooks = SchedulerMetrics(metrics)
    active = {("active",): 0.0}
    hooks.read_pending_pods(lambda: active)
    hooks.read_inflight_events(lambda: {("PodPopped",): 1})
    hooks.read_cache_size(lambda: {("nodes",): 3})
    hooks.read_fragment_cache(lambda: 1000, 128 << 20)
    hooks.read_bindings_in_flight(lambda: 4, 400)
    active["active",] = 7
    lines = scrape(metrics)
    for line in (
        'scheduler_pending_pods{queue="active"} 7',
        'scheduler_inflight_events{event="PodPopped"} 1',
        'scheduler_cache_size{type="nodes"} 3',
        "skedge_fragment_cache_bytes 1000",
        "skedge_fragment_cache_limit_bytes 1.34217728e+08",
        "skedge_bindings_in_flight 4",
        "skedge_bindings_in_flight_limit 400",
    ):
        assert line in lines


def test_first_attempts_without_a_known_start_have_no_sli() -> None:
    metrics = Metrics("1.36.2")
    SchedulerMetrics(metrics).pod_scheduled(1, None, False)
    assert not any(line.startswith("scheduler_pod_scheduling_sli") for line in scrape(metrics))


def test_client_queue_and_election() -> None:
    metrics = Metrics("1.36.2")
    client = ClientMetrics(metrics)
    client.request("POST", "h:1", "201", 0.01, 100, 300)
    client.streamed("GET", "h:1", "200")
    client.retried("POST", "h:1", "429")
    client.throttled("POST", "h:1", 0)
    client.undecodable("pods", "a/b")
    client.watch_ended("pods", "expired")
    queue = WorkQueueMetrics(metrics, "q")
    queue.read_running(lambda: 1.5, lambda: 1.25)
    queue.added(2)
    queue.retried()
    queue.got(1, 0.5)
    queue.done(0.25)
    leader = LeaderMetrics(metrics, "kube-scheduler")
    leader.leading(True)
    leader.slow_path()
    lines = scrape(metrics)
    for line in (
        'rest_client_requests_total{code="201",host="h:1",method="POST"} 1',
        'rest_client_requests_total{code="200",host="h:1",method="GET"} 1',
        'rest_client_request_duration_seconds_bucket{host="h:1",verb="POST",le="0.025"} 1',
        'rest_client_request_size_bytes_bucket{host="h:1",verb="POST",le="64"} 0',
        'rest_client_response_size_bytes_bucket{host="h:1",verb="POST",le="512"} 1',
        'rest_client_request_retries_total{code="429",host="h:1",verb="POST"} 1',
        'rest_client_rate_limiter_duration_seconds_count{host="h:1",verb="POST"} 1',
        'skedge_undecodable_objects_total{resource="pods"} 1',
        'skedge_watches_ended_total{reason="expired",resource="pods"} 1',
        'workqueue_depth{name="q"} 1',
        'workqueue_adds_total{name="q"} 1',
        'workqueue_retries_total{name="q"} 1',
        'workqueue_queue_duration_seconds_sum{name="q"} 0.5',
        'workqueue_work_duration_seconds_sum{name="q"} 0.25',
        'workqueue_unfinished_work_seconds{name="q"} 1.5',
        'workqueue_longest_running_processor_seconds{name="q"} 1.25',
        'leader_election_master_status{name="kube-scheduler"} 1',
        'leader_election_slowpath_total{name="kube-scheduler"} 1',
    ):
        assert line in lines
    assert not any('verb="GET"' in line for line in lines)
