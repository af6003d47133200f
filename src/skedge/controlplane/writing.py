"""create, update and patch of any kind, and of its status.

Every write takes the same road: read the body, bring it to the server's form, let field ownership, admission and the
kind's strategy work on it, validate, store. All but the last step only reads: `create`, `update` and `patching.patch`
return that step, so that the others may be taken in a thread where they are long.
`staging/src/k8s.io/apiserver/pkg/endpoints/handlers/{create,update}.go`,
`pkg/registry/generic/registry/store.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skedge.controlplane import admission, events, fields, objectmeta, quota
from skedge.controlplane.binding import uid_conflict
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import (
    MODIFIED,
    ApiError,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    generate_name_conflict,
    invalid,
    invalid_value,
    not_found,
)
from skedge.controlplane.kinds import BY_STORAGE, Resource
from skedge.controlplane.negotiate import read_object
from skedge.controlplane.normal import normal
from skedge.controlplane.request import Target, dry_run, field_manager, field_validation
from skedge.controlplane.store import Stored, encode
from skedge.controlplane.strategies.base import Strategy, spec_of
from skedge.controlplane.strategies.registry import strategy

JSON = dict[str, Any]

# kinds that must be updated with a resourceVersion
_CONDITIONAL = ("leases.coordination.k8s.io", "poddisruptionbudgets.policy", "csinodes.storage.k8s.io")
_STORAGE_KEYS = {"nodes": "minions", "services": "services/specs", "endpoints": "services/endpoints"}
_NAME_TRIES = 8
OBJECT_LIMIT = 3 << 20
"""Bytes of an object as JSON. The store behind kube-apiserver takes 1.5 MiB of protocol buffers, about half as many."""


@dataclass(slots=True)
class Written:
    """The outcome of a write: the object as stored (or as it would be), and the HTTP code."""

    stored: Stored
    code: int = 200


Store = Callable[[], Stored]
"""The last step of a write. Raises Overtaken."""
Write = Callable[[], Written]


class Overtaken(Exception):
    """The object changed while a write to it was prepared: it has to be prepared again."""


@dataclass(slots=True)
class Body:
    """A request's body and what is said about it."""

    data: bytes
    content_type: str
    user_agent: str


def gvk(resource: Resource) -> str:
    """The field table's name of a resource's kind."""
    return f"{resource.api_version}/{resource.kind}"


def check_kind(obj: JSON, kind: str, api_version: str, group: str) -> None:
    """Refuse an object of another kind or version than the path is for."""
    found, version = obj.get("kind") or kind, obj.get("apiVersion") or api_version
    if found == kind and version == api_version:
        return
    if found != kind:
        short = version.rpartition("/")[2]
        package, internal = version.rpartition("/")[0].partition(".")[0], group.partition(".")[0] or "core"
        external = f"{package}{short}" if package else short
        problem = f"converting ({external}.{found}) to ({internal}.{kind}): unknown conversion"
        raise bad_request(f'{found} in version "{short}" cannot be handled as a {kind}: {problem}')
    raise bad_request(
        f"the API version in the data ({version}) does not match the expected API version ({api_version})"
    )


def decode_body(target: Target, body: Body) -> JSON:
    """The object of a create or update request in the server's form, without kind and apiVersion."""
    resource = target.resource
    obj = read_object(body.data, body.content_type, resource.kind)
    check_kind(obj, resource.kind, resource.api_version, resource.group)
    mode = field_validation(target)
    if mode != "Ignore":
        unknown = fields.unknown_fields(gvk(resource), obj)
        if "json" in body.content_type:
            twice = fields.duplicate_fields(body.data, gvk(resource)) if body.data.count(b'"') else []
            unknown = fields.strict_errors(gvk(resource), body.data) if unknown and twice else unknown + twice
        if unknown and mode == "Strict":
            problem = f"strict decoding error: {', '.join(unknown)}"
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {problem}'
            )
        target.warnings.extend(unknown)
    return to_storage(resource, normal(obj, gvk(resource), resource.kind, resource.version))


def to_storage(resource: Resource, obj: JSON) -> JSON:
    """An object of a resource in the form it is stored in."""
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    obj.setdefault("metadata", {})
    if resource.group == "events.k8s.io":
        obj = events.to_core(obj)
    return obj


def to_wire(resource: Resource, stored: Stored) -> JSON:
    """A stored object in its resource's form, with kind and apiVersion; the caller's own."""
    obj = stored.load()
    if resource.group == "events.k8s.io":
        obj = events.convert_from_core(obj)
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


# --- create ---------------------------------------------------------------------------------------------------------


def create(cluster: Cluster, target: Target, body: Body) -> Write:
    """POST of a new object."""
    rehearsal = dry_run(target)
    obj = decode_body(target, body)
    meta = obj["metadata"]
    namespace = meta.get("namespace") or target.namespace
    if target.resource.namespaced and namespace != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
            if target.namespace
            else "an empty namespace may not be set during creation"
        )
    if target.name and meta.get("name") not in (None, target.name):
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})")
    manager = field_manager(target, body.user_agent)
    return written(_create(cluster, target, obj, manager, rehearsal, tracked=False), 201)


def written(store: Store, code: int = 200) -> Write:
    """A last step with the code of its answer."""
    return lambda: Written(store(), code)


def _create(cluster: Cluster, target: Target, obj: JSON, manager: str, rehearsal: bool, *, tracked: bool) -> Store:
    """The road of a new object. `tracked`: its managedFields are there already (apply)."""
    resource, namespace = target.resource, target.namespace if target.resource.namespaced else ""
    kind = strategy(resource.storage)
    collection = cluster.collection(resource.storage)
    meta = obj["metadata"]
    if namespace:
        meta["namespace"] = namespace
    kind.default(obj)
    if kind.tracks_fields and not tracked:
        managed = fields.track_update(gvk(resource), None, obj, manager, cluster.timestamp())
        meta.pop("managedFields", None)
        if managed:
            meta["managedFields"] = managed
    admission.admit_create(cluster, resource, namespace, obj)
    generate = not meta.get("name") and bool(meta.get("generateName"))
    if generate:
        base = meta["generateName"][:58]
        meta["name"] = base + cluster.suffix()
        for _ in range(_NAME_TRIES):
            if _key(meta, namespace) not in collection.objects:
                break
            meta["name"] = base + cluster.suffix()
        else:
            raise generate_name_conflict(resource.plural, resource.group, meta["name"])
    objectmeta.fill(obj, cluster, namespace)
    if kind.generation:
        meta["generation"] = 1
    kind.prepare_create(obj, cluster)
    errors = objectmeta.validate(meta, kind.name_problems)
    errors += kind.validate_as(resource.group, obj) + kind.validate(obj)
    if errors:
        raise _invalid(resource, meta.get("name", ""), errors)
    _refuse_huge(obj)

    def store() -> Stored:
        if _key(meta, namespace) in collection.objects:
            raise Overtaken if tracked else already_exists(resource.plural, resource.group, meta["name"])
        quota.admit(cluster, resource, namespace, obj, rehearsal)
        return collection.build(obj, None) if rehearsal else collection.create(obj)

    return store


def _refuse_huge(obj: JSON) -> None:
    if len(encode(obj)) > OBJECT_LIMIT:
        raise ApiError(500, "", "etcdserver: request is too large")


def _invalid(resource: Resource, name: str, errors: list[FieldError]) -> ApiError:
    """Findings, under the kind's name in the group it is stored in."""
    return invalid(resource.kind, BY_STORAGE[resource.storage].group, name, errors)


def _key(meta: JSON, namespace: str) -> str:
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


# --- update ---------------------------------------------------------------------------------------------------------


def update(cluster: Cluster, target: Target, body: Body) -> Write:
    """PUT of an object or its status."""
    rehearsal = dry_run(target)
    obj = decode_body(target, body)
    resource, meta = target.resource, obj["metadata"]
    _check_name(target, meta)
    manager = field_manager(target, body.user_agent)
    stored = cluster.collection(resource.storage).objects.get(target.key)
    if stored is None:
        if strategy(resource.storage).update_creates and target.subresource is None and not meta.get("uid"):
            return written(_create(cluster, target, obj, manager, rehearsal, tracked=False), 201)
        raise not_found(resource.plural, resource.group, target.name)
    if meta.get("uid") and meta["uid"] != stored.uid:
        raise _uid_mismatch(target, meta["uid"], stored)
    _check_version(target, meta, stored)
    return written(store_update(cluster, target, stored, obj, manager, rehearsal))


def _check_name(target: Target, meta: JSON) -> None:
    name, namespace = meta.get("name", ""), meta.get("namespace", "")
    if not name:
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if namespace and namespace != target.namespace:
        raise bad_request(
            f"the namespace of the object ({namespace}) does not match the namespace on the URL ({target.namespace})"
        )
    if target.namespace:
        meta["namespace"] = target.namespace


def _uid_mismatch(target: Target, wanted: str, stored: Stored) -> ApiError:
    folder = _STORAGE_KEYS.get(target.plural, target.plural)
    key = f"/registry/{folder}/{stored.key}"
    return uid_conflict(target.plural, target.group, key, target.name, wanted, stored.uid)


def _check_version(target: Target, meta: JSON, stored: Stored) -> None:
    version = meta.get("resourceVersion", "")
    if not version:
        if target.resource.storage in _CONDITIONAL and target.verb == "update":
            errors = [invalid_value("metadata.resourceVersion", 0, "must be specified for an update")]
            raise invalid(target.resource.kind, target.group, target.name, errors)
    elif version != str(stored.revision):
        raise conflict(target.plural, target.group, target.name, MODIFIED)


def store_update(
    cluster: Cluster,
    target: Target,
    stored: Stored,
    new: JSON,
    manager: str,
    rehearsal: bool,
    *,
    tracked: bool = False,
    subresource: str | None = None,
) -> Store:
    """The road of a changed object, `new` being the caller's own. Its end is what is stored (or would be)."""
    resource = target.resource
    kind = strategy(resource.storage)
    collection = cluster.collection(resource.storage)
    old = stored.load()
    sub = subresource if subresource is not None else (target.subresource.name if target.subresource else "")
    if sub == "status":
        _only_status(new, old, resource)
    else:
        kind.default(new)
    if kind.tracks_fields and not tracked:
        managed = fields.track_update(gvk(resource), old, new, manager, cluster.timestamp(), sub)
        new["metadata"].pop("managedFields", None)
        if managed:
            new["metadata"]["managedFields"] = managed
    errors = objectmeta.validate_update(new["metadata"], old["metadata"])
    objectmeta.keep(new, old)
    if sub != "status":
        kind.prepare_update(new, old, cluster)
        if kind.generation and spec_of(new) != spec_of(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        errors += kind.validate_update(new, old)
    else:
        errors += kind.validate_status(new, old)
    if errors:
        raise _invalid(resource, target.name, errors)
    new["metadata"]["resourceVersion"] = str(stored.revision)
    _refuse_huge(new)
    is_over = _is_over(new, old, kind)
    unchanged = not is_over and fields.same_but_times(old, new)

    def store() -> Stored:
        if collection.objects.get(stored.key) is not stored:
            raise Overtaken
        if not sub and "deletionTimestamp" not in new["metadata"]:
            quota.admit(cluster, resource, stored.namespace, new, rehearsal, old)
        if rehearsal:
            return collection.build(new, stored.revision)
        if is_over:
            final = collection.build(new, stored.revision)
            collection.remove(stored, new)
            return final
        return stored if unchanged else collection.replace(stored, new)

    return store


def _only_status(new: JSON, old: JSON, resource: Resource) -> None:
    """Leave of an update what its status subresource may change: status, labels and annotations."""
    for key in list(new):
        if key not in ("metadata", "status"):
            del new[key]
    for key, value in old.items():
        if key not in ("metadata", "status"):
            new[key] = value
    meta, before = new["metadata"], old["metadata"]
    kept: tuple[str, ...] = ("ownerReferences", "finalizers", "generateName")
    kept += ("labels", "annotations") if resource.storage in _STATUS_ONLY_META else ()
    for key in kept:
        if key in before:
            meta[key] = before[key]
        else:
            meta.pop(key, None)


_STATUS_ONLY_META = ("deployments.apps", "podgroups.scheduling.k8s.io", "volumeattachments.storage.k8s.io")


def _is_over(new: JSON, old: JSON, kind: Strategy) -> bool:
    """Whether the update took the last finalizer from an object that only waited for that."""
    meta = new["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if (new.get("spec") or {}).get("finalizers"):
        return False
    if not old["metadata"].get("finalizers") and not (old.get("spec") or {}).get("finalizers"):
        return False
    return not (kind.graceful and meta.get("deletionGracePeriodSeconds", 0) > 0)


# --- patch ----------------------------------------------------------------------------------------------------------

_PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


def patch_kind(content_type: str) -> str:
    """json, merge, strategic or apply for a Content-Type. Raises 415."""
    kind = _PATCHES.get(content_type.partition(";")[0].strip().lower())
    if kind is None:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return kind


def unknown_in_patched(target: Target, patched: JSON, shown: Callable[[], str], name: str) -> None:
    """Deal with fields that a patch brought in and the kind does not have; a refusal shows `shown()`."""
    mode = field_validation(target)
    if mode == "Ignore":
        return
    unknown = fields.unknown_fields(name, patched)
    if unknown and mode == "Strict":
        problem = f"strict decoding error: {', '.join(unknown)}"
        raise invalid("", "", "", [invalid_value("patch", shown(), problem)])
    target.warnings.extend(unknown)


def field_errors(error: fields.FieldsError) -> ApiError:
    """A refusal of the fields package as an answer."""
    if isinstance(error, fields.ApplyConflict):
        causes = [{"reason": c.reason, "message": c.message, "field": c.field} for c in error.causes]
        return ApiError(409, "Conflict", error.message, {"causes": causes})
    details: JSON | None = {} if error.code == 422 else None
    return ApiError(error.code, error.reason, error.message, details)


def check_patched(target: Target, patched: JSON, stored: Stored) -> None:
    """Refuse a patched object that speaks of another version or another object."""
    meta = patched.get("metadata")
    if not isinstance(meta, dict):
        raise invalid(
            target.resource.kind,
            target.group,
            target.name,
            [FieldError("FieldValueRequired", "Required value", "metadata")],
        )
    version = meta.get("resourceVersion")
    if version and version != str(stored.revision):
        raise conflict(target.plural, target.group, target.name, MODIFIED)
    if meta.get("uid") not in (None, stored.uid):
        errors = [invalid_value("metadata.uid", meta["uid"], "field is immutable")]
        raise invalid(target.resource.kind, target.group, target.name, errors)


def create_applied(cluster: Cluster, target: Target, obj: JSON, manager: str, rehearsal: bool) -> Store:
    """The road of a new object that an apply patch described; it carries its managedFields."""
    return _create(cluster, target, obj, manager, rehearsal, tracked=True)
