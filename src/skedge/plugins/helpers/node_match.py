"""Node selectors over many rows: the columnar form of `api.node_selectors`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from skedge.api.labels import Requirement, Selector
from skedge.api.node_selectors import NodeTerm, NodeTerms, RequiredNodeAffinity
from skedge.snapshot.lookup import Lookup, Membership
from skedge.snapshot.views import View


@lru_cache(maxsize=4096)
def _lookup(requirement: Requirement) -> Lookup:
    """Answers 1 where the requirement holds. Kept: pods of one template share their requirements."""
    match requirement.operator:
        case "In":
            return Membership(requirement.values, inside=1, outside=0, absent=0)
        case "NotIn":
            return Membership(requirement.values, inside=0, outside=1, absent=1)
        case "Exists":
            return Membership((), inside=0, outside=1, absent=0)
        case "DoesNotExist":
            return Membership((), inside=0, outside=0, absent=1)
    key = requirement.key
    return Lookup(lambda value: int(value is not None and requirement.matches({key: value})))


def selector_holds(view: View, selector: Selector) -> Any:
    """Whether each row's labels match; 0 or 1."""
    holds = view.full(0 if selector.nothing else 1)
    for requirement in selector.requirements:
        holds = holds & view.by_label(requirement.key, _lookup(requirement))
    return holds


def term_holds(view: View, term: NodeTerm) -> Any:
    if term.errors:
        return view.full(0)
    holds = selector_holds(view, term.labels)
    for field in term.fields:
        if field.key == "metadata.name":
            holds = holds & (view.named((field.value,)) == field.equal)
        else:
            holds = holds & view.full(int((field.value == "") == field.equal))
    return holds


def terms_hold(view: View, terms: NodeTerms) -> Any:
    holds = view.full(0)
    for term in terms.terms:
        holds = holds | term_holds(view, term)
    return holds


def required_holds(view: View, required: RequiredNodeAffinity) -> Any:
    """Whether each row has what the pod demands in nodeSelector and required node affinity; 0 or 1."""
    holds = selector_holds(view, required.node_selector)
    if required.terms is not None:
        holds = holds & terms_hold(view, required.terms)
    return holds
