"""The node form of Filter and Score: a user's few lines of Python about one node, lifted to all rows of a view.

    class Cool:
        name = "Cool"

        def filter_node(self, state, pod, node):
            if float(node.labels.get("temperature", "0")) > 80:
                return Status(Code.UNSCHEDULABLE, "node(s) were too hot")

A search asks such a plugin where all array filters passed, and every cycle anew.
Upstream: `kube-scheduler/framework/interface.go` (FilterPlugin, ScorePlugin).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from skedge.api.core import Node, Taint
from skedge.framework.plugin import UNRESOLVABLE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import Code, PluginError, Status
from skedge.snapshot.arith import Ints
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.snapshot.views import View


@runtime_checkable
class NodeFilterPlugin(Protocol):
    name: str

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeView) -> Status | None:
        """SUCCESS or None: the pod fits. UNSCHEDULABLE with reasons: it does not; ..._AND_UNRESOLVABLE: nor would it
        without other pods on the node. ERROR ends the attempt."""


@runtime_checkable
class NodeScorePlugin(Protocol):
    name: str

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeView) -> int:
        """0..100, more is better; any number where the plugin has a `normalizer`."""


class NodeView:
    """One node as a plugin in node form sees it: the Node object, and what its pods ask for (hypothetical ones too)."""

    __slots__ = ("_columns", "_position", "node", "row")

    def __init__(self, columns: _Columns, position: int, row: int, node: Node) -> None:
        self._columns = columns
        self._position = position
        self.row = row
        self.node = node

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.node.metadata.annotations or {}

    @property
    def taints(self) -> Sequence[Taint]:
        return self.node.spec.taints or ()

    @property
    def unschedulable(self) -> bool:
        return self.node.spec.unschedulable

    @property
    def allocatable(self) -> Mapping[str, int]:
        """Resource -> amount in its unit (cpu: milli, memory: bytes, `pods`: how many); none of which there is none."""
        return self._columns.allocatable(self._position)

    @property
    def requested(self) -> Mapping[str, int]:
        """What the node's pods ask for, as `allocatable`; `pods` is their number."""
        return self._columns.requested(self._position)

    @property
    def pods(self) -> Sequence[PlacedPod]:
        """In order of arrival."""
        return [*self._columns.view.pods(self.row)]

    def __repr__(self) -> str:
        return f"<NodeView {self.name}>"


class _Columns:
    """The amounts of a view's rows, read once."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._allocatable: dict[str, Any] | None = None
        self._requested: dict[str, Any] | None = None

    def nodes(self) -> Iterator[tuple[int, NodeView]]:
        """(position, node) of the rows that have one."""
        nodes = self.view.table.nodes
        for position, row in enumerate(np.asarray(self.view.rows).tolist()):
            node = nodes[row]
            if node is not None:
                yield position, NodeView(self, position, row, node)

    def allocatable(self, position: int) -> dict[str, int]:
        if self._allocatable is None:
            view = self.view
            found = {name: np.atleast_1d(view.allocatable(name)) for name in view.table.allocatable}
            self._allocatable = found | {"pods": np.atleast_1d(view.allowed_pods)}
        return _present(self._allocatable, position)

    def requested(self, position: int) -> dict[str, int]:
        if self._requested is None:
            view = self.view
            found = {name: np.atleast_1d(view.requested(name)) for name in view.table.requested}
            self._requested = found | {"pods": np.atleast_1d(view.pod_count)}
        return _present(self._requested, position)


def _present(columns: Mapping[str, Any], position: int) -> dict[str, int]:
    return {name: amount for name, column in columns.items() if (amount := column.item(position))}


class NodePlugin:
    """A plugin in node form as one in array form. All its other methods are the plugin's own."""

    by_node: Final = True
    depends: Final = Depends.EXTERNAL

    def __init__(self, plugin: Any) -> None:
        self.plugin = plugin
        self.name: str = plugin.name
        self.normalizer = getattr(plugin, "normalizer", None)
        if hasattr(plugin, "filter_node"):
            self.filter = self._filter
            self.filter_status = self._filter_status
        if hasattr(plugin, "score_node"):
            self.score = self._score

    def __getattr__(self, name: str) -> Any:
        if name == "plugin":  # not made yet
            raise AttributeError(name)
        return getattr(self.plugin, name)

    def _filter(self, state: CycleState, pod: PodInfo, view: View) -> Ints:
        codes = np.zeros(view.size, np.int64)
        for position, node in _Columns(view).nodes():
            status = self.plugin.filter_node(state, pod, node)
            if status is not None and not status.ok:
                codes[position] = self._code(state, status, node)
        return codes

    def _code(self, state: CycleState, status: Status, node: NodeView) -> int:
        """The number that stands for a rejection in this cycle."""
        if status.code is Code.ERROR:
            raise PluginError(f'running Filter plugin "{self.name}" on node {node.name}: {status.message}')
        if not status.rejected:
            raise PluginError(
                f'Filter plugin "{self.name}" returned {status.code.word}, which is no answer to a filter'
            )
        known: dict[Status, int] = state.get(self._key) or {}
        if not known:
            state.write(self._key, known)
        number = known.setdefault(status, len(known) + 1)
        return number | UNRESOLVABLE if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else number

    def _filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        statuses: dict[Status, int] = state.read(self._key)
        return next(status for status, number in statuses.items() if number == code & ~UNRESOLVABLE)

    @property
    def _key(self) -> str:
        return f"node-form/{self.name}"

    def _score(self, state: CycleState, pod: PodInfo, view: View) -> Ints:
        scores = np.zeros(view.size, np.int64)
        for position, node in _Columns(view).nodes():
            score = self.plugin.score_node(state, pod, node)
            if type(score) is not int:
                raise PluginError(
                    f'Score plugin "{self.name}" returned {score!r} for node {node.name}, expected an int'
                )
            scores[position] = score
        return scores


def lifted(plugin: Any) -> Any:
    """The plugin, in array form. Raises ValueError when it has both forms of a point."""
    found = [form for form in ("filter", "score") if hasattr(plugin, f"{form}_node")]
    for form in found:
        if hasattr(plugin, form):
            raise ValueError(f"it has both {form} and {form}_node; keep one")
    return NodePlugin(plugin) if found else plugin
