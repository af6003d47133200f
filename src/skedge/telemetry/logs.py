"""Log lines with keys and values, verbosity that changes while running, and the two formats of Kubernetes components.

    log = get_logger(__name__)
    if log.v(2):
        log.info("Successfully bound pod to node", pod=pod, node=name)

A line that is not wanted costs one comparison. Records travel through stdlib `logging`, so a program that embeds this
package sees them under its own handlers; `configure` is for processes of our own. Values are rendered when the line is
written: objects with metadata become references to them, errors their text. Upstream: `klog`, `component-base/logs`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, Literal, NamedTuple, TextIO

from skedge.telemetry.log_formats import JsonFormatter, KlogFormatter, Values

_MAX_LEVEL: Final = 2**31 - 1
logging.getLogger("skedge").addHandler(logging.NullHandler())


class ModuleLevel(NamedTuple):
    """One part of `--vmodule`: files whose base name without extension (with a `/`: whose path) matches `pattern`."""

    pattern: str
    level: int


def parse_level(text: str) -> int:
    """A verbosity from 0 to 2^31-1, or ValueError in the words of Go's number parser."""
    if not text.isascii() or not text.isdigit():
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) > _MAX_LEVEL:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def parse_vmodule(text: str) -> tuple[ModuleLevel, ...]:
    """`pattern=N,...`; ValueError names the part that is not of this form."""
    levels = []
    for item in filter(None, text.split(",")):
        pattern, equals, level = item.partition("=")
        if not pattern or not equals or not level:
            raise ValueError(f'"{item}" does not have the pattern=N format')
        try:
            levels.append(ModuleLevel(pattern, parse_level(level)))
        except ValueError as error:
            raise ValueError(f'parsing verbosity in "{item}": {error}') from None
    return tuple(levels)


class Logger:
    """What a module logs with; made by `get_logger`."""

    __slots__ = ("_asked", "_file", "_target", "verbosity")

    def __init__(self, name: str) -> None:
        self._target = logging.getLogger(name)
        self._file = name.replace(".", "/")
        self._asked = 0
        self.verbosity = 0

    def v(self, level: int) -> bool:
        """Whether lines of this verbosity are wanted here; the next `info` carries the level in JSON."""
        if level > self.verbosity:
            return False
        self._asked = level
        return True

    def info(self, message: str, /, **values: object) -> None:
        """A line for people; details as values, not inside the message."""
        level, self._asked = self._asked, 0
        self._write(logging.INFO, message, level, values)

    def plain(self, message: str, /) -> None:
        """An info line without values, which the text form does not quote: what the reference prints for scripts."""
        level, self._asked = self._asked, 0
        self._write(logging.INFO, message, level, {}, plain=True)

    def warning(self, message: str, /, **values: object) -> None:
        """Something that may surprise, and that the process copes with."""
        self._write(logging.WARNING, message, 0, values)

    def error(self, error: object, message: str, /, **values: object) -> None:
        """Something went wrong: `error` (an exception, a text, None) becomes the value `err`."""
        self._write(logging.ERROR, message, None, values if error is None else {"err": error, **values})

    def _write(self, severity: int, message: str, level: int | None, values: Values, *, plain: bool = False) -> None:
        frame = sys._getframe(2)
        code = frame.f_code
        record = logging.LogRecord(
            self._target.name, severity, code.co_filename, frame.f_lineno, message, (), None, code.co_name
        )
        record.values, record.v, record.plain = values, level, plain
        self._target.handle(record)

    def _matches(self, pattern: str) -> bool:
        return fnmatchcase(self._file if "/" in pattern else self._file.rpartition("/")[2], pattern)

    def _apply(self, level: int, modules: Iterable[ModuleLevel]) -> None:
        own = next((module.level for module in modules if self._matches(module.pattern)), 0)
        self.verbosity = max(level, own)


class _Verbosity:
    """The process's levels, and the loggers that follow them."""

    def __init__(self) -> None:
        self.level = 0
        self.modules: tuple[ModuleLevel, ...] = ()
        self.loggers: dict[str, Logger] = {}

    def apply(self) -> None:
        for logger in self.loggers.values():
            logger._apply(self.level, self.modules)


_verbosity = _Verbosity()


def get_logger(name: str) -> Logger:
    """The logger of a module (`__name__`); one a name."""
    logger = _verbosity.loggers.get(name)
    if logger is None:
        logger = _verbosity.loggers[name] = Logger(name)
        logger._apply(_verbosity.level, _verbosity.modules)
    return logger


def verbosity() -> int:
    """The level of `-v` in effect."""
    return _verbosity.level


def set_verbosity(level: int) -> None:
    """Change the level of `-v` for every logger, now."""
    _verbosity.level = level
    _verbosity.apply()


def set_vmodule(modules: Iterable[ModuleLevel]) -> None:
    """Change the levels of single modules; the first pattern that matches counts, and never lowers `-v`."""
    _verbosity.modules = tuple(modules)
    _verbosity.apply()


class StreamsHandler(logging.Handler):
    """Writes lines to one stream, or info lines to another one (buffered up to `buffer_size` characters) than the rest.

    A stream that cannot be written to loses lines and hurts nobody.
    """

    def __init__(self, stream: TextIO, info_stream: TextIO | None = None, buffer_size: int = 0) -> None:
        super().__init__()
        self._stream = stream
        self._info_stream = info_stream or stream
        self._buffer_size = buffer_size if info_stream is not None else 0
        self._waiting: list[str] = []
        self._waiting_size = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + "\n"
            if record.levelno > logging.INFO:
                self.flush()
                self._stream.write(line)
                self._stream.flush()
                return
            self._waiting.append(line)
            self._waiting_size += len(line)
            if self._waiting_size > self._buffer_size:
                self.flush()
        except Exception:
            self._waiting.clear()

    def flush(self) -> None:
        """Write what waits; to be called every `--log-flush-frequency` when there is a buffer, and at the end."""
        if not self._waiting:
            return
        lines, self._waiting, self._waiting_size = "".join(self._waiting), [], 0
        try:
            self._info_stream.write(lines)
            self._info_stream.flush()
        except (OSError, ValueError):
            return


def configure(
    format: Literal["text", "json"] = "text",
    level: int = 0,
    modules: Iterable[ModuleLevel] = (),
    *,
    stream: TextIO | None = None,
    info_stream: TextIO | None = None,
    buffer_size: int = 0,
) -> StreamsHandler:
    """Take over this process's logging: everything goes to `stream` (stderr) in `format`.

    With `info_stream`, info lines go there instead, `buffer_size` characters at a time. Libraries' records show from
    warning on. The handler is returned for flushing.
    """
    handler = StreamsHandler(stream or sys.stderr, info_stream, buffer_size)
    handler.setFormatter(JsonFormatter() if format == "json" else KlogFormatter(os.getpid()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("skedge").setLevel(logging.INFO)  # of ours, those who may not know this module
    set_verbosity(level)
    set_vmodule(modules)
    return handler
