"""Sets of completion indexes as a Job's status writes them: `1,3-5,7`.

Upstream: `pkg/controller/job/indexed_job_utils.go`.
"""

from __future__ import annotations

from collections.abc import Iterable

from skedge.controlplane.controllers.objects import Pod

INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod of an Indexed job."""


def parse_indexes(text: str) -> set[int]:
    """The indexes of a text; parts that cannot be read are passed over."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not dash):
            found.update(range(int(first), int(last or first) + 1))
    return found


def write_indexes(indexes: Iterable[int]) -> str:
    """The text of a set of indexes; runs of three or more, and of two, are written as ranges."""
    parts: list[str] = []
    start = end = None
    for index in [*sorted(indexes), None]:
        if end is not None and index == end + 1:
            end = index
            continue
        if start is not None:
            parts.append(str(start) if start == end else f"{start}-{end}")
        start = end = index
    return ",".join(parts)


def index_of(pod: Pod) -> int | None:
    """The completion index a pod works on."""
    text = (pod.metadata.annotations or {}).get(INDEX, "")
    return int(text) if text.isdigit() else None
