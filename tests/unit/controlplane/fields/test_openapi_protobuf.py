"""The protocol buffers say what the JSON says."""

from __future__ import annotations

import json
from typing import Any

import yaml

from protobuf_reader import decode_message
from skedge.controlplane import fields

Message = dict[int, list[int | bytes]]

# field numbers of gnostic's OpenAPIv2.proto, and what is below them
TEXT, FLAG, TEXTS = "text", "flag", "texts"
SCHEMA: dict[int, tuple[str, str]] = {
    1: ("$ref", TEXT),
    2: ("format", TEXT),
    19: ("required", TEXTS),
    21: ("additionalProperties", "schema inside"),
    22: ("type", "type"),
    23: ("items", "schema inside"),
    25: ("properties", "schemas"),
}
BODY: dict[int, tuple[str, str]] = {2: ("name", TEXT), 3: ("in", TEXT), 4: ("required", FLAG), 5: ("schema", "schema")}
QUERY = {1: ("required", FLAG), 2: ("in", TEXT), 4: ("name", TEXT), 6: ("type", TEXT), 20: ("uniqueItems", FLAG)}
PATH = {1: ("required", FLAG), 2: ("in", TEXT), 4: ("name", TEXT), 5: ("type", TEXT), 19: ("uniqueItems", FLAG)}
OPERATION = {7: ("consumes", TEXTS), 8: ("parameters", "parameters"), 9: ("responses", "responses")}
METHODS = {2: "get", 3: "put", 4: "post", 5: "delete", 8: "patch"}
ITEM = {**{field: (name, "operation") for field, name in METHODS.items()}, 9: ("parameters", "parameters")}
RESPONSE = {1: ("description", TEXT), 2: ("schema", "schema inside")}
DOCUMENT = {1: ("swagger", TEXT), 2: ("info", "info"), 8: ("paths", "paths"), 9: ("definitions", "schemas")}
INFO = {1: ("title", TEXT), 2: ("version", TEXT)}


def read(data: int | bytes, known: dict[int, tuple[str, str]], extension: int) -> dict[str, Any]:
    assert isinstance(data, bytes)
    found: dict[str, Any] = {}
    for field, values in decode_message(data).items():
        if field == extension:
            for pair in values:
                name, value = named(pair)
                found[name] = yaml.safe_load(only(value, 2).decode())
        else:
            name, kind = known[field]
            found[name] = convert(values, kind)
    return found


def only(data: int | bytes, field: int) -> bytes:
    """The one field of a message."""
    assert isinstance(data, bytes)
    ((number, (value,)),) = decode_message(data).items()
    assert (number, type(value)) == (field, bytes)
    assert isinstance(value, bytes)
    return value


def named(data: int | bytes) -> tuple[str, bytes]:
    assert isinstance(data, bytes)
    message = decode_message(data)
    (name,), (value,) = message[1], message[2]
    assert isinstance(name, bytes)
    assert isinstance(value, bytes)
    return name.decode(), value


def pairs(data: int | bytes, field: int) -> list[tuple[str, bytes]]:
    assert isinstance(data, bytes)
    message = decode_message(data)
    assert set(message) <= {field}
    return [named(pair) for pair in message.get(field, [])]


def parameter(data: int | bytes) -> dict[str, Any]:
    one = only(data, 1)
    message = decode_message(one)
    if 1 in message:
        return read(only(one, 1), BODY, 6)
    place = only(one, 2)
    if 3 in decode_message(place):
        return read(only(place, 3), QUERY, 23)
    return read(only(place, 4), PATH, 22)


def convert(values: list[int | bytes], kind: str) -> Any:
    value = values[-1]
    match kind:
        case "texts":
            return [item.decode() for item in values if isinstance(item, bytes)]
        case "text":
            assert isinstance(value, bytes)
            return value.decode()
        case "flag":
            return bool(value)
        case "type":
            return only(value, 1).decode()
        case "schema":
            return read(value, SCHEMA, 31)
        case "schema inside":
            return read(only(value, 1), SCHEMA, 31)
        case "schemas":
            return {name: read(schema, SCHEMA, 31) for name, schema in pairs(value, 1)}
        case "parameters":
            return [parameter(item) for item in values]
        case "responses":
            return {code: read(only(answer, 1), RESPONSE, 5) for code, answer in pairs(value, 1)}
        case "operation":
            return read(value, OPERATION, 13)
        case "paths":
            return {path: read(item, ITEM, 10) for path, item in pairs(value, 2)}
    return read(value, INFO, 7)


def plain(value: Any) -> Any:
    """JSON without what protocol buffers do not tell from its absence."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not False}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_protobuf_says_what_json_says() -> None:
    document = fields.openapi_v2_protobuf()
    assert read(document, DOCUMENT, 16) == plain(json.loads(fields.openapi_v2()))
    assert fields.openapi_v2_protobuf() is document
