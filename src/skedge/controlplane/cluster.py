"""What every handler shares: the store, the clock, the random source, and the questions often asked of them."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from skedge.clock import Clock
from skedge.controlplane.store import Collection, Store, Stored
from skedge.controlplane.usage import MEASURES, Usage

JSON = dict[str, Any]

_NAME_CHARS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, no lookalikes


class Cluster:
    """The store with a clock and a random source."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random) -> None:
        self.store = store
        self.clock = clock
        self.rng = rng
        self.usage = {storage: Usage(store.collection(storage)) for storage in MEASURES}
        self._second = -1
        self._text = ""

    def collection(self, storage: str) -> Collection:
        return self.store.collection(storage)

    def find(self, storage: str, name: str, namespace: str = "") -> Stored | None:
        """An object by name, or None."""
        return self.store.collection(storage).objects.get(f"{namespace}/{name}" if namespace else name)

    def timestamp(self) -> str:
        """The present second as metav1.Time writes it."""
        second = int(self.clock.now())
        if second != self._second:
            self._text = timestamp(second)  # first: bodies that are long are worked on in a thread
            self._second = second
        return self._text

    def uid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Five characters for a generated name."""
        return "".join(self.rng.choices(_NAME_CHARS, k=5))


def timestamp(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """An RFC 3339 time as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def shifted(text: str, by: float) -> str:
    """An RFC 3339 time moved by some seconds, in whole seconds."""
    return (datetime.fromisoformat(text) + timedelta(seconds=by)).strftime("%Y-%m-%dT%H:%M:%SZ")
