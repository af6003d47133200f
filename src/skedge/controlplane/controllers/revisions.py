"""What deployments, stateful sets and daemon sets share: hashes of templates, revision numbers, shares of a number.

Upstream: `pkg/controller/{history,util/hash}`, `apimachinery/pkg/util/intstr`.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

JSON = dict[str, Any]

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_encode = msgspec.json.Encoder(order="deterministic").encode


def template_hash(template: JSON, collisions: int = 0) -> str:
    """Ten characters that tell templates apart, fit for names and labels; `collisions` gives another try."""
    digest = hashlib.sha256(_encode(template) + (str(collisions).encode() if collisions else b"")).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """A number, or a percentage of `total` rounded up or down (`GetScaledValueFromIntOrPercent`)."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    try:
        share = int(value.removesuffix("%")) * total
    except ValueError:
        return 0
    return -(-share // 100) if up else share // 100


def number(text: str | None) -> int:
    """An annotation that should be a number; 0 where it is none."""
    try:
        return int(text or "0")
    except ValueError:
        return 0
