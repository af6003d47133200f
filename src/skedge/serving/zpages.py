"""`/flagz` and `/statusz`: text for people, or a versioned object for whoever asks for it in full.

Upstream: `component-base/zpages`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from skedge.clock import Clock
from skedge.serving import answers
from skedge.serving.answers import Answer, Request

GROUP: Final = "config.k8s.io"
_DELIMITERS: Final = (":", ": ", "=", " ")
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
    "and is for debugging purposes only."
)


class _Wanted(NamedTuple):
    media: str
    """"" for text."""
    version: str = ""


def negotiate(accept: str, kind: str) -> _Wanted | None:
    """What the first acceptable entry of an Accept header asks for; None when there is none."""
    if not accept.strip():
        return _Wanted("")
    for entry in accept.split(","):
        media, *rest = (part.strip() for part in entry.split(";"))
        if media in ("text/plain", "text/*", "*/*"):
            return _Wanted("")
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        if (
            media in ("application/json", "application/yaml")
            and parameters.get("g") == GROUP
            and parameters.get("as") == kind
            and parameters.get("v") in _VERSIONS
        ):
            return _Wanted(media, parameters["v"])
    return None


class ZPage:
    """One page: `rows` for text, `fields` for the object of `kind`. The delimiter changes from process to process."""

    def __init__(
        self,
        component: str,
        kind: str,
        random: Random,
        rows: Callable[[], Iterable[tuple[str, str]]],
        fields: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._component, self._kind = component, kind
        self._delimiter = random.choice(_DELIMITERS)
        self._rows, self._fields = rows, fields

    async def __call__(self, request: Request) -> Answer:
        wanted = negotiate(request.headers.get("Accept", ""), self._kind)
        if wanted is None:
            message = "only the following media types are accepted: text/plain, application/json, application/yaml"
            return answers.status(406, "NotAcceptable", message)
        if not wanted.media:
            return answers.text(self._text())
        group_version = f"{GROUP}/{wanted.version}"
        value = {
            "kind": self._kind,
            "apiVersion": group_version,
            "metadata": {"name": self._component},
            **self._fields(),
        }
        headers = {}
        if wanted.version != _VERSIONS[0]:
            newest = f"{GROUP}/{_VERSIONS[0]}"
            headers["Warning"] = f'299 - "{group_version} {self._kind} is deprecated; use {newest} {self._kind}"'
        if wanted.media == answers.JSON:
            return answers.json(value, headers)
        import yaml

        return Answer(yaml.safe_dump(value).encode(), wanted.media, headers=headers)

    def _text(self) -> str:
        body = "".join(f"{name}{self._delimiter}{value}\n" for name, value in self._rows())
        page = self._kind.lower()
        gap = "" if page == "flagz" else "\n"
        return f"\n{self._component} {page}\n{_WARNING}\n{gap}{body}"


def flagz(component: str, random: Random, flags: Mapping[str, str]) -> ZPage:
    """The page of flags and their values."""
    by_name = dict(sorted(flags.items()))
    return ZPage(component, "Flagz", random, by_name.items, lambda: {"flags": by_name})


def statusz(
    component: str,
    random: Random,
    clock: Clock,
    *,
    runtime: str,
    binary_version: str,
    emulation_version: str,
    paths: Sequence[str],
) -> ZPage:
    """The page of versions and age; the process is as old as this page."""
    started, begin = clock.now(), clock.monotonic()
    listed = sorted(paths)

    def uptime() -> int:
        return int(clock.monotonic() - begin)

    def rows() -> Iterable[tuple[str, str]]:
        minutes, seconds = divmod(uptime(), 60)
        hours, minutes = divmod(minutes, 60)
        moment = time.gmtime(started)
        yield (
            "Started",
            f" {time.strftime('%a %b', moment)} {moment.tm_mday:2d} {time.strftime('%H:%M:%S UTC %Y', moment)}",
        )
        yield "Up", f" {hours} hr {minutes:02d} min {seconds:02d} sec"
        yield "Go version", f" {runtime}"
        yield "Binary version", f" {binary_version}"
        if emulation_version:
            yield "Emulation version", f" {emulation_version}"
        yield "Paths", f" {' '.join(listed)}"

    def fields() -> Mapping[str, Any]:
        value: dict[str, Any] = {
            "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "uptimeSeconds": uptime(),
            "goVersion": runtime,
            "binaryVersion": binary_version,
        }
        if emulation_version:
            value["emulationVersion"] = emulation_version
        return value | {"paths": listed}

    return ZPage(component, "Statusz", random, rows, fields)
