"""API errors: a Status object on the wire, an exception inside.

Mirrors `staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go` and `util/validation/field/errors.go`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]


class ApiError(Exception):
    """An answer other than success: HTTP code, reason, message and details of a Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: JSON | None = None,
        headers: dict[str, str] | None = None,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.continue_token = continue_token

    def status(self) -> JSON:
        """The Status object of this error, in the field order of the wire."""
        meta = {"continue": self.continue_token} if self.continue_token else {}
        body: JSON = {"kind": "Status", "apiVersion": "v1", "metadata": meta}
        body.update(status="Failure", message=self.message)
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def success(details: JSON | None = None, code: int | None = None) -> JSON:
    """A Status object saying that an operation without a resulting object succeeded."""
    body: JSON = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        body["details"] = details
    if code is not None:
        body["code"] = code
    return body


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`, or `pods` for the core group."""
    return f"{resource}.{group}" if group else resource


def _details(name: str, group: str, kind: str) -> JSON:
    details: JSON = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def not_found(resource: str, group: str, name: str) -> ApiError:
    message = f'{qualified(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(name, group, resource))


def no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, group: str, name: str) -> ApiError:
    message = f'{qualified(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(name, group, resource))


def generate_name_conflict(resource: str, group: str, name: str) -> ApiError:
    message = (
        f'{qualified(resource, group)} "{name}" already exists, the server was not able to generate a unique name '
        "for the object"
    )
    return ApiError(409, "AlreadyExists", message, _details(name, group, resource))


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(name, group, resource))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(resource: str, group: str, name: str, why: str) -> ApiError:
    subject = f'{qualified(resource, group)} "{name}"' if name else qualified(resource, group)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", _details(name, group, resource))


def method_not_supported(resource: str, group: str, verb: str) -> ApiError:
    details = _details("", group, resource)
    return ApiError(405, "MethodNotAllowed", f"{verb} is not supported on resources of kind {resource!r}", details)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def internal(message: str) -> ApiError:
    """An error outside the API's taxonomy: 500 without a reason."""
    return ApiError(500, "", message)


def too_large_revision(asked: int, current: int) -> ApiError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, details, {"Retry-After": "1"})


def too_many_requests(message: str, retry_after: int, causes: list[JSON]) -> ApiError:
    details: JSON = {}
    if causes:
        details["causes"] = causes
    headers = {}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
        headers["Retry-After"] = str(retry_after)
    return ApiError(429, "TooManyRequests", message, details, headers)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One finding of validation: the reason of its cause, its text without the path, and the path."""

    reason: str
    message: str
    path: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def go_value(value: Any) -> str:
    """A value as `field.Error` prints it: quoted strings, bare numbers and booleans, JSON for the rest."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def invalid_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", f"Invalid value: {go_value(value)}: {detail}", path)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", path)


def unsupported(path: str, value: Any, supported: list[str]) -> FieldError:
    listed = ", ".join(f'"{s}"' for s in supported)
    return FieldError(
        "FieldValueNotSupported", f"Unsupported value: {go_value(value)}: supported values: {listed}", path
    )


def forbidden_field(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", f"Forbidden: {detail}", path)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", f"Duplicate value: {go_value(value)}", path)


def too_long(path: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def invalid(kind: str, group: str, name: str, errors: list[FieldError]) -> ApiError:
    """422 with every finding as a cause; equal findings are named once in the message."""
    texts = list(dict.fromkeys(str(e) for e in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    subject = f"{kind}.{group}" if group else kind
    details = _details(name, group, kind)
    details["causes"] = [{"reason": e.reason, "message": e.message, "field": e.path} for e in errors]
    return ApiError(422, "Invalid", f'{subject} "{name}" is invalid: {listed}', details)
