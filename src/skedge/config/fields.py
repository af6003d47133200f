"""Errors of single fields and how they are worded. Upstream: `apimachinery/pkg/util/validation/field`."""

import json
from collections.abc import Iterable

import msgspec

_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {"\\": "\\\\", '"': '\\"'}


class ConfigError(ValueError):
    """A configuration, flag or policy that cannot be used; the message is for the user and names the field."""


class Verbatim(str):
    """A bad value that is shown as it stands, without quotes."""


class FieldError(msgspec.Struct, frozen=True):
    """One broken rule at one field.

    `kind` is the leading word of the message (`Invalid value`, `Required value`, ...), `value` its rendered bad value
    or "" where the kind shows none.
    """

    path: str
    kind: str
    value: str = ""
    detail: str = ""

    def __str__(self) -> str:
        body = f"{self.kind}: {self.value}" if self.value else self.kind
        return f"{self.path}: {body}: {self.detail}" if self.detail else f"{self.path}: {body}"


def invalid(path: str, value: object, detail: str) -> FieldError:
    return FieldError(path, "Invalid value", show(value), detail)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "Required value", "", detail)


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(path, "Duplicate value", show(value))


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, "Forbidden", "", detail)


def not_supported(path: str, value: str, supported: Iterable[str]) -> FieldError:
    choices = ", ".join(go_quote(one) for one in supported)
    return FieldError(path, "Unsupported value", go_quote(value), f"supported values: {choices}")


def aggregate(errors: Iterable[object]) -> str:
    """The text of several errors: one stands alone, more become `[a, b]`; repeated ones are shown once."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def show(value: object) -> str:
    """A bad value as messages show it: strings quoted, numbers and booleans plain, the rest as JSON."""
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return go_quote(value)
    if type(value) is int or type(value) is float:
        return str(value)
    if value is None:
        return '"null"'
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: object) -> object:
    # Structs appear with Go's capitalised names: that is how the reference's internal types print.
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        return {wire[:1].upper() + wire[1:]: _plain(getattr(value, name)) for name, wire in names}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value] or None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    return str(value)


def go_quote(text: str) -> str:
    """Text in Go's double-quoted form (`%q`)."""
    return '"' + "".join(_ESCAPES.get(char) or _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
