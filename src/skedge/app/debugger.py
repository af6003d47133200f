"""SIGUSR2: what cache and queue hold, and where they and the informers disagree.

Upstream: `pkg/scheduler/backend/cache/debugger`.
"""

from __future__ import annotations

from collections.abc import Iterable

from skedge.api.core import Node
from skedge.scheduler.scheduler import Scheduler
from skedge.serving.dump import Mismatch, NodeDump, PodLine, compare_nodes, compare_pods, dump_nodes, dump_queue
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.stores.store import Store
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

AnyPod = PodInfo | PlacedPod


class Debugger:
    """Compares and dumps one scheduler; `nodes` and `pods` are the informers' stores."""

    def __init__(self, scheduler: Scheduler, nodes: Store[Node], pods: Store[AnyPod]) -> None:
        self._scheduler = scheduler
        self._nodes = nodes
        self._pods = pods

    def run(self) -> None:
        """Both, into the log."""
        self.compare()
        self.dump()

    def compare(self) -> list[Mismatch]:
        """Logs every disagreement, and returns them."""
        if log.v(3):
            log.info("cache comparer started")
        scheduler = self._scheduler
        table = scheduler.cache.table
        nodes = compare_nodes(
            (node.metadata.name for node in self._nodes.list()),
            (name for name, row in table.row_of.items() if table.exists[row]),
        )
        if nodes:
            log.info("Cache mismatch", missedNodes=list(nodes.missed), redundantNodes=list(nodes.redundant))
        profiles = scheduler.profiles
        pods = compare_pods(
            (pod.uid for pod in self._pods.list() if pod.node_name or pod.scheduler_name in profiles),
            (pod.uid for pod in scheduler.cache.pods()),
            (record.pod.uid for _, record in scheduler.queue.records()),
        )
        if pods:
            log.info("Cache mismatch", missedPods=list(pods.missed), redundantPods=list(pods.redundant))
        if log.v(3):
            log.info("cache comparer finished")
        return [each for each in (nodes, pods) if each]

    def dump(self) -> None:
        """Cache and queue as two lines of the log."""
        scheduler = self._scheduler
        log.info("Dump of cached NodeInfo", nodes=dump_nodes(self._node_dumps()))
        pods, summary = scheduler.queue.pending_pods()
        log.info("Dump of scheduling queue", queue=dump_queue(summary, map(_line, pods)))

    def _node_dumps(self) -> Iterable[NodeDump]:
        scheduler = self._scheduler
        table = scheduler.cache.table
        for name, row in table.row_of.items():
            yield NodeDump(
                name,
                not table.exists[row],
                {resource: int(column[row]) for resource, column in table.requested.items()},
                {resource: int(column[row]) for resource, column in table.allocatable.items()},
                [_line(pod) for pod in table.pods[row].values()],
                [_line(pod) for pod in scheduler.queue.nominated_pods_for_node(name)],
            )


def _line(pod: AnyPod) -> PodLine:
    phase = "" if isinstance(pod, PlacedPod) else pod.pod.status.phase
    return PodLine(pod.name, pod.namespace, pod.uid, phase, pod.nominated_node_name)
