"""TokenReview and SubjectAccessReview over the API client.

Upstream: `apiserver/plugin/pkg/{authenticator,authorizer}/.../webhook`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from skedge.client.errors import ApiError, ClientError, ConnectionLost, InternalError, TooManyRequests, one_line
from skedge.client.rest import RestClient, decode
from skedge.serving.users import AccessReview, ReviewError, TokenReview, UserInfo

_SECONDS: Final = 10.0
_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class RestReviewer:
    """Asks an API server who somebody is and what he may do; each question has ten seconds."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def review_token(self, token: str) -> TokenReview:
        body = {
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "spec": {"token": token},
            "status": {"user": {}},
        }
        status = await self._ask(_TOKEN_REVIEWS, body, {})
        if not status.get("authenticated"):
            return TokenReview(None)
        user = status.get("user") or {}
        extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
        return TokenReview(
            UserInfo(user.get("username") or "", user.get("uid") or "", tuple(user.get("groups") or ()), extra)
        )

    async def review_access(self, user: UserInfo, verb: str, path: str) -> AccessReview:
        spec: dict[str, Any] = {"nonResourceAttributes": {"path": path, "verb": verb}, "user": user.name}
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        if user.uid:
            spec["uid"] = user.uid
        body = {
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
        status = await self._ask(_ACCESS_REVIEWS, body, {"timeout": "10s"})
        return AccessReview(bool(status.get("allowed")), bool(status.get("denied")), status.get("reason") or "")

    async def _ask(self, path: str, body: Mapping[str, Any], params: Mapping[str, str]) -> Mapping[str, Any]:
        """The review's status."""
        try:
            answer = decode(await self._client.request("POST", path, params=params, body=body, timeout=_SECONDS))
        except ClientError as error:
            code = str(error.code) if isinstance(error, ApiError) else "<error>"
            raise ReviewError(one_line(error), code, retryable=_may_pass(error)) from None
        status = answer.get("status") if isinstance(answer, dict) else None
        if not isinstance(status, dict):
            raise ReviewError(f"the answer to POST {path} has no status", retryable=False)
        return status


def _may_pass(error: ClientError) -> bool:
    """Whether asking again makes sense: `webhook.DefaultShouldRetry`."""
    if isinstance(error, ApiError) and error.retry_after is not None:
        return True
    return isinstance(error, ConnectionLost | InternalError | TooManyRequests)
