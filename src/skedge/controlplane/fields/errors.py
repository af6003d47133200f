"""Errors of this package. Each carries the message, HTTP code and reason that kube-apiserver answers with.

The caller turns them into a Status; texts are upstream's (`apiserver/pkg/endpoints/handlers/patch.go`,
`apimachinery/pkg/util/strategicpatch`, `apimachinery/pkg/util/managedfields/internal/conflict.go`).
"""

from __future__ import annotations

from typing import NamedTuple

REJECTED = "the server rejected our request due to an error in our request"
"""What the server says instead of the cause of most 422 answers to patches."""


class UnknownKind(KeyError):
    """The field table has no such kind; `gvk` is the key that was asked for, e.g. "apps/v1/Deployment" or "v1/Pod"."""

    def __init__(self, gvk: str) -> None:
        super().__init__(gvk)
        self.gvk = gvk

    def __str__(self) -> str:
        return f"no kind {self.gvk!r} in the field table (expected group/version/Kind, or v1/Kind for core)"


class FieldsError(Exception):
    """A request that the field table refuses."""

    code = 500
    reason = "InternalError"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class PatchError(FieldsError):
    """A patch that cannot be decoded (400) or applied (422, 413, 500).

    `message` is what the client sees; `detail` says what was wrong with which operation or field.
    """

    def __init__(self, message: str, code: int = 400, detail: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = {400: "BadRequest", 413: "RequestEntityTooLarge", 422: "Invalid"}.get(code, "InternalError")
        self.detail = detail or message


class TypedPatchError(FieldsError):
    """An applied configuration that does not fit the schema: an undeclared field, a wrong type, a duplicate key."""


class Cause(NamedTuple):
    """One entry of `details.causes`."""

    reason: str
    message: str
    field: str


class ApplyConflict(FieldsError):
    """Fields that another manager owns with another value; 409 unless forced."""

    code = 409
    reason = "Conflict"

    def __init__(self, message: str, causes: list[Cause]) -> None:
        super().__init__(message)
        self.causes = causes
