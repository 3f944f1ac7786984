"""Every Python block of the documentation runs, page by page; links between pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ilk
from ilk import kernels
from ilk.cli.main import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = ("command-line.md", "codes.md")  # by the build
PAGES = [page for page in sorted(DOCS.glob("*.md")) if page.name not in MADE]
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.skipif(not kernels.COMPILED, reason="pages are written for the compiled kernels")
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page.name, "exec"), names)  # our own text


def test_there_are_pages_with_code():
    assert {"index", "which-model", "columns", "choosing-k", "reading-the-report", "coming-from"} <= {
        page.stem for page in WITH_CODE
    }


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((DOCS / "decisions").glob("*.md"))], ids=lambda page: page.stem
)
def test_links_lead_somewhere(page):
    """Pages of the gallery are made by the build, and so are the lists of commands and codes."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith("gallery/"):
            script = ROOT / "examples" / target.removeprefix("gallery/")
            assert script.with_suffix(".py").exists(), target
        elif target not in MADE:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_names_exist(page):
    """`ilk fit ...` is a command, `ilk.KMeans(...)` a public name."""
    text = page.read_text(encoding="utf-8")
    for command in re.findall(r"`ilk ([a-z]+)\b", text):
        assert command in cli.commands, command
    for dotted in re.findall(r"\bilk\.([\w.]*\w)", text):
        found: object = ilk
        for part in dotted.split("."):
            found = getattr(found, part)


def test_every_drawn_picture_is_one_that_is_drawn():
    drawn = set(re.findall(r'^            "(\w+)": ', (DOCS / "pictures.py").read_text(), flags=re.MULTILINE))
    shown = {
        name
        for page in PAGES
        for name in re.findall(r"_static/drawn/(\w+)\.png", page.read_text(encoding="utf-8"))
    }
    assert drawn == shown
