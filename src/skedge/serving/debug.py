"""`/debug/pprof/...` and `/debug/flags/...`. Upstream: `apiserver/pkg/server/routes`, `net/http/pprof`."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from skedge.clock import Clock
from skedge.serving import answers, sampling
from skedge.serving.answers import BYTES, HTML, Answer, Mux, Request
from skedge.serving.pprof import Profile, encode, render
from skedge.telemetry import logs

_DESCRIPTIONS: Final = {
    "allocs": "Memory still held, as allocations",
    "block": "Always empty: nothing here waits for a lock",
    "goroutine": "Every thread and asyncio task; debug=2 writes all stacks out",
    "heap": "Memory still held; by line while tracemalloc traces, else by type; gc=1 collects first",
    "mutex": "Always empty: nothing here waits for a lock",
    "profile": "CPU use of the main thread for so many seconds",
    "symbol": "Names of program counters; profiles carry theirs already",
    "threadcreate": "Every thread",
    "trace": "What the threads did for so many seconds, as trace events for a browser's trace viewer",
}
_PROFILE_SECONDS: Final = 30.0
_TRACE_SECONDS: Final = 1.0
_LONGEST: Final = 600.0


class Debug:
    """The debug endpoints. `sleep` waits while samples are taken."""

    def __init__(self, clock: Clock, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._sampler = sampling.CpuSampler()
        self._profiles: Mapping[str, Callable[[Request], Awaitable[Profile]]] = {
            "allocs": self._memory("allocs"),
            "block": self._quick(sampling.contention_profile),
            "goroutine": self._quick(sampling.goroutine_profile),
            "heap": self._memory("heap"),
            "mutex": self._quick(sampling.contention_profile),
            "threadcreate": self._quick(sampling.thread_profile),
        }

    def install(self, mux: Mux) -> None:
        mux.handle("/debug/pprof", self._redirect)
        mux.handle_prefix("/debug/pprof/", self._pprof)
        mux.handle("/debug/pprof/profile", self._profile)
        mux.handle("/debug/pprof/symbol", self._symbol)
        mux.handle("/debug/pprof/trace", self._trace)
        mux.handle("/debug/flags", self._flags)
        mux.handle_prefix("/debug/flags/", self._flags)
        mux.handle("/debug/flags/v", self._verbosity)

    async def _redirect(self, _: Request) -> Answer:
        return Answer(b'<a href="/debug/pprof/">Found</a>.\n\n', HTML, 302, {"Location": "/debug/pprof/"})

    async def _pprof(self, request: Request) -> Answer:
        name = request.path.removeprefix("/debug/pprof/")
        if not name:
            return self._index()
        make = self._profiles.get(name)
        if make is None:
            return answers.error("Unknown profile", 404)
        debug = request.parameter("debug")
        if name == "goroutine" and debug == "2":
            return answers.text(sampling.goroutine_text())
        profile = await make(request)
        if debug not in ("", "0"):
            return answers.text(await asyncio.to_thread(render, name, profile))
        return _attachment(name, await asyncio.to_thread(encode, profile))

    async def _profile(self, request: Request) -> Answer:
        seconds = _seconds(request, _PROFILE_SECONDS)
        try:
            self._sampler.start()
        except sampling.Busy as error:
            return answers.error(f"Could not enable CPU profiling: {error}", 500)
        try:
            await self._sleep(seconds)
        finally:
            counts = self._sampler.stop()
        profile = sampling.cpu_profile(counts, self._clock, seconds)
        return _attachment("profile", await asyncio.to_thread(encode, profile))

    async def _trace(self, request: Request) -> Answer:
        sampler = sampling.TraceSampler(self._clock)
        sampler.start()
        try:
            await self._sleep(_seconds(request, _TRACE_SECONDS))
        finally:
            samples = sampler.stop()
        events = await asyncio.to_thread(sampling.trace_events, samples)
        answer = answers.json({"traceEvents": events})
        return Answer(
            answer.body, answer.content_type, 200, {**answer.headers, "Content-Disposition": _named("trace.json")}
        )

    async def _symbol(self, _: Request) -> Answer:
        return answers.text("num_symbols: 0\n")

    def _memory(self, name: str) -> Callable[[Request], Awaitable[Profile]]:
        async def make(request: Request) -> Profile:
            collect = request.parameter("gc") not in ("", "0")
            return await asyncio.to_thread(sampling.memory_profile, name, self._clock, collect)

        return make

    def _quick(self, profile: Callable[[Clock], Profile]) -> Callable[[Request], Awaitable[Profile]]:
        async def make(_: Request) -> Profile:
            return profile(self._clock)

        return make

    def _index(self) -> Answer:
        rows = "".join(
            f'<tr><td><a href="{name}{"?debug=1" if name in self._profiles else ""}">{name}</a></td>'
            f"<td>{html.escape(text)}</td></tr>\n"
            for name, text in _DESCRIPTIONS.items()
        )
        page = f"<html>\n<head><title>/debug/pprof/</title></head>\n<body>\n/debug/pprof/\n<table>\n{rows}</table>\n"
        full = '<p><a href="goroutine?debug=2">all stacks</a></p>\n</body>\n</html>\n'
        return Answer((page + full).encode(), HTML, 200, {"X-Content-Type-Options": "nosniff"})

    async def _flags(self, _: Request) -> Answer:
        page = "<html>\n<head><title>/debug/flags/</title></head>\n<body>\n/debug/flags/<br>\n<table>\n"
        row = "<tr><td>v</td><td>verbosity of the log; PUT a number to /debug/flags/v</td></tr>\n"
        return Answer(f"{page}{row}</table>\n</body>\n</html>\n".encode(), HTML)

    async def _verbosity(self, request: Request) -> Answer:
        if request.method != "PUT":
            return answers.error("unsupported http method", 406)
        value = (await request.read()).decode("utf-8", "replace").strip()
        try:
            level = logs.parse_level(value)
        except ValueError as error:
            return answers.error(f"failed set klog.logging.verbosity {value}: {error}", 400)
        logs.set_verbosity(level)
        return answers.text(f"successfully set klog.logging.verbosity to {value}")


def _seconds(request: Request, default: float) -> float:
    """The `seconds` parameter, or the default for none or one that is no number above zero."""
    try:
        seconds = float(request.parameter("seconds"))
    except ValueError:
        return default
    return min(seconds, _LONGEST) if seconds > 0 else default


def _attachment(name: str, body: bytes) -> Answer:
    return Answer(body, BYTES, 200, {"Content-Disposition": _named(name), "X-Content-Type-Options": "nosniff"})


def _named(file: str) -> str:
    return f'attachment; filename="{file}"'
