"""The wheel holds compiled kernels where there is a compiler, and installs and runs where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILERS = ("gcc", "g++", "clang", "clang++", "cc", "c++", "cmake")

pytestmark = pytest.mark.slow


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of what a build reads, so that building leaves no trace in the checkout."""
    copy = tmp_path / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy / name)
    (copy / "README.md").touch()
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return copy


def wheel_of(source: Path, environment: dict[str, str]) -> Path:
    out = source.parent / "wheels"
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "-w",
        str(out),
        str(source),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def kernels_in(wheel: Path) -> list[str]:
    """Compiled files in the wheel, and what the installed kernels say of themselves."""
    installed = wheel.parent / "installed"
    with zipfile.ZipFile(wheel) as archive:
        compiled = [name for name in archive.namelist() if name.endswith((".so", ".pyd"))]
        assert not [name for name in archive.namelist() if name.endswith((".cpp", ".hpp"))]
        archive.extractall(installed)
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r})\n"
        "from ilk import kernels\n"
        "import numpy as np\n"
        "labels, cost = kernels.nearest(np.eye(2), 1.0, np.zeros(2), None, np.eye(2))\n"
        "print(kernels.COMPILED, kernels.INSTRUCTIONS, labels.tolist(), kernels.__file__)"
    )
    said = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}\n{code}"],
        env={name: value for name, value in os.environ.items() if not name.startswith("ILK_")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert said[-1].startswith(str(installed))
    assert said[2:4] == ["[0,", "1]"]
    return [*compiled, *said[:2]]


def without_compilers(folder: Path) -> dict[str, str]:
    """An environment whose PATH holds this Python and nothing that compiles."""
    folder.mkdir()
    for directory in map(Path, [sysconfig.get_path("scripts"), "/usr/bin", "/bin"]):
        for tool in directory.iterdir() if directory.is_dir() else ():
            compiles = any(part in tool.name for part in COMPILERS)
            if not compiles and not (folder / tool.name).is_symlink():
                (folder / tool.name).symlink_to(tool)
    return {**os.environ, "PATH": str(folder), "CC": "/missing/cc", "CXX": "/missing/c++"}


def test_wheel_without_a_compiler_runs_in_numpy(source: Path, tmp_path: Path) -> None:
    wheel = wheel_of(source, without_compilers(tmp_path / "tools"))
    assert kernels_in(wheel) == ["False", "numpy"]


@pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler here")
def test_wheel_with_a_compiler_holds_the_kernels(source: Path) -> None:
    compiled, says, instructions = kernels_in(wheel_of(source, dict(os.environ)))
    assert compiled.startswith("ilk/kernels/_compiled")
    assert says == "True"
    assert instructions in {"avx512", "avx2", "plain"}
