"""The house, counted: `python -m tests.house.test_measured` prints it, the tests hold what must not grow."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ilk"
LONG, MANY, LONG_FILE = 40, 6, 400
TREES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))
}


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield f"{path}: {node.name}", node


def length(function: ast.FunctionDef) -> int:
    """Lines, without the docstring."""
    first = function.body[0]
    told = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) else 0  # type: ignore[operator]
    return function.end_lineno - function.lineno + 1 - told  # type: ignore[operator]


def parameters(function: ast.FunctionDef) -> int:
    given = function.args
    return len(
        [a for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg not in ("self", "cls")]
    )


def class_names() -> Counter[str]:
    nodes = (node for tree in TREES.values() for node in ast.walk(tree))
    return Counter(node.name.lstrip("_") for node in nodes if isinstance(node, ast.ClassDef))


def without_docstring() -> list[str]:
    return [path for path, tree in TREES.items() if ast.get_docstring(tree) is None and tree.body]


def counted() -> dict[str, int]:
    return {
        "files at the top": len([*SOURCE.glob("*.py")]),
        "modules": len(TREES),
        "modules without docstring": len(without_docstring()),
        "files over 400 lines": sum(
            len(p.read_text().splitlines()) > LONG_FILE for p in SOURCE.rglob("*.py")
        ),
        "class names in use twice": sum(n > 1 for n in class_names().values()),
        "functions": sum(1 for _ in functions()),
        "functions over 40 lines": sum(length(f) > LONG for _, f in functions()),
        "functions with over 6 parameters": sum(parameters(f) > MANY for _, f in functions()),
    }


def test_no_two_classes_share_a_name():
    assert [name for name, n in class_names().items() if n > 1] == []


def test_every_module_says_what_it_is():
    assert without_docstring() == []


def test_files_are_short():
    assert counted()["files over 400 lines"] == 0


def test_long_functions_do_not_become_more():
    assert counted()["functions over 40 lines"] <= 27


if __name__ == "__main__":
    for name, value in counted().items():
        print(f"{value:6,}  {name}")
