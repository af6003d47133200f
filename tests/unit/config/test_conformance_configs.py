"""Configurations that kube-scheduler ran with, and the plugins it ran."""

import gzip
import json
import os
from pathlib import Path

import pytest

from skedge import names
from skedge.config import encode, load, plugin_sets
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.validation import validate

from .points import implements

DATA = Path(__file__).parents[2] / "data" / "config"


def check(config, scheduler_name, expected):
    decoded = load.decode(json.dumps(config), args_types=PLUGIN_ARGS)
    assert validate(decoded, args_types=PLUGIN_ARGS) == []
    assert load.decode(encode.to_yaml(decoded), args_types=PLUGIN_ARGS) == decoded
    profiles = [profile for profile in decoded.profiles if profile.scheduler_name == scheduler_name]
    if expected is None or not profiles:
        return 0
    points = plugin_sets.expand(profiles[0], implements, names.IN_TREE_PLUGINS)
    for point, plugins in expected.items():
        got = [[p.name, p.weight] if point == "score" else p.name for p in points[point]]
        assert got == plugins, (point, config)
    return 1


def test_recorded_plugin_lists():
    rows = map(json.loads, gzip.decompress((DATA / "plugin-lists.jsonl.gz").read_bytes()).splitlines())
    assert sum(check(row["config"], row.get("schedulerName"), row.get("plugins")) for row in rows) > 400


@pytest.mark.skipif("SKEDGE_SHARED" not in os.environ, reason="the whole recording is not at hand")
def test_whole_recording():
    files = sorted(Path(os.environ["SKEDGE_SHARED"]).glob("conformance/cases-*.jsonl.gz"))
    assert files
    for file in files:
        for line in gzip.decompress(file.read_bytes()).splitlines():
            row = json.loads(line)
            plugins = row["expected"].get("plugins")
            if "config" in row["case"]:
                if plugins and "score" in plugins:
                    plugins["score"] = [[p["name"], p["weight"]] for p in plugins["score"]]
                pod = row["case"].get("pod", {"spec": {}})
                check(row["case"]["config"], pod["spec"].get("schedulerName"), plugins)
