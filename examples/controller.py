"""A controller in forty lines: every pod gets the label `seen-by=skedge`.

    python examples/controller.py [kubeconfig]

A pod that appears or changes puts its key into a queue; a worker looks the key up in the store and patches what is
missing. What fails is tried again with growing delays.
"""

import asyncio
import sys
from typing import Any

from skedge.client import ClientError, InformerFactory, NotFound, Resource, RestClient, WorkQueue, load_kubeconfig

Pod = dict[str, Any]
PODS = Resource.of("/api/v1/pods", dict)
LABEL, VALUE = "seen-by", "skedge"


async def control(client: RestClient) -> None:
    """Label pods until cancelled."""
    queue: WorkQueue[str] = WorkQueue()

    def changed(pod: Pod) -> None:
        queue.add(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")

    async def reconcile(key: str) -> None:
        pod = pods.store.get(key)
        if pod is None or (pod["metadata"].get("labels") or {}).get(LABEL) == VALUE:
            return
        namespace, name = key.split("/")
        try:
            await client.patch(f"/api/v1/namespaces/{namespace}/pods/{name}", {"metadata": {"labels": {LABEL: VALUE}}})
        except NotFound:
            pass  # deleted meanwhile

    async with InformerFactory(client) as factory:
        pods = factory.informer(PODS)
        pods.add_handler(on_add=lambda pod, is_initial: changed(pod), on_update=lambda old, new: changed(new))
        factory.start()
        await factory.wait_for_sync()
        await queue.run(reconcile, workers=4)


async def main() -> None:
    async with RestClient.connect(load_kubeconfig(*sys.argv[1:2]), user_agent="label-controller") as client:
        await control(client)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        pass
