"""Whatever the server does, the store and the handlers end up with what it has; random histories in virtual time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from skedge.client.errors import ConnectionFailed, ConnectionLost, ConnectionRefused, RequestTimeout
from skedge.client.informer import Inbox, InformerFactory, Tombstone
from skedge.client.watch import Resource
from skedge.clock import VirtualClock

from .fakeapi import FakeApi, Reply, advance, memory_client, status

PODS: Resource[dict[str, Any]] = Resource.of("/api/v1/pods", dict)
FAULTS = (
    ConnectionRefused("refused"),
    ConnectionFailed("no route"),
    ConnectionLost("reset"),
    RequestTimeout("late"),
    Reply(200, "not what was asked for"),
    Reply(403, status(403, "Forbidden")),
    Reply(410, status(410, "Expired")),
    Reply(429, status(429, "TooManyRequests"), {"Retry-After": "1"}),
    Reply(500, status(500, "InternalError")),
    Reply(504, status(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}])),
)


class Mirror:
    """Keeps its own copy from what it is told, and checks that each call fits what it was told before."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def add(self, obj: dict[str, Any], is_initial: bool) -> None:
        assert obj["metadata"]["name"] not in self.objects
        self.objects[obj["metadata"]["name"]] = obj

    def update(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        assert self.objects[new["metadata"]["name"]] is old
        self.objects[new["metadata"]["name"]] = new

    def delete(self, obj: dict[str, Any] | Tombstone[dict[str, Any]]) -> None:
        last = obj.obj if isinstance(obj, Tombstone) else obj
        del self.objects[last["metadata"]["name"]]


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(25))
async def test_store_and_handlers_converge(seed: int) -> None:
    rng = random.Random(seed)
    api, clock, inbox, mirror = FakeApi(), VirtualClock(), Inbox(), Mirror()
    api.supports_watch_list = rng.random() < 0.6
    api.page_limit = rng.choice((0, 500))
    client = memory_client(api, clock, rng=rng)
    async with InformerFactory(client, submit=inbox.submit) as factory:
        pods = factory.informer(PODS)
        pods.add_handler(on_add=mirror.add, on_update=mirror.update, on_delete=mirror.delete)
        factory.start()
        held = inbox.held()
        holding = False
        for _ in range(120):
            name = f"p{rng.randrange(12)}"
            known = (PODS.path, "ns", name) in api.objects
            match rng.randrange(12):
                case 0 | 1 | 2 | 3 | 4:
                    api.put(PODS.path, {"metadata": {"name": name, "namespace": "ns"}, "n": rng.random()})
                case 5 | 6 if known:
                    api.remove(PODS.path, "ns", name)
                case 7:
                    api.end_watches(rng.choice((None, ConnectionLost("reset"), RequestTimeout("silent"))))
                case 8:
                    api.fail(*rng.choices(FAULTS, k=rng.randrange(1, 4)))
                case 9:
                    api.compacted = api.version
                    for _, stream in api.watches[: rng.randrange(2)]:
                        stream.send("ERROR", status(410, "Expired"))
                case 10 if not holding:
                    held.__enter__()
                    holding = True
                case 11 if holding:
                    held.__exit__(None, None, None)
                    held, holding = inbox.held(), False
                case _:
                    await advance(clock, rng.choice((0, 0.5, 2, 20)))
        if holding:
            held.__exit__(None, None, None)
        api.faults.clear()
        await advance(clock, 200)
        expected = {name: obj for (_, _, name), obj in api.objects.items()}
        assert {obj["metadata"]["name"]: obj for obj in pods.store} == expected
        assert mirror.objects == expected
        assert pods.has_synced
        assert not inbox
