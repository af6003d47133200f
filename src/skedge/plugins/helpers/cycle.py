"""Reading what a plugin wrote earlier in the cycle, where a configuration may have left that extension point out."""

from __future__ import annotations

from typing import Any, Final

from skedge.framework.state import CycleState
from skedge.framework.status import PluginError

PRE_FILTERED: Final = "PreFilter"
PRE_SCORED: Final = "PreScore"
"""Before a plugin's name: the key of what it wrote at that point, as the reference calls it in errors."""


def pre_filtered(state: CycleState, plugin: str) -> Any:
    """What the plugin's PreFilter wrote. Raises PluginError when PreFilter did not run."""
    key = PRE_FILTERED + plugin
    try:
        return state.read(key)
    except KeyError:
        text = f'running "{plugin}" filter plugin: error reading "{key}" from cycleState: not found'
        raise PluginError(text) from None


def pre_scored(state: CycleState, plugin: str, words: str = "error reading") -> Any:
    """What the plugin's PreScore wrote. Raises PluginError, in the reference's words, when PreScore did not run."""
    key = PRE_SCORED + plugin
    try:
        return state.read(key)
    except KeyError:
        text = f'plugin "{plugin}" failed with: {words} "{key}" from cycleState: not found'
        raise PluginError(text) from None
