"""Errors in words for users: groups taken apart, duplicates dropped, nothing that looks like a traceback."""

from __future__ import annotations

from collections.abc import Iterator

from skedge.client.errors import one_line
from skedge.config.fields import ConfigError


def causes(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, at any depth; or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from causes(each)
    else:
        yield error


def reason(error: BaseException) -> str:
    """Why something ended: one line, or the words of a configuration's error as they are (some quote a document)."""
    return "; ".join(dict.fromkeys(_text(each) for each in causes(error)))


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}"
    return str(error) if isinstance(error, ConfigError) else one_line(error)
