"""Reviews over the API client: what is asked, what is understood, which errors may pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skedge.app.reviewer import RestReviewer
from skedge.client.errors import ConnectionLost, ConnectionRefused, RequestTimeout, api_error
from skedge.serving.users import AccessReview, ReviewError, TokenReview, UserInfo


class Client:
    """Answers every request alike and keeps the last one."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: tuple[str, str, Any, Any] | None = None

    async def request(self, method: str, path: str, *, params: Any, body: Any, timeout: float) -> bytes:
        self.asked = (method, path, dict(params), body)
        assert timeout == 10.0
        if isinstance(self._answer, Exception):
            raise self._answer
        return json.dumps(self._answer).encode()


@pytest.mark.asyncio
async def test_token_of_a_user() -> None:
    user = {"username": "jane", "uid": "7", "groups": ["readers"], "extra": {"scope": ["a", "b"]}}
    client = Client({"status": {"authenticated": True, "user": user}})
    review = await RestReviewer(client).review_token("secret")  # type: ignore[arg-type]
    assert review == TokenReview(UserInfo("jane", "7", ("readers",), {"scope": ("a", "b")}))
    assert client.asked is not None
    method, path, params, body = client.asked
    assert (method, path, params) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {})
    assert body["spec"] == {"token": "secret"}


@pytest.mark.asyncio
async def test_token_of_nobody() -> None:
    client = Client({"status": {"authenticated": False, "error": "unknown"}})
    assert await RestReviewer(client).review_token("x") == TokenReview(None)  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_access() -> None:
    client = Client({"status": {"allowed": False, "denied": True, "reason": "no"}})
    user = UserInfo("jane", "7", ("readers",), {"scope": ("a",)})
    assert await RestReviewer(client).review_access(user, "get", "/metrics") == AccessReview(False, True, "no")  # type: ignore[arg-type]
    assert client.asked is not None
    assert client.asked[2] == {"timeout": "10s"}
    assert client.asked[3]["spec"] == {
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        "user": "jane",
        "uid": "7",
        "groups": ["readers"],
        "extra": {"scope": ["a"]},
    }


ERRORS = [
    (ConnectionLost("lost"), "<error>", True),
    (ConnectionRefused("refused"), "<error>", False),
    (RequestTimeout("late"), "<error>", False),
    (api_error(500, b""), "500", True),
    (api_error(429, b""), "429", True),
    (api_error(503, b"", retry_after=1.0), "503", True),
    (api_error(503, b""), "503", False),
    (api_error(403, b""), "403", False),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("error", "code", "retryable"), ERRORS, ids=[str(error) for error, _, _ in ERRORS])
async def test_errors(error: Exception, code: str, retryable: bool) -> None:
    with pytest.raises(ReviewError) as caught:
        await RestReviewer(Client(error)).review_token("x")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.retryable) == (code, retryable)


@pytest.mark.asyncio
@pytest.mark.parametrize("answer", [{}, [], {"status": None}])
async def test_answers_that_are_no_review(answer: Any) -> None:
    with pytest.raises(ReviewError, match="has no status"):
        await RestReviewer(Client(answer)).review_token("x")  # type: ignore[arg-type]
