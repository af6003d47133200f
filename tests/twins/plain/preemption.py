"""DefaultPreemption: victims, budgets, the pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twins.plain.objects import (
    CycleFailed,
    Json,
    Unclear,
    is_everything,
    key,
    labels,
    name,
    namespace,
    priority,
    selects,
)

if TYPE_CHECKING:
    from twins.plain.cycle import Cycle

UU, U = "UnschedulableAndUnresolvable", "Unschedulable"


def started(pod: Json) -> str:
    start = (pod.get("status") or {}).get("startTime")
    return "9999" if start is None else str(start)  # counts as just started


class Preemption:
    def __init__(self, cycle: Cycle, rejected: Json | None, found: Mapping[str, Json]) -> None:
        self.cycle, self.pod = cycle, cycle.pod
        self.pre_filter, self.found = rejected, found
        self.result: Json | None = None
        self.rejected: dict[str, Json] = {}
        self.message = ""

    def run(self) -> str | None:
        """What becomes of the nomination: "set", "clear", None. Then `result`, or `message` why there is none."""
        cycle = self.cycle
        if self.pod["spec"].get("preemptionPolicy") == "Never":
            self.message = "not eligible due to preemptionPolicy=Never."
            return None
        if not cycle.nodes:
            raise Unclear("no nodes")
        wanted = (self.pod.get("status") or {}).get("nominatedNodeName")
        node = next((n for n in cycle.nodes if name(n) == wanted), None)
        if node is not None and self._code(name(node)) != UU and self._is_leaving(node):
            self.message = "not eligible due to a terminating pod on the nominated node."
            return None
        potential = [n for n in cycle.nodes if self._code(name(n)) == U]
        args = cycle.arg("DefaultPreemption")
        if args and len(potential) > max(1, args.get("minCandidateNodesAbsolute", 100)):
            raise Unclear("only some nodes are looked at")
        candidates: dict[str, tuple[list[Json], int]] = {}
        for each in potential:
            there = cycle.there[name(each)]
            self._on(each, there, candidates)
        if not candidates:
            statuses = {name(n): self.rejected.get(name(n)) or _hopeless() for n in cycle.nodes}
            text = cycle.message(None, statuses, set())
            self.message = text
            return "clear"
        tied = self._pick(candidates)
        self.result = {
            "candidates": {
                n: {"victims": [key(p) for p in victims], "numPDBViolations": broken}
                for n, (victims, broken) in candidates.items()
            },
            "nominatedNodeOneOf": sorted(tied),
        }
        return "set"

    def _code(self, node: str) -> str:
        if self.pre_filter is not None:
            return str(self.pre_filter["code"])
        return str(self.found[node]["code"]) if node in self.found else UU

    def _is_leaving(self, node: Json) -> bool:
        for other in self.cycle.there[name(node)]:
            if priority(other) < priority(self.pod) and other["metadata"].get("deletionTimestamp"):
                for condition in (other.get("status") or {}).get("conditions") or ():
                    if condition["type"] == "DisruptionTarget":
                        if condition["status"] == "True" and condition.get("reason") == "PreemptionByScheduler":
                            return True
                        break
        return False

    def _on(self, node: Json, there: Sequence[Json], candidates: dict[str, tuple[list[Json], int]]) -> None:
        victims = sorted((p for p in there if priority(p) < priority(self.pod)), key=_importance)
        if len({_importance(p) for p in victims}) < len(victims):
            raise Unclear("equal victims")
        if not victims:
            self.rejected[name(node)] = {"code": UU, "reasons": ["No preemption victims found for incoming pod"]}
            return
        gone = list(victims)
        verdict = self._without(node, there, gone)
        if verdict is not None:
            self.rejected[name(node)] = {"code": verdict["code"], "reasons": verdict["reasons"]}
            return
        breaking = self._breaking(victims)
        for other in [*breaking, *(p for p in victims if p not in breaking)]:
            tried = [p for p in gone if p is not other]
            if self._without(node, there, tried) is None:
                gone = tried
        if not gone:
            raise Unclear("nobody has to go")
        candidates[name(node)] = (gone, sum(p in breaking for p in gone))

    def _without(self, node: Json, there: Sequence[Json], gone: Sequence[Json]) -> Any:
        inside = self.cycle.inside.clone()
        for other in gone:
            inside.update(node, other, -1)
        left = [p for p in there if not any(p is each for each in gone)]
        try:
            return self.cycle.verdict(inside, node, left)
        except CycleFailed:
            raise Unclear("an error in a dry run") from None

    def _breaking(self, victims: Sequence[Json]) -> list[Json]:
        budgets = self.cycle.world.get("pdbs", ())
        left = [b["status"].get("disruptionsAllowed", 0) for b in budgets]
        found = []
        for pod in victims:
            broke = False
            for i, budget in enumerate(budgets):
                selector = budget["spec"].get("selector")
                if namespace(budget) != namespace(pod) or not labels(pod) or is_everything(selector):
                    continue
                if not selects(selector, labels(pod)) or name(pod) in (budget["status"].get("disruptedPods") or {}):
                    continue
                left[i] -= 1
                broke = broke or left[i] < 0
            if broke:
                found.append(pod)
        return found

    def _pick(self, candidates: Mapping[str, tuple[list[Json], int]]) -> set[str]:
        def rank(node: str) -> Any:
            victims, broken = candidates[node]
            most = max(priority(p) for p in victims)
            yield broken
            yield most
            yield sum(priority(p) + 2**31 for p in victims)
            yield len(victims)
            yield -_moment(min(started(p) for p in victims if priority(p) == most))

        ranks = {node: tuple(rank(node)) for node in candidates}
        best = min(ranks.values())
        return {node for node, each in ranks.items() if each == best}


def _importance(pod: Json) -> Any:
    return (-priority(pod), started(pod))


def _moment(text: str) -> int:
    return int("".join(c for c in text if c.isdigit()).ljust(14, "0"))


def _hopeless() -> Json:
    return {"code": UU, "reasons": ["Preemption is not helpful for scheduling"]}
