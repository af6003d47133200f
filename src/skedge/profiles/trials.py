"""Filters on hypothetical worlds, for preemption: what pods on a row cannot change is not asked again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skedge.framework.state import CycleState
from skedge.framework.status import PluginError, Status
from skedge.profiles.diagnosis import Codes
from skedge.snapshot.changes import Aspect
from skedge.snapshot.crowd import Crowd
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import DeltaView

if TYPE_CHECKING:
    from skedge.profiles.search import Search

_OF_PODS = Aspect.RESOURCES | Aspect.PODS


def moves(plugin: Any) -> bool:
    """Whether pods that come to or leave a row may change the plugin's answer about it."""
    return bool(getattr(plugin, "reads", Aspect.ALL) & _OF_PODS)


class Broken:
    """Stands for a filter plugin that could not answer: every node that gets as far as it has this error."""

    def __init__(self, name: str, error: PluginError) -> None:
        self.name = name
        self._error = error

    def filter_status(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status.from_error(self._error)


class Trials:
    """The filters of a search that found nothing."""

    def __init__(self, search: Search) -> None:
        self._search = search
        standing = search.standing
        self._kept = {plugin.name: kept for plugin, kept in standing.filters if not moves(plugin)}
        self._plugins = [plugin for plugin in search.profile.filter if plugin.name not in search.skip_filter]
        self._moving = [plugin for plugin in self._plugins if moves(plugin)]

    @property
    def only_amounts(self) -> bool:
        """Whether pods on a row matter by what they ask for alone, the less the better, and to one plugin."""
        if len(self._moving) != 1 or self._search.table.wide:  # sums of wide amounts may wrap
            return False
        return getattr(self._moving[0], "by_amounts", False)

    def codes(self, view: DeltaView) -> Sequence[Codes]:
        """Every filter's codes, in Filter order."""
        return self._counted([self._answer(plugin, view) for plugin in self._plugins])

    def codes_of_moving(self, view: DeltaView, counted: bool = True) -> Sequence[Codes]:
        """Codes of the filters that the view's pods may change."""
        codes = [self._answer(plugin, view) for plugin in self._moving]
        return self._counted(codes) if counted else codes

    def count_tried(self, worlds: int, fit: int) -> None:
        """For the metrics: worlds that were not counted one by one, where only amounts matter."""
        self._search.profile.measures.tried_in_turn(self._plugins, self._moving[0], worlds, fit)

    def _counted(self, codes: Sequence[Codes]) -> Sequence[Codes]:
        self._search.profile.measures.tried(self._plugins, codes)
        return codes

    def nominated(self) -> Crowd:
        return self._search.crowded()

    def _answer(self, plugin: Any, view: DeltaView) -> Codes:
        kept = self._kept.get(plugin.name)
        if kept is not None:
            kept.sync()
            return Codes(plugin, kept.answers[view.rows])
        try:
            codes = np.asarray(plugin.filter(self._search.state, self._search.pod, view), np.int64)
        except PluginError as error:
            return Codes(Broken(plugin.name, error), np.ones(view.size, np.int64))
        return Codes(plugin, np.broadcast_to(codes, (view.size,)))
