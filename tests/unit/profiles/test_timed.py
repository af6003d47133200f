"""Stand-ins for plugins: they answer as the plugins do, and are timed."""

from __future__ import annotations

import pytest

from skedge.profiles.timed import TimedPlugin, timed_profile
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

Observed = list[tuple[str, str, str, float]]


@pytest.mark.asyncio
async def test_decisions_are_the_same_and_every_call_is_observed() -> None:
    observed: Observed = []
    async with Harness() as harness:
        for name in ("n1", "n2", "n3"):
            harness.add_node(make_node(name).capacity(cpu="4", memory="8Gi", pods="20").label(zone=name))
        scheduler = harness.scheduler
        (profile,) = scheduler.profiles.values()
        timed = timed_profile(profile, lambda *seen: observed.append(seen), harness.clock.monotonic)
        scheduler.profiles = {profile.name: timed}
        harness.add_pod(make_pod("fits").req(cpu="1").label(app="x").spread("zone", {"app": "x"}))
        harness.add_pod(make_pod("too-big").req(cpu="64"))
        await harness.settle()
        assert harness.node_of("fits")
        assert not harness.node_of("too-big")
    seen = {(plugin, point, status) for plugin, point, status, _ in observed}
    assert {
        ("PodTopologySpread", "PreFilter", "Success"),
        ("PodTopologySpread", "Filter", "Success"),
        ("InterPodAffinity", "PreFilter", "Skip"),
        ("VolumeBinding", "Reserve", "Success"),
        ("VolumeBinding", "PreBindPreFlight", "Skip"),
        ("DefaultBinder", "Bind", "Success"),
    } <= seen
    assert timed.standing == profile.standing


def test_attributes_of_the_plugin_show() -> None:
    class Plugin:
        name = "Some"
        reads = 3

        def reserve(self, *args: object) -> None:
            return None

    observed: Observed = []
    stand_in = TimedPlugin(Plugin(), lambda *seen: observed.append(seen), lambda: 1.0)
    assert (stand_in.name, stand_in.reads) == ("Some", 3)
    assert not hasattr(stand_in, "filter")
    stand_in.reserve(None, None, "n")
    assert observed == [("Some", "Reserve", "Success", 0.0)]
