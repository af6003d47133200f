"""Plugins of the user's: found by file or module, made with or without arguments, enabled; and every way to fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skedge.app.plugin_files import enable, load_plugins
from skedge.config.defaults import default_configuration
from skedge.config.fields import ConfigError
from skedge.config.types import Plugin
from skedge.testing.builders import make_node, make_pod
from skedge.testing.harness import Harness

EXAMPLE = Path(__file__).parents[3] / "examples" / "plugin.py"
PLUGINS = """
class Plain:
    name = "Plain"
    def post_bind(self, state, pod, node_name): ...

class Given:
    name = "Given"
    def __init__(self, args, handle):
        self.args = args
    def post_bind(self, state, pod, node_name): ...

class Nameless:
    def post_bind(self, state, pod, node_name): ...

class Idle:
    name = "Idle"

class Greedy(Plain):
    name, wants = "Greedy", "everything"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some_plugins.py"
    path.write_text(PLUGINS)
    return path


def test_classes_of_files_and_modules(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "skedge_test_module.py").write_text(PLUGINS)
    monkeypatch.syspath_prepend(file.parent)
    found = load_plugins([f"{file}:Plain", "skedge_test_module:Given"])
    assert found["Plain"]("ignored", None).name == "Plain"
    assert found["Given"]("arguments", None).args == "arguments"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("{file}", "expected FILE.py:CLASS or MODULE:CLASS"),
        (":X", "expected FILE.py:CLASS or MODULE:CLASS"),
        ("no/such.py:X", "FileNotFoundError"),
        ("no_such_module:X", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("{file}:Absent", "AttributeError: module 'plugin_file_some_plugins' has no attribute 'Absent'"),
        ("{file}:Nameless", "Nameless has no attribute `name`, a string"),
        ("{file}:Idle", "Idle is no class with a method of an extension point"),
        ("{file}:Greedy", "`wants` of Greedy is 'everything', expected the name of an attribute of a pod"),
        ("{broken}:X", "SyntaxError"),
    ],
)
def test_what_is_no_plugin_is_named(what: str, message: str, file: Path) -> None:
    broken = file.parent / "broken.py"
    broken.write_text("def (")
    text = what.format(file=file, broken=broken)
    with pytest.raises(ConfigError) as error:
        load_plugins([text])
    assert str(error.value).startswith(f"--plugin {text}: ")
    assert message in str(error.value)


def test_one_name_once(file: Path) -> None:
    with pytest.raises(ConfigError, match="a plugin named Plain was given before"):
        load_plugins([f"{file}:Plain", f"{file}:Plain"])


def test_what_the_configuration_names_is_left_to_it() -> None:
    config = default_configuration()
    config.profiles[0].plugins.score.disabled.append(Plugin("Mine"))
    before = len(config.profiles[0].plugins.multi_point.enabled)
    assert enable(config, ["Mine", "Other"]) == ["Other"]
    assert [p.name for p in config.profiles[0].plugins.multi_point.enabled[before:]] == ["Other"]


@pytest.mark.asyncio
async def test_the_example_keeps_pods_off_hot_nodes() -> None:
    plugins: dict[str, Any] = load_plugins([f"{EXAMPLE}:Cool"])
    config = default_configuration()
    enable(config, plugins)
    async with Harness(config, out_of_tree=plugins) as h:
        h.add_node(make_node("hot").label(**{"example.com/celsius": "95"}))
        h.add_pod(make_pod("p"))
        h.add_pod(make_pod("hardy").label(**{"example.com/bears": "heat"}))
        await h.settle()
        assert (h.node_of("p"), h.node_of("hardy")) == ("", "hot")
        condition = h.condition("p")
        assert condition is not None
        assert condition["message"].startswith("0/1 nodes are available: 1 node(s) were too hot.")
        h.add_node(make_node("warm").label(**{"example.com/celsius": "70"}))
        h.add_node(make_node("cool"))
        await h.settle(2.0)
        assert h.node_of("p") == "cool"
        h.validate()
