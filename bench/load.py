"""Creates pods at a steady rate, in a process of its own: `python -m bench.load URL PODS_PER_SECOND SECONDS`."""

from __future__ import annotations

import asyncio
import sys

from bench.objects import Template
from bench.operations import Batch
from bench.server import Objects


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


if __name__ == "__main__":
    asyncio.run(offer(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
