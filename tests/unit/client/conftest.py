from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import pytest_asyncio

from skedge.telemetry.logs import set_verbosity

from .tlsserver import Authority


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """The lines logged so far, with their values as `key=value`."""

    def text() -> str:
        return "\n".join(
            " ".join([record.getMessage(), *(f"{k}={v}" for k, v in getattr(record, "values", {}).items())])
            for record in caplog.records
        )

    return text


@pytest.fixture
def verbose(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[int], None]]:
    """Sets the verbosity until the end of the test."""
    caplog.set_level("INFO")
    yield set_verbosity
    set_verbosity(0)


@pytest.fixture(scope="session")
def ca() -> Authority:
    return Authority()


@pytest_asyncio.fixture(autouse=True)
async def no_leftover_tasks() -> AsyncIterator[None]:
    """Every test must end the tasks it started."""
    yield
    for _ in range(3):
        await asyncio.sleep(0)
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left
