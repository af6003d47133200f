"""Node selectors and node affinity, one node at a time."""

from __future__ import annotations

import pytest

from skedge.api.core import Affinity, NodeAffinity, Pod, PodSpec, PreferredSchedulingTerm
from skedge.api.labels import SelectorError
from skedge.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from skedge.api.node_selectors import NodeTerms, PreferredTerms, required_matches

Written = tuple[str, str, tuple[str, ...]]


def term(*expressions: Written, fields: tuple[Written, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        tuple(NodeSelectorRequirement(*each) for each in expressions),
        tuple(NodeSelectorRequirement(*each) for each in fields),
    )


NAME_IS_N1 = (("metadata.name", "In", ("n1",)),)


@pytest.mark.parametrize(
    ("terms", "labels", "expected"),
    [
        ((), {"a": "1"}, False),
        ((term(),), {"a": "1"}, False),
        ((term(("a", "In", ("1", "2"))),), {"a": "2"}, True),
        ((term(("a", "NotIn", ("1",))),), {}, True),
        ((term(("a", "DoesNotExist", ())),), {}, True),
        ((term(("a", "Gt", ("0204",))),), {"a": "0206"}, True),
        ((term(("a", "Gt", ("4",))),), {"a": "x"}, False),
        ((term(("a", "Gt", ("4",))),), {}, False),
        ((term(("a", "Lt", ("4",))),), {"a": "3"}, True),
        ((term(("a", "Exists", ()), ("b", "Exists", ())),), {"a": "1"}, False),
        ((term(("a", "Exists", ())), term(("b", "Exists", ()))), {"b": "1"}, True),
        ((term(("a", "Gt", ("x",))), term(("b", "Exists", ()))), {"b": "1"}, True),
        ((term(("a", "Gt", ("x",))),), {"a": "9"}, False),
        ((term(("a", "Gt", ("1", "2"))),), {"a": "9"}, False),
        ((term(("a", "Like", ("1",))),), {"a": "1"}, False),
        ((term(fields=NAME_IS_N1),), {}, True),
        ((term(fields=(("metadata.name", "In", ("n2",)),)),), {}, False),
        ((term(fields=(("metadata.name", "NotIn", ("n2",)),)),), {}, True),
        ((term(fields=(("metadata.name", "In", ("n1", "n2")),)),), {}, False),
        ((term(fields=(("metadata.name", "Exists", ()),)),), {}, False),
        ((term(fields=(("metadata.uid", "NotIn", ("x",)),)),), {}, True),
        ((term(("a", "Exists", ()), fields=NAME_IS_N1),), {}, False),
        ((term(("a", "Exists", ()), fields=NAME_IS_N1),), {"a": ""}, True),
    ],
)
def test_terms(terms: tuple[NodeSelectorTerm, ...], labels: dict[str, str], expected: bool) -> None:
    assert NodeTerms(NodeSelector(terms)).matches("n1", labels) is expected


def test_fields_are_not_asked_of_a_node_without_a_name() -> None:
    terms = NodeTerms(NodeSelector((term(fields=(("metadata.name", "In", ("n2",)),)),)))
    assert terms.matches("", {})
    assert not terms.matches("n1", {})


def test_errors_name_every_field() -> None:
    terms = NodeTerms(
        NodeSelector((term(("a", "Like", ())), term(("b", "Gt", ("x",)), fields=(("metadata.name", "In", ()),))))
    )
    with pytest.raises(SelectorError) as raised:
        terms.check()
    assert raised.value.errors == (
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Like": supported values: '
        '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        'nodeSelectorTerms[1].matchExpressions[0].values[0]: Invalid value: "x": '
        "for 'Gt', 'Lt' operators, the value must be an integer",
        "nodeSelectorTerms[1].matchFields[0].values: Invalid value: null: must have one element",
    )


def test_preferred_terms() -> None:
    preferred = PreferredTerms(
        (
            PreferredSchedulingTerm(2, term(("a", "Exists", ()))),
            PreferredSchedulingTerm(5, term(("b", "Exists", ()))),
            PreferredSchedulingTerm(0, term(("a", "Gt", ("-",)))),
            PreferredSchedulingTerm(7, term()),
        )
    )
    assert preferred.score("n1", {"a": "", "b": ""}) == 7
    assert preferred.score("n1", {"b": ""}) == 5
    assert preferred.score("n1", None) == 0
    assert PreferredTerms(None).score("n1", {}) == 0


def test_bad_preferred_term() -> None:
    with pytest.raises(SelectorError) as raised:
        PreferredTerms((PreferredSchedulingTerm(1, term(("slots", "Gt", ("-1",)))),))
    assert str(raised.value).startswith(
        '[0].matchExpressions[0].values[0][slots]: Invalid value: "-1": a valid label must be an empty string'
    )


def pod(selector: dict[str, str] | None = None, required: NodeSelector | None = None) -> Pod:
    affinity = Affinity(NodeAffinity(required)) if required else None
    return Pod(spec=PodSpec(node_selector=selector, affinity=affinity))


@pytest.mark.parametrize(
    ("asking", "labels", "expected"),
    [
        (pod(), {}, True),
        (pod({}), {}, True),
        (pod({"a": "not a label value!"}), {"a": "not a label value!"}, True),
        (pod({"a": "1"}), {"a": "2"}, False),
        (pod({"a": "1"}, NodeSelector((term(("b", "Exists", ())),))), {"a": "1"}, False),
        (pod({"a": "1"}, NodeSelector((term(("b", "Exists", ())),))), {"a": "1", "b": ""}, True),
        (pod(None, NodeSelector()), {}, False),
    ],
)
def test_required(asking: Pod, labels: dict[str, str], expected: bool) -> None:
    assert required_matches(asking, "n1", labels) is expected
