"""Times as the API writes them, always in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def micro_time(epoch: float) -> str:
    """`meta/v1 MicroTime`: six decimals."""
    seconds, micros = divmod(round(epoch * 1e6), 1_000_000)
    return f"{_to_the_second(seconds)}.{micros:06}Z"


def rfc3339(epoch: float) -> str:
    """`meta/v1 Time`: whole seconds."""
    return f"{_to_the_second(int(epoch))}Z"


@lru_cache(maxsize=4)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
