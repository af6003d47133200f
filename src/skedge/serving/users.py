"""Who asks, who may: the values authentication and authorisation pass round, and the port to the API server.

Upstream: `apiserver/pkg/authentication/user`, `apiserver/plugin/pkg/{authenticator,authorizer}/.../webhook`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

ALL_AUTHENTICATED: Final = "system:authenticated"
ALL_UNAUTHENTICATED: Final = "system:unauthenticated"
PRIVILEGED_GROUP: Final = "system:masters"


@dataclass(frozen=True)
class UserInfo:
    """An identity as TokenReview and SubjectAccessReview have it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def authenticated(self) -> UserInfo:
        """The same identity in the group of all authenticated ones."""
        if ALL_AUTHENTICATED in self.groups:
            return self
        return UserInfo(self.name, self.uid, (*self.groups, ALL_AUTHENTICATED), self.extra)


ANONYMOUS: Final = UserInfo("system:anonymous", groups=(ALL_UNAUTHENTICATED,))


class TokenReview(NamedTuple):
    """A TokenReview's status: the user whose token it is, or None."""

    user: UserInfo | None


class AccessReview(NamedTuple):
    """A SubjectAccessReview's status."""

    allowed: bool
    denied: bool = False
    reason: str = ""


class ReviewError(Exception):
    """A review could not be had. `code`: the HTTP status as text, or `<error>` when there was no answer."""

    def __init__(self, message: str, code: str = "<error>", *, retryable: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class Reviewer(Protocol):
    """Asks the API server; one call, one request, with its own time-out. Failure is a ReviewError."""

    async def review_token(self, token: str) -> TokenReview:
        """POST a TokenReview."""
        ...

    async def review_access(self, user: UserInfo, verb: str, path: str) -> AccessReview:
        """POST a SubjectAccessReview for a non-resource path."""
        ...
