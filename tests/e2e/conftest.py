"""One replay of the recorded scenarios, for all tests that look at it; auditors that only detect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from e2e import servers
from e2e.replay import Run, replay
from skedge.scheduler.auditor import Auditor


@pytest.fixture(scope="session", params=servers.BACKENDS)
def run(request: pytest.FixtureRequest) -> Run:
    return asyncio.run(replay(request.param))


@pytest.fixture(autouse=True)
def only_detect(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Audits of schedulers in this process repair nothing, and what they find fails the test."""
    findings: list[str] = []

    def report(auditor: Auditor, found: Any) -> None:
        findings.append(str(found.finding))

    monkeypatch.setattr(Auditor, "_repair", report)
    yield
    assert not findings
