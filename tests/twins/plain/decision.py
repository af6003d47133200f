"""The plain scheduler's answer to a case, in the form of a recording."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from skedge.testing.cases import Cluster
from twins.plain.cycle import Cycle
from twins.plain.objects import Json


def _lists(profile: Any) -> dict[str, Any]:
    """The plugins in force; that they are right is for tests of the configuration to say."""

    def at(plugins: Any) -> list[str]:
        return [plugin.name for plugin in plugins]

    return {
        "preEnqueue": at(profile.pre_enqueue),
        "preFilter": at(profile.pre_filter),
        "filter": at(profile.filter),
        "postFilter": at(profile.post_filter),
        "preScore": at(profile.pre_score),
        "score": [(enabled.plugin.name, enabled.weight) for enabled in profile.score],
    }


def decide(case: Mapping[str, Any]) -> Json:
    """What is expected of a case. Raises Unclear where the rules leave it open."""
    cycle = cycle_of(case)
    return {"ignored": True} if cycle is None else cycle.decide()


def cycle_of(case: Mapping[str, Any]) -> Cycle | None:
    """The plain cycle of a case; None where no profile serves the pod."""
    pod = case["pod"]
    config = case.get("config") or {}
    wanted = pod["spec"].get("schedulerName") or "default-scheduler"
    profile = Cluster(case.get("config")).profiles.get(wanted)
    if profile is None:
        return None
    args: dict[str, Json] = {}
    for each in config.get("profiles") or ():
        if (each.get("schedulerName") or "default-scheduler") == wanted:
            args = {entry["name"]: entry.get("args") or {} for entry in each.get("pluginConfig") or ()}
    return Cycle(dict(case), pod, _lists(profile), json.loads(json.dumps(args)))
