"""Label and field selectors: what they select, and how bad ones are refused."""

from __future__ import annotations

import pytest

from skedge.controlplane.errors import ApiError
from skedge.controlplane.selectors import (
    labels_from_object,
    parse_fields,
    parse_labels,
    selectable_values,
    selector_text,
)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("a=1", [{"a": "1"}], [{}, {"a": "2"}]),
        ("a==1,b", [{"a": "1", "b": ""}], [{"a": "1"}]),
        ("a!=1", [{}, {"a": "2"}], [{"a": "1"}]),
        ("a in (1, 2)", [{"a": "2"}], [{"a": "3"}, {}]),
        ("a notin (1,2)", [{}, {"a": "3"}], [{"a": "1"}]),
        ("!a", [{"b": "1"}], [{"a": ""}]),
        ("a>5", [{"a": "6"}], [{"a": "5"}, {"a": "x"}, {}]),
        ("a<5", [{"a": "4"}], [{"a": "5"}]),
        ("a=", [{"a": ""}], [{"a": "1"}, {}]),
        ("example.com/a=b", [{"example.com/a": "b"}], [{}]),
    ],
)
def test_labels(text: str, yes: list[dict[str, str]], no: list[dict[str, str]]) -> None:
    selector = parse_labels(text)
    assert selector is not None
    assert [selector.matches(labels) for labels in yes] == [True] * len(yes)
    assert [selector.matches(labels) for labels in no] == [False] * len(no)


def test_empty_selectors_select_everything() -> None:
    assert parse_labels("") is None
    assert parse_fields("", "pods") is None
    everything = labels_from_object({})
    assert everything is not None
    assert everything.matches({"a": "b"})
    assert labels_from_object(None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("==", "found '==', expected: !, identifier, or 'end of string'"),
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=1 b", "found 'b', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a in 1", "found '1' expected: '('"),
        ("a in (1", "found '', expected: ',' or ')'"),
        ("a>x", "the value must be an integer"),
        ("-a=1", "name part must consist of alphanumeric characters"),
        ("a=b/c", "a valid label must be an empty string or consist of"),
    ],
)
def test_bad_labels(text: str, message: str) -> None:
    with pytest.raises(ApiError) as e:
        parse_labels(text)
    assert e.value.code == 400
    assert message in e.value.message


def test_fields() -> None:
    pod = {"spec": {"nodeName": "n1", "hostNetwork": True}, "status": {"phase": "Running"}}
    values = selectable_values("pods", pod)
    for text, selected in (
        ("spec.nodeName=n1", True),
        ("spec.nodeName!=n1", False),
        ("spec.nodeName=n1,status.phase!=Pending", True),
        ("spec.hostNetwork=true", True),
        ("metadata.name=p,metadata.namespace=ns", True),
        ("metadata.namespace=other", False),
        (r"metadata.name=a\,b", False),
    ):
        selector = parse_fields(text, "pods")
        assert selector is not None
        assert selector.matches("p", "ns", values) is selected, text


@pytest.mark.parametrize(
    ("text", "storage", "message"),
    [
        ("spec.bogus=1", "pods", "field label not supported: spec.bogus"),
        ("spec.x=1", "leases.coordination.k8s.io", '"spec.x" is not a known field selector'),
        ("nonsense", "pods", "can't understand 'nonsense'"),
        (r"metadata.name=a\b", "pods", "invalid escape sequence"),
    ],
)
def test_bad_fields(text: str, storage: str, message: str) -> None:
    with pytest.raises(ApiError) as e:
        parse_fields(text, storage)
    assert message in e.value.message


def test_events_of_both_groups_are_selected_alike() -> None:
    event = {"involvedObject": {"name": "p"}, "source": {}, "reportingComponent": "sched"}
    values = selectable_values("events", event)
    for text in ("involvedObject.name=p", "regarding.name=p", "reportingController=sched", "source=sched"):
        selector = parse_fields(text, "events")
        assert selector is not None
        assert selector.matches("e", "ns", values), text


def test_selector_text() -> None:
    terms = [
        {"key": "b", "operator": "In", "values": ["2", "1"]},
        {"key": "c", "operator": "NotIn", "values": ["3"]},
        {"key": "d", "operator": "Exists"},
        {"key": "e", "operator": "DoesNotExist"},
    ]
    assert selector_text({"matchLabels": {"a": "1"}, "matchExpressions": terms}) == "a=1,b in (1,2),c notin (3),d,!e"
    assert selector_text({"app": "x"}) == "app=x"
    assert selector_text(None) == ""
