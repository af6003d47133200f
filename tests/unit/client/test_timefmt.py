"""Times in the API's two forms, on both sides of a second."""

from __future__ import annotations

import pytest

from skedge.client.timefmt import micro_time, rfc3339


@pytest.mark.parametrize(
    ("epoch", "micro", "whole"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00Z"),
        (1_796_045_237.17135, "2026-11-30T13:27:17.171350Z", "2026-11-30T13:27:17Z"),
        (7.9999999, "1970-01-01T00:00:08.000000Z", "1970-01-01T00:00:07Z"),
        (951_782_399.5, "2000-02-28T23:59:59.500000Z", "2000-02-28T23:59:59Z"),
    ],
)
def test_times(epoch: float, micro: str, whole: str) -> None:
    assert (micro_time(epoch), rfc3339(epoch)) == (micro, whole)
