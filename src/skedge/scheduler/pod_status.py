"""Status patches of pods, as strategic merge patches of what changed. Upstream: `util/utils.go`, `schedule_one.go`.

The body holds what a two-way merge of old and new status would: a new condition whole, of one that stays only the
fields that differ, and the order of all conditions as soon as there are two.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from skedge.api.core import PodCondition

POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"


def timestamp(now: float) -> str:
    """RFC 3339 in whole seconds, UTC."""
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def status_patch(
    conditions: Sequence[PodCondition],
    nominated_node_name: str,
    condition: PodCondition | None,
    nominate: str | None,
    now: float,
) -> dict[str, Any] | None:
    """The patch that sets a condition and the nominated node, or None when nothing would change.

    `conditions` and `nominated_node_name` are what the pod has now; `condition` comes without transition time, which
    is `now` (epoch seconds) unless the status stays. `nominate`: a node, "" to clear, None to leave alone.
    """
    status: dict[str, Any] = {}
    if nominate is not None and nominate != nominated_node_name:
        status["nominatedNodeName"] = nominate or None
    if condition is not None:
        old = next((c for c in conditions if c.type == condition.type), None)
        change = _new_condition(condition, now) if old is None else _changed_condition(old, condition, now)
        if change is not None:
            if conditions and (old is None or len(conditions) >= 1):
                kinds = [c.type for c in conditions] + ([condition.type] if old is None else [])
                status["$setElementOrder/conditions"] = [{"type": kind} for kind in kinds]
            status["conditions"] = [change]
    return {"status": status} if status else None


def _new_condition(condition: PodCondition, now: float) -> dict[str, Any]:
    body: dict[str, Any] = {
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
        "message": condition.message,
        "reason": condition.reason,
        "status": condition.status,
        "type": condition.type,
    }
    if condition.observed_generation:
        body["observedGeneration"] = condition.observed_generation
    return body


def _changed_condition(old: PodCondition, new: PodCondition, now: float) -> dict[str, Any] | None:
    """Fields that differ, and the type; None when status, reason and message are the same."""
    if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return None
    body: dict[str, Any] = {}
    if old.status != new.status:
        body["lastTransitionTime"] = timestamp(now)
        body["status"] = new.status
    if old.message != new.message:
        body["message"] = new.message
    if old.reason != new.reason:
        body["reason"] = new.reason
    if (old.observed_generation or 0) != (new.observed_generation or 0):
        body["observedGeneration"] = new.observed_generation
    body["type"] = new.type
    return body
