"""Standing counters: how many pods of a scope, and how many holders of an affinity term, each row has.

They replace scans over pods: a pod that comes or goes touches the counters it belongs to, nothing else, and a cycle
reads sums per topology domain that were there before. A `PodCount` is made when somebody asks for it, from the postings
of its labels, and lives while it is used (bounded in bytes). `Holders` exist while a pod holds the term.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Protocol

import numpy as np

from skedge.snapshot.affinity_terms import NO_LABELS, NO_TERMS, PodTerms, Scope, Term
from skedge.snapshot.counters_index import Postings, SelectorIndex
from skedge.snapshot.counters_recent import Recent
from skedge.snapshot.counters_rows import Domains, DomainSums, RowCounts, Rule
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PlacedPod

Names = frozenset[str] | None
"""Names of namespaces; None: every namespace."""


class Namespaces(Protocol):
    """The store of Namespace objects, as much of it as is needed here."""

    version: int

    def get(self, name: str, namespace: str = "") -> Any: ...

    def __iter__(self) -> Any: ...


class Kind(Enum):
    """What a held term is for."""

    ANTI = "required anti-affinity"
    AFFINITY = "required affinity"
    PREFERRED = "preferred, with a weight"


class PodCount(RowCounts):
    """Pods per row that belong to all of some scopes; `live` leaves out pods that are being deleted."""

    __slots__ = ("live", "names", "scopes", "selectors", "version")

    def __init__(self, table: NodeTable, kept: Recent[DomainSums], scopes: tuple[Scope, ...], live: bool) -> None:
        super().__init__(table, kept)
        self.scopes = scopes
        self.selectors = tuple(scope.selector for scope in scopes)
        self.live = live
        self.names: tuple[Names, ...] = ()
        self.version = -1  # of the namespaces that `names` were read from

    def counts(self, pod: PlacedPod) -> bool:
        """Whether a pod is counted."""
        if self.live and pod.terminating:
            return False
        return self.holds(pod.namespace, pod.labels, self.names)

    def holds(self, namespace: str, labels: Mapping[str, str], names: tuple[Names, ...]) -> bool:
        """Whether a pod with these labels belongs to the scopes, given their namespaces."""
        for among, selector in zip(names, self.selectors, strict=True):
            if (among is not None and namespace not in among) or not selector.matches(labels):
                return False
        return True

    def has(self, pod: Any) -> bool:
        """Whether a pod (placed or not, terminating or not) belongs to the scopes."""
        return self.holds(pod.namespace, pod.labels, self.names)


class Holders(RowCounts):
    """Pods per row that hold a term (one that has it twice counts twice). `weight` is 0 for required terms."""

    __slots__ = ("key", "term", "weight")

    def __init__(self, table: NodeTable, kept: Recent[DomainSums], key: tuple[Kind, int, Term]) -> None:
        super().__init__(table, kept)
        self.key = key
        _, self.weight, self.term = key


class Counters:
    """See the module's docstring. One for a table; it follows the table's pods from the start."""

    LIMIT: Final = 48 << 20  # bytes of pod counts, of domains and of sums, each

    def __init__(self, table: NodeTable, namespaces: Namespaces) -> None:
        self.table = table
        self._namespaces = namespaces
        self._postings = Postings(table)
        self._sums: Recent[DomainSums] = Recent(self.LIMIT, DomainSums.drop)
        self._counts: Recent[PodCount] = Recent(self.LIMIT, self._forget)
        self._count_index: SelectorIndex[PodCount] = SelectorIndex()
        self._domains: Recent[Domains] = Recent(self.LIMIT)
        self._holders: dict[tuple[Kind, int, Term], Holders] = {}
        self._holder_index: dict[Kind, SelectorIndex[Holders]] = {kind: SelectorIndex() for kind in Kind}
        self._names: dict[Scope, tuple[int, Names]] = {}
        self._generation = 0
        for pods in table.pods:
            for pod in pods.values():
                self._hold(pod, pod.row, 1)
        table.observers.append(self._pod_changed)

    @property
    def version(self) -> tuple[int, int]:
        """While it stays counts that were asked for are current and not given up, and as many held terms match."""
        return self._generation, self._namespaces.version

    # --- asking -------------------------------------------------------------------------------------------------------

    def pods(self, scopes: tuple[Scope, ...], *, live: bool = False) -> PodCount:
        """The count of pods that belong to all the scopes, current."""
        key = (scopes, live)
        count = self._counts.get(key)
        if count is None:
            count = PodCount(self.table, self._sums, scopes, live)
            count.names = tuple(self.names(scope) for scope in scopes)
            count.version = self._namespaces.version
            if not any(selector.nothing for selector in count.selectors):
                for pod in self._postings.pods(_common(count.names), count.selectors):
                    if count.counts(pod):
                        count.bump(pod.row, 1)
            self._count_index.add(count, count.selectors)
            self._counts.put(key, count)
        elif count.version != self._namespaces.version:
            self._follow_namespaces(count)
        return count

    def domains(
        self, key: str, *, rule: Rule | None = None, fragment: Hashable = None, empty_for_missing: bool = False
    ) -> Domains:
        """Domains of a topology key. `fragment` says what the rule depends on: equal fragments, equal rules."""
        at = (key, fragment, empty_for_missing)
        found = self._domains.get(at)
        if found is None:
            found = Domains(self.table, key, rule, empty_for_missing)
            self._domains.put(at, found)
        return found

    def held(self, kind: Kind) -> bool:
        """Whether any placed pod holds a term of this kind that can match something."""
        return bool(self._holder_index[kind])

    def matching(self, kind: Kind, namespace: str, labels: Mapping[str, str]) -> list[Holders]:
        """Held terms that match a pod with these labels."""
        found = self._holder_index[kind].candidates(labels)
        if not found:
            return found
        of_namespace = self.namespace_labels(namespace)
        return [holders for holders in found if holders.term.scope.matches(namespace, labels, of_namespace)]

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Labels of a namespace; none where it is not known."""
        found = self._namespaces.get(namespace)
        return NO_LABELS if found is None else found.metadata.labels or NO_LABELS

    def names(self, scope: Scope) -> Names:
        """Namespaces in which a pending pod's term looks for pods.

        Those given and those whose labels are selected now. A selector that the empty label set satisfies means every
        namespace, as in the reference, which asks it once more with no labels at hand.
        """
        selector = scope.namespace_selector
        if selector.nothing:
            return scope.namespaces
        version = self._namespaces.version
        kept = self._names.get(scope)
        if kept is not None and kept[0] == version:
            return kept[1]
        if selector.matches(NO_LABELS):
            names: Names = None
        else:
            chosen = (each.metadata for each in self._namespaces)
            names = scope.namespaces | {meta.name for meta in chosen if selector.matches(meta.labels)}
        if len(self._names) >= 4096:
            self._names.clear()
        self._names[scope] = (version, names)
        return names

    # --- following ----------------------------------------------------------------------------------------------------

    def _pod_changed(self, row: int, old: PlacedPod | None, new: PlacedPod | None) -> None:
        self._postings.changed(old, new)
        if old is not None and new is not None and _alike(old, new):
            return
        for pod, sign in ((old, -1), (new, 1)):
            if pod is None:
                continue
            for count in self._count_index.candidates(pod.labels):
                if count.counts(pod):
                    count.bump(row, sign)
            self._hold(pod, row, sign)

    def _hold(self, pod: PlacedPod, row: int, sign: int) -> None:
        """Counts a pod among the holders of its terms, or no longer."""
        if pod.affinity_terms is NO_TERMS:
            return
        for key in _keys(pod.affinity_terms):
            holders = self._holders.get(key)
            if holders is None:
                self._generation += 1
                holders = self._holders[key] = Holders(self.table, self._sums, key)
                self._holder_index[key[0]].add(holders, (holders.term.scope.selector,))
            holders.bump(row, sign)
            if not holders.total:
                self._generation += 1
                holders.drop_sums()
                del self._holders[key]
                self._holder_index[key[0]].remove(holders, (holders.term.scope.selector,))

    def _follow_namespaces(self, count: PodCount) -> None:
        """Counts the pods of namespaces that came to a scope or left it."""
        old, new = count.names, tuple(self.names(scope) for scope in count.scopes)
        count.version = self._namespaces.version
        if old == new:
            return
        differing: set[str] = set()
        for before, after in zip(old, new, strict=True):
            if before is not None and after is not None:  # both or neither: that depends on the scope alone
                differing |= before ^ after
        for pod in self._postings.pods(frozenset(differing), count.selectors):
            if count.live and pod.terminating:
                continue
            change = count.holds(pod.namespace, pod.labels, new) - count.holds(pod.namespace, pod.labels, old)
            if change:
                count.bump(pod.row, change)
        count.names = new

    def _forget(self, count: PodCount) -> None:
        self._generation += 1
        self._count_index.remove(count, count.selectors)
        count.drop_sums()

    # --- checking -----------------------------------------------------------------------------------------------------

    def statistics(self) -> dict[str, int]:
        return {
            "pod_counts": len(self._counts),
            "held_terms": len(self._holders),
            "domains": len(self._domains),
            "sums": len(self._sums),
            "bytes": self._counts.nbytes
            + self._domains.nbytes
            + self._sums.nbytes
            + sum(each.nbytes for each in self._holders.values()),
        }

    def validate(self) -> None:
        """Raises AssertionError when a counter is not what the table's pods make of it. Slow."""
        pods = [pod for of_row in self.table.pods for pod in of_row.values()]
        self._postings.validate()
        for count in self._counts.values():
            assert self.pods(count.scopes, live=count.live) is count
            assert count.names == tuple(self.names(scope) for scope in count.scopes)
            _check(count, [pod.row for pod in pods if count.counts(pod)], f"pods of {count.scopes}")
        held: dict[tuple[Kind, int, Term], list[int]] = {}
        for pod in pods:
            for key in _keys(pod.affinity_terms):
                held.setdefault(key, []).append(pod.row)
        assert held.keys() == self._holders.keys(), "held terms"
        for key, holders in self._holders.items():
            _check(holders, held[key], f"holders of {key}")
        for domains in self._domains.values():
            domains.sync()
            fresh = Domains(self.table, domains.column.key, domains._rule, domains._empty_for_missing)
            assert np.array_equal(fresh.ids, domains.ids), f"domains of {domains.column.key}"
            size = len(fresh.members)
            assert np.array_equal(fresh.members[: len(domains.members)], domains.members[:size])


def _check(counts: RowCounts, rows: Iterable[int], what: str) -> None:
    fresh = np.bincount(np.fromiter(rows, np.int64), minlength=counts._table.capacity)
    assert np.array_equal(fresh, counts.array()), what
    assert counts.total == int(fresh.sum()), f"total of {what}"
    for domains in list(counts._sums):
        sums = counts.sums(domains)
        kept, known, positive = sums.by_domain.copy(), sums.extremes, sums.positive
        assert sums.total == int(kept.sum()), f"total of the sums of {what}"
        sums._sum_up()
        assert np.array_equal(kept, sums.by_domain[: len(kept)]), f"sums of {what}"
        assert known == sums.extremes, f"extremes of {what}"
        assert np.array_equal(positive, sums.positive), f"what is positive of {what}"


def _keys(terms: PodTerms) -> list[tuple[Kind, int, Term]]:
    keys = [(Kind.ANTI, 0, term) for term in terms.anti]
    keys += [(Kind.AFFINITY, 0, term) for term in terms.affinity]
    keys += [(Kind.PREFERRED, weight, term) for weight, term in terms.preferred]
    return keys


def _alike(old: PlacedPod, new: PlacedPod) -> bool:
    return (
        old.terminating == new.terminating
        and (old.labels is new.labels or old.labels == new.labels)
        and (old.affinity_terms is new.affinity_terms or old.affinity_terms == new.affinity_terms)
    )


def _common(names: tuple[Names, ...]) -> Names:
    """Namespaces that all of these have."""
    given = [each for each in names if each is not None]
    return frozenset.intersection(*given) if given else None
