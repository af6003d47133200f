"""The bounded log of what happened to pods."""

from __future__ import annotations

import math

from skedge.queue.story import Story


def test_story_is_bounded_and_per_pod() -> None:
    story = Story(limit=3)
    for i, key in enumerate(("ns/a", "ns/b", "ns/a", "ns/b")):
        story.tell((float(i), key, "active", "NodeAdd" if i else ""))
    assert len(story) == 3
    assert [str(step) for step in story.of("ns/a")] == ["2.000 ns/a active (NodeAdd)"]
    assert [step.time for step in story.last(2)] == [2.0, 3.0]
    assert math.isclose(story.last(9)[0].time, 1.0)
