"""The conformance command: differences and summaries, what --plugins narrows, status, and files that are no cases."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from skedge.testing.conformance import main

RECORDED = Path(__file__).parents[2] / "conformance" / "taints.jsonl.gz"


def case() -> dict[str, Any]:
    """A recorded case in which nodes were scored."""
    with gzip.open(RECORDED, "rt") as lines:
        return next(line for line in map(json.loads, lines) if len(line["expected"].get("scores") or {}) > 1)


@pytest.fixture
def changed(tmp_path: Path) -> tuple[Path, str]:
    """A file with one case whose total of one node is wrong; the node's name."""
    line = case()
    node = next(iter(line["expected"]["scores"]))
    line["expected"]["scores"][node]["total"] += 1
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(line))
    return path, node


def test_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(case()).encode()))
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "taints: 1 of 1 cases equal\n"


def test_a_line_a_difference_and_a_summary(changed: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    path, node = changed
    assert main([str(path)]) == 1
    difference, summary = capsys.readouterr().out.splitlines()
    assert f" {node} scores.total: expected " in difference
    assert summary == "taints: 0 of 1 cases equal"
    assert main(["--json", str(path)]) == 1
    one, two = map(json.loads, capsys.readouterr().out.splitlines())
    assert (one["node"], one["field"], one["expected"] - one["got"]) == (node, "scores.total", 1)
    assert two == {"family": "taints", "cases": 1, "passed": 0}


def test_only_what_some_plugins_say(changed: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plugins", "TaintToleration,NodeResourcesFit", str(changed[0])]) == 0
    for text in ("TaintTolerations", ""):
        assert main(["--plugins", text, str(changed[0])]) == 1
        assert capsys.readouterr().err == f"error: --plugins: there is no plugin {text!r}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"case": {"family": "taints"}}', "case 1: 'id' is missing"),
        ("{}", "case 1: 'case' is missing"),
        ("[]", "case 1: list indices must be integers"),
        ("{", "Expecting property name"),
    ],
)
def test_what_is_no_case(tmp_path: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text(content)
    assert main([str(tmp_path / "x.jsonl")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl.gz").write_text("x")
    for name in ("absent.jsonl", "x.jsonl.gz", "."):
        assert main([str(tmp_path / name)]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
