"""Replays recorded decisions with extenders: a local server answers as the case says, and its requests are compared.

The server speaks the wire protocol; so what is tested begins at the profile and ends at the bytes.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from aiohttp import web

from skedge.api.core import Pod
from skedge.client.extender_client import HttpExtender, PodRef, connect
from skedge.profiles.search import CycleError, Search
from skedge.scheduler.extenders import Extenders
from skedge.snapshot.pods import PodInfo
from skedge.testing.cases import Cluster, Compare, Difference

RECORDED: Final = "http://extender.invalid"
"""Where the extenders were when the cases were recorded."""


class CaseServer:
    """Answers for all extenders of a case; `requests` is what was asked, in the form of the recordings."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._extenders = {each["name"]: each for each in case["extenders"]}
        self._keys = {pod["metadata"]["uid"]: _key(pod) for pod in (*case.get("pods", ()), case["pod"])}
        self.requests: list[dict[str, Any]] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its URL, while it runs."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/{name}/{verb}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        name, verb = request.match_info["name"], request.match_info["verb"]
        extender, body = self._extenders[name], await request.json()
        seen: dict[str, Any] = {
            "bodyKeys": sorted(key + ("=null" if value is None else "") for key, value in body.items()),
            "contentType": request.headers["Content-Type"],
            "extender": name,
            "method": request.method,
            "verb": verb,
        }
        if "Pod" in body:
            seen["pod"] = _key(body["Pod"])
        self.requests.append(seen)
        status = extender.get(f"{verb}Status", 200)
        if verb == "bind":
            seen |= {"pod": f"{body['PodNamespace']}/{body['PodName']}", "podUID": body["PodUID"], "node": body["Node"]}
            reply: Any = {}
        elif verb == "preempt":
            reply = self._preempt(extender, body, seen)
        else:
            nodes = body["Nodes"]["items"] if body["Nodes"] is not None else body["NodeNames"]
            by_name = {node if isinstance(node, str) else node["metadata"]["name"]: node for node in nodes}
            seen["nodes"] = sorted(by_name)
            reply = _filter(extender, by_name) if verb == "filter" else _prioritize(extender)
        if status != 200:
            return web.Response(status=status, text="out of order")
        return web.json_response(reply)

    def _preempt(self, extender: Mapping[str, Any], body: Mapping[str, Any], seen: dict[str, Any]) -> Any:
        if body["NodeNameToVictims"] is not None:
            given = {
                node: {**victims, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
                for node, victims in body["NodeNameToVictims"].items()
            }
        else:
            given = body["NodeNameToMetaVictims"]
        seen["candidates"] = {
            node: {
                "victims": [self._keys[pod["UID"]] for pod in victims["Pods"]],
                "numPDBViolations": victims["NumPDBViolations"],
            }
            for node, victims in given.items()
        }
        rejected = extender.get("preemptReject", ())
        return {"NodeNameToMetaVictims": {node: v for node, v in given.items() if node not in rejected}}


def _filter(extender: Mapping[str, Any], nodes: Mapping[str, Any]) -> Any:
    what = extender.get("filter", {})
    fine = [name for name in sorted(nodes) if name not in what or what[name].get("ok")]
    left: list[Any] = [nodes[name] for name in fine]
    objects = any(not isinstance(node, str) for node in nodes.values())
    if "unknownNode" in extender:
        name = extender["unknownNode"]
        left.append({"metadata": {"name": name}} if objects else name)
    reply: dict[str, Any] = {
        field: {name: what[name][key] for name in sorted(nodes) if key in what.get(name, ())}
        for key, field in (("failed", "FailedNodes"), ("failedAndUnresolvable", "FailedAndUnresolvableNodes"))
    }
    if not extender.get("noNodes"):
        reply |= {"Nodes": {"items": left}} if objects else {"NodeNames": left}
    if extender.get("error"):
        reply["Error"] = f"extender {extender['name']} failed"
    return reply


def _prioritize(extender: Mapping[str, Any]) -> Any:
    return [{"Host": node, "Score": score} for node, score in extender["prioritize"].items()]


class CaseBodies:
    """The objects of a case, as its API server would have sent them."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._pods = {pod["metadata"]["uid"]: msgspec.json.encode(pod) for pod in (*case.get("pods", ()), case["pod"])}
        self._nodes = {node["metadata"]["name"]: msgspec.json.encode(node) for node in case["nodes"]}

    def pod(self, pod: PodRef) -> bytes:
        return self._pods[pod.uid]

    def node(self, name: str) -> bytes:
        found = self._nodes.get(name)
        return msgspec.json.encode({"metadata": {"name": name}}) if found is None else found


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


# --- comparing --------------------------------------------------------------------------------------------------------


def compare_extenders(line: Mapping[str, Any]) -> list[Difference]:
    """The differences of one case of the family `extenders`. Runs an event loop of its own."""
    return asyncio.run(_compare(line["case"], line["expected"]))


async def _compare(case: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Difference]:
    found: list[Difference] = []

    def compare(node: str, field: str, want: Any, got: Any) -> None:
        if want != got:
            found.append(Difference(case["id"], node, field, want, got))

    server = CaseServer(case)
    async with server.serving() as url:
        config = copy.deepcopy(case["config"])
        for extender in config["extenders"]:
            extender["urlPrefix"] = extender["urlPrefix"].replace(RECORDED, url)
        cluster = Cluster(config)
        cluster.fill(case)
        clients = connect(cluster.config.extenders, CaseBodies(case))
        info = PodInfo(msgspec.convert(case["pod"], Pod))
        try:
            await _Cycle(cluster, clients, info, expected, compare, url).run()
        except CycleError as error:
            compare("", "error", expected.get("error"), str(error).replace(url, RECORDED))
        finally:
            for client in clients:
                await client.close()
    _compare_requests(expected["requests"], server.requests, compare)
    return found


class _Cycle:
    """One pod's cycle, compared on the way."""

    def __init__(
        self,
        cluster: Cluster,
        clients: list[HttpExtender],
        pod: PodInfo,
        expected: Mapping[str, Any],
        compare: Compare,
        url: str,
    ) -> None:
        profile = cluster.profile_of(pod)
        assert profile is not None
        self._search = Search(profile, pod, cluster.nominator)
        self._extenders = Extenders(clients, cluster.cache, random.Random(0))
        self._names = {client.name: f"extender/{client.name.removeprefix(url + '/')}" for client in clients}
        self._expected = expected
        self._compare = compare
        self._url = url

    async def run(self) -> None:
        search, compare, expected = self._search, self._compare, self._expected
        for nominated in search.steps():
            await self._extenders.filter(search, nominated)
        table = search.table
        feasible = [table.names[row] for row in search.rows]
        compare("", "feasible", expected["feasible"], sorted(feasible))
        if not feasible:
            await self._no_fit()
            return
        best = feasible
        if len(feasible) > 1:
            best = await self._scores(feasible)
        compare("", "error", expected.get("error"), None)
        compare("", "best", expected["best"], sorted(best))
        self._extenders.release(search)
        search.explain()
        self._compare_filter()
        await self._extenders.bind(search.pod, best[0])

    async def _scores(self, feasible: list[str]) -> list[str]:
        parts = self._search.scores_by_plugin()
        shares, _ = await self._extenders.shares(self._search)
        parts |= {self._names[name]: share for name, share in shares.items()}
        total = self._search.scores() + sum(shares.values())
        for i, node in enumerate(feasible):
            wanted = self._expected["scores"].get(node, {})
            for name in sorted({*parts, *wanted} - {"total"}):
                got = int(parts[name][i]) if name in parts else 0
                self._compare(node, f"scores.{name}", wanted.get(name, 0), got)
            self._compare(node, "scores.total", wanted.get("total"), int(total[i]))
        return [node for node, score in zip(feasible, total.tolist(), strict=True) if score == max(total)]

    async def _no_fit(self) -> None:
        search, compare, expected = self._search, self._compare, self._expected
        diagnosis = search.explain()
        if diagnosis.pre_filter is None:
            self._compare_filter()
        compare("", "unschedulablePlugins", expected["unschedulablePlugins"], sorted(diagnosis.unschedulable_plugins))
        rejected = {
            search.table.names[row]: {"code": status.code.word, "reasons": list(status.reasons)}
            for row, status in diagnosis.explicit.items()
        }
        compare("", "extenderRejected", expected["extenderRejected"], rejected)
        for plugin, outcome in search.post_filter_steps(halves=True):
            await self._extenders.preempt(search.pod, plugin, outcome)
        nominated = None if search.nomination is None else search.nomination.nominate or None
        compare("", "nominatedNode", expected["nominatedNode"], nominated)
        compare("", "fitErrorMessage", expected["fitErrorMessage"], diagnosis.message().replace(self._url, RECORDED))

    def _compare_filter(self) -> None:
        got = {
            name: {"plugin": status.plugin, "code": status.code.word, "reasons": sorted(status.all_reasons())}
            for name, status in self._search.diagnosis.node_statuses().items()
            if status.plugin
        }
        wanted = {
            name: {**status, "reasons": sorted(status["reasons"])}
            for name, status in self._expected.get("filter", {}).items()
        }
        for name in sorted({*wanted, *got}):
            self._compare(name, "filter", wanted.get(name), got.get(name))


def _compare_requests(wanted: list[dict[str, Any]], got: list[dict[str, Any]], compare: Compare) -> None:
    """Filter, preempt and bind in their order; what is prioritised is asked about at the same time."""
    compare("", "requests", [_words(each) for each in wanted], [_words(each) for each in got])
    for want, have in zip(_sorted(wanted), _sorted(got), strict=False):
        for field in sorted({*want, *have}):
            if not (field == "node" and "node" not in want):  # of several best ones any is right
                compare("", f"request {want['extender']}/{want['verb']} {field}", want.get(field), have.get(field))


def _words(request: Mapping[str, Any]) -> str:
    return request["verb"] if request["verb"] == "prioritize" else f"{request['extender']}/{request['verb']}"


def _sorted(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests to prioritise by extender; they stand together."""
    asked = sorted((each for each in requests if each["verb"] == "prioritize"), key=lambda each: str(each["extender"]))
    return [asked.pop(0) if each["verb"] == "prioritize" else each for each in requests]
