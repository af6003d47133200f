"""Jobs whose indexes fail one by one (`backoffLimitPerIndex`), or that need not finish all of them (`successPolicy`).

A pod carries how often its index failed before; the failed pod of an index keeps its tracking finalizer until the next
one carries the count on. Upstream: `pkg/controller/job/{backoff_utils,indexed_job_utils,success_policy}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skedge.controlplane.controllers.job_indexes import index_of, parse_indexes
from skedge.controlplane.controllers.job_policy import action_of
from skedge.controlplane.controllers.objects import Pod

JSON = dict[str, Any]

FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


class IndexFailures:
    """The failures of a job's indexes. `failed` are the indexes given up."""

    def __init__(self, spec: JSON, status: JSON, pods: Iterable[Pod], completed: set[int]) -> None:
        self._spec = spec
        self.limit: int | None = spec.get("backoffLimitPerIndex")
        self.failed: set[int] = set()
        self._last: dict[int, Pod] = {}
        self._going_on: set[int] = set()
        if self.limit is None:
            return
        self.failed = parse_indexes(status.get("failedIndexes", ""))
        for pod in pods:
            index = index_of(pod)
            if index is None:
                continue
            if pod.is_active:
                self._going_on.add(index)
            if not is_failed(pod, spec):
                continue
            last = self._last.get(index)
            if last is None or _times(pod) > _times(last):
                self._last[index] = pod
            action = action_of(spec, pod)
            ignored = action is not None and action.name == "Ignore"
            if (action is not None and action.name == "FailIndex") or (
                not ignored and _number(pod, FAILURES) + 1 > self.limit
            ):
                self.failed.add(index)
        self.failed -= completed
        self._settled = self.failed | completed

    def is_kept(self, pod: Pod) -> bool:
        """Whether the pod's end must not be counted yet: the next pod of its index is not there."""
        index = index_of(pod)
        if index is None or self._last.get(index) is not pod:
            return False
        return index not in self._settled and index not in self._going_on

    def times(self, index: int) -> tuple[int, Pod | None]:
        """How often an index failed, for whatever reason, and its last failed pod."""
        last = self._last.get(index)
        return (_times(last) + 1, last) if last is not None else (0, None)

    def annotations(self, index: int) -> dict[str, str]:
        """What the next pod of an index carries on."""
        if self.limit is None:
            return {}
        last = self._last.get(index)
        counts = {FAILURES: 0, IGNORED: 0}
        if last is not None:
            counts = {name: _number(last, name) for name in counts}
            action = action_of(self._spec, last)
            counts[IGNORED if action is not None and action.name == "Ignore" else FAILURES] += 1
        return {name: str(count) for name, count in counts.items() if count or name == FAILURES}

    def verdict(self, completed: int) -> tuple[str, str] | None:
        """Reason and message where so many failed indexes end the job."""
        most, failed = self._spec.get("maxFailedIndexes"), len(self.failed)
        if most is not None and failed > most:
            return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if failed and failed + completed >= self._spec["completions"]:
            return "FailedIndexes", "Job has failed indexes"
        return None


def success_message(spec: JSON, completed: set[int]) -> str:
    """Which rule of the success policy the completed indexes satisfy; "" if none."""
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        wanted, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        among = completed if wanted is None else completed & parse_indexes(wanted)
        least = count if count is not None else len(parse_indexes(wanted or ""))
        if least and len(among) >= least:
            return f"Matched rules at index {number}"
    return ""


def is_failed(pod: Pod, spec: JSON) -> bool:
    """Ended badly, or deleted before it ended, unless the job waits for the end of those."""
    if pod.status.phase in ("Failed", "Succeeded"):
        return pod.status.phase == "Failed"
    return pod.metadata.deletion_timestamp is not None and spec.get("podReplacementPolicy") != "Failed"


def _times(pod: Pod) -> int:
    return _number(pod, FAILURES) + _number(pod, IGNORED)


def _number(pod: Pod, annotation: str) -> int:
    text = (pod.metadata.annotations or {}).get(annotation, "")
    return int(text) if text.isdigit() else 0
