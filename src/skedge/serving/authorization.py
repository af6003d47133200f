"""Who may ask for which path. Upstream: `apiserver/pkg/server/options/authorization.go`, `.../authorizer/webhook`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Final, NamedTuple

from skedge.clock import Clock
from skedge.serving.reviews import ExpiringCache, Retrying, SingleFlight
from skedge.serving.users import PRIVILEGED_GROUP, AccessReview, Reviewer, UserInfo
from skedge.telemetry.metrics import Metrics

DEFAULT_ALLOWED: Final = ("/healthz", "/readyz", "/livez")
_CACHED_DECISIONS: Final = 8192
_LONGEST_CACHED: Final = 10_000
"""Questions of this many characters and more are not kept: whoever asks them chooses how long they are."""


class Decision(NamedTuple):
    """Whether a request may go on, and why not."""

    allowed: bool
    reason: str = ""


class AllowedPaths:
    """Paths that need no permission: exact, or by prefix with a `*` at the end; a leading `/` may be missing."""

    def __init__(self, paths: Iterable[str] = DEFAULT_ALLOWED) -> None:
        """ValueError for a path with a `*` elsewhere."""
        exact, prefixes = set(), []
        for path in paths:
            bare = path.removeprefix("/")
            if "*" in bare[:-1]:
                raise ValueError(f'only trailing * allowed in "{path}"')
            if bare.endswith("*"):
                prefixes.append(bare[:-1])
            else:
                exact.add(bare)
        self._exact, self._prefixes = frozenset(exact), tuple(prefixes)

    def __contains__(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._exact or bare.startswith(self._prefixes)


class Authorizer:
    """Privileged group, free paths, then the API server's word; `reviewer` None: nobody else may."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        random: Random,
        reviewer: Reviewer | None = None,
        allowed_paths: AllowedPaths | None = None,
        allowed_ttl: float = 10.0,
        denied_ttl: float = 10.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._reviewer = reviewer
        self._paths = allowed_paths or AllowedPaths()
        self._allowed_ttl, self._denied_ttl = allowed_ttl, denied_ttl
        self._cache: ExpiringCache[str, AccessReview] = ExpiringCache(clock, _CACHED_DECISIONS)
        self._flights: SingleFlight[str, AccessReview] = SingleFlight("access review")
        self._retrying = Retrying(
            clock,
            random,
            sleep,
            metrics.counter("apiserver_delegated_authz_request_total"),
            metrics.histogram("apiserver_delegated_authz_request_duration_seconds"),
        )
        self._attempts = metrics.counter("authorization_attempts_total")
        self._seconds = metrics.histogram("authorization_duration_seconds")

    async def authorize(self, user: UserInfo, verb: str, path: str) -> Decision:
        """The decision; ReviewError when the API server could not be asked."""
        begin = self._clock.monotonic()
        result = "error"
        try:
            review = await self._review(user, verb, path)
            result = "allowed" if review.allowed else "denied" if review.denied else "no-opinion"
            return Decision(review.allowed and not review.denied, review.reason)
        finally:
            self._attempts.labels(result).inc()
            self._seconds.labels(result).observe(self._clock.monotonic() - begin)

    async def _review(self, user: UserInfo, verb: str, path: str) -> AccessReview:
        if PRIVILEGED_GROUP in user.groups or path in self._paths:
            return AccessReview(allowed=True)
        reviewer = self._reviewer
        if reviewer is None:
            return AccessReview(allowed=False)
        key = repr((user.name, user.uid, user.groups, sorted(user.extra.items()), verb, path))
        if (known := self._cache.get(key)) is not None:
            return known
        question = lambda: self._retrying.ask(lambda: reviewer.review_access(user, verb, path))  # noqa: E731
        review = await self._flights.ask(key, question)
        if len(key) < _LONGEST_CACHED:
            self._cache.put(key, review, self._allowed_ttl if review.allowed else self._denied_ttl)
        return review

    async def close(self) -> None:
        """Give up reviews under way."""
        await self._flights.close()
