"""Parts of a pod's scheduling signature that several plugins contribute."""

from __future__ import annotations

from typing import Any

import msgspec

from skedge.snapshot.pods import PodInfo


def sorted_tolerations(pod: PodInfo) -> list[Any]:
    """The tolerations as JSON, by key, then value."""
    ordered = sorted(pod.tolerations, key=lambda t: (t.key, t.value))
    return [msgspec.to_builtins(t) for t in ordered]
