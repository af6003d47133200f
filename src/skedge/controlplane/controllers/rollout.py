"""How many pods each replica set of a deployment should have: plain functions of the objects.

Upstream: `pkg/controller/deployment/{sync,rolling}.go`, `.../util/deployment_util.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane.controllers.revisions import number, scaled

JSON = dict[str, Any]
Sizes = list[tuple[JSON, int]]

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"


def wanted(replica_set: JSON) -> int:
    """The pods a replica set is to have."""
    return int(replica_set["spec"].get("replicas", 1))


def has(replica_set: JSON, field: str) -> int:
    """A count in the status of a replica set."""
    return int((replica_set.get("status") or {}).get(field, 0))


def size_of(obj: JSON) -> int:
    """The pods a deployment is to have."""
    return int(obj["spec"].get("replicas", 1))


def bounds(obj: JSON) -> tuple[int, int]:
    """How many pods more, and how many available ones fewer than asked for a rollout may have."""
    rolling = obj["spec"].get("strategy", {}).get("rollingUpdate")
    if rolling is None:
        return 0, 0
    size = size_of(obj)
    surge = scaled(rolling.get("maxSurge"), size, up=True)
    unavailable = scaled(rolling.get("maxUnavailable"), size, up=False)
    if not surge and not unavailable:
        unavailable = 1  # percentages that round to nothing must not stop the rollout
    return surge, min(unavailable, size)


def same_template(one: JSON, other: JSON) -> bool:
    """Whether two pod templates are equal but for the hash label."""
    return _bare(one) == _bare(other)


def _bare(template: JSON) -> tuple[Any, ...]:
    meta = template.get("metadata") or {}
    labels = {key: text for key, text in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    return labels, meta.get("annotations") or {}, template["spec"]


def split(obj: JSON, sets: list[JSON]) -> tuple[JSON | None, list[JSON]]:
    """The replica set of the deployment's template (the oldest, if several), and the others, oldest first."""
    ordered = sorted(sets, key=lambda each: (each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"]))
    template = obj["spec"]["template"]
    new = next((each for each in ordered if same_template(each["spec"]["template"], template)), None)
    return new, [each for each in ordered if each is not new]


def highest_revision(sets: list[JSON]) -> int:
    return max((number((each["metadata"].get("annotations") or {}).get(REVISION)) for each in sets), default=0)


def size_annotations(obj: JSON) -> dict[str, str]:
    """What replica sets note of the deployment's size, to share out a later change of it."""
    return {DESIRED: str(size_of(obj)), MAXIMUM: str(size_of(obj) + bounds(obj)[0])}


def is_empty(replica_set: JSON) -> bool:
    """Neither has pods nor wants any, and its status is up to date."""
    generation = replica_set["metadata"].get("generation", 0)
    observed = has(replica_set, "observedGeneration")
    return not wanted(replica_set) and not has(replica_set, "replicas") and generation <= observed


def is_scaling(obj: JSON, sets: list[JSON]) -> bool:
    """Whether the deployment's size has changed since its replica sets were last sized."""
    noted = ((each["metadata"].get("annotations") or {}).get(DESIRED) for each in sets if wanted(each))
    return any(text is not None and number(text) != size_of(obj) for text in noted)


def proportional(obj: JSON, new: JSON | None, old: list[JSON]) -> Sizes:
    """Sizes after the deployment was scaled: a rollout under way keeps its proportions."""
    everything = [*old, new] if new is not None else old
    active = [each for each in everything if wanted(each)]
    total = size_of(obj)
    if len(active) <= 1:
        only = active[0] if active else (new or (old[-1] if old else None))
        return [] if only is None else [(only, total)]
    if new is not None and _saturated(obj, new):
        return [(each, 0) for each in active if each is not new]
    if obj["spec"].get("strategy", {}).get("type") != "RollingUpdate":
        return []
    surge = bounds(obj)[0]
    allowed = total + surge if total > 0 else 0
    to_add = allowed - sum(map(wanted, active))
    # The largest get their share first, among equals the newest when growing and the oldest when shrinking.
    active.sort(key=lambda each: each["metadata"].get("creationTimestamp", ""), reverse=to_add > 0)
    active.sort(key=wanted, reverse=True)
    sizes: Sizes = []
    added = 0
    for each in active:
        share = 0
        if to_add:
            share = _share(obj, each, total, surge)
            left = to_add - added
            share = min(share, left) if to_add > 0 else max(share, left)
        sizes.append((each, wanted(each) + share))
        added += share
    first, size = sizes[0]
    sizes[0] = (first, max(0, size + to_add - added))
    return sizes


def _saturated(obj: JSON, new: JSON) -> bool:
    total = size_of(obj)
    noted = (new["metadata"].get("annotations") or {}).get(DESIRED)
    return noted is not None and number(noted) == wanted(new) == has(new, "availableReplicas") == total


def _share(obj: JSON, replica_set: JSON, total: int, surge: int) -> int:
    """What a replica set gains or loses of a change of the deployment's size."""
    if total == 0:
        return -wanted(replica_set)
    before = number((replica_set["metadata"].get("annotations") or {}).get(MAXIMUM))
    before = before or int((obj.get("status") or {}).get("replicas", 0)) or 1
    return round(wanted(replica_set) * (total + surge) / before) - wanted(replica_set)


def new_size(obj: JSON, new: JSON | None, old: list[JSON]) -> int:
    """What the new replica set should have now, given the others (`NewRSNewReplicas`)."""
    total, present = size_of(obj), wanted(new) if new is not None else 0
    if obj["spec"].get("strategy", {}).get("type") != "RollingUpdate" or present >= total:
        return total
    room = total + bounds(obj)[0] - present - sum(map(wanted, old))
    return present + max(0, min(room, total - present))


def shrink(obj: JSON, new: JSON, old: list[JSON]) -> Sizes:
    """Which old replica sets should lose pods now: unhealthy ones first, then as many as stay unmissed."""
    active = [each for each in old if wanted(each)]
    least = size_of(obj) - bounds(obj)[1]
    everything = [*old, new]
    unavailable = wanted(new) - has(new, "availableReplicas")
    may_go = sum(map(wanted, everything)) - least - unavailable
    if not active or may_go <= 0:
        return []
    sizes = {id(each): wanted(each) for each in active}
    for each in active:
        broken = min(may_go, wanted(each) - has(each, "availableReplicas"))
        if broken > 0:
            sizes[id(each)] -= broken
            may_go -= broken
    surplus = sum(has(each, "availableReplicas") for each in everything) - least
    for each in active:
        going = min(surplus, sizes[id(each)])
        if going > 0:
            sizes[id(each)] -= going
            surplus -= going
    return [(each, sizes[id(each)]) for each in active if sizes[id(each)] != wanted(each)]
