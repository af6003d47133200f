"""Each line of the check list for the outside, and each step of the start-up flow of old releases, has a test.

The steps that `unit/cli/test_startup_walk.py` and others carry in their names (`test_a7_...`) are found by that; the
tables name the tests of all others. The lists of gaps may only shrink.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]

CHECKS: Final = {
    "1 arguments are refused": "unit/cli/test_startup_walk.py::test_a17_arguments_are_refused",
    "2 help has ten sections": "unit/config/test_flags.py::test_help_shows_ten_sections_in_order",
    "3 version, after the gates": "unit/test_outside_checklist.py::test_gates_come_before_the_version",
    "4 what is written reads back": "e2e/test_command.py::test_configuration_is_written_and_read_back",
    "5 bad files": """unit/config/test_load.py::test_strictness unit/config/test_load.py::test_documents
        unit/config/test_load.py::test_removed_versions unit/config/test_validation.py::test_rules
        unit/config/test_plugin_args.py::test_rules""",
    "6 flags beside a file": """unit/config/test_complete.py::test_deprecated_flags_are_ignored_with_a_file
        unit/config/test_complete.py::test_leader_election_flags_override_one_by_one""",
    "7 no configuration": "e2e/test_command.py::test_no_configuration_at_all",
    "8 merging and expansion": """unit/config/test_plugin_sets.py::test_merge
        unit/config/test_plugin_sets.py::test_expansion""",
    "9 default profile": "unit/config/test_plugin_sets.py::test_default_profile",
    "10 arguments of NodeResourcesFit": """
        unit/config/test_plugin_sets.py::test_arguments_are_refused_where_plugins_are_made""",
    "11 certificate and TLS versions": """unit/serving/test_tls.py::test_a_made_pair
        unit/serving/test_server.py::test_the_lowest_version""",
    "12 healthz": "unit/serving/test_health.py::test_answers",
    "13 readyz before and after": """e2e/test_command.py::test_serves_while_it_waits
        unit/serving/test_health.py::test_reasons""",
    "14 who may not": """unit/serving/test_recorded_endpoints.py::test_every_recorded_answer
        unit/serving/test_authorization.py::test_no_answer_from_the_api_server
        e2e/test_outside.py::test_matrix_nobody_answers""",
    "15 metrics": """e2e/test_recorded_endpoints.py::test_counts_of_the_scheduler
        e2e/test_recorded_endpoints.py::test_forms_of_all_families
        unit/telemetry/test_metrics.py::test_stability_leads_the_help_text""",
    "16 metrics of pods": """unit/serving/test_pod_resources.py::test_a_standby_shows_no_pods
        unit/serving/test_pod_resources.py::test_series""",
    "17 verbosity while it runs": """unit/serving/test_debug.py::test_verbosity
        unit/telemetry/test_logs.py::test_levels_change_for_loggers_that_exist""",
    "18 profiling off": "unit/serving/test_endpoints.py::test_what_configuration_switches_off",
    "19 take-over": "ha/test_fencing.py::test_others_take_over_in_time",
    "20 lease lost": "e2e/test_command.py::test_lease_lost",
    "21 exit after SIGTERM": """e2e/test_command.py::test_end_with_an_election_releases_the_lease
        e2e/test_command.py::test_end_without_an_election_is_a_failure""",
    "22 SIGUSR2": "e2e/test_command.py::test_end_with_an_election_releases_the_lease",
    "23 410, bookmarks, deleted while away": """
        unit/client/test_reflector.py::test_expired_watch_lists_anew_and_consistently
        unit/client/test_reflector.py::test_closed_watch_resumes_at_the_last_version
        unit/client/test_informer.py::test_vanished_objects_become_tombstones""",
    "24 series of events": """unit/client/test_events.py::test_series
        unit/client/test_events.py::test_running_series_is_refreshed_every_half_hour
        unit/client/test_events.py::test_idle_series_is_finished_and_forgotten""",
    "25 rate": """unit/client/test_rest.py::test_rate_limit
        unit/client/test_rest.py::test_bucket_refills_up_to_its_burst""",
    "26 flagz and statusz": "unit/serving/test_zpages.py::test_negotiation",
}
"""Line of the check list -> tests."""

STEPS: Final = {
    "A5 preemption": """unit/scheduler/test_preemption_executor.py::test_victims_go_and_the_preemptor_gets_their_room
        unit/preemption/test_evaluator.py::test_budgets""",
    "A6 affinity": "conformance/test_conformance.py::test_selection",
    "A28 which API of events": """unit/client/test_events.py::test_choice_of_api
        e2e/test_process.py::test_events_by_the_older_api""",
    "A29 recorder": "e2e/test_process.py::test_each_profile_has_its_plugins_and_its_name",
    "A30 events in the log": "unit/client/test_events.py::test_echo",
    "A31 events sent": """unit/client/test_events.py::test_full_queue_drops
        unit/client/test_events.py::test_transport_errors_are_retried_twelve_times""",
    "A33 healthz": """unit/serving/test_health.py::test_leader_election_stands_in_healthz_and_first_in_readyz
        unit/serving/test_health.py::test_the_watchdog_waits_for_the_lease_and_twenty_seconds""",
    "A34 metrics": "e2e/test_recorded_endpoints.py::test_counts_of_the_scheduler",
    "A35 profiles": "unit/serving/test_debug.py::test_profiles_are_files_for_the_tool",
    "A36 plain HTTP": "e2e/test_command.py::test_plain_http_on_loopback",
    "A37 who may": """e2e/test_outside.py::test_matrix_only_a_kubeconfig e2e/test_outside.py::test_matrix_all_is_well
        e2e/test_outside.py::test_matrix_nobody_answers e2e/test_outside.py::test_matrix_no_port
        e2e/test_command.py::test_no_configuration_at_all""",
    "A39 leading and not": """e2e/test_process.py::test_a_second_process_waits_in_reserve
        e2e/test_command.py::test_lease_lost""",
    "A40 take-over": "ha/test_three_replicas.py::test_one_leads_and_nothing_is_lost",
    "A41 endings": "e2e/test_command.py::test_end_without_an_election_is_a_failure",
    "A43 version first": "e2e/test_outside.py::test_matrix_all_is_well",
    "B1 what is written": "deploy/test_rights.py",
    "B2 pods of others": """
        unit/scheduler/test_cycles.py::test_pods_of_other_schedulers_count_only_once_they_have_a_node""",
    "B3 restart": "ha/test_three_replicas.py::test_one_leads_and_nothing_is_lost",
    "B4 every failure": """
        unit/scheduler/test_cycles.py::test_every_failure_leaves_the_pod_in_one_queue_and_nothing_behind""",
    "B5 backoff": "unit/queue/test_backoff.py::test_duration",
    "B6 one list a kind": "e2e/test_recorded_scenarios.py::test_requests",
    "B7 pods that ended": "e2e/test_recorded_scenarios.py::test_requests",
    "B8 no resync": "unit/client/test_informer.py::test_resync_is_off_unless_asked_for",
    "B9 woken by events": """
        unit/scheduler/test_cycles.py::test_a_pod_that_does_not_fit_waits_and_a_new_node_wakes_it""",
    "B11 what is placed is feasible": "soak/test_soak.py",
    "B12 nothing ends the loop": """
        unit/scheduler/test_cycles.py::test_every_failure_leaves_the_pod_in_one_queue_and_nothing_behind
        unit/scheduler/test_cycles.py::test_telling_that_fails_changes_nothing""",
}
"""Step of the start-up flow that no test has in its name -> tests."""

GAPS: Final = {
    "A32": "events are kept by the API server",
    "B10": "a figure of the benchmarks, not a test",
}


def numbers(table: Iterable[str]) -> list[str]:
    return [line.partition(" ")[0] for line in table]


def test_every_line_of_the_check_list_has_one() -> None:
    assert numbers(CHECKS) == [str(number) for number in range(1, 27)]


def test_every_step_has_one() -> None:
    in_names = re.compile(r"def test_((?:[ab]\d+_(?:and_)?)+)")
    found = {
        step.upper()
        for path in TESTS.rglob("test_*.py")
        for match in in_names.finditer(path.read_text("utf-8"))
        for step in re.findall(r"[ab]\d+", match[1])
    }
    steps = [f"A{i}" for i in range(1, 45)] + [f"B{i}" for i in range(1, 13)]
    assert [step for step in steps if step not in found | {*numbers(STEPS)} | GAPS.keys()] == []
    assert not GAPS.keys() & (found | {*numbers(STEPS)})


@pytest.mark.parametrize("line", [*CHECKS, *STEPS])
def test_the_tests_exist(line: str) -> None:
    for test in (CHECKS | STEPS)[line].split():
        path, _, name = test.partition("::")
        assert f"def {name or 'test_'}" in (TESTS / path).read_text("utf-8"), test


def test_gates_come_before_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    from skedge.cli.main import main

    assert main(["scheduler", "--version"]) == 0
    assert capsys.readouterr() == ("Kubernetes v1.36.2\n", "")
    assert main(["scheduler", "--version", "--feature-gates=Nope=true"]) == 1
    assert capsys.readouterr() == ("", "Error: unrecognized feature gate: Nope\n")
