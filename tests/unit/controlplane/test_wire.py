"""Every recorded exchange with kube-apiserver v1.36.2, replayed."""

from __future__ import annotations

import pytest

from wire_replay import FILES, replay

# Steps that do not pass yet, with the reason. One that passes must be taken off this list.
EXPECTED: dict[str, dict[str, str]] = {}


@pytest.fixture(scope="module")
def problems() -> dict[str, dict[str, list[str]]]:
    return replay()


@pytest.mark.parametrize("name", FILES)
def test_recorded_exchanges(name: str, problems: dict[str, dict[str, list[str]]]) -> None:
    expected = EXPECTED.get(name, {})
    failing = {step: found for step, found in problems[name].items() if found}
    surprises = {step: found for step, found in failing.items() if step not in expected}
    assert not surprises, "\n".join(f"{step}: {line}" for step, found in surprises.items() for line in found)
    passing = [step for step in expected if step not in failing]
    assert not passing, f"these steps pass now: {passing}"
