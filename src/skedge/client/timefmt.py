"""Times as the API writes them, always in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def micro_time(epoch: float) -> str:
    """`meta/v1 MicroTime`: six decimals."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rfc3339(epoch: float) -> str:
    """`meta/v1 Time`: whole seconds."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
