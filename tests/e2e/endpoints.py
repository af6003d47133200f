"""The scheduler's own endpoints, as an administrator, an anonymous and an unprivileged user see them."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from e2e import servers

RECORDED: Final[dict[str, Any]] = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "serving" / "endpoints.json.gz").read_bytes())
)
CASES: Final = [key for key in RECORDED if " GET /" in key]
TOKENS: Final = {"admin": servers.ADMIN, "plain user": servers.PLAIN}
FLAGS: Final = (
    "--config=cfg",
    "--authentication-kubeconfig=kc",
    "--authorization-kubeconfig=kc",
    "--secure-port=26459",
    "-v=3",
)
"""The command line of the recorded process."""


class Answered(NamedTuple):
    """What an endpoint answered."""

    status: int
    content_type: str
    text: str


def recorded(case: str) -> Answered:
    found = RECORDED[case]
    return Answered(found["status"], found["content_type"], found["text"])


def configuration() -> bytes:
    """The configuration of the recorded process."""
    return json.dumps(json.loads(RECORDED["admin GET /configz"]["text"])["componentconfig"]).encode()


async def ask(port: int) -> dict[str, Answered]:
    """Every recorded question once more, in order."""
    found = {}
    async with aiohttp.ClientSession() as session:
        for case in CASES:
            user, _, path = case.partition(" GET ")
            headers = {"Authorization": f"Bearer {TOKENS[user]}"} if user in TOKENS else {}
            async with session.get(f"https://127.0.0.1:{port}{path}", headers=headers, ssl=False) as answer:
                found[case] = Answered(answer.status, answer.headers["Content-Type"], await answer.text())
    return found


def series(scrape: str) -> dict[str, dict[str, float]]:
    """Family -> series with its labels -> value, of a scrape in text form; histograms by their parts."""
    families: dict[str, dict[str, float]] = {}
    current = ""
    for line in scrape.splitlines():
        if line.startswith("# TYPE "):
            current = line.split()[2]
            families[current] = {}
        elif line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            families[current][name] = float(value)
    return families


def types(scrape: str) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", scrape, flags=re.MULTILINE))
