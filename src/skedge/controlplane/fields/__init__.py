"""The field table and everything it drives: pure functions over objects decoded from JSON.

Unknown and duplicate fields, wrong types, the four patches, ownership of fields with server-side apply, OpenAPI.
Kinds are named "group/version/Kind" ("v1/Pod" for the core group). Nothing here does I/O, knows HTTP, defaults or
validates values, or changes an object it is given; results may share parts with arguments.
"""

from skedge.controlplane.fields.diff import two_way_strategic_diff
from skedge.controlplane.fields.entries import same_but_times
from skedge.controlplane.fields.errors import (
    ApplyConflict,
    Cause,
    FieldsError,
    PatchError,
    TypedPatchError,
    UnknownKind,
)
from skedge.controlplane.fields.jsonpatch import json_merge, json_patch
from skedge.controlplane.fields.openapi import document_hash, openapi_v2, openapi_v3, openapi_v3_index
from skedge.controlplane.fields.openapi_protobuf import openapi_v2_protobuf
from skedge.controlplane.fields.ownership import apply, track_update
from skedge.controlplane.fields.strategic import strategic_merge
from skedge.controlplane.fields.strict import duplicate_fields, strict_errors, unknown_fields
from skedge.controlplane.fields.table import Table, table
from skedge.controlplane.fields.typecheck import validate_types

__all__ = [
    "ApplyConflict",
    "Cause",
    "FieldsError",
    "PatchError",
    "Table",
    "TypedPatchError",
    "UnknownKind",
    "apply",
    "document_hash",
    "duplicate_fields",
    "json_merge",
    "json_patch",
    "openapi_v2",
    "openapi_v2_protobuf",
    "openapi_v3",
    "openapi_v3_index",
    "same_but_times",
    "strategic_merge",
    "strict_errors",
    "table",
    "track_update",
    "two_way_strategic_diff",
    "unknown_fields",
    "validate_types",
]
