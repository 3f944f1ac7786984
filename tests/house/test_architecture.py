"""ARCHITECTURE.md names every module, and no module that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ilk"


def named() -> set[str]:
    """Paths in the table of files; a bare name lies in the folder of the one before it in the row."""
    paths = set()
    for row in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        if not row.startswith("| `"):
            continue
        folder = ""
        for name in re.findall(r"`([^`]+)`", row.split(" | ")[0]):
            own = name.rstrip("/").rpartition("/")[0]
            folder = own or folder
            paths.add(name if own or not folder else f"{folder}/{name}")
    return paths


def test_every_module_is_named():
    paths = named()
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE)
        folders = {f"{parent.as_posix()}/" for parent in path.parents}
        if not path.name.startswith("__"):
            assert path.as_posix() in paths or folders & paths, f"{path} is in no row of ARCHITECTURE.md"


def test_every_name_is_there():
    for path in named():
        assert (SOURCE / path).exists() or (ROOT / path).is_dir(), f"there is no {path}"
