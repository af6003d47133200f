"""One YAML or JSON document as plain data, with its duplicate keys. Upstream: `sigs.k8s.io/yaml`, `sigs.k8s.io/json`.

Scalars are read as Kubernetes' YAML reader does: the boolean words of YAML 1.1, but neither dates nor base-60 numbers.
Nesting, size and aliases are bounded, for the text may come from anywhere.
"""

import json
import re
from collections.abc import Iterator

import msgspec
import yaml

from skedge.config.fields import ConfigError, go_quote

MAX_DEPTH = 200
MAX_NODES = 1_000_000

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_TAG = "tag:yaml.org,2002:"


class Document(msgspec.Struct, frozen=True):
    """Plain data (dict, list, str, int, float, bool, None), its text, and complaints about repeated keys."""

    data: object
    text: str
    duplicates: list[str]


def load(source: str | bytes) -> Document:
    """Read one document; what begins with `{` is JSON. Raises ConfigError if it cannot be read."""
    if isinstance(source, bytes):
        try:
            source = source.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"yaml: invalid UTF-8 at byte {error.start}") from None
    source = source.removeprefix("\ufeff")
    return _load_json(source) if source.lstrip().startswith("{") else _load_yaml(source)


class _Object(dict[str, object]):
    repeated: list[str]


def _pairs(pairs: list[tuple[str, object]]) -> _Object:
    result = _Object(pairs)
    seen: set[str] = set()
    result.repeated = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
    return result


def _load_json(text: str) -> Document:
    def refuse(word: str) -> object:
        raise ValueError(f"invalid number {word}")

    try:
        data = json.loads(text, object_pairs_hook=_pairs, parse_constant=refuse)
        duplicates = [f"duplicate field {go_quote(path)}" for path in _repeated(data, "", 0)]
    except RecursionError:
        raise ConfigError("couldn't get version/kind; json parse error: exceeded max depth") from None
    except ValueError as error:
        raise ConfigError(f"couldn't get version/kind; json parse error: {error}") from None
    return Document(data, text, duplicates)


def _repeated(data: object, path: str, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        raise ValueError("exceeded max depth")
    if isinstance(data, _Object):
        yield from (f"{path}.{key}" if path else key for key in data.repeated)
        for key, value in data.items():
            yield from _repeated(value, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _repeated(value, f"{path}[{index}]", depth + 1)


def _load_yaml(text: str) -> Document:
    try:
        composer = _Composer(text)
        data = composer.documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"error converting YAML to JSON: yaml: {where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        first_line = str(error).split("\n", 1)[0]
        raise ConfigError(f"error converting YAML to JSON: yaml: {first_line}") from None
    lines = composer.duplicates
    return Document(data, text, ["yaml: unmarshal errors:\n  " + "\n  ".join(lines)] if lines else [])


class _Composer:
    """Builds plain data from the parser's events: anchors, merge keys, bounds and repeated keys in one place."""

    def __init__(self, text: str) -> None:
        self.duplicates: list[str] = []
        self._events = iter(yaml.parse(text, Loader=_Loader))
        self._anchors: dict[str, tuple[object, int]] = {}
        self._nodes = 0

    def documents(self) -> object:
        """The first document; any further one must be empty."""
        first: object = None
        count = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                data = self._node(next(self._events), 0)
                count += 1
                if count == 1:
                    first = data
                elif data is not None:
                    raise self._error(event, "only one document is allowed")
        return first

    def _node(self, event: yaml.Event, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise self._error(event, "exceeded max depth")
        before = self._nodes
        self._nodes += 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise self._error(event, f"unknown anchor '{event.anchor}' referenced")
            data, size = self._anchors[event.anchor]
            self._nodes += size
        elif isinstance(event, yaml.ScalarEvent):
            data = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            data = [self._node(item, depth + 1) for item in iter(self._next, None)]
        else:
            data = self._mapping(depth)
        if self._nodes > MAX_NODES:
            raise self._error(event, "document contains excessive aliasing or is too large")
        anchor = getattr(event, "anchor", None)
        if anchor and not isinstance(event, yaml.AliasEvent):
            self._anchors[anchor] = data, self._nodes - before
        return data

    def _next(self) -> yaml.Event | None:
        event = next(self._events)
        return None if isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent) else event

    def _mapping(self, depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        merged: dict[str, object] = {}
        for event in iter(self._next, None):
            is_merge = isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if is_merge:
                for part in reversed(value if isinstance(value, list) else [value]):
                    if not isinstance(part, dict):
                        raise self._error(event, "map merge requires map or sequence of maps as the value")
                    merged |= part
                continue
            name = self._key(event, key)
            if name in result:
                self.duplicates.append(f"line {_line(event)}: key {go_quote(name)} already set in map")
            result[name] = value
        return {**{name: value for name, value in merged.items() if name not in result}, **result}

    def _key(self, event: yaml.Event, key: object) -> str:
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, str | int | float):
            return str(key)
        if key is None:
            return "null"
        raise self._error(event, "invalid map key: only scalars may be keys")

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        text: str = event.value
        tag = event.tag
        if tag in (None, "!") and not event.implicit[0]:
            return text
        if tag in ("!", _TAG + "str", _TAG + "binary", _TAG + "timestamp"):
            return text
        if tag is not None and tag not in {_TAG + kind for kind in ("null", "bool", "int", "float")}:
            raise self._error(event, f"cannot use tag {tag}")
        try:
            return plain_scalar(text)
        except ValueError:
            raise self._error(event, f"cannot represent {go_quote(text)}") from None

    @staticmethod
    def _error(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
        return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)  # type: ignore[arg-type]


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def plain_scalar(text: str) -> object:
    """What an unquoted YAML scalar means; raises ValueError for numbers JSON has no room for."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INT.fullmatch(text):
        digits = text.replace("_", "")
        unsigned = digits.lstrip("+-")
        is_octal = len(unsigned) > 1 and unsigned[0] == "0" and unsigned[1].isdigit()
        return int(digits, 8) if is_octal else int(digits, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if text.lower().lstrip("+-") in (".inf", ".nan"):
        raise ValueError("not a finite number")
    return text
