"""Parts that objects of several groups have in common: conditions and references to objects."""

from __future__ import annotations

from skedge.api.meta import Value


class Condition(Value, frozen=True):
    """`metav1.Condition`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class ObjectReference(Value, frozen=True):
    """`v1.ObjectReference`: an object, or a version of it."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""
