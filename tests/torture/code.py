"""A short name for the code that a part of `make torture` has run, so that a change elsewhere leaves its count alone.

The code of a part is made of the modules of ilk that its process has loaded (what is loaded and not run does no harm,
what is run must be there), the files beside them that are no Python (styles, scripts), and the C++ sources where the
compiled kernels were loaded. A part whose attempts are whole commands or clusters of processes names all of `src/ilk`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "ilk"
COMPILED, NATIVE = "kernels._compiled", "kernels/native"
MADE = (".pyc", ".so", ".pyd", ".dylib")  # from sources that are counted themselves

Modules = Mapping[str, list[str]]
"""Names of modules below `ilk`, by folder: `{"": ["errors"], "store": ["", "tree"]}`, with "" for the package."""


def loaded() -> set[str]:
    """The modules of ilk that this process has loaded, without the first part of their names."""
    return {name.removeprefix("ilk").lstrip(".") for name in sys.modules if name.split(".")[0] == "ilk"}


def every() -> set[str]:
    """All modules of ilk that there are."""
    paths = [path.relative_to(SOURCES).with_suffix("") for path in SOURCES.rglob("*.py")]
    names = {".".join(path.parts[:-1] if path.name == "__init__" else path.parts) for path in paths}
    return names | {COMPILED}


def folded(names: Iterable[str]) -> dict[str, list[str]]:
    """Names by folder, as a line of the file has them.

    >>> folded({"", "errors", "store", "store.tree"})
    {'': ['', 'errors'], 'store': ['', 'tree']}
    """
    made: dict[str, list[str]] = {}
    for name in sorted(names):
        folder, _, last = name.rpartition(".")
        package = (SOURCES / name.replace(".", "/")).is_dir()
        made.setdefault(name if package else folder, []).append("" if package else last)
    return {folder: sorted(made[folder]) for folder in sorted(made)}


def digest(modules: Modules, root: Path = SOURCES) -> str:
    """The name of the code that these modules are now; another one once a file of theirs is changed, added or gone."""
    found = hashlib.sha256()
    for path in sorted(_files(modules, root)):
        content = path.read_bytes() if path.is_file() else b"gone"
        found.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:10]


def _files(modules: Modules, root: Path) -> Iterable[Path]:
    for folder, names in modules.items():
        here = root / folder.replace(".", "/")
        yield from (here / (f"{name}.py" if name else "__init__.py") for name in names if name != "_compiled")
        if "" in names:
            yield from _beside(here)
        if "_compiled" in names:
            yield from (path for path in (root / NATIVE).rglob("*") if path.is_file())


def _beside(package: Path) -> Iterable[Path]:
    """What lies in the folder of a package and is no Python; folders below it that are packages are others' own."""
    for path in package.iterdir() if package.is_dir() else ():
        if (
            path.is_dir()
            and path.name not in ("__pycache__", "native")
            and not (path / "__init__.py").exists()
        ):
            yield from _beside(path)
        elif path.is_file() and path.suffix not in (".py", *MADE):
            yield path
