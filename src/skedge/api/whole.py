"""Objects that are written back whole: volumes, claims, leases.

The structs of this package are narrow, so an object rebuilt from one would lose what it doesn't know. A `Whole` keeps
the JSON of the version that was read; a change is made on a copy of that JSON and sent with its resourceVersion.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

from skedge.api.decode import KINDS, KindInfo

T = TypeVar("T")
Json = dict[str, Any]

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Json)


class Whole(Generic[T]):
    """One version of an object: `raw`, its JSON, and `view`, the struct read from it. Neither is ever modified."""

    __slots__ = ("info", "raw", "view")

    def __init__(self, info: KindInfo, raw: Json) -> None:
        """`raw` becomes the property of this object. Raises msgspec.ValidationError if the struct can't be read."""
        self.info = info
        self.raw = raw
        self.view: T = msgspec.convert(raw, info.struct)

    def changed(self, change: Callable[[Json], None]) -> Whole[T]:
        """A new version with the change, which gets a deep copy of the JSON to work on. The resourceVersion stays."""
        raw = copy.deepcopy(self.raw)
        change(raw)
        return Whole(self.info, raw)

    def encode(self) -> bytes:
        """The body of the request that writes this version."""
        return _encoder.encode({"apiVersion": self.info.api_version, "kind": self.info.kind, **self.raw})

    @property
    def metadata(self) -> Json:
        """The JSON of the metadata, for reading."""
        return cast(Json, self.raw.get("metadata") or {})


def whole(kind: str, data: bytes | str | Json) -> Whole[Any]:
    """An object of a kind in `decode.KINDS`, from the API's bytes or from plain JSON values.

    Raises msgspec.ValidationError or DecodeError with the path of the fault.
    """
    raw = _decoder.decode(data) if isinstance(data, bytes | str) else copy.deepcopy(data)
    return Whole(KINDS[kind], raw)


# Changes. Each takes the JSON of an object and modifies it, coping with absent and null parents.


def child(raw: Json, *path: str) -> Json:
    """The object at the path, made where it is absent or null."""
    for name in path:
        if raw.get(name) is None:
            raw[name] = {}
        raw = raw[name]
    return raw


def set_annotation(raw: Json, name: str, text: str) -> None:
    """Set one annotation."""
    child(raw, "metadata", "annotations")[name] = text


def add_finalizer(raw: Json, name: str) -> None:
    """Add a finalizer unless it is there."""
    metadata = child(raw, "metadata")
    finalizers = metadata.get("finalizers") or []
    if name not in finalizers:
        metadata["finalizers"] = [*finalizers, name]


def remove_finalizer(raw: Json, name: str) -> None:
    """Remove a finalizer if it is there."""
    metadata = child(raw, "metadata")
    left = [each for each in metadata.get("finalizers") or [] if each != name]
    if left:
        metadata["finalizers"] = left
    else:
        metadata.pop("finalizers", None)


def as_json(value: Any) -> Any:
    """A struct of this package as plain JSON values, to put into an object."""
    return msgspec.to_builtins(value)
