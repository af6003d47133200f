"""get and list: single objects and pages of collections.

`staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go`, `pkg/storage/continue.go`.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

import msgspec

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import ApiError, bad_request, not_found, too_large_revision
from skedge.controlplane.negotiate import go_json_error
from skedge.controlplane.request import ListOptions, Target
from skedge.controlplane.selectors import parse_fields, parse_labels
from skedge.controlplane.store import Compacted, Selection, Stored

JSON = dict[str, Any]

_CHANGED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


_BUDGET = 5_000  # keys looked at between two breaths of the loop


def selection(target: Target) -> Selection:
    """What the request selects. Raises 400 with the parser's words."""
    storage = target.resource.storage
    labels = target.query.get("labelSelector", "")
    fields = target.query.get("fieldSelector", "")
    return Selection(
        target.namespace,
        parse_labels(labels) if labels else None,
        parse_fields(fields, storage) if fields else None,
    )


def get(cluster: Cluster, target: Target) -> Stored:
    """The object of a target, or 404."""
    stored = cluster.collection(target.resource.storage).objects.get(target.key)
    if stored is None:
        raise not_found(target.plural, target.group, target.name)
    return stored


@dataclass(slots=True)
class Page:
    """A page of a list and its metadata."""

    items: list[Stored]
    meta: JSON


async def read_page(cluster: Cluster, target: Target, options: ListOptions, chosen: Selection) -> Page:
    """One page of a list. Raises 410 when history does not reach back, 504 for a revision from the future."""
    collection = cluster.collection(target.resource.storage)
    current = cluster.store.revision
    if options.revision is not None and options.revision > current:
        raise too_large_revision(options.revision, current)
    if options.cont:
        revision, after = _read_token(options.cont)
        revision = revision if revision > 0 else current
    else:
        revision = options.revision if options.exact and options.revision else current
        after = ""
    items: list[Stored] = []
    remaining = 0
    cursor: str | None = after
    limit = max(options.limit, 0)
    budget = 0 if chosen.everything else _BUDGET
    try:
        while cursor is not None:
            found, remaining, cursor = collection.scan(chosen, cursor, limit and limit - len(items), revision, budget)
            items += found
            if cursor is not None and limit and len(items) == limit:
                remaining = 1  # there may be more; a selector has no exact count
                break
            if cursor is not None:
                await asyncio.sleep(0)  # others may write; the list goes on as of its revision
    except Compacted:
        raise _too_old(after, options, revision) from None
    meta: JSON = {"resourceVersion": str(revision)}
    if remaining:
        meta["continue"] = _token(revision, items[-1].key)
        if chosen.everything:
            meta["remainingItemCount"] = remaining
    return Page(items, meta)


def _token(revision: int, key: str) -> str:
    body = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": f"/{key}\0"})
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[int, str]:
    """Revision (-1 for "now") and last key of a continue token. Raises 400."""
    try:
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise bad_request("invalid continue token: continue key is not valid: illegal base64 data") from None
    try:
        body = msgspec.json.decode(data)
        version, revision, start = body["v"], body.get("rv", 0), body.get("start", "")
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        problem = _control_escape(data) or go_json_error(data, e)
        raise bad_request(f"invalid continue token: continue key is not valid: {problem}") from None
    except (KeyError, TypeError, AttributeError):
        raise bad_request("invalid continue token: continue key is not valid: encoded start key empty") from None
    if version != "meta.k8s.io/v1" or not isinstance(revision, int) or not isinstance(start, str) or not start:
        raise bad_request(f'invalid continue token: continue key is not valid: server does not recognize "{version}"')
    return revision, start.lstrip("/").rstrip("\0")


def _control_escape(data: bytes) -> str:
    if data and data[0] >= 0x7F:
        return f"invalid character '\\u{data[0]:04x}' looking for beginning of value"
    return ""


def _too_old(after: str, options: ListOptions, revision: int) -> ApiError:
    if not options.cont:
        return ApiError(410, "Expired", f"The resourceVersion for the provided list is too old: {revision}")
    return ApiError(410, "Expired", _CHANGED, continue_token=_token(-1, after))
