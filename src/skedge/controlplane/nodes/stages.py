"""Stages: what happens next to an object, and when. Read from YAML, in a form close to kwok's `Stage`.

    spec:
      resourceRef: {kind: Pod}                  # or Node
      selector:                                 # all of it has to match
        matchLabels: {app: web}
        matchAnnotations: {tier: slow}
        matchExpressions:                       # key: one of FACTS, or .metadata.labels["..."] and the like;
        - {key: .status.phase, operator: In, values: [Pending]}     # In, NotIn, Exists, DoesNotExist
      weight: 1                                 # among the stages that match: 5 beside 95 is a failure rate of 5 %
      delay:
        durationMilliseconds: 200
        jitterDurationMilliseconds: 800         # the upper end
        durationFrom: {expressionFrom: .metadata.annotations["skedge.io/run-seconds"]}    # seconds, where it is there
      next:                                     # one of the two
        statusTemplate: {phase: Running, podIP: "${podIP}"}
        delete: true

A value `${NAME}` of a template is replaced by what NAME (see templates.py) means for the object.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from skedge.controlplane.controllers.objects import Node, Pod
from skedge.controlplane.nodes.templates import NODE_VALUES, POD_VALUES

JSON = dict[str, Any]
T = TypeVar("T")
Fact = Callable[[Any], Sequence[str]]


class StageError(ValueError):
    """A stage that cannot be used; the message names the file, the stage and the field."""


class _Reference(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    kind: str
    api_group: str = "v1"


class _Expression(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    key: str
    operator: str
    values: list[str] = []


class _Selector(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    match_labels: dict[str, str] = {}
    match_annotations: dict[str, str] = {}
    match_expressions: list[_Expression] = []


class _From(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    expression_from: str


class _Delay(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    duration_milliseconds: float = 0.0
    jitter_duration_milliseconds: float | None = None
    duration_from: _From | None = None


class _Next(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    status_template: dict[str, Any] | None = None
    delete: bool = False


class _Spec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    resource_ref: _Reference
    next: _Next
    selector: _Selector = msgspec.field(default_factory=_Selector)
    delay: _Delay = msgspec.field(default_factory=_Delay)
    weight: int = 1


class _Name(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class _Document(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    metadata: _Name
    spec: _Spec


def _one(text: str | None) -> tuple[str, ...]:
    return () if text is None or text == "" else (text,)


_POD_FACTS: dict[str, Fact] = {
    ".spec.nodeName": lambda pod: _one(pod.spec.node_name),
    ".spec.restartPolicy": lambda pod: (pod.spec.restart_policy,),
    ".status.phase": lambda pod: _one(pod.status.phase),
    ".status.podIP": lambda pod: _one(pod.status.pod_ip),
}
FACTS: dict[str, Fact] = {
    ".metadata.name": lambda obj: (obj.metadata.name,),
    ".metadata.namespace": lambda obj: _one(obj.metadata.namespace),
    ".metadata.deletionTimestamp": lambda obj: _one(obj.metadata.deletion_timestamp),
    ".metadata.deletionGracePeriodSeconds": lambda obj: (str(obj.metadata.deletion_grace_period_seconds or 0),),
    ".metadata.finalizers": lambda obj: obj.metadata.finalizers or (),
    ".metadata.ownerReferences.[].kind": lambda obj: [ref.kind for ref in obj.metadata.owner_references or ()],
}
_KEYED = re.compile(r'\.metadata\.(labels|annotations)\["([^"]+)"\]')
_CONDITION = re.compile(r"\.status\.conditions\.([A-Za-z0-9]+)")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z.]+)\}")


class Stage(Generic[T]):
    """One stage of a kind. `status` is None where the object is deleted."""

    def __init__(self, document: _Document) -> None:
        spec = document.spec
        self.name, self.kind, self.weight = document.metadata.name, spec.resource_ref.kind, spec.weight
        self.status, self.deletes = spec.next.status_template, spec.next.delete
        self._tests = [*_tests(spec.selector, self.kind)]
        self._least = spec.delay.duration_milliseconds / 1000.0
        most = spec.delay.jitter_duration_milliseconds
        self._most = self._least if most is None else max(self._least, most / 1000.0)
        source = spec.delay.duration_from
        where = "spec.delay.durationFrom.expressionFrom"
        self._said = None if source is None else _fact(source.expression_from, self.kind, where)

    def matches(self, obj: T) -> bool:
        return all(test(obj) for test in self._tests)

    def delay(self, obj: T, rng: random.Random) -> float:
        """The seconds to wait before the stage is played."""
        said = self._said(obj) if self._said is not None else ()
        if said:
            try:
                return max(0.0, float(said[0]))
            except ValueError:
                pass  # a duration nobody can read counts as none
        return self._least if self._least == self._most else rng.uniform(self._least, self._most)


class Stages:
    """The stages of pods and of nodes."""

    def __init__(self, pods: list[Stage[Pod]], nodes: list[Stage[Node]]) -> None:
        self.pods, self.nodes = pods, nodes


def load_stages(path: Path | None = None) -> Stages:
    """The stages of a YAML file, or the default ones. Raises StageError, OSError."""
    if path is None:
        return parse_stages(resources.files(__package__).joinpath("default_stages.yaml").read_text("utf-8"))
    return parse_stages(path.read_text("utf-8"), str(path))


def parse_stages(text: str, source: str = "default stages") -> Stages:
    """The stages of a YAML text with any number of documents. Raises StageError naming `source`."""
    stages = Stages([], [])
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        raise StageError(f"{source}: not YAML: {' '.join(str(error).split())}") from None
    for i, document in enumerate(documents):
        name = _name_of(document) or f"document {i + 1}"
        try:
            stage: Stage[Any] = Stage(_checked(msgspec.convert(document, _Document)))
        except (msgspec.ValidationError, StageError) as error:
            raise StageError(f"{source}: stage {name}: {error}") from None
        (stages.pods if stage.kind == "Pod" else stages.nodes).append(stage)
    return stages


def _name_of(document: Any) -> str:
    meta = document.get("metadata") if isinstance(document, dict) else None
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""


def _checked(document: _Document) -> _Document:
    if document.kind != "Stage":
        raise StageError(f'kind is "{document.kind}", expected Stage')
    spec = document.spec
    kind = spec.resource_ref.kind
    if kind not in ("Pod", "Node"):
        raise StageError(f'spec.resourceRef.kind is "{kind}", expected Pod or Node')
    if (spec.next.status_template is not None) == spec.next.delete:
        raise StageError("spec.next: exactly one of statusTemplate and delete is needed")
    if spec.weight < 1:
        raise StageError(f"spec.weight is {spec.weight}, expected at least 1")
    known = POD_VALUES if kind == "Pod" else NODE_VALUES
    for name in _placeholders(spec.next.status_template):
        if name not in known:
            raise StageError(f"spec.next.statusTemplate: unknown ${{{name}}}, known: {', '.join(sorted(known))}")
    return document


def _placeholders(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for each in value.values() for name in _placeholders(each)]
    if isinstance(value, list):
        return [name for each in value for name in _placeholders(each)]
    return _PLACEHOLDER.findall(value) if isinstance(value, str) else []


def _tests(selector: _Selector, kind: str) -> list[Callable[[Any], bool]]:
    tests = [_test(".metadata.labels", key, [value]) for key, value in selector.match_labels.items()]
    tests += [_test(".metadata.annotations", key, [value]) for key, value in selector.match_annotations.items()]
    for i, each in enumerate(selector.match_expressions):
        where = f"spec.selector.matchExpressions[{i}]"
        fact = _fact(each.key, kind, f"{where}.key")
        if (each.operator in ("In", "NotIn")) != bool(each.values):
            raise StageError(f"{where}.values: In and NotIn need values, other operators have none")
        tests.append(_operator(each.operator, fact, frozenset(each.values), f"{where}.operator"))
    return tests


def _test(map_path: str, key: str, values: list[str]) -> Callable[[Any], bool]:
    return _operator("In", _fact(f'{map_path}["{key}"]', "", ""), frozenset(values), "")


def _operator(operator: str, fact: Fact, values: frozenset[str], where: str) -> Callable[[Any], bool]:
    match operator:
        case "In":
            return lambda obj: any(each in values for each in fact(obj))
        case "NotIn":
            return lambda obj: not any(each in values for each in fact(obj))
        case "Exists":
            return lambda obj: bool(fact(obj))
        case "DoesNotExist":
            return lambda obj: not fact(obj)
    raise StageError(f'{where} is "{operator}", expected In, NotIn, Exists or DoesNotExist')


def _fact(key: str, kind: str, where: str) -> Fact:
    """What reads a key from an object, as texts; none where the object says nothing."""
    known = {**FACTS, **_POD_FACTS} if kind == "Pod" else FACTS
    if key in known:
        return known[key]
    if match := _KEYED.fullmatch(key):
        field, name = match.groups()
        if field == "labels":
            return lambda obj: _one((obj.metadata.labels or {}).get(name))
        return lambda obj: _one((obj.metadata.annotations or {}).get(name))
    if match := _CONDITION.fullmatch(key):
        type = match[1]
        return lambda obj: [each.status for each in obj.status.conditions or () if each.type == type]
    raise StageError(
        f'{where} is "{key}", expected .metadata.labels["..."], .metadata.annotations["..."], .status.conditions.TYPE, '
        f"{', '.join(known)}"
    )
