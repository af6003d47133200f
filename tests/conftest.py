"""Fixtures of every test: nothing may be left running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio


@pytest_asyncio.fixture
async def no_leftover_tasks() -> AsyncIterator[None]:
    """Fails a test that leaves asyncio tasks behind."""
    before = asyncio.all_tasks()
    yield
    for _ in range(3):  # those that were cancelled a moment ago may end
        await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() - before if not task.done() and task is not asyncio.current_task()]
    assert not left, f"tasks left over: {[task.get_name() for task in left]}"


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> None:
    """Every asyncio test is looked after; it comes first, so that all other fixtures are gone when it looks."""
    if request.node.get_closest_marker("asyncio") is not None:
        request.getfixturevalue("no_leftover_tasks")
