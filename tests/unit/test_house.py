"""The house itself: layers, sizes, and what may not be in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def test_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_package_says_what_it_is_for() -> None:
    silent = [str(p.relative_to(ROOT)) for p in SOURCES if not p.read_text(encoding="utf-8").startswith('"""')]
    assert silent == []


def test_modules_stay_readable() -> None:
    lengths = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES)
    assert lengths[len(lengths) // 2] < 200
    long = [path.name for path in SOURCES if len(path.read_text(encoding="utf-8").splitlines()) > 800]
    assert long == []


@pytest.mark.parametrize("lock", ["run.txt", "dev.txt"])
def test_locks_hold_no_addresses(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--hash=sha256:" in text
