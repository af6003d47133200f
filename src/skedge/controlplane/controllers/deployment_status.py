"""The status of a deployment: counts, and the conditions Available, Progressing and ReplicaFailure.

Upstream: `pkg/controller/deployment/{sync.go calculateStatus,progress.go}`, `.../util/deployment_util.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane.controllers.objects import epoch
from skedge.controlplane.controllers.rollout import bounds, has, size_of, wanted

JSON = dict[str, Any]

CREATED, FOUND = "NewReplicaSetCreated", "FoundNewReplicaSet"
UPDATED, AVAILABLE = "ReplicaSetUpdated", "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"


def is_complete(obj: JSON, status: JSON) -> bool:
    """Every pod is of the new template and available, and no old one is left."""
    size = size_of(obj)
    counts = (status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas"))
    return all(count == size for count in counts) and (
        status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
    )


def status(
    obj: JSON, new: JSON | None, old: list[JSON], *, created: bool, timestamp: str, now: float
) -> tuple[JSON, float | None]:
    """The status, and the seconds after which the progress deadline has to be looked at. `created`: the new replica
    set was made in this round; `timestamp` is `now` as the API writes it."""
    sets = [*old, new] if new is not None else old
    before: JSON = obj.get("status") or {}
    available = sum(has(each, "availableReplicas") for each in sets)
    counts = {
        "observedGeneration": obj["metadata"].get("generation", 0),
        "replicas": sum(has(each, "replicas") for each in sets),
        "updatedReplicas": has(new, "replicas") if new is not None else 0,
        "readyReplicas": sum(has(each, "readyReplicas") for each in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(wanted, sets)) - available),
    }
    result: JSON = {name: count for name, count in counts.items() if count}
    if any("terminatingReplicas" in (each.get("status") or {}) for each in sets):
        result["terminatingReplicas"] = sum(has(each, "terminatingReplicas") for each in sets)
    if before.get("collisionCount"):
        result["collisionCount"] = before["collisionCount"]
    conditions = _Conditions(before.get("conditions") or (), timestamp)
    if available >= size_of(obj) - bounds(obj)[1]:
        text = "Deployment has minimum availability."
        conditions.set("Available", "True", "MinimumReplicasAvailable", text)
    else:
        text = "Deployment does not have minimum availability."
        conditions.set("Available", "False", "MinimumReplicasUnavailable", text)
    _progress(obj, new, before, result, conditions, created, now)
    failure = next((found for each in ([new] if new else []) + old if (found := _failure(each)) is not None), None)
    if failure is None:
        conditions.remove("ReplicaFailure")
    else:
        conditions.set("ReplicaFailure", failure["status"], failure.get("reason", ""), failure.get("message", ""))
    if conditions.items:
        result["conditions"] = conditions.items
    return result, _deadline(obj, result, conditions, now)


def _failure(replica_set: JSON) -> JSON | None:
    conditions = (replica_set.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "ReplicaFailure"), None)


def _progress(
    obj: JSON, new: JSON | None, before: JSON, after: JSON, conditions: _Conditions, created: bool, now: float
) -> None:
    spec = obj["spec"]
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is None or deadline == 2**31 - 1:
        conditions.remove("Progressing")
        return
    current = conditions.get("Progressing")
    reason = current.get("reason", "") if current else ""
    if spec.get("paused"):
        if reason not in (PAUSED, TIMED_OUT):
            conditions.set("Progressing", "Unknown", PAUSED, "Deployment is paused")
        return
    if reason == PAUSED:
        conditions.set("Progressing", "Unknown", RESUMED, "Deployment is resumed")
        return
    name = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else f'Deployment "{obj["metadata"]["name"]}"'
    if created and new is not None:
        conditions.set("Progressing", "True", CREATED, f'Created new replica set "{new["metadata"]["name"]}"')
        return
    if current is None and new is not None:
        conditions.set("Progressing", "True", FOUND, f'Found new replica set "{new["metadata"]["name"]}"')
    if reason == AVAILABLE and after.get("replicas", 0) == after.get("updatedReplicas", 0):
        return
    if is_complete(obj, after):
        conditions.set("Progressing", "True", AVAILABLE, f"{name} has successfully progressed.")
    elif _moved(before, after):
        conditions.set("Progressing", "True", UPDATED, f"{name} is progressing.", renew=True)
    elif _timed_out(conditions.get("Progressing"), deadline, now):
        conditions.set("Progressing", "False", TIMED_OUT, f"{name} has timed out progressing.")


def _moved(before: JSON, after: JSON) -> bool:
    """More new, fewer old, more ready or more available pods than before."""

    def old(status: JSON) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(after.get(name, 0) > before.get(name, 0) for name in more) or old(after) < old(before)


def _timed_out(condition: JSON | None, deadline: int, now: float) -> bool:
    if condition is None or condition.get("reason") == AVAILABLE:
        return False
    return condition.get("reason") == TIMED_OUT or epoch(condition.get("lastUpdateTime")) + deadline < now


def _deadline(obj: JSON, after: JSON, conditions: _Conditions, now: float) -> float | None:
    """Seconds until a rollout that stands still has timed out."""
    deadline, current = obj["spec"].get("progressDeadlineSeconds"), conditions.get("Progressing")
    if deadline is None or current is None or obj["spec"].get("paused") or is_complete(obj, after):
        return None
    if current.get("reason") in (TIMED_OUT, AVAILABLE):
        return None
    return max(1.0, float(epoch(current.get("lastUpdateTime")) + deadline - now + 1.0))


class _Conditions:
    """The conditions of a deployment; they have an update time besides the transition time."""

    def __init__(self, items: Any, timestamp: str) -> None:
        self.items: list[JSON] = list(items)
        self._timestamp = timestamp

    def get(self, type: str) -> JSON | None:
        return next((each for each in self.items if each["type"] == type), None)

    def remove(self, type: str) -> None:
        self.items = [each for each in self.items if each["type"] != type]

    def set(self, type: str, status: str, reason: str, message: str, *, renew: bool = False) -> None:
        """Set a condition; with the same status and reason it is left alone unless its update time is to `renew`."""
        old = self.get(type)
        if old is not None and old["status"] == status and old.get("reason") == reason and not renew:
            return
        transition = old["lastTransitionTime"] if old is not None and old["status"] == status else self._timestamp
        new = {
            "type": type,
            "status": status,
            "lastUpdateTime": self._timestamp,
            "lastTransitionTime": transition,
            "reason": reason,
            "message": message,
        }
        self.items = [each for each in self.items if each is not old] + [new]
