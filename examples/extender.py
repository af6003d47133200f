"""A sample scheduler extender: every node has a power budget, and pods say how much they draw.

    python examples/extender.py --port 8888 --api-server http://127.0.0.1:8080

Nodes carry the label `example.com/watts`, pods the annotation of the same name. The extender keeps count of what it
bound. In the configuration of the scheduler:

    extenders:
    - urlPrefix: http://127.0.0.1:8888
      filterVerb: filter
      prioritizeVerb: prioritize
      preemptVerb: preempt
      bindVerb: bind
      weight: 1
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any

import aiohttp
from aiohttp import web

WATTS = "example.com/watts"
NO_BUDGET = "node has no power budget"
NOT_ENOUGH = "not enough power"


class PowerBudget:
    """Answers the four verbs. Bodies have the field names of the extender v1 types."""

    def __init__(self, api_server: str, token: str = "") -> None:
        self._api_server = api_server
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._used: dict[str, int] = defaultdict(int)
        self._wanted: dict[str, int] = {}  # by UID: what pods said when they were filtered

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28)
        for verb in (self.filter, self.prioritize, self.preempt, self.bind):
            app.router.add_post(f"/{verb.__name__}", verb)
        return app

    async def filter(self, request: web.Request) -> web.Response:
        """Leaves nodes that can feed the pod; a node without a budget cannot be helped by evicting anybody."""
        args = await request.json()
        need = self._need(args["Pod"])
        fine, failed, unresolvable = [], {}, {}
        for node in args["Nodes"]["items"]:
            name, budget = node["metadata"]["name"], _budget(node)
            if budget is None or need > budget:
                unresolvable[name] = NO_BUDGET
            elif self._used[name] + need > budget:
                failed[name] = NOT_ENOUGH
            else:
                fine.append(node)
        return web.json_response(
            {"Nodes": {"items": fine}, "FailedNodes": failed, "FailedAndUnresolvableNodes": unresolvable}
        )

    async def prioritize(self, request: web.Request) -> web.Response:
        """0 to 10: the more power is left, the better."""
        args = await request.json()
        scores = []
        for node in args["Nodes"]["items"]:
            name, budget = node["metadata"]["name"], _budget(node) or 1
            scores.append({"Host": name, "Score": max(0, 10 * (budget - self._used[name]) // budget)})
        return web.json_response(scores)

    async def preempt(self, request: web.Request) -> web.Response:
        """Victims must give back power, not only processors: nodes where they do not are left out."""
        args = await request.json()
        need = self._need(args["Pod"])
        left = {}
        for node, victims in args["NodeNameToVictims"].items():
            if sum(_watts(pod) for pod in victims["Pods"]) >= need:
                uids = [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]
                left[node] = {"Pods": uids, "NumPDBViolations": victims["NumPDBViolations"]}
        return web.json_response({"NodeNameToMetaVictims": left})

    async def bind(self, request: web.Request) -> web.Response:
        """Binds the pod itself, and notes what it draws."""
        args = await request.json()
        namespace, name, node = args["PodNamespace"], args["PodName"], args["Node"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": namespace, "name": name, "uid": args["PodUID"]},
            "target": {"kind": "Node", "name": node},
        }
        url = f"{self._api_server}/api/v1/namespaces/{namespace}/pods/{name}/binding"
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.post(url, json=binding) as response,
        ):
            if response.status >= 300:
                return web.json_response({"Error": (await response.json()).get("message", "cannot bind")})
        self._used[node] += self._wanted.pop(args["PodUID"], 0)
        return web.json_response({})

    def _need(self, pod: dict[str, Any]) -> int:
        need = self._wanted[pod["metadata"]["uid"]] = _watts(pod)
        return need


def _watts(pod: dict[str, Any]) -> int:
    return int(pod["metadata"].get("annotations", {}).get(WATTS, 0))


def _budget(node: dict[str, Any]) -> int | None:
    text = node["metadata"].get("labels", {}).get(WATTS)
    return None if text is None else int(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=8888)
    parser.add_argument("--api-server", default="http://127.0.0.1:8080", help="URL of the API server to bind pods at")
    parser.add_argument("--token", default="", help="bearer token for the API server")
    arguments = parser.parse_args()
    web.run_app(PowerBudget(arguments.api_server, arguments.token).app(), host="127.0.0.1", port=arguments.port)
