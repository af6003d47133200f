"""Whatever happens around them: a gang is placed with enough of its pods or not at all, and trying leaves nothing."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness
from unit.scheduler.groups import PREEMPTION, TOPOLOGY, gang, groups, member, placed

MIN_COUNTS = {"a": 2, "b": 3, "c": None}


async def churn(seed: int, gates: tuple[str, ...]) -> None:
    rng = random.Random(seed)
    h = groups(*gates, nodes={"n0": "r0", "n1": "r1"}, cpu="2", seed=seed)
    async with h:
        for name, min_count in MIN_COUNTS.items():
            topology = "rack" if gates == TOPOLOGY and rng.random() < 0.5 else None
            gang(h, name, min_count, priority=rng.choice([None, 5, 50]), topology=topology)
        alive: list[str] = []
        group_of: dict[str, str] = {}
        for step in range(25):
            one_thing(h, rng, step, alive, group_of)
            await h.settle(advance=rng.choice([0.0, 0.0, 3.0, 15.0]))
            h.validate()
            assert h.scheduler.cache.groups is not None
            for (_, name), state in h.scheduler.cache.groups:
                min_count = MIN_COUNTS[name] or 1
                waiting = [pod for pod in h.scheduler.waiting if pod.pod.group == name]
                assert not waiting or len(state.assumed) < min_count
                # Who was placed with the gang may go again: only one that never was complete must be empty.
                bound = {key for key, _ in h.bindings if group_of.get(key) == name}
                assert len(bound) >= min_count or not bound, f"step {step}: half of gang {name}"


def one_thing(h: Harness, rng: random.Random, step: int, alive: list[str], group_of: dict[str, str]) -> None:
    what = rng.random()
    if what < 0.55:
        name = f"p{step}"
        pod = make_pod(name).req(cpu="1")
        if rng.random() < 0.7:
            group_of[f"default/{name}"] = group = rng.choice(list(MIN_COUNTS))
            pod = member(name, group, rng.choice(["500m", "1"]))
        h.add_pod(pod.priority(rng.choice([0, 10])))
        alive.append(name)
    elif what < 0.75 and alive:
        h.delete_pod(alive.pop(rng.randrange(len(alive))))
    elif what < 0.9:
        h.add_node(make_node(f"n{step}").capacity(cpu="2").label(rack=rng.choice(["r0", "r1"])))
    else:
        bound = set(placed(h).values())
        free = sorted(set(h.nodes) - bound)
        if free:
            h.delete_node(free[0])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("gates", [TOPOLOGY, PREEMPTION], ids=["topology", "preemption"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_all_or_nothing(gates: tuple[str, ...], seed: int) -> None:
    asyncio.run(churn(seed, gates))
