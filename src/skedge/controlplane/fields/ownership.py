"""Who owns which field: tracking of updates, and server-side apply.

Upstream: `apimachinery/pkg/util/managedfields/internal/` (the chain of managers around `structuredmerge.go`) and
`sigs.k8s.io/structured-merge-diff/merge/update.go`. Objects are as decoded from JSON and are not changed. `now` is the
time of the operation as RFC 3339 with seconds ("2026-01-01T00:00:00Z"), the form in which entries carry it.

Where the caller stands in a request: after decoding and defaulting, before admission and before the strategy of the
resource fills in or resets fields: what those do belongs to nobody. `pods/binding` is not tracked.
"""

from __future__ import annotations

import copy
import functools
import json
from typing import Any

from skedge.controlplane.fields import sets
from skedge.controlplane.fields.applied import schema_errors
from skedge.controlplane.fields.entries import Entry, Managed, Owner, cap_updaters, decode, encode, owner
from skedge.controlplane.fields.errors import ApplyConflict, Cause, PatchError, TypedPatchError
from skedge.controlplane.fields.structured import applied_paths, compare, merge, remove
from skedge.controlplane.fields.table import Obj, Type, table
from skedge.controlplane.fields.zero import zero

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"

_UNTRACKED_META = frozenset(
    f"f:{name}"
    for name in (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
) | {sets.SELF}
_STATUS_RESETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "v1/Pod": (("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    "apps/v1/Deployment": (("f:metadata", "f:labels"),),
    "scheduling.k8s.io/v1alpha2/PodGroup": (("f:metadata",),),
    "storage.k8s.io/v1/VolumeAttachment": (("f:metadata",),),
}


def track_update(gvk: str, old: Obj | None, new: Obj, manager: str, now: str, subresource: str = "") -> list[Obj]:
    """The managedFields of `new` after a create (`old` is None), update or patch by `manager`.

    The manager comes to own what it added or changed, and nobody owns any longer what was changed by it or removed.
    managedFields that the request brought along count, if well-formed, except through a subresource; one empty entry
    resets them. An object without managedFields stays untracked: an empty list is returned. `subresource` "scale"
    (with the parent as objects) records no time, as the server does.
    """
    managed = _live_or_new(old, new, subresource != "")
    if not managed and old is not None:
        return []
    changed, removed = _changes(gvk, old, new, subresource)
    me = owner(manager, "Update", _version(gvk), subresource)
    _disown(managed, sets.union(changed, removed))
    mine = _strip_meta(changed)
    if mine:
        entry = managed.get(me)
        if entry is None:
            managed[me] = entry = Entry({}, _version(gvk))
        entry.set_fields(sets.union(mine, entry.fields))
        if subresource != "scale":
            entry.touch(now)
    _drop_empty(managed)
    cap_updaters(managed)
    return encode(managed)


def apply(gvk: str, live: Obj | None, applied: Obj, manager: str, force: bool, now: str, subresource: str = "") -> Obj:
    """Server-side apply: the new object, with managedFields, not yet defaulted.

    `live` is None where the object is to be created. Fields that `manager` applied before and leaves out now are
    removed unless somebody else owns them. `ApplyConflict` where another manager owns a field that would change, unless
    `force`; `TypedPatchError` where `applied` does not fit the schema; `PatchError` where it carries managedFields.
    """
    type = table().kind(gvk)
    _check_applied(gvk, applied, type)
    version = _version(gvk)
    managed = decode(_entries(live)) if live is not None else {}
    if managed is None:
        raise TypedPatchError("failed to decode managed fields")
    if live is None:
        base: Obj = {key: applied[key] for key in ("apiVersion", "kind") if key in applied}
    else:
        base = _without_entries(live)
        if not managed:
            found = _strip_meta(_changes(gvk, None, base, subresource)[0])
            if found:
                managed[owner(BEFORE_FIRST_APPLY, "Update", version, subresource)] = Entry(found, version, now)
    me = owner(manager, "Apply", version, subresource)
    attempt = functools.partial(_apply, gvk, base, applied, managed, me, now)
    try:
        new, managed = attempt(force)
    except _Conflicts as conflicts:
        left = conflicts.owners
        if manager == "kubectl":
            left = _less(left, _last_applied_paths(base, type))
        if left:
            raise _conflict_error(left, managed) from None
        new, managed = attempt(True)
    if manager == "kubectl" and not subresource:
        new = _refresh_last_applied(new, applied)
    return _with_entries(new, encode(managed))


class _Conflicts(Exception):
    """Fields of other owners that an apply would change."""

    def __init__(self, owners: dict[Owner, Obj]) -> None:
        super().__init__("conflicts")
        self.owners = owners


def _apply(gvk: str, live: Obj, applied: Obj, before: Managed, me: Owner, now: str, force: bool) -> tuple[Obj, Managed]:
    type = table().kind(gvk)
    managed = {key: Entry(e.fields, e.version, e.time, e.raw) for key, e in before.items()}
    fields = applied_paths(applied, type)
    for path in _resets(gvk, me.subresource):
        fields = sets.without(fields, path)
    last = managed.get(me)
    last_fields = last.fields if last is not None else {}
    mine = managed[me] = Entry(last_fields, _version(gvk), last.time if last else None, last.raw if last else None)
    if mine.raw is not None and mine.raw.get("apiVersion") != mine.version:
        mine.raw = None
    mine.set_fields(fields)
    try:
        merged: Obj = merge(live, applied, type)
    except ValueError as err:  # a list item of the stored object has no key
        raise TypedPatchError(f"failed to create typed live object: {err}") from None
    if last_fields:
        merged = _prune(merged, managed, last_fields, type)
    changed, removed = _changes(gvk, live, merged, me.subresource)
    others = {key: entry for key, entry in managed.items() if key != me}
    conflicts = {key: hit for key, entry in others.items() if (hit := sets.intersection(entry.fields, changed))}
    if conflicts and not force:
        raise _Conflicts(conflicts)
    _disown(others, sets.union(changed, removed))
    mine.set_fields(_strip_meta(mine.fields))
    if merged != live:  # order counts here, though nobody owns it
        mine.touch(now)
    _drop_empty(managed)
    return merged, managed


def _prune(merged: Obj, managed: Managed, last: Obj, type: Type) -> Obj:
    """`merged` without what its applier had last time, left out now, and nobody else owns.

    Three steps, as upstream: take away all that was applied last; give back what anybody owns; give back what was only
    taken because it stood below something taken.
    """
    last = sets.with_named_fields(last, type)
    owned: Obj = {}
    for entry in managed.values():
        owned = sets.union(owned, entry.fields)
    there = sets.with_named_fields(applied_paths(merged, type), type)

    def present(value: Obj) -> Obj:
        return sets.with_named_fields(applied_paths(value, type), type)

    kept = sets.union(present(remove(merged, last, type)), sets.with_named_fields(owned, type))
    bare = remove(merged, sets.difference(there, kept), type)
    gone = sets.intersection(sets.difference(there, present(bare)), last)
    pruned: Obj = remove(merged, gone, type)
    return pruned


def _changes(gvk: str, old: Obj | None, new: Obj, subresource: str) -> tuple[Obj, Obj]:
    """(changed, removed) without what this endpoint resets anyway."""
    empty = zero(gvk)
    changed, removed = compare(empty if old is None else old, new, table().kind(gvk), empty)
    for path in _resets(gvk, subresource):
        changed, removed = sets.without(changed, path), sets.without(removed, path)
    return changed, removed


def _resets(gvk: str, subresource: str) -> tuple[tuple[str, ...], ...]:
    """What an endpoint ignores of the objects sent to it (the strategies' GetResetFields)."""
    if subresource == "status":
        return (("f:spec",), *_STATUS_RESETS.get(gvk, ()))
    if subresource == "":
        return (("f:status",),)
    return ()


def _strip_meta(fields: Obj) -> Obj:
    """Less the fields that are never tracked."""
    out = {key: node for key, node in fields.items() if key != "f:apiVersion" and key != "f:kind"}
    meta = out.get("f:metadata")
    if meta is not None:
        kept = {key: node for key, node in meta.items() if key not in _UNTRACKED_META}
        if kept:
            out["f:metadata"] = kept
        else:
            del out["f:metadata"]
    return out


def _disown(managed: Managed, fields: Obj) -> None:
    if fields:
        for entry in managed.values():
            entry.set_fields(sets.difference(entry.fields, fields))


def _drop_empty(managed: Managed) -> None:
    for key in [key for key, entry in managed.items() if not entry.fields]:
        del managed[key]


def _live_or_new(old: Obj | None, new: Obj, through_subresource: bool) -> Managed:
    if not through_subresource:
        entries = _entries(new)
        if isinstance(entries, list) and len(entries) == 1 and not entries[0]:
            return {}
        brought = decode(entries) if isinstance(entries, list) else None
        if brought:
            return brought
    return (decode(_entries(old)) if old is not None else None) or {}


def _entries(obj: Obj | None) -> Any:
    return ((obj or {}).get("metadata") or {}).get("managedFields")


def _without_entries(obj: Obj) -> Obj:
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return {**obj, "metadata": meta}


def _with_entries(obj: Obj, entries: list[Obj]) -> Obj:
    out = _without_entries(obj)
    if entries:
        out["metadata"]["managedFields"] = entries
    return out


def _version(gvk: str) -> str:
    return gvk.rpartition("/")[0]


def _check_applied(gvk: str, applied: Obj, type: Type) -> None:
    if _entries(applied):
        raise PatchError("metadata.managedFields must be nil")
    errors = schema_errors(applied, type)
    if errors:
        version, _, kind = gvk.rpartition("/")
        meta = applied.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        what = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {version if '/' in version else '/' + version}"
        text = errors[0] if len(errors) == 1 else "errors:" + "".join(f"\n  {error}" for error in errors)
        raise TypedPatchError(f"failed to create typed patch object ({what}, Kind={kind}): {text}")


def _conflict_error(conflicts: dict[Owner, Obj], managed: Managed) -> ApplyConflict:
    """Upstream's `internal/conflict.go`; owners sorted, which upstream leaves to chance."""
    causes: list[Cause] = []
    blocks: list[str] = []
    for key in sorted(conflicts, key=lambda key: key.sort_key):
        who = json.dumps(key.manager, ensure_ascii=False)
        if key.subresource:
            who += f' with subresource "{key.subresource}"'
        if key.operation == "Update":
            who += f" using {key.version}"
        paths = list(sets.paths(conflicts[key]))
        causes += [Cause("FieldManagerConflict", f"conflict with {who}", path) for path in paths]
        blocks += [f"conflicts with {who}:", *(f"- {path}" for path in paths)]
    if len(causes) == 1:
        return ApplyConflict(f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}", causes)
    return ApplyConflict(f"Apply failed with {len(causes)} conflicts: " + "\n".join(blocks), causes)


def _less(conflicts: dict[Owner, Obj], allowed: Obj) -> dict[Owner, Obj]:
    return {key: left for key, fields in conflicts.items() if (left := sets.difference(fields, allowed))}


def _last_applied_paths(live: Obj, type: Type) -> Obj:
    """What client-side apply set and nobody changed since: kubectl may take it over without force."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        last = None
    if not isinstance(last, dict) or schema_errors(last, type):
        return {}
    changed, removed = compare(last, live, type)
    return sets.difference(sets.difference(applied_paths(last, type), changed), removed)


def _refresh_last_applied(new: Obj, applied: Obj) -> Obj:
    """Keep the annotation of client-side apply in step, so that a return to it finds what is there."""
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return new
    config = copy.deepcopy(applied)
    ((config.get("metadata") or {}).get("annotations") or {}).pop(LAST_APPLIED, None)
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return {**new, "metadata": {**new["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}
