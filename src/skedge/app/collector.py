"""Python's cycle collector and the C library's allocator, told about a process with a large and lasting heap."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

THRESHOLDS: Final = (20_000, 50, 1_000)
"""New containers between passes over the young, then so many of those between passes over the middle-aged and the old.

With the usual (700, 10, 10) there is a pass for every few pods, and nothing of a pod is cyclic.
"""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's <malloc.h>
KEPT_BYTES: Final = 64 << 20
FROM_HEAP_BYTES: Final = 16 << 20
"""Free memory at the top of the heap that is kept, and the size up to which an array comes from the heap.

By default a column of a large cluster is mapped anew from the system each time, page by page, and given back at once.
"""


def expect_large_heap() -> None:
    """Makes passes of the collector rare, and keeps freed arrays at hand; to be called before a cluster is read."""
    gc.set_threshold(*THRESHOLDS)
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it; elsewhere nothing is lost but speed
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, KEPT_BYTES)
        set_option(_MMAP_THRESHOLD, FROM_HEAP_BYTES)


def calm() -> None:
    """Takes what is alive for lasting: no pass looks at it any more. To be called once the first state was read.

    Only the young are looked through before: a pass over everything would stop the process for too long.
    """
    expect_large_heap()
    gc.collect(1)
    gc.freeze()
