"""What `explain` finds out, as values. The JSON of `skedge explain -o json` is these structs, fields in camelCase.

Fields that say nothing (empty lists, absent parts) are left out of the JSON.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

Verdict = Literal["Schedulable", "Unschedulable", "Gated", "Error", "Ignored", "Terminating"]


class _Part(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    pass


class Said(_Part):
    """What a plugin said: `code` as the reference names it (`Unschedulable`, ...)."""

    plugin: str
    code: str
    reasons: list[str] = []


class Count(_Part):
    """A reason and the number of nodes it holds for."""

    nodes: int
    reason: str
    plugins: list[str] = []


class Rejected(_Part):
    """A node the pod does not fit on, and the first plugin that said so (all of them where the profile asks all)."""

    node: str
    plugin: str
    code: str
    reasons: list[str] = []


class Scored(_Part):
    """A node the pod fits on. `scores`: normalised score x weight by plugin; absent where only one node fits."""

    node: str
    total: int | None = None
    scores: dict[str, int] = {}


class Candidate(_Part):
    """A node where the pod would fit if these pods (`namespace/name`, most important first) were gone."""

    node: str
    victims: list[str]
    pdb_violations: int = 0


class Preemption(_Part):
    """What PostFilter came to; `chosen` is the node it would nominate ("": none)."""

    chosen: str = ""
    message: str = ""
    candidates: list[Candidate] = []


class Hint(_Part):
    """A single change after which the pod fits on `nodes` nodes; `examples` are the first of them.

    `kind` is one of `toleration`, `requests`, `hostPort`, `spread`, `nodeSelector`, `nodeAffinity`, `podAffinity`,
    `podAntiAffinity`, `uncordon`, `evict`, `addNode`, or `several`: two changes to the pod, told where none is enough
    alone. `change` is what would be different, in the API's terms.
    """

    kind: str
    text: str
    change: dict[str, Any]
    nodes: int
    examples: list[str] = []


class Explanation(_Part):
    """Why a pod is, or is not, placed. Everything is said of this moment: nothing is bound and nobody evicted.

    `message` is the text of the pod's PodScheduled condition, to the letter; "" where the pod fits. `fits` of `nodes`
    nodes are feasible. `node` is where the pod is now; it is judged as if it were not there. `best` are the nodes with
    the highest total, of which one is taken at random.
    """

    pod: str
    scheduler: str
    verdict: Verdict
    nodes: int
    fits: int
    message: str = ""
    node: str = ""
    pre_enqueue: Said | None = None
    pre_filter: Said | None = None
    reasons: list[Count] = []
    rejected: list[Rejected] = []
    feasible: list[Scored] = []
    weights: dict[str, int] = {}
    best: list[str] = []
    preemption: Preemption | None = None
    hints: list[Hint] = []
    notes: list[str] = []


PARTS: Final = (Said, Count, Rejected, Scored, Preemption, Candidate, Hint)
"""What an explanation is made of."""
