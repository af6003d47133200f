"""Reading protocol buffers back, for tests of what we write."""

from __future__ import annotations


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at` and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def decode_message(data: bytes) -> dict[int, list[int | bytes]]:
    """Field number → its values in order: numbers of varints, bytes of blocks and of 64-bit fields."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        value: int | bytes
        if key & 7 == 0:
            value, at = read_varint(data, at)
        elif key & 7 == 1:
            value, at = data[at : at + 8], at + 8
        elif key & 7 == 2:
            length, at = read_varint(data, at)
            assert at + length <= len(data), "a block reaches beyond its message"
            value, at = data[at : at + length], at + length
        else:
            raise AssertionError(f"wire type {key & 7}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def unpack(data: bytes) -> list[int]:
    """The numbers of a packed field."""
    numbers, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        numbers.append(value)
    return numbers
