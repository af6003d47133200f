"""`skedge plugins`: the registry as a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from skedge import names
from skedge.assembly import all_plugins
from skedge.cli.arguments import Parser
from skedge.cli.tables import columns
from skedge.config.defaults import default_configuration
from skedge.config.legacy.registry import legacy_names
from skedge.profiles.profile import extends


class Entry(msgspec.Struct, rename="camel"):
    """A plugin. `weight` is that of its score in the default profile, 0 where it does not score or is not enabled.

    `default`: enabled without a configuration; `legacy_only`: reachable through a legacy Policy or provider only;
    `legacy_names`: the predicates and priorities that stand for it.
    """

    name: str
    extension_points: list[str]
    weight: int
    default: bool
    legacy_only: bool
    legacy_names: list[str]


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="skedge plugins", description="The plugins, and where they take part.")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="form of the answer")
    return made


def run(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    found = entries()
    if arguments.output == "json":
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print("\n".join(columns([HEADER, *map(_row, found)])))
        print("\n* not in the default profile   ** only through a legacy Policy or algorithm provider")
    return 0


def entries() -> list[Entry]:
    """All plugins that can be named, in the order of the registry."""
    enabled = {plugin.name: plugin.weight for plugin in default_configuration().profiles[0].plugins.multi_point.enabled}
    found = []
    for name, factory in all_plugins(legacy=True).items():
        points = [point for point in names.EXTENSION_POINTS if extends(factory, point)]
        if not points:
            continue
        weight = max(enabled.get(name, 0), 1) if name in enabled and names.SCORE in points else 0
        legacy = name in names.LEGACY_PLUGINS
        found.append(Entry(name, points, weight, name in enabled, legacy, legacy_names(name)))
    return found


HEADER = ("PLUGIN", "EXTENSION POINTS", "WEIGHT", "LEGACY PREDICATES AND PRIORITIES")


def _row(entry: Entry) -> Any:
    mark = "**" if entry.legacy_only else "" if entry.default else "*"
    points = ",".join(entry.extension_points)
    return entry.name + mark, points, str(entry.weight or "-"), ",".join(entry.legacy_names) or "-"
