"""OpenAPI v3 and v2 of the served kinds, generated from the field table: types without prose.

Enough for kubectl: validation of manifests, `explain`, merge metadata of `apply` and `diff`, and finding out that
`patch` takes `dryRun` and `fieldValidation`. Documents are encoded once. Served at `/openapi/v3`,
`/openapi/v3/<path of the index>` and `/openapi/v2`.

Upstream: `kube-openapi`. Read in `kubectl/pkg/explain/v2` and `cli-runtime/pkg/resource/query_param_verifier_v3.go`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator

import msgspec

from skedge.controlplane.fields.errors import UnknownKind
from skedge.controlplane.fields.table import Obj, table

VERSION = "v1.36.2"

_CLUSTER_SCOPED = frozenset(
    (
        "CSIDriver",
        "CSINode",
        "ClusterRole",
        "ClusterRoleBinding",
        "DeviceClass",
        "DeviceTaintRule",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "StorageClass",
        "SubjectAccessReview",
        "TokenReview",
        "VolumeAttachment",
        "VolumeAttributesClass",
    )
)
_CREATE_ONLY = frozenset(
    (
        "Binding",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
        "TokenReview",
    )
)
_NO_RESOURCE = frozenset(("Eviction", "Scale"))
_MACHINERY = ("apis.meta.", "api.resource.", "runtime.", "util.intstr.")
_JSON_TYPES: dict[str, Obj] = {
    "string": {"type": "string"},
    "string:byte": {"type": "string", "format": "byte"},
    "boolean": {"type": "boolean"},
    "integer:int32": {"type": "integer", "format": "int32"},
    "integer:int64": {"type": "integer", "format": "int64"},
}
_V3_SPECIAL: dict[str, Obj] = {
    "api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "util.intstr.IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
}
_WRITE_QUERY = ("dryRun", "fieldManager", "fieldValidation")
_ACTIONS = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


def openapi_v3_index() -> Obj:
    """The document of `/openapi/v3`: {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=..."}, ...}}.

    Clients keep what they got under a URL with a hash.
    """
    documents = {_root(version): openapi_v3(version) for version in sorted(_group_versions(), key=_root)}
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={document_hash(document)}"}
            for path, document in documents.items()
        }
    }


@functools.cache
def document_hash(document: bytes) -> str:
    """What tells one state of a document from another."""
    return hashlib.sha512(document).hexdigest().upper()


@functools.cache
def openapi_v3(group_version: str) -> bytes:
    """The OpenAPI v3 document (JSON) of a group and version: "v1", "apps/v1". `UnknownKind` where none is served."""
    if group_version not in _group_versions():
        raise UnknownKind(group_version)
    kinds = [gvk for gvk in table().kinds if _split(gvk)[0] == group_version]
    names = sorted(_reachable({table().kind(gvk).name for gvk in kinds}))
    ref = "#/components/schemas/"
    schemas = {definition_name(name): _definition(name, ref) for name in names}
    for gvk in kinds:
        _add_list(gvk, schemas, ref)
    paths = {path: item for gvk in kinds for path, item in _paths(gvk, v3=True)}
    return msgspec.json.encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": VERSION},
            "paths": paths,
            "components": {"schemas": schemas},
        }
    )


@functools.cache
def openapi_v2() -> bytes:
    """The OpenAPI v2 document (JSON) of all kinds."""
    ref = "#/definitions/"
    definitions = {definition_name(name): _definition(name, ref) for name in sorted(table().types)}
    for gvk in table().kinds:
        _add_list(gvk, definitions, ref)
    paths = {path: item for gvk in table().kinds for path, item in _paths(gvk, v3=False)}
    info = {"title": "Kubernetes", "version": VERSION}
    return msgspec.json.encode({"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions})


def definition_name(type_name: str) -> str:
    """The public name of a type: core.v1.Pod is io.k8s.api.core.v1.Pod."""
    return ("io.k8s.apimachinery.pkg." if type_name.startswith(_MACHINERY) else "io.k8s.api.") + type_name


@functools.cache
def _group_versions() -> frozenset[str]:
    return frozenset(_split(gvk)[0] for gvk in table().kinds)


def _split(gvk: str) -> tuple[str, str]:
    version, _, kind = gvk.rpartition("/")
    return version, kind


def _root(group_version: str) -> str:
    return f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"


def _gvk_object(gvk: str, suffix: str = "") -> Obj:
    group_version, kind = _split(gvk)
    group, _, version = group_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind + suffix}


def _reachable(names: set[str]) -> set[str]:
    types = table().raw["types"]
    found: set[str] = set()
    todo = [*names, "apis.meta.v1.DeleteOptions"]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            fields = types[name].get("fields", {}).values()
            todo += [leaf for field in fields if (leaf := _leaf(field["type"])) in types]
    return found


def _leaf(ref: str | Obj) -> str:
    while not isinstance(ref, str):
        ref = ref.get("list") or ref["map"]
    return ref


def _definition(name: str, ref: str) -> Obj:
    spec: Obj = table().raw["types"][name]
    v3 = ref != "#/definitions/"
    if "scalar" in spec:
        if v3 and name in _V3_SPECIAL:
            return _V3_SPECIAL[name]
        return {"type": spec["scalar"], **({"format": spec["format"]} if "format" in spec else {})}
    fields: Obj = spec.get("fields", {})
    out: Obj = {"type": "object", "properties": {key: _property(field, ref) for key, field in fields.items()}}
    required = [key for key, field in fields.items() if field.get("required")]
    if required:
        out["required"] = required
    if "mapType" in spec:
        out["x-kubernetes-map-type"] = spec["mapType"]
    gvks = [_gvk_object(gvk) for gvk, kind in table().raw["kinds"].items() if kind == name]
    if gvks:
        out["x-kubernetes-group-version-kind"] = gvks
    return out


def _property(field: Obj, ref: str) -> Obj:
    out = _schema(field["type"], ref)
    if "$ref" in out and ref != "#/definitions/":
        out = {"allOf": [out]}  # v3 allows nothing beside a reference; v2 documents have always had it
    for key, extension in (
        ("listType", "x-kubernetes-list-type"),
        ("listMapKeys", "x-kubernetes-list-map-keys"),
        ("mapType", "x-kubernetes-map-type"),
        ("patchMergeKey", "x-kubernetes-patch-merge-key"),
        ("patchStrategy", "x-kubernetes-patch-strategy"),
    ):
        if key in field:
            out[extension] = field[key]
    return out


def _schema(type: str | Obj, ref: str) -> Obj:
    if isinstance(type, str):
        return dict(_JSON_TYPES.get(type) or {"$ref": ref + definition_name(type)})
    if "list" in type:
        return {"type": "array", "items": _schema(type["list"], ref)}
    return {"type": "object", "additionalProperties": _schema(type["map"], ref)}


def _add_list(gvk: str, schemas: Obj, ref: str) -> None:
    """The list kind of a resource; ListMeta comes along with the first."""
    kind = _split(gvk)[1]
    if kind in _NO_RESOURCE or kind in _CREATE_ONLY:
        return
    meta = definition_name("apis.meta.v1.ListMeta")
    strings = {key: {"type": "string"} for key in ("continue", "resourceVersion", "selfLink")}
    remaining = {"remainingItemCount": {"type": "integer", "format": "int64"}}
    schemas.setdefault(meta, {"type": "object", "properties": {**strings, **remaining}})
    schemas[definition_name(table().kind(gvk).name) + "List"] = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": ref + definition_name(table().kind(gvk).name)}},
            "metadata": {"$ref": ref + meta},
        },
        "x-kubernetes-group-version-kind": [_gvk_object(gvk, "List")],
    }


def _plural(kind: str) -> str:
    name = kind.lower()
    if name == "endpoints":
        return name
    if name.endswith("s"):
        return name + "es"
    return name[:-1] + "ies" if name.endswith("y") else name + "s"


def _paths(gvk: str, *, v3: bool) -> Iterator[tuple[str, Obj]]:
    group_version, kind = _split(gvk)
    if kind in _NO_RESOURCE:
        return
    type = table().kind(gvk)
    namespaced = kind not in _CLUSTER_SCOPED
    scope = "/namespaces/{namespace}" if namespaced else ""
    base = f"/{_root(group_version)}{scope}/{_plural(kind)}"
    name = definition_name(type.name)
    shared = [_path_parameter("namespace", v3)] if namespaced else []

    def item(path: str, methods: dict[str, str], returned: str) -> tuple[str, Obj]:
        operations: Obj = {
            method: _operation(gvk, method, action, name, returned, v3) for method, action in methods.items()
        }
        parameters = [*([_path_parameter("name", v3)] if path.startswith(base + "/{name}") else []), *shared]
        return path, {**operations, **({"parameters": parameters} if parameters else {})}

    if kind in _CREATE_ONLY:
        yield item(base, {"post": "post"}, name)
        return
    yield item(base, {"get": "list", "post": "post", "delete": "deletecollection"}, name + "List")
    yield item(base + "/{name}", _ACTIONS, name)
    if "status" in type.fields and kind != "Event":
        yield item(base + "/{name}/status", {key: key for key in ("get", "put", "patch")}, name)
    if namespaced:
        path = f"/{_root(group_version)}/{_plural(kind)}"
        yield path, {"get": _operation(gvk, "get", "list", name, name + "List", v3)}


def _operation(gvk: str, method: str, action: str, name: str, returned: str, v3: bool) -> Obj:
    body = "apis.meta.v1.DeleteOptions" if method == "delete" else None
    sent = definition_name(body) if body else name
    if method == "post":
        returned = name
    out: Obj = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk_object(gvk),
        "responses": {"200": _content(returned, v3, "OK")} if method != "delete" else {"200": {"description": "OK"}},
    }
    parameters = [_query_parameter(key, v3) for key in _WRITE_QUERY] if method in ("post", "put", "patch") else []
    if method == "delete":
        parameters.append(_query_parameter("dryRun", v3))
    if method == "patch":
        parameters.append(_query_parameter("force", v3, "boolean"))
    if method in ("post", "put", "delete"):
        schema = _ref(sent, v3)
        if v3:
            out["requestBody"] = {"content": {"*/*": {"schema": schema}}}
        else:
            parameters.append({"name": "body", "in": "body", "required": method != "delete", "schema": schema})
    elif method == "patch" and v3:
        out["requestBody"] = {"content": {kind: {"schema": {"type": "object"}} for kind in _PATCH_TYPES}}
    elif method == "patch":
        out["consumes"] = list(_PATCH_TYPES)
        parameters.append({"name": "body", "in": "body", "required": True, "schema": {"type": "object"}})
    if parameters:
        out["parameters"] = parameters
    return out


def _ref(name: str, v3: bool) -> Obj:
    return {"$ref": ("#/components/schemas/" if v3 else "#/definitions/") + name}


def _content(name: str, v3: bool, description: str) -> Obj:
    if v3:
        return {"description": description, "content": {"application/json": {"schema": _ref(name, v3)}}}
    return {"description": description, "schema": _ref(name, v3)}


def _query_parameter(name: str, v3: bool, type: str = "string") -> Obj:
    typed: Obj = {"schema": {"type": type, "uniqueItems": True}} if v3 else {"type": type, "uniqueItems": True}
    return {"name": name, "in": "query", **typed}


def _path_parameter(name: str, v3: bool) -> Obj:
    typed: Obj = {"schema": {"type": "string"}} if v3 else {"type": "string"}
    return {"name": name, "in": "path", "required": True, **typed}
