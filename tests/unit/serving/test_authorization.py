"""Who may ask for which path, and what a refused request is told."""

from __future__ import annotations

import json
from random import Random

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from skedge.clock import VirtualClock
from skedge.serving.answers import Answer, Request, text
from skedge.serving.authentication import AuthenticationError, PeerCertificate
from skedge.serving.authorization import AllowedPaths, Authorizer, Decision
from skedge.serving.guard import Guard
from skedge.serving.users import ANONYMOUS, AccessReview, ReviewError, TokenReview, UserInfo
from skedge.telemetry.exposition import render_text
from skedge.telemetry.metrics import Metrics

JANE = UserInfo("jane", groups=("dev",))
MASTER = UserInfo("root", groups=("system:masters",))


class Reviews:
    """Says of each path what it was told to say."""

    def __init__(self, **answers: AccessReview | ReviewError) -> None:
        self.answers = {f"/{path}": answer for path, answer in answers.items()}
        self.asked: list[tuple[str, str, str]] = []

    async def review_token(self, token: str) -> TokenReview:
        raise AssertionError("not asked here")

    async def review_access(self, user: UserInfo, verb: str, path: str) -> AccessReview:
        self.asked.append((user.name, verb, path))
        answer = self.answers.get(path, AccessReview(False))
        if isinstance(answer, ReviewError):
            raise answer
        return answer


class Setup:
    def __init__(self, reviews: Reviews | None, paths: AllowedPaths | None = None) -> None:
        self.clock = VirtualClock()
        self.metrics = Metrics("1.36.2")
        self.authorizer = Authorizer(self.metrics, self.clock, Random(0), reviews, paths, 10, 5, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def lines(self) -> list[str]:
        return render_text(self.metrics.registry.sample()).splitlines()


@pytest.mark.parametrize(
    ("paths", "path", "free"),
    [
        (None, "/healthz", True),
        (None, "/livez", True),
        (None, "/readyz", True),
        (None, "/livez/ping", False),
        (None, "/metrics", False),
        (["metrics"], "/metrics", True),
        (["/metrics"], "/healthz", False),
        (["/debug/*"], "/debug/pprof/heap", True),
        (["/debug/*"], "/debug", False),
        (["/debug*"], "/debug", True),
        (["*"], "/anything", True),
        ([], "/healthz", False),
    ],
)
def test_free_paths(paths: list[str] | None, path: str, free: bool) -> None:
    assert (path in (AllowedPaths() if paths is None else AllowedPaths(paths))) is free


def test_a_star_stands_at_the_end() -> None:
    with pytest.raises(ValueError, match=r'only trailing \* allowed in "/a\*/b"'):
        AllowedPaths(["/a*/b"])


@pytest.mark.asyncio
async def test_the_order_is_group_then_path_then_review() -> None:
    reviews = Reviews(metrics=AccessReview(True))
    setup = Setup(reviews)
    assert await setup.authorizer.authorize(MASTER, "get", "/secret") == Decision(True)
    assert await setup.authorizer.authorize(ANONYMOUS, "get", "/healthz") == Decision(True)
    assert reviews.asked == []
    assert await setup.authorizer.authorize(JANE, "get", "/metrics") == Decision(True)
    assert reviews.asked == [("jane", "get", "/metrics")]


@pytest.mark.asyncio
async def test_without_a_reviewer_only_the_privileged_and_free_paths_pass() -> None:
    setup = Setup(None)
    assert not (await setup.authorizer.authorize(JANE, "get", "/metrics")).allowed
    assert (await setup.authorizer.authorize(JANE, "get", "/healthz")).allowed
    assert (await setup.authorizer.authorize(MASTER, "get", "/metrics")).allowed


@pytest.mark.asyncio
async def test_answers_are_kept_for_their_time() -> None:
    reviews = Reviews(yes=AccessReview(True), no=AccessReview(False, True, "never"))
    setup = Setup(reviews)

    async def ask() -> None:
        await setup.authorizer.authorize(JANE, "get", "/yes")
        await setup.authorizer.authorize(JANE, "get", "/no")

    await ask()
    await ask()
    assert len(reviews.asked) == 2
    setup.clock.advance(5)
    await ask()
    assert reviews.asked[2:] == [("jane", "get", "/no")]
    setup.clock.advance(5)
    await ask()
    assert reviews.asked[3:] == [("jane", "get", "/yes"), ("jane", "get", "/no")]
    lines = setup.lines()
    assert 'authorization_attempts_total{result="allowed"} 4' in lines
    assert 'authorization_attempts_total{result="denied"} 4' in lines
    assert 'apiserver_delegated_authz_request_total{code="201"} 5' in lines


@pytest.mark.asyncio
async def test_others_and_other_verbs_are_other_questions() -> None:
    reviews = Reviews()
    setup = Setup(reviews)
    for user in (JANE, UserInfo("jane", groups=("ops",)), UserInfo("jane", extra={"a": ("b",)})):
        await setup.authorizer.authorize(user, "get", "/x")
    await setup.authorizer.authorize(JANE, "put", "/x")
    assert len(reviews.asked) == 4


@pytest.mark.asyncio
async def test_overlong_questions_are_not_kept() -> None:
    reviews = Reviews()
    setup = Setup(reviews)
    for _ in range(2):
        await setup.authorizer.authorize(JANE, "get", "/" + "x" * 10_000)
    assert len(reviews.asked) == 2


class Known:
    """An authenticator that has made up its mind."""

    def __init__(self, user: UserInfo | None) -> None:
        self._user = user

    async def authenticate(self, headers: CIMultiDictProxy[str], peer: PeerCertificate | None) -> UserInfo:
        if self._user is None:
            raise AuthenticationError("bad")
        return self._user


async def handler(request: Request) -> Answer:
    if request.path == "/broken":
        raise KeyError("inside")
    return text("served")


async def through(user: UserInfo | None, reviews: Reviews, path: str, method: str = "GET") -> Answer:
    setup = Setup(reviews)
    guard = Guard(handler, setup.clock, Known(user), setup.authorizer)
    answer = await guard(Request(method, path), CIMultiDictProxy(CIMultiDict()))
    assert answer.headers["Cache-Control"] == "no-cache, private"
    return answer


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("user", "method", "review", "message"),
    [
        (ANONYMOUS, "GET", AccessReview(False), 'forbidden: User "system:anonymous" cannot get path "/metrics"'),
        (
            JANE,
            "PUT",
            AccessReview(False, reason="no rule"),
            'forbidden: User "jane" cannot put path "/metrics": no rule',
        ),
        (UserInfo('<b>"'), "GET", AccessReview(False), 'forbidden: User "&lt;b&gt;\\"" cannot get path "/metrics"'),
    ],
)
async def test_refused(user: UserInfo, method: str, review: AccessReview, message: str) -> None:
    answer = await through(user, Reviews(metrics=review), "/metrics", method)
    assert answer.status == 403
    assert json.loads(answer.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "details": {},
        "code": 403,
    }


@pytest.mark.asyncio
async def test_bad_credentials() -> None:
    answer = await through(None, Reviews(), "/healthz")
    assert answer.status == 401
    assert answer.body == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"Unauthorized","reason":"Unauthorized","code":401}\n'
    )


@pytest.mark.asyncio
async def test_no_answer_from_the_api_server() -> None:
    answer = await through(JANE, Reviews(metrics=ReviewError("connection refused")), "/metrics")
    assert (answer.status, answer.body) == (500, b'Internal Server Error: "/metrics": connection refused\n')


@pytest.mark.asyncio
async def test_a_broken_handler_says_nothing_of_its_inside() -> None:
    answer = await through(MASTER, Reviews(), "/broken")
    assert answer.status == 500
    assert b"inside" not in answer.body


@pytest.mark.asyncio
async def test_plain_loopback_asks_nobody() -> None:
    answer = await Guard(handler, VirtualClock())(Request("GET", "/x"), CIMultiDictProxy(CIMultiDict()))
    assert answer.body == b"served"
