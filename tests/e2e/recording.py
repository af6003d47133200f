"""What kube-scheduler said to the API server, scenario by scenario, and what of it can be compared between two runs.

Not compared: times, UIDs, resourceVersions, managedFields, host names, random parts of names, timeouts of watches, how
many requests renew the lease.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

DATA = Path(__file__).parents[1] / "data" / "wire"
JSON = dict[str, Any]

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_EVENT_NAME = re.compile(r"\.[0-9a-f]{16}\b")


class Step(NamedTuple):
    """Something the operator did, or a request of the scheduler's (`operator` False)."""

    scenario: str
    operator: bool
    method: str
    path: str
    body: Any
    content_type: str = "application/json"
    agent: str = ""


def load() -> list[Step]:
    """The recording, in order."""
    with gzip.open(DATA / "scheduler.jsonl.gz", "rt") as lines:
        return [_step(json.loads(line)) for line in lines]


def _step(line: JSON) -> Step:
    done = line.get("operator")
    if done is not None:
        return Step(line["scenario"], True, done["method"], done["path"], done["body"], done["content_type"])
    return Step(line["scenario"], False, line["method"], line["path"], line.get("body"), agent=line["agent"])


def outcome() -> JSON:
    """Events and pods that were left."""
    found: JSON = json.loads(gzip.decompress((DATA / "scheduler-outcome.json.gz").read_bytes()))
    return found


def scenarios(steps: Iterable[Step]) -> dict[str, list[Step]]:
    grouped: dict[str, list[Step]] = {}
    for step in steps:
        grouped.setdefault(step.scenario, []).append(step)
    return grouped


def segments(steps: Iterable[Step]) -> Iterator[tuple[list[Step], list[Step]]]:
    """Runs of the operator's deeds, each with the requests that followed."""
    deeds: list[Step] = []
    requests: list[Step] = []
    for step in steps:
        if step.operator:
            if requests:
                yield deeds, requests
                deeds, requests = [], []
            deeds.append(step)
        else:
            requests.append(step)
    yield deeds, requests


def is_renewal(step: Step) -> bool:
    """A write of the lease by its holder: their number is a matter of time."""
    return step.method == "PUT" and "/leases/" in step.path and bool(step.body["spec"]["holderIdentity"])


def subject(step: Step) -> str:
    """The object a request is about; of an event, what it tells of. Requests of one subject have an order."""
    path = urlsplit(step.path).path
    if "/events" in path:
        if isinstance(step.body, dict) and "regarding" in step.body:
            return f"event of {step.body['regarding']['name']}"
        if isinstance(step.body, dict) and "involvedObject" in step.body:
            return f"event of {step.body['involvedObject']['name']}"
        return f"event of {path.rpartition('/')[2].rpartition('.')[0]}" if step.method == "PATCH" else path
    parts = path.split("/")
    for plural in ("pods", "leases", "persistentvolumeclaims"):
        if plural in parts[:-1]:
            return f"{plural} {parts[parts.index(plural) + 1]}"
    if path.endswith("/leases"):
        return f"leases {step.body['metadata']['name']}"
    return path


def comparable(step: Step) -> JSON:
    """A request without what differs between runs."""
    url = urlsplit(step.path)
    query = {key: value for key, value in parse_qsl(url.query) if key not in ("timeout", "timeoutSeconds")}
    path = _EVENT_NAME.sub(".<time>", url.path)
    client = step.agent.rpartition("/")[2]  # scheduler, leader-election; a build's commit for all others
    client = client if client in ("scheduler", "leader-election") else ""
    return {"client": client, "method": step.method, "path": path, "query": query, "body": plain(step.body)}


def plain(value: Any, key: str = "") -> Any:
    """A JSON value with everything blanked that differs between runs."""
    if isinstance(value, dict):
        return {name: plain(each, name) for name, each in value.items() if name != "managedFields"}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, str):
        return value
    if key == "holderIdentity":
        return value and "<host>_<uid>"
    if key == "reportingInstance":
        return value and "<controller>-<host>"
    if key == "resourceVersion":
        return "<version>"
    text = _TIME.sub("<time>", _UID.sub("<uid>", value))
    text = re.sub(r"^\S+_<uid> (became|stopped)", r"<host>_<uid> \1", text)
    return _EVENT_NAME.sub(".<time>", text) if key == "name" else text


def by_subject(steps: Iterable[Step]) -> dict[str, list[JSON]]:
    """Comparable requests of each subject, in order; lease renewals left out."""
    found: dict[str, list[JSON]] = {}
    for step in steps:
        if not is_renewal(step):
            found.setdefault(subject(step), []).append(comparable(step))
    return found


def differences(recorded: Iterable[Step], found: Iterable[Step], *, once: bool = False) -> list[str]:
    """What was recorded and not found, or found and not recorded, subject by subject.

    `once`: a request that is repeated counts once.
    """
    wanted, got = by_subject(recorded), by_subject(found)
    if once:
        for each in (wanted, got):
            each.update({name: _distinct(requests) for name, requests in each.items()})
    problems = []
    for name in sorted(wanted.keys() | got.keys()):
        theirs, ours = wanted.get(name, []), got.get(name, [])
        for i in range(max(len(theirs), len(ours))):
            expected = theirs[i] if i < len(theirs) else None
            actual = ours[i] if i < len(ours) else None
            if expected != actual:
                problems.append(
                    f"{name}, request {i}:\n  expected {json.dumps(expected)}\n  got      {json.dumps(actual)}"
                )
    return problems


def _distinct(requests: list[JSON]) -> list[JSON]:
    return [json.loads(text) for text in dict.fromkeys(json.dumps(each, sort_keys=True) for each in requests)]
