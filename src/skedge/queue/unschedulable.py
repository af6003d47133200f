"""Pods that wait for the cluster to change, gated ones included.

Upstream: `pkg/scheduler/backend/queue/unschedulable_pods.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from skedge.queue.queued_pod import QueuedPodInfo


class Bucket(NamedTuple):
    """What decides whether an event can matter to a pod at all: pods alike in this are looked at, or not, together."""

    scheduler_name: str
    rejectors: frozenset[str]
    gating_plugin: str


class UnschedulablePods:
    """A map by pod key, kept in buckets, so that an event costs only the pods whose rejectors listen to it."""

    def __init__(self) -> None:
        self._records: dict[str, QueuedPodInfo] = {}
        self._buckets: dict[Bucket, dict[str, QueuedPodInfo]] = {}
        self.gated = 0

    def put(self, record: QueuedPodInfo) -> bool:
        """Insert, or take note of new rejectors or another gate. True if no pod of its key was inside."""
        key = record.key
        bucket = Bucket(record.pod.scheduler_name, record.rejectors, record.gating_plugin)
        old = self._records.get(key)
        if old is record and old.bucket == bucket:
            return False
        if old is not None:
            self._leave(old)
        self._records[key] = record
        record.bucket = bucket
        self._buckets.setdefault(bucket, {})[key] = record
        self.gated += bucket.gating_plugin != ""
        return old is None

    def remove(self, key: str) -> QueuedPodInfo | None:
        record = self._records.pop(key, None)
        if record is not None:
            self._leave(record)
        return record

    def _leave(self, record: QueuedPodInfo) -> None:
        bucket = record.bucket
        assert isinstance(bucket, Bucket)
        others = self._buckets[bucket]
        del others[record.key]
        if not others:
            del self._buckets[bucket]
        self.gated -= bucket.gating_plugin != ""
        record.bucket = None

    def select(self, wanted: Callable[[Bucket], bool]) -> list[QueuedPodInfo]:
        """The pods of some buckets, as of now: they may be moved while the list is gone through."""
        return [record for bucket, records in self._buckets.items() if wanted(bucket) for record in records.values()]

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._records.get(key)

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._records.values())

    def validate(self) -> None:
        """AssertionError when a pod is not in the bucket it belongs to, or the gated ones are miscounted."""
        for key, record in self._records.items():
            bucket = Bucket(record.pod.scheduler_name, record.rejectors, record.gating_plugin)
            assert record.key == key, f"{key} points to {record.key}"
            assert record.bucket == bucket, f"{key} is in bucket {record.bucket}, belongs in {bucket}"
            assert self._buckets[bucket].get(key) is record, f"{key} is missing in its bucket"
        assert sum(map(len, self._buckets.values())) == len(self._records), "buckets hold more than the map"
        assert all(self._buckets.values()), "an empty bucket was kept"
        assert self.gated == sum(record.gated for record in self), "gated pods miscounted"
