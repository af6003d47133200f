"""Python's cycle collector, told about a process with a large and lasting heap."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 50, 1_000)
"""New containers between passes over the young, then so many of those between passes over the middle-aged and the old.

With the usual (700, 10, 10) a scheduler collects the young for every few pods, and nothing of a pod is cyclic.
"""


def calm() -> None:
    """Takes what is alive for lasting: no pass looks at it any more. Passes over what comes later are made rare.

    To be called when the first state of the cluster was read, before pods are scheduled.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
