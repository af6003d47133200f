"""`skedge version`."""

from __future__ import annotations

from collections.abc import Sequence

from skedge import KUBERNETES_VERSION, __version__


def run(argv: Sequence[str]) -> int:
    print(f"skedge {__version__}, behaves like kube-scheduler {KUBERNETES_VERSION}")
    return 0
