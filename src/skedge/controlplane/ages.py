"""Spans of time as kubectl shows them (`apimachinery/pkg/util/duration`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

JSON = dict[str, Any]

_UNKNOWN = "<unknown>"


def duration(seconds: float) -> str:
    """A span as kubectl abbreviates it (`apimachinery/pkg/util/duration`)."""
    s = int(seconds)
    if s < -1:
        return "<invalid>"
    if s < 0:
        return "0s"
    if s < 120:
        return f"{s}s"
    minutes = s // 60
    if minutes < 10:
        return f"{minutes}m{s % 60}s" if s % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = s // 3600
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{hours // 24}d{hours % 24}h" if hours % 24 else f"{hours // 24}d"
    if hours < 24 * 365 * 2:
        return f"{hours // 24}d"
    days = hours // 24
    if hours < 24 * 365 * 8:
        return f"{days // 365}y{days % 365}d" if days % 365 else f"{days // 365}y"
    return f"{days // 365}y"


def since(text: str | None, now: float) -> str:
    """How long ago a timestamp was."""
    if not text:
        return _UNKNOWN
    return duration(now - datetime.fromisoformat(text).timestamp())


def age(obj: JSON, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)
