"""Label selectors, compiled: `Requirement`, `Selector`, and their errors.

A compiled selector is a value: equal selectors are equal and hash alike however they were written, so that it can key a
cache. *Nothing* (from an absent selector) matches no labels and is not empty; *everything* (from `{}`) is empty.

Upstream: `staging/src/k8s.io/apimachinery/pkg/labels/selector.go`, `.../pkg/apis/meta/v1/helpers.go`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from skedge.api.meta import LabelSelector
from skedge.api.validation import label_value_problems, qualified_name_problems

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"

NODE_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)
LABEL_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)

_NO_LABELS: Final[Mapping[str, str]] = {}
_INT = re.compile(r"[+-]?[0-9]+")


class SelectorError(ValueError):
    """A selector that can't be used. `errors` holds `path: what` for each problem; the message is the reference's."""

    def __init__(self, *errors: str) -> None:
        self.errors = tuple(dict.fromkeys(errors))
        super().__init__(self.errors[0] if len(self.errors) == 1 else f"[{', '.join(self.errors)}]")


class Requirement:
    """One condition on one label. `values` is sorted and without repeats; `Gt` and `Lt` have exactly one, an int64."""

    __slots__ = ("_hash", "_number", "key", "operator", "values")

    def __init__(self, key: str, operator: str, values: Iterable[str] = ()) -> None:
        self.key = key
        self.operator = operator
        self.values = tuple(sorted(set(values)))
        self._number = parse_int64(self.values[0]) if operator in (GT, LT) and self.values else None
        self._hash = hash((key, operator, self.values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy the requirement."""
        found = labels.get(self.key)
        operator = self.operator
        if operator == IN:
            return found is not None and found in self.values
        if operator == NOT_IN:
            return found is None or found not in self.values
        if operator == EXISTS:
            return found is not None
        if operator == DOES_NOT_EXIST:
            return found is None
        number = None if found is None else parse_int64(found)
        if number is None or self._number is None:
            return False
        return number > self._number if operator == GT else number < self._number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Requirement):
            return False
        return (self.key, self.operator, self.values) == (other.key, other.operator, other.values)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        match self.operator, self.values:
            case "Exists", _:
                return self.key
            case "DoesNotExist", _:
                return f"!{self.key}"
            case "In", (only,):
                return f"{self.key}={only}"
            case "NotIn", (only,):
                return f"{self.key}!={only}"
            case "In", values:
                return f"{self.key} in ({','.join(values)})"
            case "NotIn", values:
                return f"{self.key} notin ({','.join(values)})"
            case operator, values:
                return f"{self.key}{'>' if operator == GT else '<'}{','.join(values)}"

    def __repr__(self) -> str:
        return f"Requirement({self.key!r}, {self.operator!r}, {self.values!r})"


class Selector:
    """A conjunction of requirements, or *nothing*. Immutable; a string of it is valid selector syntax."""

    __slots__ = ("_hash", "nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        ordered = sorted(set(requirements), key=lambda each: (each.key, each.operator, each.values))
        self.requirements = () if nothing else tuple(ordered)
        self.nothing = nothing
        self._hash = hash((nothing, self.requirements))

    @property
    def empty(self) -> bool:
        """Whether this is *everything*: no requirement at all. False for *nothing*."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether these labels (None: no labels) are selected."""
        if labels is None:
            labels = _NO_LABELS
        for requirement in self.requirements:
            if not requirement.matches(labels):
                return False
        return not self.nothing

    def plus(self, requirements: Iterable[Requirement]) -> Selector:
        """This selector and more requirements; *nothing* stays nothing."""
        return self if self.nothing else Selector((*self.requirements, *requirements))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return False
        return self.nothing == other.nothing and self.requirements == other.requirements

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "NOTHING" if self.nothing else f"Selector({list(self.requirements)!r})"


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


def compile_selector(selector: LabelSelector | None) -> Selector:
    """The meaning of a LabelSelector: None selects nothing, an empty one everything. Raises SelectorError."""
    if selector is None:
        return NOTHING
    expressions = tuple((each.key, each.operator, each.values or ()) for each in selector.match_expressions or ())
    return _compile(tuple((selector.match_labels or _NO_LABELS).items()), expressions)


def from_set(labels: Mapping[str, str] | None) -> Selector:
    """The selector that wants exactly these pairs, unvalidated; no pairs select everything (`SelectorFromSet`)."""
    return Selector(Requirement(key, IN, (value,)) for key, value in labels.items()) if labels else EVERYTHING


@lru_cache(maxsize=4096)
def _compile(pairs: tuple[tuple[str, str], ...], expressions: tuple[tuple[str, str, tuple[str, ...]], ...]) -> Selector:
    requirements = [checked_requirement(key, IN, (value,)) for key, value in sorted(pairs)]
    for key, operator, values in expressions:
        if operator not in LABEL_OPERATORS:
            raise SelectorError(f"{quote(operator)} is not a valid label selector operator")
        requirements.append(checked_requirement(key, operator, values))
    return Selector(requirements) if requirements else EVERYTHING


def checked_requirement(key: str, operator: str, values: Sequence[str], path: str = "") -> Requirement:
    """A requirement whose key and values obey the rules. Raises SelectorError, each problem under `path`."""
    prefix = f"{path}." if path else ""
    errors: list[str] = []
    if problems := qualified_name_problems(key):
        errors.append(invalid(f"{prefix}key", quote(key), "; ".join(problems)))
    written = quote_all(values)
    if operator in (IN, NOT_IN):
        if not values:
            errors.append(invalid(f"{prefix}values", written, "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            errors.append(invalid(f"{prefix}values", written, "values set must be empty for exists and does not exist"))
    else:
        if len(values) != 1:
            what = "for 'Gt', 'Lt' operators, exactly one value is required"
            errors.append(invalid(f"{prefix}values", written, what))
        for i, value in enumerate(values):
            if parse_int64(value) is None:
                what = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.append(invalid(f"{prefix}values[{i}]", quote(value), what))
    for i, value in enumerate(values):
        if problems := label_value_problems(value):
            errors.append(invalid(f"{prefix}values[{i}][{key}]", quote(value), "; ".join(problems)))
    if errors:
        raise SelectorError(*errors)
    return Requirement(key, operator, values)


def parse_int64(text: str) -> int | None:
    """The number, read as Go's `strconv.ParseInt(text, 10, 64)` does, or None."""
    if len(text) > 64 or not _INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def invalid(path: str, written: str, what: str) -> str:
    """The text of a field error about a value, as `written` in messages."""
    return f"{path}: Invalid value: {written}: {what}"


def quote(text: str) -> str:
    """The text in double quotes, as messages show it."""
    return json.dumps(text, ensure_ascii=False)


def quote_all(texts: Sequence[str]) -> str:
    """The list as messages show it; an empty one as `null`."""
    return json.dumps(list(texts), ensure_ascii=False, separators=(",", ":")) if texts else "null"
