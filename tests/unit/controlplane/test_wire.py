"""Every recorded exchange with kube-apiserver, replayed; on a real one too where `KUBEBUILDER_ASSETS` names it."""

from __future__ import annotations

import pytest

from e2e.servers import BACKENDS, running
from wire_replay import FILES, replay

# Steps that do not pass yet, with the reason. One that passes must be taken off this list.
EXPECTED: dict[str, dict[str, str]] = {}


@pytest.fixture(scope="module", params=BACKENDS)
def problems(request: pytest.FixtureRequest) -> dict[str, dict[str, list[str]]]:
    backend: str = request.param
    return replay() if backend == "embedded" else replay(lambda: running(backend))


@pytest.mark.parametrize("name", FILES)
def test_recorded_exchanges(name: str, problems: dict[str, dict[str, list[str]]]) -> None:
    expected = EXPECTED.get(name, {})
    failing = {step: found for step, found in problems[name].items() if found}
    surprises = {step: found for step, found in failing.items() if step not in expected}
    assert not surprises, "\n".join(f"{step}: {line}" for step, found in surprises.items() for line in found)
    passing = [step for step in expected if step not in failing]
    assert not passing, f"these steps pass now: {passing}"
