"""The OpenAPI v2 document in protocol buffers, which client-go's `OpenAPISchema` asks for and nothing else.

Messages and numbers are gnostic's (`openapiv2/OpenAPIv2.proto`), as far as the document uses them: each table below
says under which number a key of the JSON is written, and how. Keys that begin with `x-` are extensions, whose values
are YAML texts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from skedge.controlplane.fields.openapi import openapi_v2
from skedge.controlplane.fields.table import Obj
from skedge.telemetry.protobuf import block, number, text

Encode = Callable[[Any], bytes]  # a value of the JSON -> the content of a message
Write = Callable[[int, Any], bytes]  # a field's number and its value -> the field


@functools.cache
def openapi_v2_protobuf() -> bytes:
    """The document of `openapi_v2`, encoded once."""
    return _message(_DOCUMENT, 16)(msgspec.json.decode(openapi_v2()))


def _message(fields: dict[str, tuple[int, Write]], extension: int) -> Encode:
    """A message of these fields, its extensions under a number of their own."""

    def encode(value: Obj) -> bytes:
        return b"".join(
            block(extension, text(1, key) + block(2, text(2, _yaml(item))))
            if key.startswith("x-")
            else fields[key][1](fields[key][0], item)
            for key, item in value.items()
        )

    return encode


def _yaml(value: Any) -> str:
    """JSON, which is YAML."""
    return msgspec.json.encode(value).decode() + "\n"


def _inside(encode: Encode) -> Write:
    return lambda field, value: block(field, encode(value))


def _each(write: Write) -> Write:
    return lambda field, values: b"".join(write(field, value) for value in values)


def _named(encode: Encode) -> Encode:
    """A map as pairs of a name and a value; `Paths` has them under another number than the rest."""
    return lambda value: _pairs(1, value, encode)


def _pairs(field: int, value: Obj, encode: Encode) -> bytes:
    return b"".join(block(field, text(1, name) + block(2, encode(item))) for name, item in value.items())


def _texts(value: str | Iterable[str]) -> bytes:
    return _each(text)(1, [value] if isinstance(value, str) else value)


def _schema(value: Obj) -> bytes:
    return _message(_SCHEMA, 31)(value)


def _only(encode: Encode) -> Encode:
    """A message whose first field is the value."""
    return lambda value: block(1, encode(value))


def _parameter(value: Obj) -> bytes:
    """A ParametersItem: a parameter in the body, in the query and in the path are different messages."""
    if value["in"] == "body":
        return block(1, block(1, _message(_BODY_PARAMETER, 6)(value)))
    if value["in"] == "query":
        return block(1, block(2, block(3, _message(_QUERY, 23)(value))))
    return block(1, block(2, block(4, _message(_PATH, 22)(value))))


_SCHEMA: dict[str, tuple[int, Write]] = {
    "$ref": (1, text),
    "format": (2, text),
    "required": (19, _each(text)),
    "additionalProperties": (21, _inside(_only(_schema))),
    "type": (22, _inside(_texts)),
    "items": (23, _inside(_only(_schema))),
    "properties": (25, _inside(_named(_schema))),
}
_BODY_PARAMETER: dict[str, tuple[int, Write]] = {
    "name": (2, text),
    "in": (3, text),
    "required": (4, number),
    "schema": (5, _inside(_schema)),
}
_PATH: dict[str, tuple[int, Write]] = {
    "required": (1, number),
    "in": (2, text),
    "name": (4, text),
    "type": (5, text),
    "uniqueItems": (19, number),
}
_QUERY: dict[str, tuple[int, Write]] = {**_PATH, "type": (6, text), "uniqueItems": (20, number)}
_RESPONSE: dict[str, tuple[int, Write]] = {"description": (1, text), "schema": (2, _inside(_only(_schema)))}
_OPERATION: dict[str, tuple[int, Write]] = {
    "consumes": (7, _each(text)),
    "parameters": (8, _each(_inside(_parameter))),
    "responses": (9, _inside(_named(_only(_message(_RESPONSE, 5))))),
}
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_PATH_ITEM: dict[str, tuple[int, Write]] = {
    **{method: (field, _inside(_message(_OPERATION, 13))) for method, field in _METHODS.items()},
    "parameters": (9, _each(_inside(_parameter))),
}
_INFO: dict[str, tuple[int, Write]] = {"title": (1, text), "version": (2, text)}
_DOCUMENT: dict[str, tuple[int, Write]] = {
    "swagger": (1, text),
    "info": (2, _inside(_message(_INFO, 7))),
    "paths": (8, _inside(lambda value: _pairs(2, value, _message(_PATH_ITEM, 10)))),
    "definitions": (9, _inside(_named(_schema))),
}
