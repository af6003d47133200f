"""Python's cycle collector, told about a process with a large and lasting heap."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 50, 1_000)
"""New containers between passes over the young, then so many of those between passes over the middle-aged and the old.

With the usual (700, 10, 10) there is a pass for every few pods, and nothing of a pod is cyclic.
"""


def make_rare() -> None:
    """Makes passes rare; to be called before the state of a cluster is read."""
    gc.set_threshold(*THRESHOLDS)


def calm() -> None:
    """Takes what is alive for lasting: no pass looks at it any more. To be called once the first state was read.

    Only the young are looked through before: a pass over everything would stop the process for too long.
    """
    make_rare()
    gc.collect(1)
    gc.freeze()
