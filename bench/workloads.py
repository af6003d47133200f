"""Reads workloads.yaml: what to create, in which order, and how many."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

HERE = Path(__file__).parent


class Batch(NamedTuple):
    """Objects to create, one operation's worth; `measure`: the pods whose placement is timed."""

    plural: str
    objects: list[dict[str, Any]]
    measure: bool


class Workload(NamedTuple):
    """One workload at one size."""

    name: str
    size: str
    params: dict[str, Any]
    ops: list[dict[str, Any]]

    @property
    def label(self) -> str:
        return f"{self.name}/{self.size}"

    def batches(self) -> Iterator[Batch]:
        """The operations in order, as objects."""
        serial = 0
        for op in self.ops:
            count = int(self._value(op.get("count", 1)))
            template = load_template(op["template"])
            objects = []
            for i in range(count):
                obj = copy.deepcopy(template)
                name = obj["metadata"].pop("generateName", "")
                obj["metadata"].setdefault("name", f"{name}{serial}")
                if op["op"] == "createPods":
                    obj["metadata"].setdefault("namespace", op.get("namespace", "default"))
                for label, values in (op.get("labels") or {}).items():
                    obj["metadata"].setdefault("labels", {})[label] = str(values[i % len(values)])
                if op["op"] == "createNodes":
                    obj["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = obj["metadata"]["name"]
                objects.append(obj)
                serial += 1
            yield Batch(PLURALS[objects[0]["kind"]] if objects else "", objects, bool(op.get("measure")))

    def _value(self, value: Any) -> Any:
        return self.params[value[1:]] if isinstance(value, str) and value.startswith("$") else value


PLURALS = {"Pod": "pods", "Node": "nodes", "Namespace": "namespaces", "Service": "services"}


@cache
def load_template(name: str) -> dict[str, Any]:
    template: dict[str, Any] = yaml.safe_load((HERE / "templates" / f"{name}.yaml").read_text(encoding="utf-8"))
    return template


def workloads() -> Iterator[Workload]:
    """All workloads at all sizes; `params` has the flags `quick` and `test` too."""
    for entry in yaml.safe_load((HERE / "workloads.yaml").read_text(encoding="utf-8")):
        for size in entry["sizes"]:
            yield Workload(entry["name"], size["name"], size, entry["ops"])
