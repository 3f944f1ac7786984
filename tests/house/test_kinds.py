"""Kinds are asked in one place: no `isinstance` on a family or its parameters and no list of methods elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ilk.methods import METHODS
from ilk.model.registry import FAMILIES

SOURCE = Path(__file__).parents[2] / "src" / "ilk"
HOMES = (
    "families/",
    "assorted/clusters.py",
    "assorted/family.py",
    "assorted/blended.py",
)  # where families and their parameters are defined
ALLOWED = {
    # A prior is what a user gave, an object or a word: an argument is told apart, not a family.
    ("estimators/components.py", "Prior"),
    ("estimators/mixed.py", "Prior"),
}
LISTED = 4  # names of methods in one literal from which it is a second list of them


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def at_home(name: str) -> bool:
    return name.startswith(HOMES)


def classes_of_families() -> set[str]:
    """Every class of the modules in which families and parameters are defined, and those that stand in for one."""
    homes = [tree for name, tree in modules() if at_home(name) or name.startswith("model/no_prediction")]
    homes += [tree for name, tree in modules() if name == "model/levels.py"]
    return {node.name for tree in homes for node in tree.body if isinstance(node, ast.ClassDef)}


def kinds_asked(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and class of every `isinstance(x, C)`, `issubclass(x, C)` and `type(x) is C`."""
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
                asked = [node.args[1]]
        elif isinstance(node, ast.Compare) and _is_type_call(node.left):
            asked = node.comparators
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        for expression in asked:
            for part in ast.walk(expression):
                if isinstance(part, ast.Name | ast.Attribute):
                    yield node.lineno if hasattr(node, "lineno") else 0, getattr(part, "id", "") or part.attr


def _is_type_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def test_no_family_is_told_apart_outside_the_registry():
    families = classes_of_families()
    assert {
        "Means",
        "Centroids",
        "Gaussian",
        "Mixture",
        "Assorted",
        "Clusters",
        "Blend",
        "Levels",
    } <= families
    found = [
        f"{name}:{line} {kind}"
        for name, tree in modules()
        if not at_home(name) and name != "model/registry.py"
        for line, kind in kinds_asked(tree)
        if kind in families and (name, kind) not in ALLOWED
    ]
    assert found == []


def test_what_is_allowed_is_there():
    there = {(name, kind) for name, tree in modules() for _, kind in kinds_asked(tree)}
    assert there >= ALLOWED


def test_the_ways_to_ask_are_seen():
    text = (
        "isinstance(x, (A, b.C))\ntype(x) is D\nmatch x:\n    case E():\n        pass\nissubclass(x, F | G)"
    )
    assert {kind for _, kind in kinds_asked(ast.parse(text))} == {"A", "b", "C", "D", "E", "F", "G"}


def test_methods_and_families_are_listed_once():
    """No other module has a literal with the names of several methods, or of several families."""
    of_methods = set(METHODS)
    of_families = {name for name in FAMILIES if not FAMILIES[name].structured}
    found = []
    for name, tree in modules():
        if name in ("methods.py", "model/registry.py"):
            continue
        for node in ast.walk(tree):
            keys = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            texts = {
                key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
            if len(texts & of_methods) >= LISTED or len(texts & of_families) >= LISTED:
                found.append(f"{name}:{node.lineno}")
    assert found == []
