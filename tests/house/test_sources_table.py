"""The table of the sources names only files, objects and tests that exist, and every row has a test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import ilk

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
CELLS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ")
]
ROWS = [cells for cells in CELLS if len(cells) == 4 and cells[0] != "claim or method"]
IN_FILE = re.compile(r"`([\w/]+\.py)::([\w.]+)`")
PUBLIC = re.compile(r"`ilk\.([\w.]+)`")


@cache
def names_in(path: Path) -> frozenset[str]:
    """Functions and classes of a file, and what classes hold, as Class.name."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)
            }
    return frozenset(found)


def test_the_table_is_whole():
    assert len(ROWS) >= 80
    assert {text for text in ("## 000", "## 001", "## 002", "## 003", "## 004") if text in TEXT} == {
        f"## 00{i}" for i in range(5)
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_a_row_names_what_exists(row):
    claim, code, tests, verdict = row
    assert claim
    assert verdict
    named = [*IN_FILE.findall(code), *PUBLIC.findall(code)]
    assert named, "no code"
    for path, name in IN_FILE.findall(code):
        assert name in names_in(ROOT / "src" / "ilk" / path), f"{path} has no {name}"
    for dotted in PUBLIC.findall(code):
        found = ilk
        for part in dotted.split("."):
            found = getattr(found, part)
    checks = IN_FILE.findall(tests)
    assert checks, "no test"
    assert len(checks) == tests.count("::")
    for path, name in checks:
        assert name.startswith("test_")
        assert name in names_in(ROOT / "tests" / path), f"{path} has no {name}"
