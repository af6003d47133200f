"""The debug endpoints."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator

import pytest

from skedge.clock import RealClock, VirtualClock
from skedge.serving.answers import Answer, Mux, Request
from skedge.serving.debug import Debug
from skedge.telemetry import logs


class Asked:
    """Answers requests to the debug endpoints, without waiting for samples."""

    def __init__(self) -> None:
        self.mux = Mux()
        self.slept: list[float] = []
        Debug(RealClock(), self.sleep).install(self.mux)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def __call__(self, path: str, method: str = "GET", body: bytes = b"") -> Answer:
        path, _, query = path.partition("?")

        async def read() -> bytes:
            return body

        return await self.mux(Request(method, path, query, {}, read))


@pytest.fixture(autouse=True)
def _verbosity() -> Iterator[None]:
    before = logs.verbosity()
    yield
    logs.set_verbosity(before)


@pytest.mark.asyncio
async def test_index_and_redirect() -> None:
    ask = Asked()
    moved = await ask("/debug/pprof")
    assert (moved.status, moved.headers["Location"]) == (302, "/debug/pprof/")
    page = (await ask("/debug/pprof/")).body.decode()
    for name in ("allocs", "block", "goroutine", "heap", "mutex", "profile", "symbol", "threadcreate", "trace"):
        assert f">{name}</a>" in page


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["allocs", "block", "goroutine", "heap?gc=1", "mutex", "threadcreate", "profile"])
async def test_profiles_are_files_for_the_tool(name: str) -> None:
    answer = await Asked()(f"/debug/pprof/{name}")
    assert answer.content_type == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name.partition("?")[0]}"'
    assert gzip.decompress(answer.body)


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["allocs", "block", "goroutine", "heap", "mutex", "threadcreate"])
async def test_profiles_as_text(name: str) -> None:
    answer = await Asked()(f"/debug/pprof/{name}?debug=1")
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.body.startswith(f"{name} profile: ".encode())


@pytest.mark.asyncio
async def test_all_stacks() -> None:
    assert (await Asked()("/debug/pprof/goroutine?debug=2")).body.startswith(b"goroutine 1 [")


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["cmdline", "nothing", "heap/x"])
async def test_unknown_profiles(name: str) -> None:
    answer = await Asked()(f"/debug/pprof/{name}")
    assert (answer.status, answer.body) == (404, b"Unknown profile\n")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "seconds"), [("", 30), ("?seconds=5", 5), ("?seconds=0.5", 0.5), ("?seconds=-1", 30), ("?seconds=x", 30),
                           ("?seconds=1e9", 600), ("?seconds=nan", 30)]
)  # fmt: skip
async def test_how_long_is_sampled(query: str, seconds: float) -> None:
    ask = Asked()
    await ask(f"/debug/pprof/profile{query}")
    assert ask.slept == [seconds]


@pytest.mark.asyncio
async def test_two_cpu_profiles_at_once() -> None:
    ask = Asked()
    first = asyncio.create_task(ask("/debug/pprof/profile"))
    await asyncio.sleep(0)
    second = await ask("/debug/pprof/profile")
    assert (second.status, second.body) == (500, b"Could not enable CPU profiling: cpu profiling already in use\n")
    assert (await first).status == 200


@pytest.mark.asyncio
async def test_trace_and_symbol() -> None:
    ask = Asked()
    answer = await ask("/debug/pprof/trace")
    assert ask.slept == [1.0]
    assert isinstance(json.loads(answer.body)["traceEvents"], list)
    assert (await ask("/debug/pprof/symbol")).body == b"num_symbols: 0\n"


@pytest.mark.asyncio
async def test_verbosity() -> None:
    ask = Asked()
    answer = await ask("/debug/flags/v", "PUT", b"4\n")
    assert (answer.status, answer.body) == (200, b"successfully set klog.logging.verbosity to 4")
    assert logs.verbosity() == 4
    answer = await ask("/debug/flags/v", "PUT", b"many")
    assert answer.status == 400
    assert answer.body == (
        b'failed set klog.logging.verbosity many: strconv.ParseUint: parsing "many": invalid syntax\n'
    )
    for method in ("GET", "POST"):
        answer = await ask("/debug/flags/v", method)
        assert (answer.status, answer.body) == (406, b"unsupported http method\n")
    assert logs.verbosity() == 4
    for path in ("/debug/flags", "/debug/flags/", "/debug/flags/other"):
        assert b"<td>v</td>" in (await ask(path)).body


def test_a_path_is_registered_once() -> None:
    mux = Mux()
    Debug(VirtualClock()).install(mux)
    with pytest.raises(ValueError, match="path /debug/pprof is registered already"):
        Debug(VirtualClock()).install(mux)
