"""Every recorded question to the endpoints, asked of a process that has been through the recorded scenarios."""

from __future__ import annotations

import re

import pytest

from e2e import endpoints
from e2e.endpoints import Answered
from e2e.replay import Run

SCRAPE = "admin GET /metrics"


def comparable(answer: Answered, case: str) -> Answered:
    """Without what differs from run to run, and from one implementation to the other."""
    text = re.sub(r"^# HELP .*\n", "", answer.text, flags=re.MULTILINE)
    if "/statusz" in case:
        text = re.sub(r"^(Started|Up|Go version)  .*", r"\1", text, flags=re.MULTILINE)
    if "/configz" in case and answer.status == 200:
        return answer
    if "/pprof" in case and answer.status == 200:
        text = "(HTML index)"
    return answer._replace(text=text.rstrip("\n"))


@pytest.mark.parametrize("case", [case for case in endpoints.CASES if case != SCRAPE and case != "admin GET /flagz"])
def test_answer(run: Run, case: str) -> None:
    assert comparable(run.answers[case], case) == comparable(endpoints.recorded(case), case)


def test_flags(run: Run) -> None:
    """We have more flags than the reference; those of the reference are all there, with its values."""
    ours = run.answers["admin GET /flagz"].text.splitlines()
    theirs = endpoints.recorded("admin GET /flagz").text.splitlines()
    assert ours[:3] == theirs[:3]
    foreign = "unsupported-kube-api-over-localhost=false"  # a flag of the build that was recorded
    assert [line for line in theirs[3:] if line not in ours and line != foreign] == []
