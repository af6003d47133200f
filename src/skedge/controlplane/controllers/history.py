"""Controller revisions: the templates a stateful set or a daemon set has had.

Upstream: `pkg/controller/history/controller_history.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.api.labels import Selector
from skedge.client.errors import NotFound
from skedge.client.informer import Informer
from skedge.controlplane.controllers.base import Context
from skedge.controlplane.controllers.kinds import REVISION, Kind
from skedge.controlplane.controllers.objects import owner_reference
from skedge.controlplane.controllers.owning import PodOwner, claim
from skedge.controlplane.controllers.revisions import template_hash

JSON = dict[str, Any]

HASH = "controller-revision-hash"
"""Label of pods and revisions."""


class History:
    """The revisions of the objects of one controller."""

    def __init__(self, controller: PodOwner, context: Context) -> None:
        self._controller, self._client = controller, context.client
        self.revisions: Informer[JSON] = context.owned(REVISION)
        self._kind: Kind = controller.kind

    async def of(self, obj: JSON, selector: Selector) -> tuple[JSON, list[JSON]]:
        """The revision of the present template, made or brought to the front if need be; and the earlier ones, oldest
        first."""
        known = await claim(self._controller, self._kind, obj, selector, self.revisions, REVISION)
        known.sort(key=lambda each: (each.get("revision", 0), each["metadata"]["name"]))
        highest = known[-1].get("revision", 0) if known else 0
        data = {"spec": {"template": {**obj["spec"]["template"], "$patch": "replace"}}}
        present = next((each for each in reversed(known) if each.get("data") == data), None)
        if present is None:
            present = await self._create(obj, data, highest + 1)
        elif present.get("revision", 0) < highest:
            patch = {"revision": highest + 1}
            present = await self._client.patch(REVISION.of(present), patch)
        name = present["metadata"]["name"]
        return present, [each for each in known if each["metadata"]["name"] != name]

    async def clean_up(self, obj: JSON, earlier: list[JSON], live: set[str]) -> None:
        """Delete the oldest revisions beyond the limit that no pod is of; `live` are names."""
        idle = [each for each in earlier if each["metadata"]["name"] not in live]
        for each in idle[: max(0, len(idle) - obj["spec"].get("revisionHistoryLimit", 10))]:
            try:
                await self._client.request("DELETE", REVISION.of(each))
            except NotFound:
                pass

    async def _create(self, obj: JSON, data: JSON, number: int) -> JSON:
        meta = obj["metadata"]
        digest = template_hash(obj["spec"]["template"], (obj.get("status") or {}).get("collisionCount", 0))
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels") or {}
        body = {
            "apiVersion": REVISION.api_version,
            "kind": REVISION.name,
            "metadata": {
                "name": f"{meta['name']}-{digest}",
                "namespace": meta["namespace"],
                "labels": {**labels, HASH: digest},
                "ownerReferences": [owner_reference(obj, self._kind.api_version, self._kind.name)],
            },
            "data": data,
            "revision": number,
        }
        created: JSON = await self._client.create(REVISION.path(meta["namespace"]), body)
        return created


def template_of(revision: JSON) -> JSON:
    """The pod template a revision stands for."""
    return {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
