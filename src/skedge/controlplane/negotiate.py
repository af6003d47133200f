"""Which representation to answer with, and how to read a body.

`staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation`: JSON, YAML, tables, partial metadata. Protobuf is
never chosen: clients that prefer it name JSON as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from skedge.controlplane import protobuf
from skedge.controlplane.errors import ApiError, bad_request

JSON = dict[str, Any]

_REPRESENTATIONS = (
    "application/json, application/yaml, application/vnd.kubernetes.protobuf, "
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
)
_BODIES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Shape:
    """How to answer: as JSON or YAML, and whole (""), as a Table or as PartialObjectMetadata."""

    yaml: bool = False
    as_: str = ""
    discovery: str = ""  # "v2" for aggregated discovery

    @property
    def plain(self) -> bool:
        return not self.yaml and not self.as_


PLAIN = Shape()
_known: dict[str, Shape] = {"": PLAIN, "application/json": PLAIN, "*/*": PLAIN, "application/json, */*": PLAIN}


def accept(header: str) -> Shape:
    """The shape of the answer for an Accept header. Raises 406 when nothing in it can be served."""
    shape = _known.get(header)
    if shape is None:
        shape = _accept(header)
        if len(_known) < 500:
            _known[header] = shape
    return shape


def _accept(header: str) -> Shape:
    for clause in header.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        options = dict(p.split("=", 1) for p in parameters if "=" in p)
        as_ = options.get("as", "")
        if media in ("application/json", "application/*", "*/*"):
            pass
        elif media not in ("application/yaml", "text/yaml"):
            continue
        in_yaml = media in ("application/yaml", "text/yaml")
        if as_ == "APIGroupDiscoveryList":
            if options.get("v") == "v2":
                return Shape(discovery="v2")
            continue
        if as_ in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            if options.get("v") not in ("v1", "v1beta1") or options.get("g") != "meta.k8s.io":
                continue
            if options.get("v") == "v1beta1" and as_ == "Table":
                continue
            return Shape(yaml=in_yaml, as_=as_.removesuffix("List"))
        if as_:
            continue
        return Shape(yaml=in_yaml)
    raise ApiError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {_REPRESENTATIONS}", {})


_DEPTH = 200  # levels of nesting in YAML


class _Loader(yaml.CSafeLoader):
    """YAML as JSON sees it: no timestamps, no sexagesimal numbers."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:timestamp",)]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def body_media_type(content_type: str) -> str:
    """`json`, `yaml` or `protobuf` for a Content-Type. Raises 415 for anything else."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("application/json", "", "*/*"):
        return "json"
    if media in ("application/yaml", "text/yaml"):
        return "yaml"
    if media == "application/vnd.kubernetes.protobuf":
        return "protobuf"
    raise ApiError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {_BODIES}",
    )


def load_yaml(data: bytes) -> Any:
    """One YAML (or JSON) document. Raises ValueError with the parser's words."""
    if data.lstrip()[:1] == b"{":  # what kubectl sends as YAML is JSON; flow mappings of YAML proper come below
        try:
            return load_json(data)
        except ValueError:
            pass
    try:
        document = yaml.load(data, Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as e:
        raise ValueError(f"error converting YAML to JSON: yaml: {e}".replace("\n", " ")) from e
    return _as_json(document, [10 * len(data) + 100], _DEPTH)


def _as_json(value: Any, budget: list[int], depth: int) -> Any:
    """A YAML value with text for keys; aliases must not blow it up, nor nesting."""
    budget[0] -= 1
    if budget[0] < 0 or depth < 0:
        raise ValueError("error converting YAML to JSON: yaml: document contains excessive aliasing or nesting")
    if isinstance(value, dict):
        return {_key(key): _as_json(item, budget, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item, budget, depth - 1) for item in value]
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    raise ValueError(f"error converting YAML to JSON: yaml: no JSON for a value of type {type(value).__name__}")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def load_json(data: bytes) -> Any:
    """A JSON document. Raises ValueError in Go's words."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise ValueError(go_json_error(data, e)) from e
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def read_object(data: bytes, content_type: str, kind: str) -> JSON:
    """The object of a request body. Raises 400 as upstream words it, 415."""
    media = body_media_type(content_type)
    if media == "protobuf":
        try:
            return protobuf.decode(data)
        except protobuf.BadProtobuf as e:
            raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {e}") from None
    try:
        obj = load_json(data) if media == "json" else load_yaml(data)
    except ValueError as e:
        raise unreadable(data, kind, e) from None
    if not isinstance(obj, dict):
        problem = f"json: cannot unmarshal {_go_type(obj)} into Go value of type struct"
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
            f"json parse error: {problem}"
        )
    return obj


def unreadable(data: bytes, kind: str, error: ValueError) -> ApiError:
    """The refusal of a body that cannot be parsed."""
    shown = data[:1024].decode(errors="replace")
    hint = f"couldn't get version/kind; json parse error: {error} ({shown})"
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {hint}")


def _go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "number"


_OFFSET = re.compile(r"\(byte (\d+)\)")


def go_json_error(data: bytes, error: Exception) -> str:
    """What Go's JSON parser says about the same text, as far as it can be told."""
    text = str(error)
    if "truncated" in text or not data.strip():
        return "unexpected end of JSON input"
    match = _OFFSET.search(text)
    position = int(match.group(1)) if match else 0
    char = chr(data[position]) if position < len(data) else ""
    shown = f"'{char}'" if char.isprintable() and char != "'" else repr(char)
    before = data[:position].rstrip()[-1:]
    if before in (b"{",) or (before == b"," and b"{" in data[:position] and "object" in text):
        where = "looking for beginning of object key string"
    elif position == 0 or before in (b"[", b":", b","):
        where = "looking for beginning of value"
    else:
        where = "after top-level value" if "trailing" in text else "after object key:value pair"
    return f"invalid character {shown} {where}"


class _Dumper(yaml.CSafeDumper):
    """YAML as the server writes it."""


def _text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    if "\n" in value:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    plain = dumper.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
    ambiguous = plain != "tag:yaml.org,2002:str" or value == "" or value in ("y", "n", "Y", "N")
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if ambiguous else None)


_Dumper.add_representer(str, _text)


def dump_yaml(obj: Any) -> bytes:
    """An object as YAML with sorted keys."""
    text: str = yaml.dump(obj, Dumper=_Dumper, sort_keys=True, width=1 << 30, allow_unicode=True)
    return text.encode()
