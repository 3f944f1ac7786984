"""ARCHITECTURE.md is true: every folder is in it, every path is there, the layers are those of the contract."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ilk"
GUIDE = (ROOT / "ARCHITECTURE.md").read_text()
MOST_AT_THE_TOP = 6


def test_every_folder_has_a_row():
    rows = set(re.findall(r"^\| `([\w/]+)/` \|", GUIDE, re.MULTILINE))
    folders = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*/*.py")} - {"."}
    assert folders - rows == {"report/blocks", "data"}
    assert rows - folders == set()


def test_every_path_is_there():
    for name in re.findall(r"`((?:[\w*.-]+/)*[\w*.-]+\.(?:py|hpp|md|toml)|(?:[\w-]+/)+)`", GUIDE):
        found = [*SOURCE.glob(name), *ROOT.glob(name), *(SOURCE / "kernels" / "native").glob(name)]
        assert found, f"there is no {name}"


def test_the_layers_are_those_of_the_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = settings["tool"]["importlinter"]["contracts"][0]
    assert contract["exhaustive"]
    picture = GUIDE.split("## Who may import whom")[1].split("##")[0]
    assert re.findall(r"^    (\S.*)$", picture, re.MULTILINE) == contract["layers"]


def test_few_files_stand_at_the_top():
    at_the_top = sorted(path.name for path in SOURCE.glob("*.py"))
    assert len(at_the_top) <= MOST_AT_THE_TOP, at_the_top
    for name in at_the_top:
        assert name == "__init__.py" or f"`{name}`" in GUIDE
