"""What is watched: resources that only an out-of-tree plugin knows among it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skedge.app.watches import Custom, TakenListers, Watches, custom_path
from skedge.client.informer import InformerFactory
from skedge.client.watch import Resource
from skedge.config.defaults import default_configuration
from skedge.config.types import Plugin
from skedge.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Code, Status
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

FOO = "foos.v1.example.com"


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (FOO, "/apis/example.com/v1/foos"),
        ("widgets.v1alpha1.shop.example.com", "/apis/shop.example.com/v1alpha1/widgets"),
        ("foos.v1", None),
        ("Foo", None),
    ],
)
def test_pitfall_52_custom_path(resource: str, path: str | None) -> None:
    assert custom_path(resource) == path


class NeedsFoo:
    """Rejects pods until a Foo of their name is ready."""

    name = "NeedsFoo"

    def __init__(self) -> None:
        self.ready: set[str] = set()

    def pre_filter(self, state: CycleState, pod: PodInfo, view: Any) -> tuple[None, Status]:
        return None, SUCCESS if pod.name in self.ready else Status(Code.UNSCHEDULABLE, "no Foo yet")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(ClusterEvent(FOO, ActionType.ADD | ActionType.UPDATE), self.after_foo),
            ClusterEventWithHint(ClusterEvent("Foo", ActionType.ADD)),
        ]

    def after_foo(self, pod: PodInfo, old: Custom | None, new: Custom | None) -> QueueingHint:
        assert new is not None
        if new.status["ready"]:
            self.ready.add(new.metadata.name)
        return QueueingHint(new.metadata.name == pod.name and new.status["ready"])


class Factory:
    """Informers that are fed by hand."""

    def __init__(self) -> None:
        self.handlers: dict[str, dict[str, Callable[..., None]]] = {}

    def informer(self, resource: Resource[Any]) -> Any:
        def add_handler(**handlers: Callable[..., None]) -> Any:
            self.handlers[resource.path] = handlers
            return SimpleNamespace(has_synced=True)

        return SimpleNamespace(add_handler=add_handler, store=None)

    def drop(self, informer: Any) -> None:
        pass


@pytest.mark.asyncio
async def test_events_of_a_custom_resource_wake_the_pods_its_plugin_rejected() -> None:
    plugin = NeedsFoo()
    config = default_configuration()
    config.profiles[0].plugins.multi_point.enabled.append(Plugin("NeedsFoo"))
    async with Harness(config, out_of_tree={"NeedsFoo": lambda args, handle: plugin}) as h:
        factory = Factory()
        watches = Watches(cast(InformerFactory, factory))
        watches.connect(h.scheduler, TakenListers(), h.gates.enabled)
        assert "/apis/example.com/v1/foos" in factory.handlers
        foo = factory.handlers["/apis/example.com/v1/foos"]
        h.add_node(make_node("n"))
        h.add_pod(make_pod("p"))
        await h.settle()
        assert h.node_of("p") == ""
        waiting = Custom(status={"ready": False})
        waiting.metadata.name = "p"
        foo["on_add"](waiting, False)
        await h.settle(12.0)
        assert h.node_of("p") == ""
        ready = Custom(status={"ready": True})
        ready.metadata.name = "p"
        foo["on_update"](waiting, ready)
        await h.settle(12.0)
        assert h.node_of("p") == "n"
