"""Handlers by path, and the shapes of answers that Go's `net/http` and Kubernetes' error responders give.

A handler gets a `Request` and returns an `Answer`; only `server` knows which HTTP library carries them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qs

import msgspec

TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}


class BodyTooLarge(Exception):
    """A request's body is larger than anything that is asked for here."""


async def _no_body() -> bytes:
    return b""


class Request(NamedTuple):
    """What a handler may know of a request."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    """Case-insensitive when they come from a client."""
    read: Callable[[], Awaitable[bytes]] = _no_body
    """Gets the body; BodyTooLarge above 1 MiB."""

    def parameters(self) -> dict[str, list[str]]:
        """The query, parameters without a value included."""
        return parse_qs(self.query, keep_blank_values=True)

    def parameter(self, name: str) -> str:
        """The first value of a parameter, or ""."""
        return self.parameters().get(name, [""])[0]


@dataclass(frozen=True)
class Answer:
    """Status, body and headers of a response."""

    body: bytes
    content_type: str = TEXT
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Handler: TypeAlias = Callable[[Request], Awaitable[Answer]]


def text(body: str, status: int = 200) -> Answer:
    """Plain text that no browser is to take for anything else."""
    return Answer(body.encode(), TEXT, status, _NO_SNIFFING)


def error(message: str, status: int) -> Answer:
    """Go's `http.Error`: the message as a line."""
    return text(message + "\n", status)


def not_found() -> Answer:
    return error("404 page not found", 404)


def json(value: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """Compact JSON."""
    return Answer(msgspec.json.encode(value), JSON, 200, {**_NO_SNIFFING, **(headers or {})})


def status(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> Answer:
    """A Kubernetes `Status` of failure."""
    value: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    value |= {"message": message, "reason": reason}
    if details is not None:
        value["details"] = details
    value["code"] = code
    return Answer(msgspec.json.encode(value) + b"\n", JSON, code, _NO_SNIFFING)


class Mux:
    """Finds the handler of a path: the exact path, else the longest registered prefix (a path that ends in `/`)."""

    def __init__(self) -> None:
        self._exact: dict[str, Handler] = {}
        self._prefixes: dict[str, Handler] = {}

    def handle(self, path: str, handler: Handler) -> None:
        """Register `handler`; a path twice is a programming error."""
        if path in self._exact:
            raise ValueError(f"path {path} is registered already")
        self._exact[path] = handler

    def handle_prefix(self, path: str, handler: Handler) -> None:
        """Register `handler` for `path`, which ends in `/`, and everything below it."""
        if not path.endswith("/") or path in self._prefixes:
            raise ValueError(f"prefix {path} does not end in / or is registered already")
        self._prefixes[path] = handler

    async def __call__(self, request: Request) -> Answer:
        handler = self._exact.get(request.path)
        if handler is None:
            found = max((prefix for prefix in self._prefixes if request.path.startswith(prefix)), key=len, default=None)
            handler = self._prefixes[found] if found is not None else None
        return await handler(request) if handler is not None else not_found()
