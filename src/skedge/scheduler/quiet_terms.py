"""What members of a group that were tried before show of their pod affinity to those tried after them.

The reference lists nodes with pods that have affinity terms when a cycle begins, and looks for terms of other pods on
those alone. So a member that was assumed since, on a node without such pods, keeps its terms to itself; only to a pod
with preferences of its own, for which all nodes are gone through, does it show what scores are made of.
Upstream: `backend/cache/snapshot.go` (AssumePod), `plugins/interpodaffinity`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skedge.snapshot.affinity_terms import NO_TERMS, PodTerms
from skedge.snapshot.pods import PlacedPod, PodInfo

if TYPE_CHECKING:
    from skedge.cache.cache import Cache


class _Member(NamedTuple):
    uid: str
    quiet: PodTerms  # for pods without preferences
    open: PodTerms  # for pods with some


class QuietTerms:
    """The members assumed so far in one attempt."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._members: list[_Member] = []
        self._uids: set[str] = set()
        self._opened = False

    def assumed(self, pod: PlacedPod) -> None:
        """A member was assumed."""
        self._uids.add(pod.uid)
        terms = pod.affinity_terms
        if terms is NO_TERMS:
            return
        before = [
            other.affinity_terms
            for other in self._cache.table.pods[pod.row].values()
            if other.uid not in self._uids and other.affinity_terms is not NO_TERMS
        ]
        anti = terms.anti if any(other.anti for other in before) else ()
        open_ = PodTerms(terms.affinity, anti, terms.preferred)
        quiet = open_ if before else PodTerms((), anti, ())
        if quiet != terms:
            self._members.append(_Member(pod.uid, quiet, open_))
            self._cache.show_terms(pod.uid, open_ if self._opened else quiet)

    def show_to(self, pod: PodInfo) -> None:
        """The next member is looked at."""
        opened = bool(pod.affinity_terms.preferred)
        if opened != self._opened:
            self._opened = opened
            for member in self._members:
                self._cache.show_terms(member.uid, member.open if opened else member.quiet)
