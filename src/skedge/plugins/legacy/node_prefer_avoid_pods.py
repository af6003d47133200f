"""NodePreferAvoidPods: nodes whose annotation asks to be spared by a controller's pods.

With its weight of 10000 it is a soft taint. Upstream (v1.20): `plugins/nodepreferavoidpods`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np

from skedge import names
from skedge.framework.plugin import MAX_NODE_SCORE, Depends
from skedge.framework.state import CycleState
from skedge.snapshot.changes import Aspect
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
CONTROLLERS: Final = frozenset({"ReplicationController", "ReplicaSet"})

Owners = frozenset[tuple[str, str]]
"""(kind, UID) of controllers"""


class _Controller(msgspec.Struct, rename="camel"):
    kind: str = ""
    uid: str = ""


class _Signature(msgspec.Struct, rename="camel"):
    pod_controller: _Controller | None = None


class _Entry(msgspec.Struct, rename="camel"):
    pod_signature: _Signature = msgspec.field(default_factory=_Signature)


class _Avoided(msgspec.Struct, rename="camel"):
    prefer_avoid_pods: list[_Entry] | None = None


class NodePreferAvoidPods:
    name = names.NODE_PREFER_AVOID_PODS
    depends = Depends.CLUSTER
    normalizer = None

    def __init__(self, args: Any, handle: Any) -> None:
        self._table: NodeTable = handle.table
        self._position = -1
        self._avoided: dict[int, Owners] = {}  # by row; rows without the annotation are not in it

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        scores = view.full(MAX_NODE_SCORE)
        owner = pod.owner
        if owner is None or owner.kind not in CONTROLLERS:
            return scores
        self._sync()
        key = (owner.kind, owner.uid)
        rows = [row for row, owners in self._avoided.items() if key in owners]
        if rows:
            scores[np.isin(view.rows, rows)] = 0
        return scores

    def _sync(self) -> None:
        """Reads the annotations of nodes that changed."""
        table = self._table
        position = table.log.position
        if position == self._position:
            return
        of_node = Aspect.ALL & ~(Aspect.RESOURCES | Aspect.PODS)
        changed = table.log.since(self._position, of_node) if self._position >= 0 else None
        for row in range(table.size) if changed is None else changed:
            node = table.nodes[row]
            text = (node.metadata.annotations or {}).get(ANNOTATION) if node is not None else None
            owners = avoided_by(text) if text else frozenset()
            if owners:
                self._avoided[row] = owners
            else:
                self._avoided.pop(row, None)
        self._position = position


@lru_cache(maxsize=1024)
def avoided_by(annotation: str) -> Owners:
    """The controllers an annotation names; none where it can not be read."""
    try:
        found = msgspec.json.decode(annotation, type=_Avoided)
    except (msgspec.MsgspecError, UnicodeError):
        return frozenset()
    controllers = (entry.pod_signature.pod_controller for entry in found.prefer_avoid_pods or ())
    return frozenset((each.kind, each.uid) for each in controllers if each is not None)
