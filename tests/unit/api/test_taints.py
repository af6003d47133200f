"""Which tolerations cover which taints."""

from __future__ import annotations

import pytest

from skedge.api.core import Taint, Toleration
from skedge.api.taints import PREFER_NO_SCHEDULE, count_untolerated_soft, find_untolerated, soft_tolerations, tolerates

GPU = Taint("gpu", "a100", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        (Toleration("gpu", "Equal", "a100", "NoSchedule"), GPU, True),
        (Toleration("gpu", "", "a100"), GPU, True),
        (Toleration("gpu", "Equal", "h100"), GPU, False),
        (Toleration("gpu", "Equal", "a100", "NoExecute"), GPU, False),
        (Toleration("cpu", "Exists"), GPU, False),
        (Toleration("gpu", "Exists", "anything"), GPU, True),
        (Toleration("", "Exists"), GPU, True),
        (Toleration("", "Equal", "a100"), GPU, True),
        (Toleration("", "Equal"), GPU, False),
        (Toleration("", "Equal"), Taint("key", "", "NoSchedule"), True),
        (Toleration("gpu", "Wat", "a100"), GPU, False),
        (Toleration("gpu", "Gt", "1"), Taint("gpu", "2", "NoSchedule"), False),
    ],
)
def test_tolerates(toleration: Toleration, taint: Taint, expected: bool) -> None:
    assert tolerates(toleration, taint) is expected


@pytest.mark.parametrize(
    ("operator", "wanted", "found", "expected"),
    [
        ("Gt", "950", "999", True),
        ("Gt", "950", "950", False),
        ("Lt", "800", "700", True),
        ("Lt", "800", "950", False),
        ("Gt", "-5", "0", True),
        ("Gt", "0950", "999", False),
        ("Gt", "950", "0999", False),
        ("Gt", "+950", "999", False),
        ("Lt", "1", "-0", False),
        ("Lt", "1.5", "1", False),
        ("Gt", " 1", "2", False),
        ("Gt", "1", "9223372036854775808", False),
        ("Gt", "1", "", False),
    ],
)
def test_comparison_operators(operator: str, wanted: str, found: str, expected: bool) -> None:
    taint = Taint("level", found, "NoSchedule")
    assert tolerates(Toleration("level", operator, wanted), taint, comparison=True) is expected


def test_first_untolerated_taint() -> None:
    soft, hard, harder = Taint("s", "", PREFER_NO_SCHEDULE), Taint("h", "", "NoSchedule"), Taint("e", "", "NoExecute")
    assert find_untolerated((soft, hard, harder), None) == hard
    assert find_untolerated((soft, hard, harder), (Toleration("h", "Exists"),)) == harder
    assert find_untolerated((soft,), None) is None
    assert find_untolerated(None, None) is None
    assert find_untolerated((soft, hard), (), {PREFER_NO_SCHEDULE}) == soft


def test_soft_taints_counted() -> None:
    taints = (Taint("a", "", PREFER_NO_SCHEDULE), Taint("b", "", PREFER_NO_SCHEDULE), Taint("c", "", "NoSchedule"))
    assert count_untolerated_soft(taints, None) == 2
    assert count_untolerated_soft(taints, (Toleration("a", "Exists"),)) == 1
    assert count_untolerated_soft(taints, (Toleration("a", "Exists", "", "NoSchedule"),)) == 2
    assert count_untolerated_soft(None, None) == 0
    assert soft_tolerations((Toleration("a", effect="NoExecute"), Toleration("b"))) == (Toleration("b"),)
