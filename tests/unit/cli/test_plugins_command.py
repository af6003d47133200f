"""`skedge plugins`."""

from __future__ import annotations

import json

import pytest

from skedge import names
from skedge.cli.main import main
from skedge.cli.plugins_command import entries
from skedge.config.legacy.registry import PREDICATES, PRIORITIES


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["PLUGIN", "EXTENSION", "POINTS", "WEIGHT", "LEGACY", "PREDICATES", "AND", "PRIORITIES"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:-2]}
    assert rows["TaintToleration"] == [
        "filter,preScore,score",
        "3",
        "PodToleratesNodeTaints,TaintTolerationPriority",
    ]
    assert rows["NodeName"] == ["filter", "-", "GeneralPredicates,HostName"]
    assert rows["NodeLabel**"] == ["filter,score", "-", "CheckNodeLabelPresence"]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "-o", "json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert found["NodePreferAvoidPods"] == {
        "name": "NodePreferAvoidPods",
        "extensionPoints": ["score"],
        "weight": 0,
        "default": False,
        "legacyOnly": True,
        "legacyNames": ["NodePreferAvoidPodsPriority"],
    }
    assert (found["ImageLocality"]["weight"], found["ImageLocality"]["default"]) == (1, True)


def test_every_plugin_and_every_legacy_name_is_there() -> None:
    found = entries()
    listed = {entry.name for entry in found}
    assert {*names.LEGACY_PLUGINS} <= listed
    told = {name for entry in found for name in entry.legacy_names}
    assert told == {*PREDICATES, *PRIORITIES} - {"EqualPriority"}
