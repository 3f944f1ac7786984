"""What a person reads uses the field's words: one word per idea, as docs/glossary.md has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ilk
from ilk.report.blocks.words import PAGE, WORDS
from ilk.report.page import page
from ilk.text.layout import Surface
from ilk.text.summary import render
from tests.conftest import table_path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ilk"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = {"codes.md", "command-line.md"}

# What was said, and what is said instead.
FORBIDDEN = {
    r"pieces?": "component, or chunk of a table",
    r"valleys?": "separation",
    r"(un)?parted": "separated",
    r"parts (them|it)": "separates",
    r"clouds?": "group",
    r"slices?": "segment",
    r"(un)?sure(ly)?": "probability",
    r"surer": "higher probability",
    r"blanks?": "missing value",
    r"levels?": "category",
    r"kinds?": "type",
    r"heft": "weight",
    r"tells?": "distinguishes, shows",
    r"(is|are|was|were) told": "shown, described",
    r"nothing beyond chance": "no clear difference",
    r"slips? of the pen": "error in the data",
    r"paradigms?": "method",
    r"kin": "variant",
    r"in vain": "without success",
    r"beside": "compared with, next to",
    r"dear(est)?": "costly, worst-fitting",
    r"wish(ed)?": "target",
    r"kept aside": "not used for fitting",
    r"on the edge": "borderline",
    r"(comes?|came) back": "stability",
    r"returns? in": "stability",
    r"\d needed": "threshold",
    r"thousand million": "billion",
    r"at one stroke": "atomically",
    r"our bug": "bug in ilk",
    r"seed 00\d": "the lecture or paper",
    r"methods? of centres": "k-means, k-medians",
    r"[Mm]end": "correct",
    r"did not settle": "did not converge",
    r"found out": "detected",
    r"may be given again": "repeatable",
}
WORD = re.compile("|".join(rf"(?<![\w.`\"'=/-])(?:{word})(?![\w`\"'=/-])" for word in FORBIDDEN))
# Where a word is right: a line of text that holds it, in a file.
ALLOWED = (
    ("src/ilk/table/text.py", "blank lines"),  # of a text file
    ("src/ilk/engines/spark.py", "part "),
    ("docs/distributed.md", "frame"),
    ("docs/sources.md", "levels"),  # quotes of the texts
    ("docs/sources.md", "levels"),
)
CODE = re.compile(r"^level hi$|WHEN blank THEN")  # a class of the style, a column of the SELECT


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Texts that stand alone: docstrings, and comments on constants."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement.value


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Sentences in string literals of a module: what is printed, raised or written."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(constant) for constant in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            text = CODE.sub("", node.value)
            if " " in text.strip():
                yield node.lineno, text


def found(path: Path, line: int, text: str) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    words = [match.group() for match in WORD.finditer(text)]
    if any(name == file and part in text for file, part in ALLOWED):
        return []
    return [f"{name}:{line}: {word!r} in {text.strip()[:90]!r}" for word in words]


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix()
)
def test_texts_of_the_source(path):
    assert not [word for line, text in texts(path) for word in found(path, line, text)]


@pytest.mark.parametrize("path", [p for p in PAGES if p.name not in GENERATED], ids=lambda path: path.name)
def test_pages(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [word for number, line in enumerate(lines, 1) for word in found(path, number, line)]


@pytest.fixture(scope="module")
def summary():
    return ilk.cluster(table_path("penguins"), truth="target", types={"year": "categorical"}).summary()


def test_the_terminal_and_the_page(summary):
    """Whole texts, so that titles of one word are read too."""
    shown = re.sub(r"<(style|script).*?</\1>", " ", page(summary), flags=re.DOTALL)
    shown = re.sub(r"<[^>]*>", " ", shown)
    for text in (render(summary, Surface(width=100)), shown):
        assert "stability" in text.lower()
        assert not [match.group() for match in WORD.finditer(text)]


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_the_keys_of_the_summary(summary):
    assert not [key for key in set(keys(summary)) if any(WORD.fullmatch(word) for word in key.split("_"))]


def public_docstrings() -> Iterator[tuple[str, str]]:
    for name in ilk.__all__:
        value = getattr(ilk, name)
        yield name, value.__doc__ or ""
    for name in dir(ilk.measures):
        if not name.startswith("_") and callable(getattr(ilk.measures, name)):
            yield f"measures.{name}", getattr(ilk.measures, name).__doc__ or ""


def test_public_docstrings():
    """Of measures, errors and displays; those of estimators say what their parameters are called."""
    names = [name for name in dir(ilk.errors) if isinstance(getattr(ilk.errors, name), type)]
    own = [(name, getattr(ilk.errors, name).__doc__ or "") for name in names]
    own += [
        entry
        for entry in public_docstrings()
        if entry[0].startswith("measures.") or entry[0].endswith("Display")
    ]
    assert not [(name, match.group()) for name, text in own for match in WORD.finditer(text)]


def test_public_docstrings_cite_sources_by_name():
    assert not [name for name, text in public_docstrings() if re.search(r"seeds? 00\d", text)]


def test_the_motto_stands_once_on_a_page():
    for path in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        assert path.read_text(encoding="utf-8").count("same ilk") <= 1


def test_the_glossary_has_the_words_of_the_report():
    glossary = (ROOT / PAGE).read_text(encoding="utf-8").lower()
    for entry in WORDS:
        for word in entry.split(", "):
            assert word in glossary or word.lower() in glossary, word


def test_the_glossary_is_linked():
    for path in (ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "reading-the-report.md"):
        assert "glossary.md" in path.read_text(encoding="utf-8"), path.name
