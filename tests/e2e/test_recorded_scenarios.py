"""What kube-scheduler did in recorded scenarios and what ours does: requests of each object, and what is left."""

from __future__ import annotations

import json

import pytest

from e2e import recording
from e2e.replay import SCENARIOS, Run

NOT_YET: dict[tuple[str, str], str] = {}
"""(server, scenario) that differ still -> why. It must shrink: what passes fails the test until it is taken out."""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_requests(run: Run, scenario: str) -> None:
    recorded = [step for step in SCENARIOS[scenario] if not step.operator]
    problems = recording.differences(recorded, run.requests[scenario], once=scenario == "start")
    why = NOT_YET.get((run.backend, scenario))
    if why is not None:
        assert problems, f"{scenario} passes: take it out of NOT_YET"
        pytest.xfail(why)
    assert not problems, "\n".join(problems)


def test_outcome(run: Run) -> None:
    recorded = recording.outcome()
    theirs, ours = (
        {kind: sorted(json.dumps(recording.plain(item), sort_keys=True) for item in each[kind]) for kind in each}
        for each in (recorded, run.left)
    )
    assert ours["pods"] == theirs["pods"]
    assert ours["events"] == theirs["events"]
    assert run.exit_status == 0
    assert run.findings == []
