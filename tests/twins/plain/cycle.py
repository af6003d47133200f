"""One scheduling cycle, in the form of a recorded decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from twins.plain import affinity, images, resources, spread
from twins.plain.affinity import Required
from twins.plain.objects import (
    PREFERRED,
    REQUIRED,
    CycleFailed,
    Json,
    Unclear,
    has_bad_expression,
    name,
    node_affinity,
    node_selector_matches,
    node_term_matches,
    priority,
    repelled,
    tolerates,
    uid,
    wants_node,
)
from twins.plain.preemption import Preemption
from twins.plain.spread import Hard
from twins.plain.volumes import Binding, Limits, Restrictions, Stores, Zone

UU, U = "UnschedulableAndUnresolvable", "Unschedulable"
Verdict = tuple[str, list[str]] | None
STATEFUL = (
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)
PREPARED = (
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
    "DynamicResources",
)  # their Filter can do nothing without their PreFilter
PRE_SCORED = ("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")


def status(plugin: str, verdict: tuple[str, list[str]]) -> Json:
    return {"plugin": plugin, "code": verdict[0], "reasons": verdict[1]}


def host_ports(pod: Json) -> set[tuple[str, str, int]]:
    containers = [c for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"]
    found = set()
    for container in (*containers, *(pod["spec"].get("containers") or ())):
        for port in container.get("ports") or ():
            if port.get("hostPort", 0) > 0:
                found.add((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]))
    return found


def collide(one: tuple[str, str, int], two: tuple[str, str, int]) -> bool:
    return one[1:] == two[1:] and (one[0] == two[0] or "0.0.0.0" in (one[0], two[0]))


def required_features(pod: Json) -> set[str]:
    found = set()
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if any(rule["action"] == "RestartAllContainers" for rule in container.get("restartPolicyRules") or ()):
            found.add("RestartAllContainersOnContainerExits")
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        found.add("UserNamespacesHostNetworkSupport")
    return found


class Inside:
    """What PreFilter left behind: states of the plugins that count, and which are skipped."""

    def __init__(self, states: Mapping[str, Any], skipped: set[str]) -> None:
        self.states, self.skipped = dict(states), skipped

    def clone(self) -> Inside:
        return Inside({k: v.clone() for k, v in self.states.items()}, self.skipped)

    def update(self, node: Json, pod: Json, sign: int) -> None:
        for plugin, state in self.states.items():
            if plugin not in self.skipped:
                state.update(node, pod, sign)


class Cycle:
    """`lists`: names by extension point, (name, weight) at score. `args` by plugin."""

    def __init__(self, world: Json, pod: Json, lists: Mapping[str, Any], args: Mapping[str, Json]) -> None:
        self.world, self.pod, self.lists, self.args = world, pod, lists, args
        self.stores = Stores(world)
        self.nodes = sorted(world.get("nodes", ()), key=name)
        alive = [
            p for p in world.get("pods", ()) if (p.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
        self.there = {name(node): [p for p in alive if p["spec"].get("nodeName") == name(node)] for node in self.nodes}
        self.promised: dict[str, list[Json]] = {}
        for other in alive:
            wanted = (other.get("status") or {}).get("nominatedNodeName")
            if not other["spec"].get("nodeName") and wanted and uid(other) != uid(pod):
                self.promised.setdefault(wanted, []).append(other)
        self.placed = [(node, self.there[name(node)]) for node in self.nodes]
        self.inside = Inside({}, set())
        self.ran: set[str] = set()

    def arg(self, plugin: str) -> Json:
        return self.args.get(plugin) or {}

    # --- the whole way ------------------------------------------------------------------------------------------------

    def decide(self) -> Json:
        expected: Json = {}
        if self.pod["metadata"].get("deletionTimestamp"):
            return {"skipped": True}
        gates = self.pod["spec"].get("schedulingGates")
        if gates and "SchedulingGates" in self.lists["preEnqueue"]:
            text = f"waiting for scheduling gates: [{' '.join(g['name'] for g in gates)}]"
            return {"preEnqueue": status("SchedulingGates", (UU, [text]))}
        try:
            self._search(expected)
        except CycleFailed as error:
            expected["error"] = str(error)
        return expected

    def _search(self, expected: Json) -> None:
        rejected, names, narrowing = self.pre_filter()
        if rejected is not None:
            expected["preFilter"] = rejected
            self._fail(expected, rejected, {}, narrowing)
            return
        expected["preFilter"] = {"code": "Success", "nodeNames": None if names is None else sorted(names)}
        wanted = (self.pod.get("status") or {}).get("nominatedNodeName")
        found: dict[str, Json] = {}
        first = next((n for n in self.nodes if name(n) == wanted), None)
        verdict = {} if first is None else self._verdict_or_error(first)
        if first is not None and verdict:
            found[name(first)] = verdict  # stays, even where the search does not come by again
        if first is not None and verdict is None:
            feasible = [first]
            expected["nominatedNodeFits"] = True
        else:
            expected["nominatedNodeFits"] = False
            feasible = []
            for node in self.nodes:
                if names is not None and name(node) not in names:
                    continue
                verdict = self.verdict(self.inside, node, self.there[name(node)])
                if verdict is None:
                    feasible.append(node)
                else:
                    found[name(node)] = verdict
        expected["filter"] = found
        expected["feasible"] = [name(n) for n in feasible]
        if not feasible:
            self._fail(expected, None, found, narrowing)
            return
        if not self.lists["score"]:
            expected["noScorePlugins"] = True
            expected["best"] = expected["feasible"]
        elif len(feasible) == 1:
            expected["best"] = expected["feasible"]
        else:
            expected["scores"] = self.scores(feasible)
            best = max(each["total"] for each in expected["scores"].values())
            expected["best"] = [n for n in expected["feasible"] if expected["scores"][n]["total"] == best]

    def _verdict_or_error(self, node: Json) -> Json | None:
        try:
            return self.verdict(self.inside, node, self.there[name(node)])
        except CycleFailed:
            return {}

    # --- filters ------------------------------------------------------------------------------------------------------

    def pre_filter(self) -> tuple[Json | None, set[str] | None, set[str]]:
        """(rejection, names the search is narrowed to, plugins that narrowed it)"""
        names: set[str] | None = None
        narrowing: set[str] = set()
        for plugin in self.lists["preFilter"]:
            self.ran.add(plugin)
            rejection: Verdict = None
            skips = False
            if plugin == "NodeAffinity":
                of_plugin, skips, conflict = self._node_names()
                if conflict:
                    rejection = UU, ["pod affinity terms conflict"]
                elif of_plugin is not None:
                    narrowing.add(plugin)
                    names = of_plugin if names is None else names & of_plugin
                    if not names:
                        raise Unclear("two plugins narrow")
            elif plugin == "NodePorts":
                skips = not host_ports(self.pod)
            elif plugin == "NodeDeclaredFeatures":
                skips = not required_features(self.pod)
            elif plugin == "DynamicResources":
                skips = True
            elif plugin in STATEFUL:
                state = self._state(plugin)
                rejection = getattr(state, "rejection", None)
                skips = rejection is None and state.skips
                self.inside.states[plugin] = state
            if rejection is not None:
                return status(plugin, rejection), None, set()
            if skips:
                self.inside.skipped.add(plugin)
        return None, names, narrowing

    def _state(self, plugin: str) -> Any:
        if plugin == "VolumeRestrictions":
            return Restrictions(self.stores, self.pod, self.placed)
        if plugin == "NodeVolumeLimits":
            return Limits(self.stores, self.pod)
        if plugin == "VolumeBinding":
            return Binding(self.stores, self.pod)
        if plugin == "VolumeZone":
            return Zone(self.stores, self.pod)
        if plugin == "InterPodAffinity":
            return Required(self.world, self.pod, self.placed)
        hard = spread.constraints(self.world, self.pod, self.arg(plugin), "DoNotSchedule")
        state = Hard(self.pod, hard, self.placed)
        state.skips = not hard  # type: ignore[attr-defined]
        return state

    def _node_names(self) -> tuple[set[str] | None, bool, bool]:
        """(names, skips, conflict)"""
        required = node_affinity(self.pod).get(REQUIRED)
        added = (self.arg("NodeAffinity").get("addedAffinity") or {}).get(REQUIRED)
        if required is None and added is None and self.pod["spec"].get("nodeSelector") is None:
            return None, True, False
        terms = (required or {}).get("nodeSelectorTerms") or []
        wanted: set[str] = set()
        for term in terms:
            fields = [set(f["values"]) for f in term.get("matchFields") or () if f["operator"] == "In"]
            if not fields:
                return None, False, False
            wanted |= set.intersection(*fields)
        return (wanted, False, not wanted) if terms else (None, False, False)

    def verdict(self, inside: Inside, node: Json, there: Sequence[Json]) -> Json | None:
        """Why the pod does not fit the node, with and without the pods that were promised room there."""
        promised = [p for p in self.promised.get(name(node), ()) if priority(p) >= priority(self.pod)]
        if promised:
            crowded = inside.clone()
            for other in promised:
                crowded.update(node, other, 1)
            found = self._filters(crowded, node, [*there, *promised])
            if found is not None:
                return found
        return self._filters(inside, node, there)

    def _filters(self, inside: Inside, node: Json, there: Sequence[Json]) -> Json | None:
        for plugin in self.lists["filter"]:
            if plugin in inside.skipped:
                continue
            if plugin in PREPARED and plugin not in self.ran:
                raise CycleFailed("filter without pre-filter")
            verdict = self._filter(plugin, inside, node, there)
            if verdict is not None:
                return status(plugin, verdict)
        return None

    def _filter(self, plugin: str, inside: Inside, node: Json, there: Sequence[Json]) -> Verdict:
        pod = self.pod
        if plugin in STATEFUL:
            if plugin not in inside.states:
                inside.states[plugin] = self._state(plugin)
            return inside.states[plugin].filter(node, there)  # type: ignore[no-any-return]
        if plugin == "NodeUnschedulable":
            taint = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
            if node["spec"].get("unschedulable") and not any(
                tolerates(t, taint) for t in pod["spec"].get("tolerations") or ()
            ):
                return UU, ["node(s) were unschedulable"]
        elif plugin == "NodeName":
            if pod["spec"].get("nodeName") and pod["spec"]["nodeName"] != name(node):
                return UU, ["node(s) didn't match the requested node name"]
        elif plugin == "TaintToleration":
            if repelled(node, pod):
                return UU, ["node(s) had untolerated taint(s)"]
        elif plugin == "NodeAffinity":
            added = (self.arg(plugin).get("addedAffinity") or {}).get(REQUIRED)
            if added is not None and not node_selector_matches(added, node):
                return UU, ["node(s) didn't match scheduler-enforced node affinity"]
            if not wants_node(pod, node):
                return UU, ["node(s) didn't match Pod's node affinity/selector"]
        elif plugin == "NodePorts":
            if any(collide(a, b) for a in host_ports(pod) for other in there for b in host_ports(other)):
                return U, ["node(s) didn't have free ports for the requested pod ports"]
        elif plugin == "NodeResourcesFit":
            return resources.fit(pod, node, there, self.arg(plugin))
        elif plugin == "NodeDeclaredFeatures":
            if not required_features(pod) <= set((node.get("status") or {}).get("declaredFeatures") or ()):
                return UU, ["node(s) didn't match Pod's required features"]
        else:
            raise Unclear(plugin)
        return None

    # --- scores -------------------------------------------------------------------------------------------------------

    def scores(self, feasible: Sequence[Json]) -> Json:
        found: dict[str, Json] = {name(n): {} for n in feasible}
        if "NodeAffinity" in self.lists["preScore"]:  # runs whether it scores or not
            preferred = node_affinity(self.pod).get(PREFERRED) or []
            if any(has_bad_expression(t["preference"]) for t in preferred if t["weight"]):
                raise CycleFailed("bad preferred term")
        for plugin, _ in self.lists["score"]:
            if plugin in PRE_SCORED and plugin not in self.lists["preScore"]:
                raise CycleFailed("score without pre-score")
        for plugin, weight in self.lists["score"]:
            values = self._scores(plugin, feasible)
            for node, value in zip(feasible, values or (), strict=False):
                found[name(node)][plugin] = resources.checked(plugin, value) * weight
        for parts in found.values():
            parts["total"] = sum(parts.values())
        return found

    def _scores(self, plugin: str, feasible: Sequence[Json]) -> list[int] | None:
        """Normalised scores; None: the plugin has none."""
        pod, arg = self.pod, self.arg(plugin)
        beside = [(n, self.there[name(n)]) for n in feasible]
        if plugin == "TaintToleration":
            kept = [t for t in pod["spec"].get("tolerations") or () if t.get("effect", "") in ("", "PreferNoSchedule")]
            raw = [
                sum(
                    taint["effect"] == "PreferNoSchedule" and not any(tolerates(t, taint) for t in kept)
                    for taint in n["spec"].get("taints") or ()
                )
                for n in feasible
            ]
            return _scaled(raw, reverse=True)
        if plugin == "NodeAffinity":
            added = (arg.get("addedAffinity") or {}).get(PREFERRED) or []
            own = node_affinity(pod).get(PREFERRED) or []
            if not added and not own:
                return None
            raw = [sum(t["weight"] for t in (*own, *added) if node_term_matches(t["preference"], n)) for n in feasible]
            return _scaled(raw)
        if plugin == "NodeResourcesFit":
            return [resources.fit_score(pod, n, there, arg) for n, there in beside]
        if plugin == "NodeResourcesBalancedAllocation":
            if resources.balanced_skips(pod, arg):
                return None
            return [resources.balanced_score(pod, n, there, arg) for n, there in beside]
        if plugin == "ImageLocality":
            return [images.score(pod, n, self.nodes) for n in feasible]
        if plugin == "PodTopologySpread":
            soft = spread.constraints(self.world, pod, arg, "ScheduleAnyway")
            if not soft:
                return None
            require_all = bool(pod["spec"].get("topologySpreadConstraints")) or arg.get("defaultingType") == "List"
            return spread.scores(pod, soft, require_all, self.placed, beside)
        if plugin == "InterPodAffinity":
            found = affinity.raw_scores(self.world, pod, arg, self.placed, beside)
            return None if found is None else affinity.normalized(found)
        if plugin in ("VolumeBinding", "DynamicResources"):
            return None
        raise Unclear(plugin)

    # --- nothing fits -------------------------------------------------------------------------------------------------

    def message(
        self, rejected: Json | None, found: Mapping[str, Json], narrowing: set[str], total: int | None = None
    ) -> str:
        n = len(self.nodes) if total is None else total
        text = f"0/{n} nodes are available:"
        if rejected is not None:
            return f"{text} {', '.join(rejected['reasons'])}."
        reasons: Counter[str] = Counter(r for each in found.values() for r in each["reasons"])
        if narrowing and n > len(found):
            reasons[f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]"] += n - len(found)
        parts = sorted(f"{count} {reason}" for reason, count in reasons.items())
        return f"{text} {', '.join(parts)}." if parts else text

    def _fail(self, expected: Json, rejected: Json | None, found: Mapping[str, Json], narrowing: set[str]) -> None:
        text = self.message(rejected, found, narrowing)
        expected["fitErrorMessageWithoutPostFilter"] = text
        plugins = set(narrowing) | {each["plugin"] for each in found.values()}
        if rejected is not None:
            plugins.add(rejected["plugin"])
        expected["unschedulablePlugins"] = sorted(plugins)
        expected["fitErrorMessage"] = text
        if not self.lists["postFilter"]:
            return
        parts: list[str] = []
        expected["postFilter"] = {"nominating": None}
        for plugin in self.lists["postFilter"]:
            if plugin == "DynamicResources":
                if plugin not in self.ran:
                    parts = ["not found"]
                    break
                parts.append("no new claims to deallocate")
            elif plugin == "DefaultPreemption":
                preemption = Preemption(self, rejected, found)
                expected["postFilter"]["nominating"] = preemption.run()
                if preemption.result is not None:
                    expected["preemption"] = preemption.result
                    parts = []
                    break
                expected["preemption"] = None
                expected["preemptionRejected"] = preemption.rejected
                parts.append(f"preemption: {preemption.message}")
            else:
                raise Unclear(plugin)
        expected["fitErrorMessage"] = " ".join([text, ", ".join(parts)]) if parts else text


def _scaled(raw: Sequence[int], reverse: bool = False) -> list[int]:
    most = max(raw)
    if most == 0:
        return [100 if reverse else 0 for _ in raw]
    return [100 - 100 * s // most if reverse else 100 * s // most for s in raw]
