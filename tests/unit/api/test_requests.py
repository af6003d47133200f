"""Effective requests of pods: the table of the specification, and a slow exact twin on random pods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.api.core import (
    Container,
    ContainerStatus,
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
)
from skedge.api.quantity import QuantityError
from skedge.api.requests import (
    NONZERO_DEFAULTS,
    has_pod_level_requests,
    in_units,
    is_dra_extended,
    is_extended,
    is_native,
    is_scalar,
    is_tracked,
    nonzero_requests,
    pod_requests,
)
from skedge.snapshot.pods import shape_of


def needs(requests: ResourceList | None) -> ResourceRequirements | None:
    return None if requests is None else ResourceRequirements(requests)


def container(kind: str, requests: ResourceList | None, name: str = "") -> Container:
    return Container(name, resources=needs(requests), restart_policy="Always" if kind == "s" else None)


def pod(*written: str, overhead: ResourceList | None = None, whole: ResourceList | None = None) -> Pod:
    """A pod of `c1 i2 s1`: regular, init and sidecar containers with that many cpu."""
    made = [(text[0], container(text[0], {"cpu": text[1:]})) for text in written]
    return Pod(
        spec=PodSpec(
            containers=tuple(each for kind, each in made if kind == "c"),
            init_containers=tuple(each for kind, each in made if kind != "c"),
            overhead=overhead,
            resources=needs(whole),
        )
    )


@pytest.mark.parametrize(
    ("written", "cpu"),
    [
        (pod("c1"), 1000),
        (pod("i4", "c1"), 4000),
        (pod("i2", "c2", "c3"), 5000),
        (pod("c5", overhead={"cpu": "1"}), 6000),
        (pod("s1", "c1"), 2000),
        (pod("i5", "s1", "s2", "s3", "c1"), 7000),
        (pod("i5", "s1", "s2", "i5", "s3", "c1"), 8000),
        (pod("s10", "i200", "c100"), 210000),
        (pod("i3", "i3", "c1"), 3000),
        (pod("c3", whole={"cpu": "2"}), 2000),
        (pod("c3", whole={"cpu": "2"}, overhead={"cpu": "1"}), 3000),
        (pod("c0.0005", "c0.0005"), 1),
        (pod("c0.0001", "i0.0009"), 1),
        (pod("c0.0004", "c0.0007", "i1m"), 2),
        (pod("c12E"), 0),
        (pod("c12E", "c1"), -8830391984918101016),
    ],
)
def test_cpu(written: Pod, cpu: int) -> None:
    assert pod_requests(written)["cpu"] == cpu


def test_pod_level_requests_replace_only_what_they_may() -> None:
    both = pod("c0.002", whole={"memory": "2Mi", "storage": "5Gi", "example.com/gpu": 3})
    assert pod_requests(both) == {"cpu": 2, "memory": 2 * 1024 * 1024}
    assert pod_requests(both, pod_level=False) == {"cpu": 2}
    only_storage = pod("c1", whole={"storage": "5Gi"})
    assert not has_pod_level_requests(only_storage)
    assert pod_requests(only_storage) == {"cpu": 1000}


def test_explicit_zero_is_a_request() -> None:
    assert pod_requests(pod("c0")) == {"cpu": 0}
    assert pod_requests(pod("c0"), defaults=NONZERO_DEFAULTS) == {"cpu": 0, "memory": 209715200}


def test_absent_parts() -> None:
    assert pod_requests(Pod(spec=PodSpec(containers=None, init_containers=None))) == {}
    assert pod_requests(Pod(spec=PodSpec(containers=(Container(resources=ResourceRequirements(None)),)))) == {}
    assert in_units(None) == {}


@pytest.mark.parametrize(
    ("spec", "status", "allocated", "infeasible", "cpu"),
    [
        ("4", "2", None, False, 4000),
        ("4", "2", None, True, 2000),
        ("6", "2", "4", True, 4000),
        ("2", "3", "4", False, 4000),
        ("2", "5", "4", False, 5000),
        ("2", None, "4", False, 2000),
        ("2", None, "4", True, 2000),
    ],
)
@pytest.mark.parametrize("where", ["container", "sidecar", "pod"])
def test_resizing(where: str, spec: str, status: str | None, allocated: str | None, infeasible: bool, cpu: int) -> None:
    reported = None if status is None else needs({"cpu": status})
    given_out = None if allocated is None else {"cpu": allocated}
    conditions = (
        PodCondition("Ready", "True"),
        PodCondition("PodResizePending", "False", "Infeasible" if infeasible else "Deferred"),
        PodCondition("PodResizePending", "True", "Deferred"),
    )
    of_container = (ContainerStatus("main", reported, given_out),)
    asked = {"cpu": spec}
    if where == "container":
        resized = Pod(
            spec=PodSpec(containers=(container("c", asked, "main"),)),
            status=PodStatus(conditions=conditions, container_statuses=of_container),
        )
    elif where == "sidecar":
        resized = Pod(
            spec=PodSpec(init_containers=(container("s", asked, "main"),)),
            status=PodStatus(conditions=conditions, init_container_statuses=of_container),
        )
    else:
        resized = Pod(
            spec=PodSpec(containers=(container("c", {"cpu": "1"}),), resources=needs(asked)),
            status=PodStatus(conditions=conditions, resources=reported, allocated_resources=given_out),
        )
    assert pod_requests(resized, use_status=True)["cpu"] == cpu
    assert pod_requests(resized)["cpu"] == int(spec) * 1000


def test_status_of_plain_init_containers_is_not_read() -> None:
    init = Pod(
        spec=PodSpec(init_containers=(container("i", {"cpu": "1"}, "main"),)),
        status=PodStatus(init_container_statuses=(ContainerStatus("main", needs({"cpu": "9"})),)),
    )
    assert pod_requests(init, use_status=True) == {"cpu": 1000}


def test_claims_of_node_allocatable_resources() -> None:
    claimed = pod("i0.1", "c0.05")
    claimed.status = PodStatus(
        node_allocatable_resource_claim_statuses=(NodeAllocatableResourceClaimStatus("c", {"cpu": "25m"}),)
    )
    assert pod_requests(claimed, claim_status=True) == {"cpu": 125}
    assert pod_requests(claimed) == {"cpu": 100}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (Pod(), (0, 0)),
        (Pod(spec=PodSpec(containers=(Container(),))), (100, 209715200)),
        (Pod(spec=PodSpec(containers=(Container(), Container()))), (200, 419430400)),
        (Pod(spec=PodSpec(containers=(container("c", {"cpu": 0}),))), (0, 209715200)),
        (Pod(spec=PodSpec(containers=(Container(), Container()), resources=needs({"memory": "1Gi"}))), (200, 2**30)),
        (pod("c1", whole={"memory": "1Gi"}), (1000, 2**30)),
        (pod("c1", "i5"), (5000, 209715200)),
    ],
)
def test_nonzero(written: Pod, expected: tuple[int, int]) -> None:
    assert nonzero_requests(written) == expected
    assert nonzero_requests(written, requests=pod_requests(written)) == expected


def test_bad_quantity_is_reported() -> None:
    with pytest.raises(QuantityError):
        pod_requests(pod("c1x"))


@pytest.mark.parametrize(
    ("name", "native", "extended", "scalar", "tracked"),
    [
        ("cpu", True, False, False, True),
        ("pods", True, False, False, True),
        ("storage", True, False, False, False),
        ("foo", True, False, False, False),
        ("hugepages-2Mi", True, False, True, True),
        ("attachable-volumes-csi", True, False, True, True),
        ("kubernetes.io/something", True, False, True, True),
        ("sub.kubernetes.io/x", True, False, True, True),
        ("example.com/gpu", False, True, True, True),
        ("requests.example.com/gpu", False, False, False, False),
        ("example.com/", False, False, False, False),
        ("a/b/c", False, False, False, False),
        ("Example.com/gpu", False, False, False, False),
    ],
)
def test_resource_names(name: str, native: bool, extended: bool, scalar: bool, tracked: bool) -> None:
    assert (is_native(name), is_extended(name), is_scalar(name), is_tracked(name)) == (
        native,
        extended,
        scalar,
        tracked,
    )


def test_names_that_dynamic_allocation_may_provide() -> None:
    assert is_dra_extended("deviceclass.resource.kubernetes.io/gpu")
    assert is_dra_extended("example.com/gpu")
    assert not is_dra_extended("hugepages-2Mi")


# --- the twin ---------------------------------------------------------------------------------------------------------

AMOUNTS = {
    "0": Fraction(0),
    "1": Fraction(1),
    "100m": Fraction(1, 10),
    "0.0005": Fraction(1, 2000),
    "333u": Fraction(333, 10**6),
    "1.5Gi": Fraction(3 * 2**29),
    "7n": Fraction(7, 10**9),
    "2k": Fraction(2000),
}
NAMES = ["cpu", "memory", "hugepages-2Mi", "example.com/gpu"]
LISTS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(list(AMOUNTS)), max_size=3)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    def containers(kinds: str) -> tuple[Container, ...]:
        found = draw(st.lists(st.tuples(st.sampled_from(kinds), LISTS), max_size=3))
        return tuple(container(kind, dict(asked), f"{kinds}{i}") for i, (kind, asked) in enumerate(found))

    def statuses(of: tuple[Container, ...]) -> tuple[ContainerStatus, ...]:
        return tuple(
            ContainerStatus(each.name, draw(st.none() | LISTS.map(lambda x: needs(dict(x)))), dict(draw(LISTS)))
            for each in of
        )

    regular, init = containers("c"), containers("is")
    pending = PodCondition("PodResizePending", reason=draw(st.sampled_from(["Infeasible", "Deferred"])))
    return Pod(
        spec=PodSpec(
            containers=regular,
            init_containers=init,
            overhead=draw(st.none() | LISTS.map(dict)),
            resources=draw(st.none() | LISTS.map(lambda x: needs(dict(x)))),
        ),
        status=PodStatus(
            conditions=draw(st.sampled_from([(), (pending,)])),
            container_statuses=statuses(regular),
            init_container_statuses=statuses(init),
            resources=draw(st.none() | LISTS.map(lambda x: needs(dict(x)))),
            allocated_resources=dict(draw(LISTS)),
        ),
    )


def twin(asking: Pod, pod_level: bool, use_status: bool, defaults: Mapping[str, int]) -> dict[str, int]:
    """The rule, one resource at a time, in fractions."""
    spec, status = asking.spec, asking.status
    infeasible = any(each.reason == "Infeasible" for each in status.conditions or ())
    reports = {
        each.name: each for each in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    }

    def pick(amounts: Any, name: str) -> Fraction | None:
        return AMOUNTS[amounts[name]] if amounts and name in amounts else None

    def highest(*amounts: Fraction | None) -> Fraction | None:
        present = [each for each in amounts if each is not None]
        return max(present) if present else None

    def one(each: Container, name: str, resizable: bool) -> Fraction | None:
        asked = pick(each.resources.requests if each.resources else None, name)
        report = reports.get(each.name)
        if use_status and resizable and report and report.resources:
            reported = (pick(report.resources.requests, name), pick(report.allocated_resources, name))
            asked = highest(*reported) if infeasible else highest(asked, *reported)
        if asked is None and name in defaults:
            asked = Fraction(defaults[name], 1000 if name == "cpu" else 1)
        return asked

    result: dict[str, int] = {}
    for name in NAMES:
        parts = [one(each, name, True) for each in spec.containers or ()]
        sidecars: list[Fraction | None] = []
        peaks: list[Fraction | None] = []
        for each in spec.init_containers or ():
            mine = one(each, name, each.restart_policy == "Always")
            if each.restart_policy == "Always":
                sidecars.append(mine)
                peaks.append(total(sidecars))
            else:
                peaks.append(total([mine, *sidecars]))
        amount = highest(total([*parts, *sidecars]), *peaks)
        asked_whole = spec.resources.requests if spec.resources else None
        supported = {"cpu", "memory", "hugepages-2Mi"}
        if pod_level and name in supported and asked_whole and supported & set(asked_whole):
            whole = pick(asked_whole, name)
            if use_status and status.resources:
                reported = (pick(status.resources.requests, name), pick(status.allocated_resources, name))
                whole = highest(*reported) if infeasible else highest(whole, *reported)
            amount = amount if whole is None else whole
        amount = total([amount, pick(spec.overhead, name)])
        if amount is not None:
            result[name] = math.ceil(amount * (1000 if name == "cpu" else 1))
    return result


def total(parts: list[Fraction | None]) -> Fraction | None:
    present = [each for each in parts if each is not None]
    return sum(present, Fraction(0)) if present else None


@given(pods(), st.booleans(), st.booleans(), st.sampled_from([{}, dict(NONZERO_DEFAULTS)]))
def test_twin(asking: Pod, pod_level: bool, use_status: bool, defaults: dict[str, int]) -> None:
    found = pod_requests(asking, pod_level=pod_level, use_status=use_status, defaults=defaults)
    assert found == twin(asking, pod_level, use_status, defaults)
    assert shape_of(asking).nonzero == nonzero_requests(asking, use_status=True)
