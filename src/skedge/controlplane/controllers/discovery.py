"""What kinds a server keeps, asked of the server itself."""

from __future__ import annotations

from typing import Any

from skedge.client.rest import RestClient
from skedge.controlplane.controllers.kinds import Kind

JSON = dict[str, Any]

_NEEDED = {"delete", "list", "watch"}
_TWICE = {("events.k8s.io/v1", "events")}
"""The same objects under another name."""


async def kept_kinds(client: RestClient) -> list[Kind]:
    """The kinds whose objects can be listed, watched and deleted, in the preferred version of their group."""
    versions = ["v1"]
    for group in (await client.get("/apis")).get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("groupVersion")
        versions += [each["groupVersion"] for each in group["versions"] if each["groupVersion"] == preferred]
        # A kind that only exists in another version of its group is found there.
        versions += [each["groupVersion"] for each in group["versions"] if each["groupVersion"] != preferred]
    kinds: dict[tuple[str, str], Kind] = {}
    for version in versions:
        path = "/api/v1" if version == "v1" else f"/apis/{version}"
        for each in (await client.get(path)).get("resources") or ():
            known = "/" in each["name"] or not set(each.get("verbs") or ()) >= _NEEDED
            if known or (version, each["name"]) in _TWICE:
                continue
            kind = Kind(version, each["kind"], each["name"], bool(each["namespaced"]))
            kinds.setdefault((version.partition("/")[0], kind.plural), kind)
    return list(kinds.values())
