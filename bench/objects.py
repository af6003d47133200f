"""Templates filled in: bodies of objects, as bytes, without building a dictionary for each.

A template is a YAML object with `metadata.generateName` or a fixed name. `<i>` in it is the object's number, `<i%N>`
that number modulo N.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from bench.workloads import HERE

HOSTNAME: Final = "kubernetes.io/hostname"
_NUMBER: Final = re.compile(rb"<uid>|<i(?:%%(\d+))?>")
_ENDLESS: Final = 1 << 62

Change = Callable[[dict[str, Any]], None]
"""Edits an object before it becomes a template (defaults of an API server)."""


class Kind(NamedTuple):
    """Where objects of a kind live in the API."""

    prefix: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        place = f"/namespaces/{namespace}/" if self.namespaced else "/"
        return f"{self.prefix}{place}{self.plural}" + (f"/{name}" if name else "")


KINDS: Final = {
    "Pod": Kind("/api/v1", "pods", True),
    "Node": Kind("/api/v1", "nodes", False),
    "Namespace": Kind("/api/v1", "namespaces", False),
    "Service": Kind("/api/v1", "services", True),
    "PersistentVolume": Kind("/api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": Kind("/api/v1", "persistentvolumeclaims", True),
    "CSINode": Kind("/apis/storage.k8s.io/v1", "csinodes", False),
    "PodGroup": Kind("/apis/scheduling.k8s.io/v1alpha2", "podgroups", True),
    "PriorityClass": Kind("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
}


@cache
def load_template(name: str) -> dict[str, Any]:
    """The object in templates/NAME.yaml; not to be changed."""
    template: dict[str, Any] = yaml.safe_load((HERE / "templates" / f"{name}.yaml").read_text(encoding="utf-8"))
    return template


class Template:
    """Bodies of one kind: `body(i, uid)` is that of the i-th object.

    Args: `name` is a file's or the object itself; `prefix` replaces generateName; `labels` gives an object one of the
    values of each key, in turn; `volume` adds a volume that uses the claim of the object's number; `change` edits the
    object before.
    """

    def __init__(
        self,
        name: str | dict[str, Any],
        *,
        namespace: str = "default",
        prefix: str = "",
        labels: Mapping[str, Sequence[str]] | None = None,
        volume: bool = False,
        change: Change | None = None,
    ) -> None:
        source = load_template(name) if isinstance(name, str) else name
        self.kind: str = source["kind"]
        self.where = KINDS[self.kind]
        self.namespace = namespace if self.where.namespaced else ""
        generated = f"{prefix}-" if prefix else source["metadata"].get("generateName", "")
        self.name_prefix: str = generated
        self._name = f"{generated}%(i)d" if generated else source["metadata"]["name"]
        turns = max((len(values) for values in (labels or {}).values()), default=1)
        self._variants = [
            self._compile(
                source, {key: values[turn % len(values)] for key, values in (labels or {}).items()}, volume, change
            )
            for turn in range(turns)
        ]

    def _compile(
        self, source: dict[str, Any], labels: dict[str, str], volume: bool, change: Change | None
    ) -> tuple[bytes, tuple[int, ...]]:
        """A body with places for numbers, and what stands there: `i % modulus`, or the UID's number (0)."""
        obj: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(source))
        meta = obj["metadata"]
        meta.pop("generateName", None)
        meta["name"] = "@name@"
        if self.namespace:
            meta["namespace"] = self.namespace
        if self.kind == "Node":
            labels = {HOSTNAME: "@name@", **labels}
        if labels:
            meta["labels"] = {**meta.get("labels", {}), **labels}
        if volume:
            claim = {"name": "data", "persistentVolumeClaim": {"claimName": "pvc-<i>"}}
            obj["spec"].setdefault("volumes", []).append(claim)
        if change is not None:
            change(obj)
        text = msgspec.json.encode(obj).replace(b"%", b"%%")
        text = text.replace(b"@name@", self._name.encode().replace(b"%(i)d", b"<i>")).replace(b"@uid@", b"<uid>")
        moduli: list[int] = []

        def place(found: re.Match[bytes]) -> bytes:
            uid = found[0] == b"<uid>"
            moduli.append(0 if uid else int(found[1] or _ENDLESS))
            return b"%012d" if uid else b"%d"

        return _NUMBER.sub(place, text), tuple(moduli)

    def name(self, i: int) -> str:
        return self._name % {"i": i} if "%" in self._name else self._name

    def body(self, i: int, uid: int = 0) -> bytes:
        """The i-th object; `uid` is the number in its UID, where it has one."""
        parts, moduli = self._variants[i % len(self._variants)]
        return parts % tuple([i % modulus if modulus else uid for modulus in moduli])
