"""PATCH: JSON, merge and strategic merge patches, server-side apply (`apiserver/pkg/endpoints/handlers/patch.go`)."""

from __future__ import annotations

import json
from typing import Any

from skedge.controlplane import fields
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import bad_request, not_found
from skedge.controlplane.negotiate import load_json, load_yaml
from skedge.controlplane.normal import normal
from skedge.controlplane.request import Target, apply_manager, dry_run, field_manager, field_validation, flag
from skedge.controlplane.writing import (
    Body,
    Write,
    check_kind,
    check_patched,
    create_applied,
    field_errors,
    gvk,
    patch_kind,
    store_update,
    to_storage,
    to_wire,
    unknown_in_patched,
    written,
)

JSON = dict[str, Any]


def patch(cluster: Cluster, target: Target, body: Body) -> Write:
    """Patch an object or its status."""
    kind = patch_kind(body.content_type)
    if kind == "apply":
        return _apply(cluster, target, body)
    resource = target.resource
    rehearsal = dry_run(target)
    document = read_patch(body.data)
    stored = cluster.collection(resource.storage).objects.get(target.key)
    if stored is None:
        raise not_found(resource.plural, resource.group, target.name)
    current = to_wire(resource, stored)
    patched = apply_patch(kind, gvk(resource), current, document)

    def shown() -> str:
        return _go_text(document) if kind == "strategic" else json.dumps(patched, separators=(",", ":"))

    unknown_in_patched(target, patched, shown, gvk(resource))
    check_patched(target, patched, stored)
    new = to_storage(resource, normal(patched, gvk(resource), resource.kind, resource.version))
    manager = field_manager(target, body.user_agent)
    return written(store_update(cluster, target, stored, new, manager, rehearsal))


def read_patch(data: bytes) -> Any:
    """A patch document; YAML is not accepted, JSON is."""
    try:
        return load_json(data)
    except ValueError as e:
        raise bad_request(f"error decoding patch: {e}") from None


def apply_patch(kind: str, name: str, current: JSON, document: Any) -> JSON:
    """The object after a json, merge or strategic patch. Raises the answer for a patch that does not fit."""
    try:
        if kind == "json":
            result = fields.json_patch(current, document)
        elif kind == "merge":
            result = fields.json_merge(current, document)
        else:
            result = fields.strategic_merge(name, current, document)
    except fields.FieldsError as e:
        raise field_errors(e) from None
    if not isinstance(result, dict):
        raise bad_request("error decoding patch: the patched document is not an object")
    return result


def _apply(cluster: Cluster, target: Target, body: Body) -> Write:
    resource = target.resource
    rehearsal = dry_run(target)
    manager = apply_manager(target)
    force = flag(target, "force")
    try:
        document = load_yaml(body.data)
    except ValueError as e:
        raise bad_request(f"error decoding YAML: {e}") from None
    if not isinstance(document, dict):
        raise bad_request("error decoding YAML: the document is not an object")
    check_kind(document, resource.kind, resource.api_version, resource.group)
    unknown = fields.unknown_fields(gvk(resource), document) if field_validation(target) != "Ignore" else []
    if unknown and field_validation(target) == "Strict":
        raise bad_request(f"error decoding YAML: strict decoding error: {', '.join(unknown)}")
    target.warnings.extend(unknown)
    meta = document.get("metadata")
    if meta is None:
        meta = document["metadata"] = {}
    if not isinstance(meta, dict):
        raise bad_request("error decoding YAML: metadata is not an object")
    for key, wanted in (("name", target.name), ("namespace", target.namespace)):
        found = meta.get(key)
        if found not in (None, "", wanted):
            what = f"the {key} of the object ({found}) does not match the {key} on the URL ({wanted})"
            raise bad_request(what)
        if wanted:
            meta[key] = wanted
    stored = cluster.collection(resource.storage).objects.get(target.key)
    sub = target.subresource.name if target.subresource else ""
    live = to_wire(resource, stored) if stored is not None else None
    if stored is not None:
        check_patched(target, document, stored)
    elif sub:
        raise not_found(resource.plural, resource.group, target.name)
    try:
        result = fields.apply(gvk(resource), live, document, manager, force, cluster.timestamp(), sub)
    except fields.FieldsError as e:
        raise field_errors(e) from None
    new = to_storage(resource, normal(result, gvk(resource), resource.kind, resource.version))
    if stored is None:
        return written(create_applied(cluster, target, new, manager, rehearsal), 201)
    return written(store_update(cluster, target, stored, new, manager, rehearsal, tracked=True))


def _go_text(value: Any) -> str:
    """A value as Go's `%+v` prints decoded JSON."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{_go_text(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(_go_text(v) for v in value)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
