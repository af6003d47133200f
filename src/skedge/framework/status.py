"""Outcomes of plugins as values. Upstream: `kube-scheduler/framework/interface.go` (Status, Code)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from typing import Final


class Code(IntEnum):
    """What a plugin says of a pod (and a node). What the queue does with each stands beside it."""

    SUCCESS = 0  # go on
    ERROR = 1  # something broke: back to the queue after a backoff, reason SchedulerError
    UNSCHEDULABLE = 2  # rejected; preemption may help; waits for an event that the plugin registered
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3  # rejected; preemption can not help; waits the same way
    WAIT = 4  # Permit only: the pod is held back
    SKIP = 5  # the plugin has nothing to do with this pod
    PENDING = 6  # rejected until something outside happens; when it does there is no backoff

    word: str
    """The name the reference prints and uses as a metric label."""


_WORDS: Final = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
for _code, _word in _WORDS.items():
    _code.word = _word  # a plain attribute: it is asked for a dozen times a pod

REJECTED: Final = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


class Status:
    """A code, reasons, the plugin that said it, and for ERROR the exception behind it. Never changed once made."""

    __slots__ = ("code", "error", "ok", "plugin", "reasons", "rejected", "skip")

    def __init__(
        self,
        code: Code = Code.SUCCESS,
        *reasons: str,
        plugin: str = "",
        error: BaseException | None = None,
    ) -> None:
        self.code = code
        self.ok = code is Code.SUCCESS
        self.skip = code is Code.SKIP
        self.rejected = code in REJECTED
        self.reasons = reasons
        self.plugin = plugin
        self.error = error

    @classmethod
    def from_error(cls, error: BaseException, plugin: str = "") -> Status:
        return cls(Code.ERROR, plugin=plugin, error=error)

    def by(self, plugin: str) -> Status:
        """The same outcome, said by this plugin."""
        return Status(self.code, *self.reasons, plugin=plugin, error=self.error)

    def all_reasons(self) -> tuple[str, ...]:
        """The error's text, if there is one, then the reasons."""
        return (str(self.error), *self.reasons) if self.error is not None else self.reasons

    @property
    def message(self) -> str:
        return ", ".join(self.all_reasons())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Status)
            and self.code == other.code
            and self.all_reasons() == other.all_reasons()
            and self.plugin == other.plugin
        )

    def __hash__(self) -> int:
        return hash((self.code, self.all_reasons(), self.plugin))

    def __repr__(self) -> str:
        who = f"{self.plugin}: " if self.plugin else ""
        return f"<{who}{self.code.word}{' ' + self.message if self.message else ''}>"


SUCCESS: Final = Status()
SKIP: Final = Status(Code.SKIP)


def fit_message(total: int, counted: Iterable[tuple[Status, int]], absent: Status) -> str:
    """`0/N nodes are available: ...`: each reason with the number of nodes it holds for.

    `counted`: statuses and how many nodes have each; all other nodes have the status `absent`.
    """
    reasons: Counter[str] = Counter()
    left = total
    for status, nodes in counted:
        left -= nodes
        for reason in status.all_reasons():
            reasons[reason] += nodes
    if left > 0:
        for reason in absent.all_reasons():
            reasons[reason] += left
    text = f"0/{total} nodes are available:"
    if reasons:
        text += " " + ", ".join(sorted(f"{nodes} {reason}" for reason, nodes in reasons.items())) + "."
    return text


class PluginError(Exception):
    """A plugin could not answer: what it raises inside an array rule, where a Status has no place. Ends the cycle."""
