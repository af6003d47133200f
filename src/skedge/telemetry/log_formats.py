"""One log record as one line: klog's text form, and JSON. Upstream: `klog/internal/serialize`, `logs/json`."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from skedge.telemetry.numbers import go_float

Values: TypeAlias = Mapping[str, object]

_SEVERITY: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class ObjectRef(NamedTuple):
    """An object as log lines name it: `namespace/name`, or its name where it has no namespace."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def reference(value: object) -> ObjectRef | None:
    """The reference to an API object (anything with `metadata`), or None for other values."""
    if isinstance(value, ObjectRef):
        return value
    metadata = getattr(value, "metadata", None)
    name = getattr(metadata, "name", None)
    return ObjectRef(name, getattr(metadata, "namespace", "") or "") if isinstance(name, str) else None


class KlogFormatter(logging.Formatter):
    """`I0102 15:04:05.000000       1 file.py:123] "message" key="value" n=1`"""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid

    def format(self, record: logging.LogRecord) -> str:
        moment = time.localtime(record.created)
        micros = int(record.created % 1 * 1e6)
        clock = time.strftime("%m%d %H:%M:%S", moment)
        file = os.path.basename(record.pathname)
        head = f"{_SEVERITY.get(record.levelno, 'I')}{clock}.{micros:06d} {self._pid:7d} {file}:{record.lineno}] "
        values: Values | None = getattr(record, "values", None)
        if values is None:
            return head + _plain_message(record)
        if getattr(record, "plain", False):
            return head + str(record.msg)
        return head + quote(record.msg) + "".join(f" {key}{_text(value)}" for key, value in values.items())


class JsonFormatter(logging.Formatter):
    """`{"ts":1700000000000.1,"caller":"dir/file.py:123","msg":"message","v":0,"key":"value"}`"""

    def format(self, record: logging.LogRecord) -> str:
        folder, file = os.path.split(record.pathname)
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 4),
            "caller": f"{os.path.basename(folder)}/{file}:{record.lineno}",
        }
        values: Values | None = getattr(record, "values", None)
        if values is None:
            line |= {"logger": record.name, "msg": _plain_message(record)}
            if record.levelno <= logging.INFO:
                line["v"] = 0
        else:
            line["msg"] = record.msg
            if (level := getattr(record, "v", None)) is not None:
                line["v"] = level
            line |= {key: _jsonable(value) for key, value in values.items()}
        return msgspec.json.encode(line, enc_hook=_jsonable).decode()


def error_text(error: BaseException) -> str:
    """What an error says, or its kind when it says nothing (a time-out)."""
    return str(error) or type(error).__name__


def quote(text: str) -> str:
    """`text` in double quotes, escaped as Go's `strconv.Quote` does for what log lines hold."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("\\u00", "\\x") if "\\u00" in quoted else quoted


def _plain_message(record: logging.LogRecord) -> str:
    """A library's record: its message, and the error it came with; never a traceback."""
    message = record.getMessage()
    error = record.exc_info[1] if record.exc_info else None
    return f"{message}: {error!r}" if error is not None else message


def _text(value: object) -> str:
    """`=value` in text form; strings of several lines as an indented block."""
    if isinstance(value, bool):
        return "=true" if value else "=false"
    if isinstance(value, int):
        return f"={value}"
    if isinstance(value, float):
        return f"={go_float(value)}"
    if value is None:
        return "=<nil>"
    ref = reference(value)
    if ref is None and isinstance(value, list | tuple | set | frozenset | dict):
        return "=" + msgspec.json.encode(_jsonable(value), enc_hook=_jsonable).decode()
    text = error_text(value) if isinstance(value, BaseException) else str(value if ref is None else ref)
    if "\n" in text:
        return "=<\n\t" + text.replace("\n", "\n\t") + "\n >"
    return "=" + quote(text)


def _jsonable(value: object) -> Any:
    """A form of `value` that JSON knows; objects and errors as described in `logs`."""
    if isinstance(value, str | int | float | None):
        return value
    ref = reference(value)
    if ref is not None:
        return {"name": ref.name, "namespace": ref.namespace} if ref.namespace else {"name": ref.name}
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return error_text(value) if isinstance(value, BaseException) else str(value)
