"""A load in a process of its own.

python -m bench.load URL PODS_PER_SECOND SECONDS       creates pods at a steady rate
python -m bench.load --heartbeats URL NODES SECONDS    updates the status of each node every ten seconds
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import Final

from bench.objects import Template
from bench.operations import Batch
from bench.server import Objects

PERIOD: Final = 10.0
"""Seconds from one status update of a node to the next."""


async def offer(url: str, rate: float, seconds: float) -> None:
    """Creates `rate * seconds` pods, each at its moment, however long the ones before take."""
    template = Template("pod", prefix="offered")
    loop = asyncio.get_running_loop()
    async with Objects(url) as objects:
        start = loop.time()
        tasks = []
        for i in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, start + i / rate - loop.time()))
            tasks.append(asyncio.ensure_future(objects.create(Batch(template, i, 1))))
        await asyncio.gather(*tasks)


async def heartbeats(url: str, nodes: int, seconds: float) -> None:
    """Status updates of the nodes in turn, each every `PERIOD` seconds."""
    template = Template("node")
    loop = asyncio.get_running_loop()
    async with Objects(url) as objects:
        start = loop.time()
        tasks = []
        for i in range(int(nodes * seconds / PERIOD)):
            await asyncio.sleep(max(0.0, start + i * PERIOD / nodes - loop.time()))
            moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            tasks.append(asyncio.ensure_future(objects.heartbeat(template.name(i % nodes), moment)))
        await asyncio.gather(*tasks)


if __name__ == "__main__":
    if sys.argv[1] == "--heartbeats":
        asyncio.run(heartbeats(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
    else:
        asyncio.run(offer(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
