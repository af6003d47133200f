"""Long answers go out piece by piece."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from plane import PODS, pod, running
from skedge.controlplane import delivery
from skedge.controlplane.delivery import slices

MIB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([1, 1, 1, 1, 1], [[1, 1, 1], [1, 1]]),
        ([1, MIB, 1], [[1], [MIB], [1]]),
        ([MIB // 2, MIB // 2, 1, 1], [[MIB // 2, MIB // 2], [1, 1]]),
        ([5 * MIB, 5 * MIB], [[5 * MIB], [5 * MIB]]),
    ],
)
def test_slices_have_few_items_and_few_bytes(sizes: list[int], expected: list[list[int]]) -> None:
    assert [list(some) for some in slices(sizes, 3, lambda size: size)] == expected


@pytest.mark.asyncio
async def test_a_list_of_long_objects_is_not_put_together() -> None:
    """So that ten slow readers of it cost no memory, and nobody waits."""
    async with running() as c:
        path = "/api/v1/namespaces/default/configmaps"
        for i in range(11):
            body = {"metadata": {"name": f"m{i:02}"}, "data": {"x": "y" * 900_000}}
            await c.ok("POST", path, body)
            if i in (5, 10):
                async with c.session.get(path, headers={"Accept-Encoding": "identity"}) as answer:
                    found = json.loads(await answer.read())["items"]
                    assert [each["metadata"]["name"] for each in found] == [f"m{n:02}" for n in range(i + 1)]
                    assert (answer.headers.get("Transfer-Encoding") == "chunked") == (i == 10)


@pytest.mark.asyncio
async def test_long_answers_in_yaml_are_made_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    dump, threads = delivery.dump_yaml, list[str]()

    def watched(obj: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return dump(obj)

    monkeypatch.setattr(delivery, "dump_yaml", watched)
    async with running() as c:
        for i in range(80):
            await c.ok("POST", PODS, pod(f"p{i}"))
        answers = await asyncio.gather(*(c.send("GET", PODS, Accept="application/yaml") for _ in range(4)))
        assert {(code, text.count("- metadata:")) for code, text in answers} == {(200, 80)}
        assert set(threads) == {"long-answers_0"}
        await c.send("GET", f"{PODS}/p0", Accept="application/yaml")
        assert threads[-1] == threading.current_thread().name
