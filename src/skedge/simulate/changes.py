"""Single changes to a pod, smallest first within a kind: the pod as it would be, and words for the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from skedge.api.core import Affinity, Container, Pod, ResourceRequirements, Taint, Toleration
from skedge.api.meta import LabelSelector, NodeSelector
from skedge.api.requests import in_units
from skedge.api.taints import tolerated
from skedge.snapshot.nodes import NodeTable

REPELLING: Final = ("NoSchedule", "NoExecute")
MANY: Final = 20
"""Of one kind of change, how many are tried."""


class Change(NamedTuple):
    """`pod` is the changed one; `change` and `text` as in `explanation.Hint`."""

    kind: str
    text: str
    change: dict[str, Any]
    pod: Pod


def changes(pod: Pod, table: NodeTable, *, comparison: bool = False) -> Iterator[Change]:
    """All single changes but those of requests, by kind: what takes the least away comes first."""
    yield from tolerations(pod, table, comparison=comparison)
    yield from host_ports(pod)
    yield from spread_constraints(pod)
    yield from node_selector(pod)
    yield from node_affinity(pod)
    yield from pod_affinity(pod)


def with_spec(pod: Pod, **fields: Any) -> Pod:
    return replace(pod, spec=replace(pod.spec, **fields))


def tolerations(pod: Pod, table: NodeTable, *, comparison: bool) -> Iterator[Change]:
    """One more toleration for each taint that repels the pod somewhere, the most frequent first."""
    mine = pod.spec.tolerations or ()
    seen: Counter[Taint] = Counter()
    for node in table.nodes:
        for taint in (node.spec.taints or ()) if node is not None else ():
            if taint.effect in REPELLING and not tolerated(taint, mine, comparison=comparison):
                seen[taint] += 1
    for taint, _ in seen.most_common(MANY):
        operator = "Equal" if taint.value else "Exists"
        added = Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)
        text = f"tolerate the taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
        change = {"add": {"spec.tolerations": plain(added)}}
        yield Change("toleration", text, change, with_spec(pod, tolerations=(*mine, added)))


def host_ports(pod: Pod) -> Iterator[Change]:
    """Each host port left out."""
    containers = pod.spec.containers or ()
    for i, container in enumerate(containers):
        ports = container.ports or ()
        for k, port in enumerate(ports):
            if port.host_port:
                less = replace(container, ports=(*ports[:k], *ports[k + 1 :]))
                path = f"spec.containers[{i}].ports[{k}]"
                changed = with_spec(pod, containers=(*containers[:i], less, *containers[i + 1 :]))
                yield _without("hostPort", f"the host port {port.host_port}", path, port, changed)


def spread_constraints(pod: Pod) -> Iterator[Change]:
    """Each constraint that must hold left out."""
    constraints = pod.spec.topology_spread_constraints or ()
    for i, constraint in enumerate(constraints):
        if constraint.when_unsatisfiable == "DoNotSchedule":
            what = f"the spread constraint over {constraint.topology_key} (maxSkew {constraint.max_skew})"
            left = (*constraints[:i], *constraints[i + 1 :])
            changed = with_spec(pod, topology_spread_constraints=left)
            yield _without("spread", what, f"spec.topologySpreadConstraints[{i}]", constraint, changed)


def node_selector(pod: Pod) -> Iterator[Change]:
    """Each pair of the node selector left out, then all of them."""
    selector = pod.spec.node_selector or {}
    for key, value in selector.items():
        left = {name: text for name, text in selector.items() if name != key}
        changed = with_spec(pod, node_selector=left or None)
        yield _without("nodeSelector", f"the node selector {key}={value}", f"spec.nodeSelector.{key}", value, changed)
    if len(selector) > 1:
        changed = with_spec(pod, node_selector=None)
        yield _without("nodeSelector", "any node selector", "spec.nodeSelector", selector, changed)


def node_affinity(pod: Pod) -> Iterator[Change]:
    """Each requirement of a term left out, then required node affinity as a whole (its terms are alternatives)."""
    affinity = pod.spec.affinity
    mine = affinity.node_affinity if affinity is not None else None
    required = mine.required_during_scheduling_ignored_during_execution if mine is not None else None
    if affinity is None or mine is None or required is None:
        return
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    terms = required.node_selector_terms or ()

    def without(left: NodeSelector | None) -> Pod:
        changed = replace(mine, required_during_scheduling_ignored_during_execution=left)
        return with_spec(pod, affinity=replace(affinity, node_affinity=changed))

    for i, term in enumerate(terms):
        expressions = term.match_expressions or ()
        if len(expressions) + len(term.match_fields or ()) < 2:
            continue
        for k, expression in enumerate(expressions):
            less = replace(term, match_expressions=(*expressions[:k], *expressions[k + 1 :]))
            left = replace(required, node_selector_terms=(*terms[:i], less, *terms[i + 1 :]))
            what = f"the node affinity {_requirement(expression)}"
            where = f"{path}.nodeSelectorTerms[{i}].matchExpressions[{k}]"
            yield _without("nodeAffinity", what, where, expression, without(left))
    yield _without("nodeAffinity", "required node affinity", path, required, without(None))


def pod_affinity(pod: Pod) -> Iterator[Change]:
    """Each required term of pod affinity and anti-affinity left out."""
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for kind, field in (("podAntiAffinity", "pod_anti_affinity"), ("podAffinity", "pod_affinity")):
        mine = getattr(affinity, field)
        terms = (mine.required_during_scheduling_ignored_during_execution or ()) if mine is not None else ()
        for i, term in enumerate(terms):
            left = (*terms[:i], *terms[i + 1 :])
            less = replace(mine, required_during_scheduling_ignored_during_execution=left)
            changed: Affinity = replace(affinity, **{field: less})
            word = "anti-affinity" if field == "pod_anti_affinity" else "affinity"
            what = f"the pod {word} to {_selector(term.label_selector)} by {term.topology_key}"
            path = f"spec.affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{i}]"
            yield _without(kind, what, path, term, with_spec(pod, affinity=changed))


def with_totals(pod: Pod, totals: Mapping[str, int]) -> Pod:
    """The pod asking for this much in all of each resource (scheduler units), the largest requests being cut first."""
    for resource, total in totals.items():
        pod = _with_total(pod, resource, total)
    return pod


def _with_total(pod: Pod, resource: str, total: int) -> Pod:
    spec = pod.spec
    room = max(total - in_units(spec.overhead).get(resource, 0), 0)
    whole = spec.resources
    if whole is not None and resource in (whole.requests or {}):
        return with_spec(pod, resources=_asking(whole, resource, room))
    first = tuple(_asking_at_most(each, resource, room) for each in spec.init_containers or ())
    room -= sum(_ask(each, resource) for each in first if each.restart_policy == "Always")
    containers = list(spec.containers or ())
    excess = sum(_ask(each, resource) for each in containers) - max(room, 0)
    for i in sorted(range(len(containers)), key=lambda i: -_ask(containers[i], resource)):
        ask = _ask(containers[i], resource)
        if excess > 0 and ask > 0:
            containers[i] = _asking_at_most(containers[i], resource, max(ask - excess, 0))
            excess -= ask
    return with_spec(pod, init_containers=first, containers=tuple(containers))


def _ask(container: Container, resource: str) -> int:
    return in_units(container.resources.requests if container.resources else None).get(resource, 0)


def _asking_at_most(container: Container, resource: str, amount: int) -> Container:
    if container.resources is None or _ask(container, resource) <= amount:
        return container
    return replace(container, resources=_asking(container.resources, resource, amount))


def _asking(resources: ResourceRequirements, resource: str, amount: int) -> ResourceRequirements:
    return replace(resources, requests={**(resources.requests or {}), resource: amount_text(resource, amount)})


def amount_text(resource: str, amount: int) -> str:
    """An amount in scheduler units as a quantity: cpu in milli, bytes with the largest suffix that is exact."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, unit in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
            if amount and amount % unit == 0:
                return f"{amount // unit}{suffix}"
    return str(amount)


def plain(value: Any) -> Any:
    """A struct as JSON values."""
    return msgspec.to_builtins(value)


def _without(kind: str, what: str, path: str, old: Any, changed: Pod) -> Change:
    return Change(kind, f"do without {what}", {"remove": {path: plain(old)}}, changed)


def _requirement(requirement: Any) -> str:
    values = ",".join(requirement.values or ())
    return f"{requirement.key} {requirement.operator}" + (f" [{values}]" if values else "")


def _selector(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    parts += [_requirement(each) for each in selector.match_expressions or ()]
    return "pods with " + ", ".join(parts) if parts else "any pods"
