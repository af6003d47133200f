"""NodeLabel: label keys that a node must or must not have, or had better. Upstream (v1.20): `plugins/nodelabel`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from skedge import names
from skedge.config.legacy.args import NodeLabelArgs
from skedge.framework import events
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.plugin import MAX_NODE_SCORE, UNRESOLVABLE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import Code, Status
from skedge.snapshot.arith import where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.lookup import Membership
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

REASON: Final = "node(s) didn't have the requested labels"

_HAS: Final = Membership((), inside=1, outside=1, absent=0)


class NodeLabel:
    name = names.NODE_LABEL
    depends = Depends.NODE
    reads = Aspect.LABELS
    normalizer = None

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        given: NodeLabelArgs = args or NodeLabelArgs()
        self._present = tuple(given.present_labels)
        self._absent = tuple(given.absent_labels)
        self._liked = tuple(given.present_labels_preference)
        self._disliked = tuple(given.absent_labels_preference)

    def fragment(self, pod: PodInfo) -> Hashable:
        return None

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        fits = view.full(1)
        for key in self._present:
            fits = fits & _has(view, key)
        for key in self._absent:
            fits = fits & (1 - _has(view, key))
        return where(fits == 0, UNRESOLVABLE, 0)

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON)

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        """The share of the preferences that the node meets."""
        number = len(self._liked) + len(self._disliked)
        if not number:
            return view.full(0)
        met = view.full(0)
        for key in self._liked:
            met = met + _has(view, key)
        for key in self._disliked:
            met = met + 1 - _has(view, key)
        return met * MAX_NODE_SCORE // number

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        event = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (ClusterEventWithHint(event, self.after_node_change),)

    def after_node_change(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        labels = new.metadata.labels or {}
        fits = all(key in labels for key in self._present) and not any(key in labels for key in self._absent)
        return QueueingHint(fits)


def _has(view: View, key: str) -> Any:
    """Whether each node has a label of this key, whatever its value; 0 or 1."""
    return view.by_label(key, _HAS)
