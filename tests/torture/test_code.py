"""The name of the code that a part has run changes with the files that it has loaded, and with no other."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.torture import code
from tests.torture.parts import PARTS

FILES = {
    "__init__.py": "",
    "errors.py": "",
    "report/__init__.py": "",
    "report/page.py": "",
    "report/style.css": "",
    "report/assets/mark.svg": "",
    "kernels/__init__.py": "",
    "kernels/native/run.hpp": "",
    "kernels/gpu/__init__.py": "",
    "kernels/gpu/source/gmm.cu": "",
}
LOADED = {"": ["", "errors"], "report": [""], "kernels": [""]}
COUNTS = ["__init__.py", "errors.py", "report/__init__.py", "report/style.css", "report/assets/mark.svg"]


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_file_changes_the_name_where_it_was_loaded(tree, name):
    before = code.digest(LOADED, tree)
    (tree / name).write_text("changed")
    assert (code.digest(LOADED, tree) != before) == (name in [*COUNTS, "kernels/__init__.py"])


def test_compiled_kernels_are_their_sources(tree):
    loaded = {"kernels": ["", "_compiled"]}
    before = code.digest(loaded, tree)
    (tree / "kernels" / "native" / "more.hpp").write_text("")
    assert code.digest(loaded, tree) != before


def test_a_module_that_is_gone_changes_the_name(tree):
    before = code.digest(LOADED, tree)
    (tree / "errors.py").unlink()
    assert code.digest(LOADED, tree) != before


def test_what_is_loaded_here_has_a_name():
    import ilk.store.tree

    found = code.folded(code.loaded())
    assert ilk.store.tree.__name__ == "ilk.store.tree"
    assert {"", "tree"} <= set(found["store"])
    assert code.loaded() <= code.every()


@pytest.mark.parametrize(
    ("part", "module"), [("files", "fitting"), ("models", "selection"), ("crash_states", "cli")]
)
def test_a_part_does_not_load_what_it_does_not_try(part, module):
    """Its count would begin anew with every change of that."""
    asked = f"import sys, tests.torture.{part}; print(any(name.startswith('ilk.{module}') for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=code.ROOT
    )
    assert done.stdout.split() == ["False"]


def test_parts_are_there():
    assert sum(part.share for part in PARTS.values()) == pytest.approx(1)
    assert all((code.ROOT / "tests" / "torture" / f"{part.module}.py").exists() for part in PARTS.values())
