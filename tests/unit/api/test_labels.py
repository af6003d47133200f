"""Label selectors: meaning, identity and error texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.api.labels import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    compile_selector,
    from_set,
    parse_int64,
)
from skedge.api.meta import LabelSelector, LabelSelectorRequirement

BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
BAD_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def selector(labels: dict[str, str] | None = None, *expressions: tuple[str, str, tuple[str, ...]]) -> LabelSelector:
    return LabelSelector(labels, tuple(LabelSelectorRequirement(*each) for each in expressions))


@pytest.mark.parametrize(
    ("written", "labels", "expected"),
    [
        (selector({"a": "1"}), {"a": "1", "b": "2"}, True),
        (selector({"a": "1"}), {"a": "2"}, False),
        (selector({"a": "1"}), {}, False),
        (selector({"a": ""}), {}, False),
        (selector({"a": ""}), {"a": ""}, True),
        (selector(None, ("a", "In", ("1", "2"))), {"a": "2"}, True),
        (selector(None, ("a", "NotIn", ("1",))), {}, True),
        (selector(None, ("a", "NotIn", ("1",))), {"a": "1"}, False),
        (selector(None, ("a", "NotIn", ("1",))), {"a": "3"}, True),
        (selector(None, ("a", "Exists", ())), {"a": ""}, True),
        (selector(None, ("a", "Exists", ())), {}, False),
        (selector(None, ("a", "DoesNotExist", ())), {}, True),
        (selector(None, ("a", "DoesNotExist", ())), {"a": ""}, False),
        (selector({"b": "1"}, ("a", "Exists", ())), {"b": "1"}, False),
        (selector(), {}, True),
        (LabelSelector(match_expressions=None), {"a": "1"}, True),
        (None, {}, False),
        (None, {"a": "1"}, False),
    ],
)
def test_matches(written: LabelSelector | None, labels: dict[str, str], expected: bool) -> None:
    assert compile_selector(written).matches(labels) is expected


def test_absent_labels_are_no_labels() -> None:
    assert EVERYTHING.matches(None)
    assert not NOTHING.matches(None)
    assert not from_set({"a": "1"}).matches(None)


def test_nothing_and_everything_are_distinct() -> None:
    assert compile_selector(None) == NOTHING
    assert compile_selector(LabelSelector()) == EVERYTHING
    assert (NOTHING.empty, EVERYTHING.empty) == (False, True)
    assert NOTHING != EVERYTHING
    assert NOTHING.plus([Requirement("a", "Exists")]) == NOTHING
    assert EVERYTHING.plus([Requirement("a", "Exists")]) == compile_selector(selector(None, ("a", "Exists", ())))
    assert from_set(None) is EVERYTHING
    assert from_set({}) is EVERYTHING


def test_equal_meaning_is_one_cache_key() -> None:
    one = compile_selector(selector({"a": "1"}, ("b", "In", ("y", "x", "x"))))
    two = compile_selector(selector(None, ("b", "In", ("x", "y")), ("a", "In", ("1",))))
    assert one == two
    assert hash(one) == hash(two)
    assert {one: "found"}[two] == "found"
    assert one != compile_selector(selector({"a": "1"}))
    assert str(one) == "a=1,b in (x,y)"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            selector(None, ("service", "In", ("{{.bad-value.}}",))),
            f'values[0][service]: Invalid value: "{{{{.bad-value.}}}}": {BAD_VALUE}',
        ),
        (selector({"a b": "1"}), f'key: Invalid value: "a b": {BAD_NAME}'),
        (selector({"": "1"}), f'key: Invalid value: "": name part must be non-empty; {BAD_NAME}'),
        (selector({"a": "x" * 64}), f'values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes'),
        (
            selector(None, ("a", "In", ())),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            selector(None, ("a", "Exists", ("x", "y"))),
            'values: Invalid value: ["x","y"]: values set must be empty for exists and does not exist',
        ),
        (selector(None, ("a", "Gt", ("1",))), '"Gt" is not a valid label selector operator'),
        (
            selector(None, ("/a", "In", ("-",))),
            '[key: Invalid value: "/a": prefix part must be non-empty, '
            f'values[0][/a]: Invalid value: "-": {BAD_VALUE}]',
        ),
    ],
)
def test_errors(written: LabelSelector, message: str) -> None:
    with pytest.raises(SelectorError) as raised:
        compile_selector(written)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("0206", 206),
        ("+5", 5),
        ("-0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("", None),
        (" 1", None),
        ("1_0", None),
        ("1.0", None),
        ("١", None),
        ("9" * 5000, None),
    ],
)
def test_parse_int64(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "1", "2", "10", "-1", "x"])
REQUIREMENTS = st.tuples(
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    st.lists(VALUES, min_size=1, max_size=3),
)
LABELS = st.dictionaries(KEYS, VALUES)


def twin(key: str, operator: str, values: list[str], labels: dict[str, str]) -> bool:
    """One requirement, read out loud."""
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return not (key in labels and labels[key] in values)
    if key not in labels or "x" in (labels[key], values[0]) or "" in (labels[key], values[0]):
        return False
    return int(labels[key]) > int(values[0]) if operator == "Gt" else int(labels[key]) < int(values[0])


@given(st.lists(REQUIREMENTS, max_size=4), LABELS)
def test_twin(written: list[tuple[str, str, list[str]]], labels: dict[str, str]) -> None:
    cut = [(k, op, v[:1] if op in ("Gt", "Lt") else [] if "xist" in op else v) for k, op, v in written]
    compiled = Selector(Requirement(*each) for each in cut)
    assert compiled.matches(labels) == all(twin(*each, labels) for each in cut)
    assert compiled == Selector(Requirement(*each) for each in reversed(cut))
    assert compiled.empty == (not cut)
