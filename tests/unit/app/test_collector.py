"""The collector and the allocator are told about a large heap."""

from __future__ import annotations

import gc

from skedge.app.collector import THRESHOLDS, calm


def test_calm_makes_passes_rare_and_spares_what_is_alive() -> None:
    before = gc.get_threshold()
    try:
        calm()
        assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
