"""What the documents say of the tree is so: links, folders, commands, make targets, code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skedge.cli.main import COMMANDS
from skedge.config.flags import FLAGS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_targets_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = "\n".join(re.findall(r"`[^`\n]+`|^ {4}.*$", text, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", shown)) <= targets
    assert set(re.findall(r"^[\s`]*(?:\S+/)?skedge ([a-z-]+)", shown, re.MULTILINE)) <= {*COMMANDS}
    flags = {f"--{flag.name}" for flag in FLAGS}
    for line in re.findall(r"skedge scheduler (.*)", shown):
        assert set(re.findall(r"(--[a-z-]+)", line)) <= flags


def test_architecture_names_every_folder_and_none_else() -> None:
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z]+)`", row)}
    there = {path.stem for path in (ROOT / "src" / "skedge").iterdir() if not path.stem.startswith("_")}
    assert named <= there
    assert {path.name for path in (ROOT / "src" / "skedge").iterdir() if (path / "__init__.py").exists()} - named <= {
        "web"
    }


def test_architecture_names_modules_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    modules = re.findall(r"`([a-z_]+/[a-z_]+\.py)`", text)
    assert modules
    assert [name for name in modules if not (ROOT / "src" / "skedge" / name).exists()] == []


def test_the_plugin_of_the_page_is_the_example() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    example = (ROOT / "examples" / "plugin.py").read_text(encoding="utf-8")
    assert code.strip() == example.partition('"""\n\n')[2].strip()
