"""The plugin contract: one small optional protocol an extension point.

Upstream: `kube-scheduler/framework/interface.go`.

A plugin is a class with a `name` and the methods of the points it takes part in; the profile looks at which it has.
Filter and Score come in two forms:

- array form: `filter(state, pod, view)` answers a *code* for every row of the view (0: fits; `filter_status` turns any
  other code into words when somebody reads them), `score(state, pod, view)` an int64 for every row;
- node form: `filter_node(state, pod, node)` and `score_node(state, pod, node)`, for a few lines of Python;
  `node_form.NodePlugin` lifts them, and they run only where all array filters passed.

What an answer depends on is declared, and decides how long it is kept:

    NODE      the row and the pod's fragment               kept, brought up to date row by row (aspects in `reads`);
                                                           all made anew when the plugin's `totals(pod)` changed; one
                                                           answer for all rows with the same resources if the plugin
                                                           says `by_resources`
    CLUSTER   other rows, other objects                    asked every cycle
    EXTERNAL  clocks, metrics, other servers               asked every cycle

One that is asked every cycle, and has nothing to do with pods that lack something, says what it `wants`: the name of
an attribute of PodInfo, as "volumes". About pods where that is empty it is not asked at PreFilter, Filter, PreScore,
Score, Reserve and PreBind, as if it had said SKIP.

A filter to which pods on a row matter by what they ask for alone, and which never says yes where it would say no if
they asked for less, says `by_amounts`: preemption tries how many of several equal victims can stay, not one by one.

The law: an answer kept and patched equals an answer computed from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Any, Final, Protocol, runtime_checkable

from skedge.framework.events import ClusterEventWithHint
from skedge.framework.state import CycleState
from skedge.framework.status import Status
from skedge.snapshot.crowd import Crowd
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

UNRESOLVABLE: Final = 1 << 62
"""Bit of a filter code: the rejection is UnschedulableAndUnresolvable, preemption on that node can not help."""

MAX_NODE_SCORE: Final = 100
MIN_NODE_SCORE: Final = 0


class Depends(Enum):
    NODE = "node"
    CLUSTER = "cluster"
    EXTERNAL = "external"


class Plugin(Protocol):
    name: str


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    name: str

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """SUCCESS lets the pod into the active queue; anything else keeps it gated. Must be quick."""


@runtime_checkable
class QueueSortPlugin(Protocol):
    name: str

    def sort_key(self, priority: int, timestamp: float, pod: PodInfo) -> Any:
        """What the active queue orders by, smallest first."""


NodeNames = frozenset[str]


@runtime_checkable
class PreFilterPlugin(Protocol):
    name: str

    def pre_filter(self, state: CycleState, pod: PodInfo, view: View) -> tuple[NodeNames | None, Status]:
        """Computes what Filter needs into `state`. `view` is all nodes.

        Returns (names the search is narrowed to or None, status). SKIP: this plugin's Filter is not run for the pod.
        """


@runtime_checkable
class FilterPlugin(Protocol):
    name: str

    def filter(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        """Codes, int64 of shape (view.size,) or one int; 0 fits. Raises PluginError where there is no answer."""

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        """The words for a code that is not 0."""


class PostFilterResult:
    """What to do with the pod's nominated node: `nominate` a node, or clear it with ""; None leaves it alone."""

    __slots__ = ("nominate",)

    def __init__(self, nominate: str | None) -> None:
        self.nominate = nominate


@runtime_checkable
class PostFilterPlugin(Protocol):
    name: str

    def post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Any) -> tuple[PostFilterResult | None, Status]:
        """Called when no node fits; `diagnosis` is the `profiles.diagnosis.Diagnosis` of the search."""


@runtime_checkable
class HalvedPostFilter(Protocol):
    """A PostFilter plugin that evicts pods, in two halves between which extenders are asked about its candidates."""

    name: str

    def find(self, pod: PodInfo, diagnosis: Any) -> Any:
        """The candidates, as a `preemption.evaluator.Outcome`."""

    def choose(self, outcome: Any, candidates: Any = None) -> None:
        """Chooses among all candidates, or among those of a mapping node -> `Candidate`."""

    def conclude(self, state: CycleState, pod: PodInfo, outcome: Any) -> tuple[PostFilterResult | None, Status]:
        """Has what was chosen carried out."""


@runtime_checkable
class PreScorePlugin(Protocol):
    name: str

    def pre_score(self, state: CycleState, pod: PodInfo, view: View) -> Status:
        """`view` is the feasible nodes. SKIP: the plugin gives no score to this pod."""


class Normalizer(Protocol):
    """Turns raw scores into 0..100. What it does to one score depends on the others through `bounds` alone.

    One that has `top(bounds)` makes 100 of that raw score and of no other, and is trusted to stay within 0..100. One
    that has `span(bounds)` tells the smallest and the largest raw score there is.
    """

    def bounds(self, scores: Any) -> Hashable:
        """Of the raw scores of all feasible rows (at least one)."""

    def apply(self, scores: Any, bounds: Any) -> Any:
        """Scores (array or int) scaled to 0..100."""

    def keeps(self, bounds: Any, score: int, added: bool) -> bool:
        """Whether the bounds surely stay when a row with this raw score becomes feasible (or stops being it)."""


@runtime_checkable
class ScorePlugin(Protocol):
    name: str

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        """Raw scores, int64 of shape (view.size,) or one int; 0..100 unless the plugin has a `normalizer`.

        A plugin that is asked every cycle may have `best_raw(state, pod)`: a raw score that no feasible node's is
        better than, where a node that has it gets the highest score. Then it is asked about single rows (`Row`) before
        it is about all, and not about others where one of those has it.
        """


@runtime_checkable
class ReservePlugin(Protocol):
    name: str

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status: ...

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undoes `reserve`; also called when it was not, and may be called twice."""


@runtime_checkable
class PermitPlugin(Protocol):
    name: str

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """(status, seconds): with WAIT the pod is held back for at most that long."""


@runtime_checkable
class PreBindPlugin(Protocol):
    name: str

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, bool]:
        """(SKIP when there is nothing to do else SUCCESS, whether it may run beside others)."""

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status: ...


@runtime_checkable
class BindPlugin(Protocol):
    name: str

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """SKIP leaves the pod to the next bind plugin."""


@runtime_checkable
class PostBindPlugin(Protocol):
    name: str

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


@runtime_checkable
class EnqueueExtensions(Protocol):
    name: str

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Events that may make a pod schedulable which this plugin rejected."""


@runtime_checkable
class SignPlugin(Protocol):
    name: str

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        """Fragments of the pod's scheduling signature, or a status that says why the pod can not have one."""


def fragment_of(plugin: Any) -> Callable[[PodInfo], Hashable] | None:
    """The plugin's `fragment` method when its answers may be kept (it depends on the row and the fragment only)."""
    if getattr(plugin, "depends", Depends.EXTERNAL) is not Depends.NODE:
        return None
    found: Callable[[PodInfo], Hashable] | None = getattr(plugin, "fragment", None)
    return found


class Nominator(Protocol):
    """Pods that were promised room on a node."""

    def crowd(self, table: NodeTable, priority: int, uid: str) -> Crowd:
        """Those of at least this priority, without the pod of this UID, by row; not to be kept."""
