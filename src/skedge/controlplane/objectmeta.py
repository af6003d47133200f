"""Metadata of every object: what the server fills in, keeps, and refuses.

`staging/src/k8s.io/apiserver/pkg/registry/rest/{create,update,meta}.go`,
`apimachinery/pkg/api/validation/objectmeta.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import FieldError, forbidden_field, invalid_value, required, too_long
from skedge.controlplane.names import label_key_problems, label_value_problems

JSON = dict[str, Any]

_ANNOTATION_LIMIT = 256 * 1024
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_KNOWN_FINALIZERS = ("orphan", "foregroundDeletion")


def fill(obj: JSON, cluster: Cluster, namespace: str) -> JSON:
    """Give a new object its identity; returns its metadata."""
    meta: JSON = obj["metadata"]
    for key in (*_SYSTEM, "resourceVersion", "generation"):
        meta.pop(key, None)
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = cluster.uid()
    meta["creationTimestamp"] = cluster.timestamp()
    return meta


def keep(new: JSON, old: JSON) -> None:
    """Carry over what an update may not change."""
    meta, before = new["metadata"], old["metadata"]
    for key in (*_SYSTEM, "generation"):
        if key in before:
            meta[key] = before[key]
        else:
            meta.pop(key, None)
    if "deletionTimestamp" in before:  # finalizers can only be taken away from a dying object
        present = set(before.get("finalizers") or ())
        wanted = [f for f in meta.get("finalizers") or [] if f in present]
        if "finalizers" in meta:
            if wanted:
                meta["finalizers"] = wanted
            else:
                del meta["finalizers"]


def validate(meta: JSON, name_problems: Callable[[str], list[str]]) -> list[FieldError]:
    """Findings about the metadata of a new object."""
    errors: list[FieldError] = []
    if generate := meta.get("generateName"):
        errors.extend(invalid_value("metadata.generateName", generate, p) for p in name_problems(generate.rstrip("-.")))
    name = meta.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors.extend(invalid_value("metadata.name", name, p) for p in name_problems(name))
    return errors + validate_maps(meta)


def validate_maps(meta: JSON) -> list[FieldError]:
    """Findings about labels, annotations, finalizers and owners."""
    errors = validate_labels(meta.get("labels") or {}, "metadata.labels")
    size = 0
    for key, value in (meta.get("annotations") or {}).items():
        errors.extend(invalid_value("metadata.annotations", key, p) for p in label_key_problems(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > _ANNOTATION_LIMIT:
        errors.append(too_long("metadata.annotations", _ANNOTATION_LIMIT))
    for i, finalizer in enumerate(meta.get("finalizers") or []):
        problems = label_key_problems(finalizer)
        errors.extend(invalid_value(f"metadata.finalizers[{i}]", finalizer, p) for p in problems)
        if not problems and "/" not in finalizer and finalizer not in (*_KNOWN_FINALIZERS, "kubernetes"):
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid_value(f"metadata.finalizers[{i}]", finalizer, text))
    controllers: list[str] = []
    for i, owner in enumerate(meta.get("ownerReferences") or []):
        path = f"metadata.ownerReferences[{i}]"
        for key, text in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not owner.get(key):
                errors.append(invalid_value(f"{path}.{key}", owner.get(key, ""), text))
        if owner.get("controller"):
            controllers.append(owner.get("name", ""))
            if len(controllers) > 1:
                text = 'Only one reference can have Controller set to true. Found "true" in references for '
                text += " and ".join(controllers[:2])
                errors.append(invalid_value("metadata.ownerReferences", meta["ownerReferences"], text))
    return errors


def validate_labels(labels: dict[str, str], path: str) -> list[FieldError]:
    """Findings about a label map."""
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors.extend(invalid_value(path, key, p) for p in label_key_problems(key))
        errors.extend(invalid_value(path, value, p) for p in label_value_problems(value))
    return errors


def validate_update(new: JSON, old: JSON) -> list[FieldError]:
    """Findings about the metadata of a changed object."""
    errors = validate_maps(new)
    for key in ("name", "namespace"):
        if new.get(key) != old.get(key):
            errors.append(invalid_value(f"metadata.{key}", new.get(key, ""), "field is immutable"))
    if "deletionTimestamp" in old:
        present = set(old.get("finalizers") or ())
        added = [f for f in new.get("finalizers") or [] if f not in present]
        if added:
            listed = ", ".join(f'"{f}"' for f in added)
            text = "no new finalizers can be added if the object is being deleted, found new finalizers "
            text += f"[]string{{{listed}}}"
            errors.append(forbidden_field("metadata.finalizers", text))
    return errors
