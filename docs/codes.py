"""The page of codes, written from the source at every build: every error and caution with its sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "ilk"
ERRORS = ("DataError", "UsageError", "ResourceError", "ModelFileError", "NoModelError", "EngineError")
CAUTIONS = ("Caution", "warn")
SENTENCE = 160
OPENING = """\
# Codes of errors and cautions

Every error and every caution has a code that stays the same, for programs and for questions: `error [no-rows]` on the
command line, `error.code` in Python, `code` in the warnings of `summary.json`. Dots stand for names and numbers of your
table.
"""


def page() -> str:
    """Two tables: what is refused, and what is said."""
    found: dict[str, dict[str, str]] = {"Errors": {}, "Cautions": {}}
    for file in sorted(SOURCE.rglob("*.py")):
        for part, code, text in codes(ast.parse(file.read_text(encoding="utf-8"))):
            found[part].setdefault(code, text)
    parts = [OPENING]
    for part, entries in found.items():
        rows = [f"| `{code}` | {text} |" for code, text in sorted(entries.items())]
        parts.append(f"## {part}\n\n| code | what it says |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def codes(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        part = "Errors" if node.func.id in ERRORS else "Cautions" if node.func.id in CAUTIONS else None
        first = node.args[0]
        if part and isinstance(first, ast.Constant) and isinstance(first.value, str):
            text = said(node.args[1]) if len(node.args) > 1 else ""
            yield part, first.value, text.replace("|", "\\|").replace("<", "&lt;")[:SENTENCE]


def said(node: ast.expr) -> str:
    """The sentence as it stands in the source, dots for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(said(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return "…"


def setup(app: Any) -> dict[str, bool]:
    target = Path(app.srcdir) / "codes.md"
    app.connect("builder-inited", lambda app: target.write_text(page(), encoding="utf-8"))
    return {"parallel_read_safe": True}
