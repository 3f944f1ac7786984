"""The wheel holds compiled kernels where there is a compiler, and installs and runs where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
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


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel looks at wheels of Linux")
@pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler here")
def test_repaired_wheel_runs_in_a_fresh_environment(source: Path, tmp_path: Path) -> None:
    """As `make wheels` does it: fit for a range of systems, installed by pip, away from the source."""
    repaired = repaired_wheel(wheel_of(source, dict(os.environ)), tmp_path / "dist")
    assert "manylinux" in repaired.name
    python = fresh_environment(tmp_path / "fresh")
    ran([*python, "-m", "pip", "install", "--no-deps", "--no-index", str(repaired)])
    script = shutil.copy(ROOT / "tests" / "kernels" / "wheel_runs.py", tmp_path)
    instructions, place, groups = ran([*python, script, "--compiled"]).split()
    assert instructions in {"avx512", "avx2", "plain"}
    assert Path(place).is_relative_to(tmp_path / "fresh")
    assert groups == "3"
    command = Path(python[0]).parent / "ilk"
    assert "ilk" in ran([str(command), "--version"])
    assert "penguins" in ran([str(command), "demo"], cwd=tmp_path)
    assert (tmp_path / "penguins.ilk" / "report.html").exists()


def repaired_wheel(wheel: Path, out: Path) -> Path:
    """What auditwheel makes of a wheel; it must name no library that a bare system lacks."""
    tools = {**os.environ, "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])}
    ran([sys.executable, "-m", "auditwheel", "repair", "-w", str(out), str(wheel)], env=tools)
    (repaired,) = out.glob("*.whl")
    with zipfile.ZipFile(repaired) as archive:
        assert not [name for name in archive.namelist() if ".libs/" in name]
    return repaired


def fresh_environment(folder: Path) -> list[str]:
    """A new environment, with the packages that ilk needs lent by this one: their download is not what is tested."""
    ran([sys.executable, "-m", "venv", str(folder)])
    (python,) = (folder / "bin").glob("python")
    (packages,) = folder.glob("lib/python3*/site-packages")
    own = {str(ROOT / "src"), str(ROOT)}
    lent = [path for path in sys.path if path.endswith("site-packages") and path not in own]
    (packages / "zz_lent.pth").write_text(
        "\n".join(f"import sys; sys.path.append({path!r})" for path in lent)
    )
    return [str(python)]


def ran(command: list[str], env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a command says, away from the checkout, and without ilk's settings."""
    given = {
        name: value for name, value in (env or os.environ).items() if not name.startswith(("ILK_", "PYTHON"))
    }
    done = subprocess.run(
        command, cwd=cwd or tempfile.gettempdir(), env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
