"""A Policy file: types, decoding, rules.

Upstream (v1.20): `kube-scheduler/config/v1/types.go`, `apis/config/validation`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from skedge.config import documents
from skedge.config.durations import Duration
from skedge.config.fields import ConfigError, FieldError, aggregate, invalid
from skedge.config.gates import FeatureGates
from skedge.config.label_names import is_extended_resource, label_key_errors
from skedge.config.legacy.args import NodeLabelArgs
from skedge.config.legacy.registry import PREDICATES, PRIORITIES
from skedge.config.plugin_args import ResourceSpec, ShapePoint
from skedge.config.strict import Int32, Int64, StrictError, decode_struct
from skedge.config.types import API_VERSION, Extender, ExtenderTLS, ManagedResource

UNUSABLE = "couldn't create scheduler from policy"
"""What the error of a Policy begins with that can be read and can not be used."""

_MAX_WEIGHT = ((1 << 63) - 1) // 10
_MAX_INT32 = (1 << 31) - 1


class ServiceAffinity(msgspec.Struct, rename="camel"):
    labels: list[str] = []


class LabelsPresence(msgspec.Struct, rename="camel"):
    labels: list[str] = []
    presence: bool = False


class PredicateArgument(msgspec.Struct, rename="camel"):
    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(msgspec.Struct, rename="camel"):
    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(msgspec.Struct, rename="camel"):
    label: str = ""


class LabelPreference(msgspec.Struct, rename="camel"):
    label: str = ""
    presence: bool = False


class CapacityRatioArguments(msgspec.Struct, rename="camel"):
    shape: list[ShapePoint] = []
    resources: list[ResourceSpec] = []


class PriorityArgument(msgspec.Struct, rename="camel"):
    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: CapacityRatioArguments | None = None


class PriorityPolicy(msgspec.Struct, rename="camel"):
    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class Policy(msgspec.Struct, rename="camel"):
    """A legacy Policy; absent predicates or priorities (None) mean the default sets, empty lists mean none."""

    predicates: list[PredicatePolicy] | None = None
    priorities: list[PriorityPolicy] | None = None
    extenders: list[Extender] = []
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


def decode_policy(text: str | bytes) -> Policy:
    """Read and check a Policy in YAML or JSON.

    Raises ConfigError: `invalid policy: ...` if it cannot be decoded, with `UNUSABLE` if it breaks a rule.
    """
    try:
        policy = _decode(documents.load(text))
    except ConfigError as error:
        raise ConfigError(f"invalid policy: {error}") from None
    if errors := list(validate_policy(policy)):
        raise ConfigError(f"{UNUSABLE}: {aggregate(errors)}")
    return policy


def _decode(document: documents.Document) -> Policy:
    data = document.data
    if not isinstance(data, dict) or not data.get("kind"):
        raise ConfigError(f"Object 'Kind' is missing in '{document.text or 'null'}'")
    if not data.get("apiVersion"):
        raise ConfigError(f"Object 'apiVersion' is missing in '{document.text}'")
    kind, version = data["kind"], data["apiVersion"]
    if kind != "Policy" or version not in ("v1", API_VERSION):
        raise ConfigError(f'no kind "{kind}" is registered for version "{version}" in scheme "{API_VERSION}"')
    if document.duplicates:
        raise StrictError(document.duplicates)
    extenders = data.get("extenders")
    rest = {key: value for key, value in data.items() if key != "extenders"}
    policy = decode_struct(rest, Policy, ignore=frozenset({"kind", "apiVersion"}))
    if extenders is not None:
        if not isinstance(extenders, list):
            raise ConfigError("extenders: expected a list")
        policy.extenders = [_extender(one, f"extenders[{index}]") for index, one in enumerate(extenders)]
    return policy


def _extender(data: object, path: str) -> Extender:
    """Old files spell the fields of extenders in any case, and give the timeout in nanoseconds."""
    known = _fold(data, Extender, path)
    if isinstance(timeout := known.get("httpTimeout"), int) and not isinstance(timeout, bool):
        known["httpTimeout"] = str(Duration(timeout))
    if known.get("tlsConfig") is not None:
        known["tlsConfig"] = _fold(known["tlsConfig"], ExtenderTLS, f"{path}.tlsConfig")
    if isinstance(resources := known.get("managedResources"), list):
        here = f"{path}.managedResources"
        known["managedResources"] = [_fold(one, ManagedResource, f"{here}[{i}]") for i, one in enumerate(resources)]
    try:
        return decode_struct(known, Extender)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _fold(data: object, kind: type[msgspec.Struct], path: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected an object")
    spelling = {name.casefold(): name for name in kind.__struct_encode_fields__}
    return {spelling[key.casefold()]: value for key, value in data.items() if key.casefold() in spelling}


def validate_policy(policy: Policy) -> Iterator[str]:
    """The broken rules of a Policy, worded as the releases that had it did."""
    for predicate in policy.predicates or []:
        yield from _predicate_errors(predicate)
    yield from _priority_errors(policy.priorities or [])
    present, absent = label_presence(policy)
    labels = NodeLabelArgs(present_labels=present, absent_labels=absent)
    labels.present_labels_preference, labels.absent_labels_preference = label_preference(policy)
    yield from (error.detail for error in labels.validate("", FeatureGates()))
    yield from (str(error) for error in _extender_errors(policy.extenders))
    weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= 100:
        yield str(invalid("hardPodAffinitySymmetricWeight", weight, "not in valid range [0-100]"))


def _predicate_errors(predicate: PredicatePolicy) -> Iterator[str]:
    if predicate.argument is None or predicate.name in PREDICATES:
        return
    count = sum(getattr(predicate.argument, name) is not None for name in predicate.argument.__struct_fields__)
    if count != 1:
        yield f"Exactly 1 predicate argument is required, numArgs: {count}, Predicate: {predicate.name}"


def _priority_errors(priorities: list[PriorityPolicy]) -> Iterator[str]:
    ratio = ""
    spread: PriorityPolicy | None = None
    preference: PriorityPolicy | None = None
    for priority in priorities:
        name, weight, argument = priority.name, priority.weight, priority.argument
        if weight <= 0 or weight >= _MAX_WEIGHT:
            yield f"priority {name} should have a positive weight applied to it or it has overflown"
        elif weight > _MAX_INT32:
            yield f"priority {name} should have a weight of at most {_MAX_INT32}"
        if argument is None or name in PRIORITIES:
            continue
        count = sum(getattr(argument, field) is not None for field in argument.__struct_fields__)
        if count == 0:
            yield f"no priority arguments set for priority {name}"
        elif count > 1:
            yield f"Exactly 1 priority argument is required, numArgs: {count}, Priority: {name}"
        elif argument.requested_to_capacity_ratio_arguments is not None:
            if ratio:
                text = f'redeclares custom priority "RequestedToCapacityRatio", from: "{ratio}"'
                yield f'priority "{name}" {text}'
            ratio = ratio or name
        elif argument.label_preference is not None:
            preference = preference or priority
            if preference.weight != weight:
                yield f'LabelPreference  priority "{name}" has a different weight with "{preference.name}"'
        else:
            spread = spread or priority
            if spread.weight != weight:
                yield f'ServiceAntiAffinity  priority "{name}" has a different weight with "{spread.name}"'


def _extender_errors(extenders: list[Extender]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            here = f"{path}.managedResources[{number}].name"
            problems = label_key_errors(resource.name)
            if problems or not is_extended_resource(resource.name):
                text = problems[0] if problems else f"{resource.name} is an invalid extended resource name"
                yield invalid(here, resource.name, text)
            if resource.name in seen:
                yield invalid(here, resource.name, "duplicate extender managed resource name")
            seen.add(resource.name)
    if (binders := sum(bool(extender.bind_verb) for extender in extenders)) > 1:
        yield invalid(
            "extenders", f"found {binders} extenders implementing bind", "only one extender can implement bind"
        )


def label_presence(policy: Policy) -> tuple[list[str], list[str]]:
    """Labels that the custom predicates want present, and absent."""
    present: list[str] = []
    absent: list[str] = []
    for predicate in policy.predicates or []:
        if predicate.name not in PREDICATES and predicate.argument and (wish := predicate.argument.labels_presence):
            (present if wish.presence else absent).extend(wish.labels)
    return present, absent


def label_preference(policy: Policy) -> tuple[list[str], list[str]]:
    """Labels that the custom priorities prefer present, and absent."""
    present: list[str] = []
    absent: list[str] = []
    for priority in policy.priorities or []:
        if priority.name not in PRIORITIES and priority.argument and (wish := priority.argument.label_preference):
            (present if wish.presence else absent).append(wish.label)
    return present, absent
