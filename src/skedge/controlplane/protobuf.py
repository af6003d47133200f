"""Reads Kubernetes protobuf bodies: kubectl's typed clients send them and do not fall back to JSON.

An envelope (`k8s\\0` and a `runtime.Unknown`) around messages whose numbers stand in `gotypes`. The few types with an
encoding of their own (quantities, times, int-or-string, raw JSON) are handled by name
(`staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf`). Answers are JSON.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from skedge.controlplane.fields.table import Shape, Type, table
from skedge.controlplane.gotypes import plan

JSON = dict[str, Any]
Raw = int | bytes

_MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPTIONS = {"DeleteOptions": "apis.meta.v1.DeleteOptions"}
_SIGN = 1 << 63


class BadProtobuf(ValueError):
    """Bytes that are no message; the text says where reading ended."""


def decode(data: bytes) -> JSON:
    """The object of a body, with kind and apiVersion. Raises BadProtobuf."""
    if not data.startswith(_MAGIC):
        raise BadProtobuf("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    unknown = _message(data[4:])
    meta = _message(_last_bytes(unknown, 1))
    version, kind = _text(meta, 1), _text(meta, 2)
    found = table()
    type_ = found.types.get(_OPTIONS[kind]) if kind in _OPTIONS else found.kinds.get(f"{version}/{kind}")
    if type_ is None:
        raise BadProtobuf(f'no kind "{kind}" is registered for version "{version}"')
    obj = _struct(_last_bytes(unknown, 2), type_)
    return {"kind": kind, "apiVersion": version, **obj}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadProtobuf(f"unexpected end of a number at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _message(data: bytes) -> dict[int, list[Raw]]:
    """Field number -> its values in order, undecoded."""
    fields: dict[int, list[Raw]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Raw
        if wire == 0:
            value, at = _varint(data, at)
        else:
            if wire == 2:
                size, at = _varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise BadProtobuf(f"illegal wireType {wire} at byte {at}")
            value = data[at : at + size]
            if len(value) < size:
                raise BadProtobuf("unexpected EOF")
            at += size
        fields.setdefault(number, []).append(value)
    return fields


def _last_bytes(message: dict[int, list[Raw]], number: int) -> bytes:
    value = message.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _last_int(message: dict[int, list[Raw]], number: int) -> int:
    value = message.get(number, [0])[-1]
    return _signed(value) if isinstance(value, int) else 0


def _text(message: dict[int, list[Raw]], number: int) -> str:
    return _last_bytes(message, number).decode(errors="replace")


def _signed(value: int) -> int:
    return value - (1 << 64) if value & _SIGN else value


def _struct(data: bytes, type_: Type) -> JSON:
    message = _message(data)
    inner: dict[int, dict[int, list[Raw]]] = {}
    result: JSON = {}
    for field, child, _, numbers in plan(type_):
        if not numbers:
            continue
        source = message
        if len(numbers) == 2:  # a field of an inlined struct
            outer = numbers[0]
            if outer not in inner:
                inner[outer] = _message(_last_bytes(message, outer))
            source = inner[outer]
        values = source.get(numbers[-1])
        if values:
            result[field] = _field(values, child)
    return result


def _field(values: list[Raw], type_: Type) -> Any:
    if type_.shape is Shape.LIST:
        if type_.elem.name.startswith("integer"):
            return [number for value in values for number in _numbers(value)]
        return [_single(value, type_.elem) for value in values]
    if type_.shape is Shape.MAP:
        entries = [_message(value) for value in values if isinstance(value, bytes)]
        return {_text(entry, 1): _map_value(entry, type_.elem) for entry in entries}
    return _single(values[-1], type_)


def _map_value(entry: dict[int, list[Raw]], type_: Type) -> Any:
    if type_.shape is Shape.LIST:  # a named list type is a message with one repeated field
        return [_single(item, type_.elem) for item in _message(_last_bytes(entry, 2)).get(1, [])]
    return _single(entry.get(2, [b""])[-1], type_)


def _numbers(value: Raw) -> list[int]:
    """A number, or a packed list of them."""
    if isinstance(value, int):
        return [_signed(value)]
    out, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        out.append(_signed(number))
    return out


def _single(value: Raw, type_: Type) -> Any:
    if isinstance(value, int):
        return bool(value) if type_.name == "boolean" else _signed(value)
    if type_.shape is Shape.STRUCT:
        return _struct(value, type_)
    name = type_.name
    if name == "api.resource.Quantity":
        return _text(_message(value), 1) or "0"
    if name in ("apis.meta.v1.Time", "apis.meta.v1.MicroTime"):
        return _time(value, micro=name.endswith("MicroTime"))
    if name.endswith("IntOrString"):
        either = _message(value)
        return _text(either, 3) if _last_int(either, 1) == 1 else _last_int(either, 2)
    if name == "string:byte":
        return base64.b64encode(value).decode()
    if type_.shape is Shape.ANY:
        raw = _last_bytes(_message(value), 1)
        try:
            return msgspec.json.decode(raw) if raw else None
        except msgspec.DecodeError:
            raise BadProtobuf("embedded JSON cannot be read") from None
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadProtobuf("a string is not UTF-8") from None


def _time(value: bytes, *, micro: bool) -> str | None:
    if not value:
        return None
    parts = _message(value)
    try:
        moment = _EPOCH + timedelta(seconds=_last_int(parts, 1), microseconds=_last_int(parts, 2) // 1000)
    except OverflowError:
        return None  # Go's zero time, before year one
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")
