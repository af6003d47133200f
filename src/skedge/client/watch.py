"""Resources and the decoding of their lists and watch streams.

A chunk of a watch is split into lines once and each line decoded straight into the kind's struct. What does not fit is
looked at again: bookmarks and errors are another shape, and one undecodable object is reported and left out.
Upstream: `apimachinery/pkg/watch`, `client-go/rest/watch`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from skedge.client.errors import DecodeError, Status, one_line, status_error
from skedge.client.hooks import ClientHooks
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

T = TypeVar("T")
S = TypeVar("S")

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
_OBJECT_EVENTS = frozenset((ADDED, MODIFIED, DELETED))
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True)
class Resource(Generic[S]):
    """What to watch: a collection's path, selectors, the type its objects decode to, and what is kept of them.

        PODS = Resource.of("/api/v1/pods", Pod, field_selector="status.phase!=Succeeded")
        SLIM = PODS.transformed(slim_pod)          # applied at decode; the store never sees the whole object

    A type needs `metadata.name`, `.namespace` and `.resource_version`; `dict` gives plain JSON values.
    """

    path: str
    kind: type[Any]
    label_selector: str = ""
    field_selector: str = ""
    transform: Callable[[Any], S] | None = None

    @staticmethod
    def of(path: str, kind: type[T], *, label_selector: str = "", field_selector: str = "") -> Resource[T]:
        return Resource(path, kind, label_selector, field_selector)

    def transformed(self: Resource[T], transform: Callable[[T], S]) -> Resource[S]:
        return replace(self, transform=transform)  # type: ignore[arg-type, return-value]

    @property
    def name(self) -> str:
        """The plural name, for logs and metrics."""
        return self.path.rpartition("/")[2]

    def selectors(self) -> dict[str, str | int | bool]:
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in selectors.items() if value}


class Delta(NamedTuple):
    """One event: `type` is ADDED, MODIFIED, DELETED or BOOKMARK.

    `obj` is None for bookmarks and for a deletion whose object could not be decoded.
    """

    type: str
    key: str
    obj: Any
    version: str
    ends_initial: bool = False


class Page(NamedTuple):
    """One page of a list: objects by key, the list's version, and the token of the next page."""

    items: dict[str, Any]
    version: str
    continue_: str


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Partial(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Event(msgspec.Struct, Generic[T]):
    type: str
    object: T


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None


_raw_event = msgspec.json.Decoder(_Event[msgspec.Raw])
_raw_list = msgspec.json.Decoder(_List[msgspec.Raw])
_partial = msgspec.json.Decoder(_Partial)
_status = msgspec.json.Decoder(Status)
_FAILURES = (msgspec.MsgspecError, UnicodeDecodeError)


class ObjectDecoder(Generic[S]):
    """Decodes one resource's events and pages. `undecodable` counts the objects that were left out."""

    def __init__(self, resource: Resource[S], hooks: ClientHooks | None = None) -> None:
        self.resource, self._hooks = resource, hooks
        self.undecodable = 0
        kind: Any = resource.kind
        self._event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Event[kind])
        self._list: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_List[kind])
        self._one: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._identity = _dict_identity if kind is dict else _struct_identity

    def event(self, line: bytes) -> Delta:
        """Decode one line of a watch; an object that has to be left out becomes a bookmark of its version.

        Raises the ApiError of an ERROR event, and DecodeError when the line is no watch event at all.
        """
        try:
            event = self._event.decode(line)
            kind = event.type
            if kind in _OBJECT_EVENTS:
                key, version = self._identity(event.object)
                return Delta(kind, key, self._keep(event.object), version)
        except Exception as error:  # the transform is the application's: its failure is an undecodable object as well
            return self._other_event(line, error)
        return self._other_event(line, None)

    def page(self, body: bytes) -> Page:
        """Decode a list. Raises DecodeError when it is none."""
        try:
            page = self._list.decode(body)
        except _FAILURES:
            return self._page_one_by_one(body)
        items = {}
        for obj in page.items or ():
            key, _ = self._identity(obj)
            try:
                items[key] = self._keep(obj)
            except Exception as error:
                self._left_out(key, error)
        return Page(items, page.metadata.resource_version, page.metadata.continue_)

    def _keep(self, obj: Any) -> Any:
        transform = self.resource.transform
        return obj if transform is None else transform(obj)

    def _other_event(self, line: bytes, error: Exception | None) -> Delta:
        try:
            event = _raw_event.decode(line)
            if event.type == ERROR:
                raise status_error(_status.decode(event.object))
            metadata = _partial.decode(event.object).metadata
        except _FAILURES as failure:
            text = line[:80].decode("utf-8", "replace")
            raise DecodeError(f"{self.resource.name}: not a watch event: {one_line(failure)} in {text!r}") from None
        version = metadata.resource_version
        if event.type == BOOKMARK:
            end = (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
            return Delta(BOOKMARK, "", None, version, end)
        key = _key(metadata.namespace, metadata.name)
        self._left_out(key, error or DecodeError(f"unknown event type {event.type}"))
        return Delta(DELETED, key, None, version) if event.type == DELETED else Delta(BOOKMARK, "", None, version)

    def _page_one_by_one(self, body: bytes) -> Page:
        try:
            page = _raw_list.decode(body)
        except _FAILURES as error:
            raise DecodeError(f"{self.resource.name}: not a list: {one_line(error)}") from None
        items = {}
        for raw in page.items or ():
            try:
                obj = self._one.decode(raw)
                items[self._identity(obj)[0]] = self._keep(obj)
            except Exception as error:
                try:
                    metadata = _partial.decode(raw).metadata
                except _FAILURES:
                    metadata = _Meta()
                self._left_out(_key(metadata.namespace, metadata.name), error)
        return Page(items, page.metadata.resource_version, page.metadata.continue_)

    def _left_out(self, key: str, error: Exception) -> None:
        self.undecodable += 1
        if self._hooks is not None:
            self._hooks.undecodable(self.resource.name, key)
        log.error(one_line(error), "Object left out, it cannot be decoded", resource=self.resource.name, key=key)


class LineSplitter:
    """Cuts a stream into lines. A line may span many chunks; it is joined once, when its end comes."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without empty ones."""
        if b"\n" not in chunk:
            self._rest.append(chunk)
            return []
        if self._rest:
            self._rest.append(chunk)
            chunk = b"".join(self._rest)
        found = chunk.split(b"\n")
        last = found.pop()
        self._rest = [last] if last else []
        return [line for line in found if line]


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _struct_identity(obj: Any) -> tuple[str, str]:
    metadata = obj.metadata
    namespace = metadata.namespace
    return f"{namespace}/{metadata.name}" if namespace else metadata.name, metadata.resource_version


def _dict_identity(obj: Any) -> tuple[str, str]:
    metadata = obj["metadata"]
    return _key(metadata.get("namespace", ""), metadata["name"]), metadata.get("resourceVersion", "")
