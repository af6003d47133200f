"""Services and the owners of pods, read for one thing: which pods belong together (default spreading constraints)."""

from __future__ import annotations

from msgspec import field

from skedge.api.meta import LabelSelector, Object, ObjectMeta


class SetSpec(Object):
    """Spec of a Service or ReplicationController: pairs that pods have."""

    selector: dict[str, str] | None = None


class SelectorSpec(Object):
    """Spec of a ReplicaSet or StatefulSet: a selector of pods."""

    selector: LabelSelector | None = None


class Service(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: SetSpec = field(default_factory=SetSpec)


class ReplicationController(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: SetSpec = field(default_factory=SetSpec)


class ReplicaSet(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: SelectorSpec = field(default_factory=SelectorSpec)


class StatefulSet(Object):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: SelectorSpec = field(default_factory=SelectorSpec)
