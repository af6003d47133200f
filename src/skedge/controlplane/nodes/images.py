"""The images a fake node has: those its pods have used, reported in the node's status after their first run."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from typing import Any

from skedge.client.errors import ClientError, NotFound, one_line
from skedge.client.rest import MERGE_PATCH, RestClient
from skedge.controlplane.controllers.kinds import NODE
from skedge.controlplane.controllers.objects import Node, Pod

log = logging.getLogger(__name__)

JSON = dict[str, Any]

LIMIT = 50
"""Images a node reports (`nodeStatusMaxImages`)."""


class Images:
    """Notes what pods use; `report` writes the news, one patch a node."""

    def __init__(self, client: RestClient, get: Callable[[str], Node | None]) -> None:
        self._client, self._get = client, get
        self._known: dict[str, set[str]] = {}
        self._news: set[str] = set()

    def used(self, node: str, pod: Pod) -> None:
        """A pod has run on a node."""
        images = {each.image for each in (*pod.spec.containers, *(pod.spec.init_containers or ())) if each.image}
        known = self._known.setdefault(node, set())
        if not images <= known:
            known |= images
            self._news.add(node)

    def forget(self, node: str) -> None:
        self._known.pop(node, None)
        self._news.discard(node)

    async def report(self) -> None:
        """Write the images of nodes that have new ones; those reported by others stay."""
        news, self._news = self._news, set()
        for name in news:
            node = self._get(name)
            if node is None or name not in self._known:
                continue
            listed = [_entry(each.names or (), each.size_bytes) for each in node.status.images or ()]
            present = {name for each in node.status.images or () for name in each.names or ()}
            new = [_image(image) for image in sorted(self._known[name]) if full_name(image) not in present]
            if not new:
                continue
            wanted = sorted([*listed, *new], key=lambda each: -int(each["sizeBytes"]))
            body = {"status": {"images": wanted[:LIMIT]}}
            path = NODE.path(name=name, subresource="status")
            try:
                await self._client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
            except NotFound:
                continue
            except ClientError as error:
                self._news.add(name)
                log.debug("images of node %s: %s", name, one_line(error))


def _image(image: str) -> JSON:
    """An image as a node reports it, of a size that follows from its name: 10 to 510 MB."""
    size = 10_000_000 + int.from_bytes(hashlib.sha256(image.encode()).digest()[:4], "big") % 500_000_000
    return _entry(dict.fromkeys((full_name(image), _tagged(image))), size)


def _entry(names: Iterable[str], size: int) -> JSON:
    return {"names": list(names), "sizeBytes": size}


def _tagged(image: str) -> str:
    """The name with `:latest` unless it has a tag or a digest."""
    return image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"


def full_name(image: str) -> str:
    """The name a container runtime knows an image by: `nginx` is `docker.io/library/nginx:latest`."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    return _tagged(image)
