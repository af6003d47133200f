"""The OpenAPI documents over HTTP (`kube-openapi/pkg/{handler,handler3}`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from skedge.controlplane import fields
from skedge.controlplane.delivery import JSON_TYPE
from skedge.controlplane.store import encode

_UNCACHED = {"Cache-Control": "no-cache, private"}
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    JSON_TYPE: (JSON_TYPE, fields.openapi_v2),
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf": (_V2_PROTOBUF, fields.openapi_v2_protobuf),
    _V2_PROTOBUF: (_V2_PROTOBUF, fields.openapi_v2_protobuf),
}
"""Media types of the second version: what is answered under them, and with which bytes."""


def openapi(request: web.BaseRequest, rest: list[str], query: Mapping[str, str]) -> web.StreamResponse:
    """The answer for a path below `/openapi`."""
    if rest == ["v2"]:
        return _openapi_v2(request)
    if rest == ["v3"]:
        headers = {**_UNCACHED, "Content-Type": "text/plain; charset=utf-8"}  # as upstream, though it is JSON
        return web.Response(body=encode(fields.openapi_v3_index()), headers=headers)
    if rest[:1] == ["v3"]:
        try:
            document = fields.openapi_v3("/".join(rest[2:]))  # v1 of api/v1, apps/v1 of apis/apps/v1
        except fields.UnknownKind:
            pass
        else:
            return _openapi_v3(request, document, "/openapi/" + "/".join(rest), query.get("hash", ""))
    return web.Response(status=404, text="404 page not found\n", headers=_UNCACHED)


def _openapi_v2(request: web.BaseRequest) -> web.StreamResponse:
    """JSON or protocol buffers, whatever is first in the Accept header."""
    for media in _accepted(request):
        for offered, (content_type, document) in _V2.items():
            if media in (offered, "application/*", "*/*"):
                return _document(request, document(), {**_UNCACHED, "Vary": "Accept", "Content-Type": content_type})
    return web.Response(status=406, headers={**_UNCACHED, "Vary": "Accept"})


def _openapi_v3(request: web.BaseRequest, document: bytes, path: str, known: str) -> web.StreamResponse:
    """JSON. Who asks for another state of the document than the present one is sent to that."""
    if not any(media in (JSON_TYPE, "application/*", "*/*") for media in _accepted(request)):
        return web.Response(status=406, headers={**_UNCACHED, "Vary": "Accept"})
    if known and known != fields.document_hash(document):
        location = f"{path}?hash={fields.document_hash(document)}"
        return web.Response(status=301, headers={**_UNCACHED, "Location": location})
    caching = {"Cache-Control": "public, immutable"} if known else _UNCACHED
    return _document(request, document, {**caching, "Vary": "Accept", "Content-Type": JSON_TYPE})


def _accepted(request: web.BaseRequest) -> list[str]:
    header = request.headers.get("Accept") or "*/*"
    return [clause.partition(";")[0].strip() for clause in header.split(",")]


def _document(request: web.BaseRequest, document: bytes, headers: dict[str, str]) -> web.StreamResponse:
    headers["ETag"] = etag = f'"{fields.document_hash(document)}"'
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=document, headers=headers)
