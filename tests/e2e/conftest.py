"""One replay of the recorded scenarios, for all tests that look at it."""

from __future__ import annotations

import asyncio

import pytest

from e2e import servers
from e2e.replay import Run, replay


@pytest.fixture(scope="session", params=servers.BACKENDS)
def run(request: pytest.FixtureRequest) -> Run:
    return asyncio.run(replay(request.param))
