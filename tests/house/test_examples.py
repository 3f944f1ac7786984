"""Every example has a title for the gallery, whose build runs it; comparisons, which it leaves out, run here."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted((EXAMPLES / "comparisons").glob("*.py")), ids=lambda p: p.stem)
def test_comparison_runs(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda p: p.stem)
def test_example_begins_with_a_title(path):
    """`Title`, `=====`, a blank line: what the gallery makes its page and its card of."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    title, line, blank, *rest = text.splitlines()
    assert title
    assert line == "=" * len(title)
    assert not blank
    assert "".join(rest).strip()
