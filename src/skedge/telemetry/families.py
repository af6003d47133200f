"""Metric families: children that are plain Python numbers while counting, and samples of them at scrape time.

Counting costs an addition, observing little more: observations are put into buckets in lots. Names, label texts and
cumulative buckets are worked out only when somebody scrapes. One thread counts; `Registry.sample()` belongs to that
thread too and is cheap, what it returns can be rendered (`exposition`) on any other. Upstream:
`component-base/metrics`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from skedge.telemetry.logs import get_logger
from skedge.telemetry.numbers import go_float

log = get_logger(__name__)

ALPHA: Final = "ALPHA"
BETA: Final = "BETA"
STABLE: Final = "STABLE"

Kind: TypeAlias = Literal["counter", "gauge", "histogram", "summary", "untyped"]
Readings: TypeAlias = float | Mapping[tuple[str, ...], float]
"""What a callback answers: one number (a family without labels) or a number for each tuple of label values."""

UNEXPECTED: Final = "unexpected"
"""What a label value becomes that is not in the allow-list of its metric."""

MANY: Final = 512
"""So many observations wait at most to be counted."""


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bucket bounds, each `factor` times the one before (rounded at every step, as upstream's are)."""
    bounds = [start]
    for _ in range(count - 1):
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


@dataclass(frozen=True)
class MetricSpec:
    """One row of the table: what a family is called and how it counts."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    """In the order in which values are given to `Family.labels`; output is sorted by name."""
    stability: str = ALPHA
    """ALPHA, BETA, STABLE, or "" for families outside that promise (process and runtime)."""
    buckets: tuple[float, ...] = ()
    gate: str = ""
    """The feature gate without which the family does not exist."""
    endpoints: frozenset[str] = frozenset({"metrics"})
    deprecated: str = ""
    """The version (1.35.0) since which it is deprecated."""
    show_empty: bool = False
    """A labelled histogram shows children that have observed nothing yet."""

    @cached_property
    def help_text(self) -> str:
        """The HELP text with its stability and deprecation marks."""
        mark = f"[{self.stability}] " if self.stability else ""
        return mark + (f"(Deprecated since {self.deprecated}) " if self.deprecated else "") + self.help

    @cached_property
    def bound_texts(self) -> tuple[str, ...]:
        """The `le` values, +Inf included."""
        return (*map(go_float, self.buckets), "+Inf")


class Share:
    """A number that several counters have in common: added to once, and read by each of them."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Counter:
    """A number that grows: its own `value`, and the shares it has in others."""

    __slots__ = ("_shares", "value")

    def __init__(self) -> None:
        self.value: float = 0
        self._shares: tuple[Share, ...] = ()

    def inc(self, amount: float = 1) -> None:
        self.value += amount

    def include(self, share: Share) -> None:
        """Counts from now on what the share does."""
        self._shares += (share,)

    @property
    def total(self) -> float:
        return self.value + sum([share.value for share in self._shares])

    def reset(self) -> None:
        self.value = 0
        for share in self._shares:
            share.value = 0


class Gauge(Counter):
    """A number that goes up and down."""

    __slots__ = ()

    def set(self, value: float) -> None:
        self.value = value

    def dec(self, amount: float = 1) -> None:
        self.value -= amount


class Histogram:
    """Counts by bucket (`counts[i]`: above bound i-1, up to bound i; the last one: above all bounds) and their sum.

    Observations wait in `late` until somebody reads, or until they are many: sorted they are counted much quicker than
    one by one. Hot callers append to it, and call `settle` now and then.
    """

    __slots__ = ("_counts", "_sum", "bounds", "late")

    def __init__(self, bounds: tuple[float, ...] = ()) -> None:
        self.bounds = bounds
        self.late: list[float] = []
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    @property
    def counts(self) -> list[int]:
        self.settle()
        return self._counts

    @property
    def sum(self) -> float:
        self.settle()
        return self._sum

    def observe(self, value: float) -> None:
        self.late.append(value)
        if len(self.late) >= MANY:
            self.settle()

    def observe_many(self, value: float, times: int) -> None:
        """`times` observations of the same value."""
        self._counts[bisect_left(self.bounds, value)] += times
        self._sum += value * times

    def settle(self) -> None:
        """Counts what is late."""
        late = self.late
        if not late:
            return
        self._sum += sum(late)
        late.sort()
        below = 0
        for i, bound in enumerate(self.bounds):
            if below == len(late):
                break
            up_to = bisect_right(late, bound, below)
            self._counts[i] += up_to - below
            below = up_to
        self._counts[-1] += len(late) - below
        late.clear()

    def reset(self) -> None:
        self.late.clear()
        self._counts = [0] * len(self._counts)
        self._sum = 0.0


class Distribution(NamedTuple):
    """A histogram's state at one moment; `counts` as in `Histogram`, `bounds` without +Inf. A summary has no bounds."""

    bounds: tuple[float, ...]
    counts: list[int]
    sum: float


LabelPairs: TypeAlias = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One series: its label pairs sorted by name, and its value."""

    labels: LabelPairs
    value: float | Distribution


class FamilySample(NamedTuple):
    """A family's series at one moment, ready to be rendered on any thread."""

    spec: MetricSpec
    samples: list[Sample]


class Child(Protocol):
    def reset(self) -> None: ...


C = TypeVar("C", Counter, Gauge, Histogram)


class Family(Generic[C]):
    """All series of one name. `labels(...)` gives the child to count with; hold on to it where it is hot.

    A family may instead (or for other label values as well) be read through a callback at scrape time: `read_from`.
    """

    def __init__(
        self,
        spec: MetricSpec,
        make: Callable[[], C],
        allowed: Mapping[str, frozenset[str]] | None = None,
        unexpected: Counter | None = None,
    ) -> None:
        self.spec = spec
        self._make: Callable[[], C] = make
        self._allowed = allowed or {}
        self._unexpected = unexpected
        self._children: dict[tuple[str, ...], C] = {}
        self._order = sorted(range(len(spec.labels)), key=lambda i: spec.labels[i])
        self._callbacks: list[Callable[[], Readings]] = []
        if not spec.labels:
            self._children[()] = make()

    def labels(self, *values: str) -> C:
        """The child of these label values, in the order of the table; made when first asked for."""
        child = self._children.get(values)
        return child if child is not None else self._new(values)

    @property
    def only(self) -> C:
        """The single child of a family without labels."""
        return self._children[()]

    def _new(self, values: tuple[str, ...]) -> C:
        if len(values) != len(self.spec.labels):
            raise ValueError(f"{self.spec.name}: expected values for {self.spec.labels}, got {values!r}")
        limited = self._limit(values)
        child = self._children.get(limited)
        if child is None:
            child = self._children[limited] = self._make()
        return child

    def _limit(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """The values with those not in their allow-list replaced, which is counted."""
        if not self._allowed:
            return values
        limited = tuple(
            value if (allowed := self._allowed.get(label)) is None or value in allowed else UNEXPECTED
            for label, value in zip(self.spec.labels, values, strict=True)
        )
        if limited != values and self._unexpected is not None:
            self._unexpected.inc()
        return limited

    def remove(self, *values: str) -> None:
        """Forget a series."""
        self._children.pop(values, None)

    def read_from(self, callback: Callable[[], Readings]) -> None:
        """Ask `callback` for values at every scrape, on the thread that samples; several callbacks add their series."""
        self._callbacks.append(callback)

    def reset(self) -> None:
        """Set every child back to nothing; children stay valid for those who hold them."""
        for child in self._children.values():
            child.reset()

    def sample(self) -> FamilySample:
        """The state of every series now."""
        samples = [
            Sample(self._pairs(values), _value(child))
            for values, child in list(self._children.items())
            if self._shows(values, child)
        ]
        for callback in self._callbacks:
            readings = callback()
            if isinstance(readings, Mapping):
                shown: dict[tuple[str, ...], float] = {}
                for values, read in readings.items():  # those that an allow-list makes one are added up
                    limited = self._limit(values)
                    shown[limited] = shown.get(limited, 0.0) + read
                samples.extend(Sample(self._pairs(values), read) for values, read in shown.items())
            else:
                samples.append(Sample((), readings))
        return FamilySample(self.spec, samples)

    def collect(self) -> list[FamilySample]:
        """`sample`, as a collector."""
        return [self.sample()]

    def _shows(self, values: tuple[str, ...], child: C) -> bool:
        if not values:
            return not self._callbacks
        return not isinstance(child, Histogram) or self.spec.show_empty or any(child.counts)

    def _pairs(self, values: tuple[str, ...]) -> LabelPairs:
        return tuple((self.spec.labels[i], values[i]) for i in self._order)


def _value(child: Counter | Histogram) -> float | Distribution:
    if isinstance(child, Histogram):
        return Distribution(child.bounds, child.counts.copy(), child.sum)
    return child.total


def _surviving(name: str, source: Callable[[], Iterable[FamilySample]]) -> list[FamilySample]:
    """What `source` gives; one that breaks is named in the log and costs its own series only."""
    try:
        return list(source())
    except Exception as error:
        log.error(error, "Failed to collect metrics", source=name)
        return []


class Collector(Protocol):
    """Another source of families: ours (`process`) or an adapter (`exposition.from_prometheus_client`)."""

    def collect(self) -> Iterable[FamilySample]: ...


class Registry:
    """Families by name, and other collectors. Names are unique: registering one twice is a programming error."""

    def __init__(self) -> None:
        self._families: dict[str, Family[Counter] | Family[Gauge] | Family[Histogram]] = {}
        self._collectors: list[Collector] = []

    def add(self, family: Family[Counter] | Family[Gauge] | Family[Histogram]) -> None:
        if family.spec.name in self._families:
            raise ValueError(f"metric {family.spec.name} is registered already")
        self._families[family.spec.name] = family

    def register(self, collector: Collector) -> None:
        """Have `collector` asked at every scrape of `/metrics`."""
        self._collectors.append(collector)

    def sample(self, endpoint: str = "metrics") -> list[FamilySample]:
        """Every family shown at `endpoint` (metrics, slis), sorted by name, without those that have no series."""
        found: list[FamilySample] = []
        for name, family in self._families.items():
            if endpoint in family.spec.endpoints:
                found.extend(_surviving(name, family.collect))
        for collector in self._collectors:
            collected = _surviving(type(collector).__name__, collector.collect)
            found.extend(sample for sample in collected if endpoint in sample.spec.endpoints)
        return sorted((sample for sample in found if sample.samples), key=lambda sample: sample.spec.name)

    def reset(self, endpoint: str = "metrics") -> None:
        """Set the labelled families of `endpoint` back to nothing (what DELETE on the endpoint does)."""
        for family in self._families.values():
            if family.spec.labels and endpoint in family.spec.endpoints:
                family.reset()
