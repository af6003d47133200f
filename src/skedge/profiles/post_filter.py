"""PostFilter for a search that found no node: what its plugins say goes into the diagnosis.

Upstream: `framework/runtime/framework.go` (RunPostFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from skedge.framework.plugin import HalvedPostFilter, PostFilterResult
from skedge.framework.status import Code, Status
from skedge.profiles.measures import POST_FILTER
from skedge.profiles.trials import Trials

if TYPE_CHECKING:
    from skedge.profiles.search import Search


def steps(search: Search, *, halves: bool) -> Iterator[Any]:
    """Asks the plugins in order; what they came to is the search's `nomination`.

    With `halves` it stops before a plugin that evicts pods chooses, with (plugin, what it found).
    """
    measures = search.profile.measures
    start = measures.now()
    search.diagnosis.trials = Trials(search)
    try:
        status = yield from _asked(search, halves)
    finally:
        search.diagnosis.trials = None
    measures.point(POST_FILTER, status.code.word, start)


def _asked(search: Search, halves: bool) -> Generator[Any, None, Status]:
    """Ends with the status of the point."""
    state, pod, diagnosis = search.state, search.pod, search.diagnosis
    result: PostFilterResult | None = None
    reasons: list[str] = []
    outcome_status = Status(Code.UNSCHEDULABLE)
    for plugin in search.profile.post_filter:
        if halves and isinstance(plugin, HalvedPostFilter):
            outcome = plugin.find(pod, diagnosis)
            yield plugin, outcome
            found, status = plugin.conclude(state, pod, outcome)
        else:
            found, status = plugin.post_filter(state, pod, diagnosis)
        if status.ok:
            search.nomination = found
            return status
        final = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        if final or not status.rejected:  # nobody else is asked, and what others said is dropped
            result = found if final else None
            reasons = list(status.all_reasons())
            outcome_status = status
            break
        reasons += status.all_reasons()
        if found is not None and found.nominate is not None:
            result = found
    diagnosis.post_filter_message = ", ".join(reasons)
    search.nomination = result
    return outcome_status
