"""From an HTTP request to what it asks: verb, resource, name, subresource, options.

A hand-made parser of paths and query strings: one pass, no routing table
(`staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from skedge.controlplane import kinds
from skedge.controlplane.errors import (
    ApiError,
    FieldError,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    required,
    unsupported,
)

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get", "HEAD": "get", "DELETE": "delete"}
TRUE = frozenset(["1", "t", "T", "true", "TRUE", "True"])
_FALSE = frozenset(["0", "f", "F", "false", "FALSE", "False"])


@dataclass(slots=True)
class Target:
    """A request for a resource. `subresource` is None for the object itself."""

    verb: str
    resource: kinds.Resource
    namespace: str
    name: str
    subresource: kinds.Subresource | None
    query: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)  # texts for Warning headers, whatever the outcome

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def plural(self) -> str:
        return self.resource.plural

    @property
    def group(self) -> str:
        return self.resource.group


def split(raw_path: str) -> tuple[list[str], dict[str, str]]:
    """Path segments (unquoted) and query parameters (the first value of each) of a raw request path."""
    path, _, query = raw_path.partition("?")
    if "%" in path:
        segments = [unquote(part) for part in path.split("/") if part]
    else:
        segments = [part for part in path.split("/") if part]
    if not query:
        return segments, {}
    parameters: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(key, value)
    return segments, parameters


def parse(method: str, segments: list[str], query: dict[str, str]) -> Target | None:
    """The target of a path below a group version (`/api/v1/...`, `/apis/G/V/...`), or None for an unknown resource.

    The caller has dealt with shorter paths (discovery) already.
    """
    if segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    else:
        group, version, rest = segments[1], segments[2], segments[3:]
    served = kinds.GROUPS.get(group, {}).get(version)
    verb = _VERBS.get(method)
    if served is None or verb is None or not rest:
        return None
    watched = rest[0] == "watch" and len(rest) > 1
    if watched:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
            rest = rest[2:]
        elif group != "":
            return None
        else:
            namespace = ""
    resource = served.get(rest[0])
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else ""
    if resource.namespaced and name and not namespace:
        return None
    subresource = None
    if len(rest) > 2:
        subresource = resource.subresources.get(rest[2])
        if subresource is None:
            return None
    if not name:
        if verb == "get":
            verb = "watch" if watched or _flag(query, "watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
    elif watched and verb == "get":
        verb = "watch"
        query = {**query, "fieldSelector": f"metadata.name={name}"}
    return Target(verb, resource, namespace, name, subresource, query)


def _flag(query: Mapping[str, str], key: str) -> bool:
    value = query.get(key)
    if value is None:
        return False
    if value == "" or value in TRUE:
        return True
    if value in _FALSE:
        return False
    raise bad_request(f'strconv.ParseBool: parsing "{value}": invalid syntax')


def flag(target: Target, key: str) -> bool:
    """A boolean query parameter as Go reads it; present without a value means true."""
    return _flag(target.query, key)


def integer(query: Mapping[str, str], key: str) -> int | None:
    """An int64 query parameter."""
    value = query.get(key)
    if value is None or value == "":
        return None
    if not re.fullmatch(r"[+-]?\d+", value):
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax')
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range')
    return number


def revision(value: str) -> int:
    """A resourceVersion parameter as a number."""
    if not value.isascii() or not value.isdigit():
        raise invalid(
            "",
            "",
            "",
            [invalid_value("resourceVersion", value, f'strconv.ParseUint: parsing "{value}": invalid syntax')],
        )
    return int(value)


def _meta_invalid(kind: str, errors: list[FieldError]) -> ApiError:
    return invalid(kind, "meta.k8s.io", "", errors)


def dry_run(target: Target) -> bool:
    """Whether the write is a rehearsal; anything but `All` is refused."""
    value = target.query.get("dryRun")
    if value is None or value == "":
        return False
    if value != "All":
        option = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
        kind = option.get(target.verb, "DeleteOptions")
        raise _meta_invalid(kind, [unsupported("dryRun", [value], ["All"])])
    return True


def field_validation(target: Target) -> str:
    """Strict, Warn or Ignore; Warn when not given."""
    value = target.query.get("fieldValidation") or "Warn"
    if value not in ("Ignore", "Warn", "Strict"):
        kind = {"create": "CreateOptions", "update": "UpdateOptions"}.get(target.verb, "PatchOptions")
        raise _meta_invalid(kind, [unsupported("fieldValidation", value, ["Ignore", "Strict", "Warn", ""])])
    return value


def apply_manager(target: Target) -> str:
    """The field manager of an apply patch, which must name one."""
    manager = target.query.get("fieldManager", "")
    if not manager:
        raise _meta_invalid("PatchOptions", [required("fieldManager", "is required for apply patch")])
    return manager


def field_manager(target: Target, user_agent: str) -> str:
    """The manager a write is booked under: `fieldManager`, or the first word of the user agent."""
    return target.query.get("fieldManager") or user_agent.partition("/")[0][:128] or "unknown"


@dataclass(slots=True)
class ListOptions:
    """Options of list and watch. `revision` is None for "the most recent"."""

    revision: int | None
    match: str
    limit: int
    cont: str
    timeout: int | None
    bookmarks: bool
    initial_events: bool | None

    @property
    def exact(self) -> bool:
        return self.match == "Exact"


def list_options(target: Target, current: int) -> ListOptions:
    """Read and validate the options of a list or watch
    (`apimachinery/pkg/apis/meta/internalversion/validation/validation.go`).
    """
    query = target.query
    watching = target.verb == "watch"
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    cont = query.get("continue", "")
    limit = integer(query, "limit") or 0
    timeout = integer(query, "timeoutSeconds")
    bookmarks = flag(target, "allowWatchBookmarks")
    initial = flag(target, "sendInitialEvents") if "sendInitialEvents" in query else None
    errors: list[FieldError] = []
    path = "resourceVersionMatch"
    if watching and initial is not None and match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(forbidden_field(path, text))
    elif watching and match and initial is None:
        errors.append(forbidden_field(path, "resourceVersionMatch is forbidden for watch"))
    elif not watching and initial is not None:
        errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not watching and match:
        if version == "":
            errors.append(forbidden_field(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if cont:
            errors.append(forbidden_field(path, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(unsupported(path, match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and version == "0":
            errors.append(forbidden_field(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if errors:
        raise _meta_invalid("ListOptions", errors)
    if cont and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    number = revision(version) if version else None
    if not watching and not match and number and limit:
        match = "Exact"  # the legacy reading of a list with both a limit and a version
    return ListOptions(number, match, limit, cont, timeout, bookmarks, initial)
