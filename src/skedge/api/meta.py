"""Metadata and selectors that objects of every kind carry: `ObjectMeta`, `LabelSelector`, `NodeSelector`.

All structs are narrow: fields nobody in skedge reads are skipped by the decoder. A list field is a tuple or None (API
servers and clients do send `null`), so readers write `for x in pod.spec.containers or ()`. Times stay RFC 3339 strings.
"""

from __future__ import annotations

from msgspec import Struct, field


class Value(Struct, rename="camel", omit_defaults=True, frozen=True, gc=False):
    """Base of values: frozen, hashable when their fields are, invisible to the garbage collector."""


class Object(Struct, rename="camel", omit_defaults=True, gc=False):
    """Base of objects and their larger parts."""


class OwnerReference(Value, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Object):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = ()
    finalizers: tuple[str, ...] | None = ()

    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, or None (`metav1.GetControllerOf`)."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class ListMeta(Object):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None


class LabelSelectorRequirement(Value, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = ()


class LabelSelector(Value, frozen=True):
    """`metav1.LabelSelector` as sent; `api.labels` compiles it."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = ()


class NodeSelectorRequirement(Value, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = ()


class NodeSelectorTerm(Value, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = ()
    match_fields: tuple[NodeSelectorRequirement, ...] | None = ()


class NodeSelector(Value, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = ()
