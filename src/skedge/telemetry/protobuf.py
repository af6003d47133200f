"""Protocol buffer wire format, writing only: what pprof files and the delimited metrics format need."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_MASK64 = (1 << 64) - 1


def varint(value: int) -> bytes:
    """A base-128 number; negative ones as their 64-bit two's complement."""
    value &= _MASK64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An int64, uint64, enum or bool field; nothing for zero, which is the default."""
    return varint(field << 3) + varint(value) if value else b""


def double(field: int, value: float) -> bytes:
    """A double field, zero included."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def block(field: int, payload: bytes) -> bytes:
    """A length-delimited field: bytes or an encoded message, empty ones included."""
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def text(field: int, value: str) -> bytes:
    """A string field."""
    return block(field, value.encode())


def packed(field: int, values: Iterable[int]) -> bytes:
    """A packed list of integers; nothing for an empty one."""
    payload = b"".join(map(varint, values))
    return block(field, payload) if payload else b""
