"""Who sends a request, by headers, certificates and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from random import Random

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from skedge.clock import VirtualClock
from skedge.serving.authentication import (
    AuthenticationError,
    Authenticator,
    ClientTrust,
    PeerCertificate,
    RequestHeaderConfig,
)
from skedge.serving.users import ANONYMOUS, AccessReview, ReviewError, TokenReview, UserInfo
from skedge.telemetry.exposition import render_text
from skedge.telemetry.metrics import Metrics

PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
# Not certificates, but told apart by their bytes, which is all that is asked of them here.
CLIENT_CA, PROXY_CA = PEM.format("Y2xp"), PEM.format("cHJv")
CLIENT_CHAIN, PROXY_CHAIN = frozenset({b"cli"}), frozenset({b"pro"})


def peer(chain: frozenset[bytes], name: str = "cn", *organizations: str) -> PeerCertificate:
    return PeerCertificate(name, organizations, chain, expires=1_700_086_400.0)


class Reviews:
    """Knows tokens; fails as often as it is told."""

    def __init__(self) -> None:
        self.users = {"good": UserInfo("jane", "u1", ("dev",))}
        self.errors: list[ReviewError] = []
        self.calls = 0
        self.gate: Awaitable[object] | None = None

    async def review_token(self, token: str) -> TokenReview:
        self.calls += 1
        if self.gate is not None:
            await self.gate
        if self.errors:
            raise self.errors.pop(0)
        return TokenReview(self.users.get(token))

    async def review_access(self, user: UserInfo, verb: str, path: str) -> AccessReview:
        raise AssertionError("not asked here")


class Setup:
    def __init__(self, reviews: Reviews | None = None, trust: ClientTrust | None = None) -> None:
        self.clock = VirtualClock()
        self.metrics = Metrics("1.36.2")
        self.slept: list[float] = []
        self.authenticator = Authenticator(
            self.metrics, self.clock, Random(0), reviews, cache_ttl=10.0, sleep=self.sleep
        )
        if trust is not None:
            self.authenticator.trust(trust)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)

    async def ask(
        self, headers: dict[str, str] | list[tuple[str, str]] | None = None, who: PeerCertificate | None = None
    ) -> UserInfo:
        return await self.authenticator.authenticate(CIMultiDictProxy(CIMultiDict(headers or {})), who)

    def lines(self) -> list[str]:
        return render_text(self.metrics.registry.sample()).splitlines()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Token good"}, {"Authorization": "Bearer "}, {"Authorization": "Basic Og=="}]
)
async def test_no_credentials_we_know_of_are_none(headers: dict[str, str]) -> None:
    assert await Setup(Reviews()).ask(headers) is ANONYMOUS


@pytest.mark.asyncio
async def test_tokens() -> None:
    setup = Setup(Reviews())
    assert await setup.ask(bearer("good")) == UserInfo("jane", "u1", ("dev", "system:authenticated"))
    assert (await setup.ask({"authorization": "bearer  good"})).name == "jane"
    with pytest.raises(AuthenticationError):
        await setup.ask(bearer("bad"))


@pytest.mark.asyncio
async def test_without_a_reviewer_tokens_are_ignored() -> None:
    assert await Setup().ask(bearer("good")) is ANONYMOUS


@pytest.mark.asyncio
async def test_answers_are_kept_for_ten_seconds_bad_ones_too() -> None:
    reviews = Reviews()
    setup = Setup(reviews)
    for _ in range(3):
        await setup.ask(bearer("good"))
        with pytest.raises(AuthenticationError):
            await setup.ask(bearer("bad"))
    assert reviews.calls == 2
    setup.clock.advance(10)
    await setup.ask(bearer("good"))
    assert reviews.calls == 3
    lines = setup.lines()
    for line in (
        'authentication_token_cache_request_total{status="hit"} 4',
        'authentication_token_cache_request_total{status="miss"} 3',
        'authentication_token_cache_fetch_total{status="ok"} 3',
        'authentication_attempts{result="success"} 4',
        'authentication_attempts{result="error"} 3',
        'apiserver_delegated_authn_request_total{code="201"} 3',
    ):
        assert line in lines


@pytest.mark.asyncio
async def test_failing_reviews_are_asked_again_and_not_remembered() -> None:
    reviews = Reviews()
    setup = Setup(reviews)
    reviews.errors = [ReviewError("refused") for _ in range(4)]
    assert (await setup.ask(bearer("good"))).name == "jane"
    assert [round(base, 3) for base in (0.5, 0.75, 1.125, 1.6875)] == [0.5, 0.75, 1.125, 1.688]
    for pause, base in zip(setup.slept, (0.5, 0.75, 1.125, 1.6875), strict=True):
        assert base <= pause <= base * 1.2
    reviews.errors = [ReviewError("refused") for _ in range(5)]
    with pytest.raises(AuthenticationError, match="refused"):
        await setup.ask(bearer("other"))
    with pytest.raises(AuthenticationError, match="invalid bearer token"):
        await setup.ask(bearer("other"))
    assert 'apiserver_delegated_authn_request_total{code="<error>"} 9' in setup.lines()


@pytest.mark.asyncio
async def test_an_error_that_will_not_pass_is_not_asked_again() -> None:
    reviews = Reviews()
    reviews.errors = [ReviewError("forbidden", "403", retryable=False)]
    setup = Setup(reviews)
    with pytest.raises(AuthenticationError, match="forbidden"):
        await setup.ask(bearer("good"))
    assert (reviews.calls, setup.slept) == (1, [])


@pytest.mark.asyncio
async def test_one_question_is_asked_once_at_a_time() -> None:
    reviews = Reviews()
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    reviews.gate = opened
    setup = Setup(reviews)
    asking = [asyncio.create_task(setup.ask(bearer("good"))) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    lines = setup.lines()
    assert 'authentication_token_cache_active_fetch_count{status="blocked"} 2' in lines
    assert 'authentication_token_cache_active_fetch_count{status="in_flight"} 1' in lines
    asking[0].cancel()
    opened.set_result(None)
    names = [
        user.name if isinstance(user, UserInfo) else None
        for user in await asyncio.gather(*asking, return_exceptions=True)
    ]
    assert names == [None, "jane", "jane"]
    assert reviews.calls == 1


@pytest.mark.asyncio
async def test_closing_gives_up_what_is_asked() -> None:
    reviews = Reviews()
    reviews.gate = asyncio.get_running_loop().create_future()
    setup = Setup(reviews)
    asking = asyncio.create_task(setup.ask(bearer("good")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await setup.authenticator.close()
    with pytest.raises(asyncio.CancelledError):
        await asking


TRUST = ClientTrust(CLIENT_CA)


@pytest.mark.asyncio
async def test_client_certificates() -> None:
    setup = Setup(trust=TRUST)
    user = await setup.ask(who=peer(CLIENT_CHAIN, "admin", "system:masters", "dev"))
    assert user == UserInfo("admin", groups=("system:masters", "dev", "system:authenticated"))
    assert 'apiserver_client_certificate_expiration_seconds_bucket{le="43200"} 0' in setup.lines()
    assert 'apiserver_client_certificate_expiration_seconds_bucket{le="86400"} 1' in setup.lines()
    with pytest.raises(AuthenticationError, match="unknown authority"):
        await setup.ask(who=peer(PROXY_CHAIN))
    assert await Setup().ask(who=peer(CLIENT_CHAIN)) is ANONYMOUS, "no CA is known, so certificates mean nothing"


@pytest.mark.asyncio
async def test_a_token_makes_up_for_a_bad_certificate() -> None:
    setup = Setup(Reviews(), TRUST)
    assert (await setup.ask(bearer("good"), peer(PROXY_CHAIN))).name == "jane"


PROXY = ClientTrust(
    CLIENT_CA,
    RequestHeaderConfig(PROXY_CA, ("front",), ("X-Remote-User", "X-Other-User"), ("X-Remote-Uid",)),
)
USER_HEADERS = [
    ("X-Other-User", "mary"),
    ("x-remote-uid", "u7"),
    ("X-Remote-Group", "a"),
    ("X-Remote-Group", "b"),
    ("X-Remote-Extra-Scopes%2fx", "1"),
    ("X-Remote-Extra-Scopes%2fx", "2"),
]


@pytest.mark.asyncio
async def test_a_front_proxy_speaks_for_others() -> None:
    user = await Setup(trust=PROXY).ask(USER_HEADERS, peer(PROXY_CHAIN, "front"))
    assert user == UserInfo("mary", "u7", ("a", "b", "system:authenticated"), {"scopes/x": ("1", "2")})


@pytest.mark.asyncio
async def test_others_do_not() -> None:
    setup = Setup(trust=PROXY)
    assert (await setup.ask(USER_HEADERS, peer(CLIENT_CHAIN, "front"))).name == "front", "who he is, not who he says"
    with pytest.raises(AuthenticationError, match="cn=thief is not in the allowed list"):
        await setup.ask(USER_HEADERS, peer(PROXY_CHAIN, "thief"))
    assert await setup.ask(USER_HEADERS) is ANONYMOUS
    anyone = ClientTrust("", RequestHeaderConfig(PROXY_CA))
    assert (await Setup(trust=anyone).ask({"X-Remote-User": "m"}, peer(PROXY_CHAIN, "x"))).name == "m"


@pytest.mark.asyncio
async def test_users_are_counted_by_class() -> None:
    setup = Setup(Reviews(), TRUST)
    for name in ("admin", "a@b", "system:kube-scheduler"):
        await setup.ask(who=peer(CLIENT_CHAIN, name))
    lines = setup.lines()
    for label in ("admin", "email_id", "other"):
        assert f'authenticated_user_requests{{username="{label}"}} 1' in lines


def test_the_tls_layer_gets_both_bundles() -> None:
    assert PROXY.bundle() == CLIENT_CA.strip() + "\n" + PROXY_CA.strip()
    assert ClientTrust().bundle() == ""
