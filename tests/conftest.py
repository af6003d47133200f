"""Fixtures of every test: nothing may be left running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio


@pytest_asyncio.fixture(autouse=False)
async def no_leftover_tasks() -> AsyncIterator[None]:
    """Fails a test that leaves asyncio tasks behind."""
    before = asyncio.all_tasks()
    yield
    left = [task for task in asyncio.all_tasks() - before if not task.done() and task is not asyncio.current_task()]
    assert not left, f"tasks left over: {[task.get_name() for task in left]}"
