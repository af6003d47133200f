"""Selectors written as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.api.labels import EVERYTHING, Requirement, Selector, SelectorError
from skedge.api.selector_text import parse_selector


def want(*requirements: tuple[str, str, tuple[str, ...]]) -> Selector:
    return Selector(Requirement(*each) for each in requirements)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", EVERYTHING),
        ("  ", EVERYTHING),
        ("a", want(("a", "Exists", ()))),
        ("!a", want(("a", "DoesNotExist", ()))),
        ("a=b", want(("a", "In", ("b",)))),
        ("a==b", want(("a", "In", ("b",)))),
        ("a!=b", want(("a", "NotIn", ("b",)))),
        ("a=", want(("a", "In", ("",)))),
        ("a=,b", want(("a", "In", ("",)), ("b", "Exists", ()))),
        (
            "a in (x,y), b notin (z) ,!c",
            want(("a", "In", ("x", "y")), ("b", "NotIn", ("z",)), ("c", "DoesNotExist", ())),
        ),
        (
            "x in (foo,,baz),y,z notin ()",
            want(("x", "In", ("", "baz", "foo")), ("y", "Exists", ()), ("z", "NotIn", ("",))),
        ),
        ("a in (,x)", want(("a", "In", ("", "x")))),
        ("a in (x,)", want(("a", "In", ("", "x")))),
        ("a>5,b<10", want(("a", "Gt", ("5",)), ("b", "Lt", ("10",)))),
        ("in in (in,notin)", want(("in", "In", ("in", "notin")))),
        ("example.com/role = web", want(("example.com/role", "In", ("web",)))),
    ],
)
def test_parse(text: str, expected: Selector) -> None:
    assert parse_selector(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("==", "found '==', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (x,", "unable to parse requirement: found '', expected: ',', or identifier"),
        (
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse_selector(text)
    assert str(raised.value) == message


@pytest.mark.parametrize("text", ["a/b/c=d", "-a", "a=-", "a in (x!)"])
def test_bad_names_and_values_are_refused(text: str) -> None:
    with pytest.raises(SelectorError, match="unable to parse requirement: "):
        parse_selector(text)


@given(st.text("ab=!(),<> in", max_size=14))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = parse_selector(text)
    except SelectorError:
        return
    if all(each.values != ("",) or each.operator in ("In", "NotIn") for each in selector.requirements):
        assert parse_selector(str(selector)) == selector
