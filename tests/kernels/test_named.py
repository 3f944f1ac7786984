"""Which kernels are in use is said: by name, and once where the compiled ones are missing."""

from __future__ import annotations

import os
import subprocess
import sys

from ilk import kernels
from ilk.kernels import constants

ABSENT = "import sys; sys.modules['ilk.kernels._compiled'] = None; "


def said(code: str, **variables: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables},
    )
    return run.stdout + run.stderr


def test_the_kernels_have_a_name():
    assert (f"compiled, {kernels.INSTRUCTIONS}" if kernels.COMPILED else "NumPy") == kernels.NAMED


def test_missing_kernels_are_said_once():
    fit = "import ilk; [ilk.KMeans(2, n_init=1).fit([[0.0], [1.0], [5.0]]) for _ in range(3)]"
    text = said(ABSENT + fit, ILK_KERNELS="")
    assert text.count("the compiled kernels are missing") == 1
    assert "compiled kernels" not in said(ABSENT + fit, ILK_KERNELS="numpy")
    caution = "import ilk; print([w[0] for w in ilk.cluster({'x': [1.0, 2.0, 9.0]}, k=2).warnings])"
    assert "numpy-kernels" in said(ABSENT + caution, ILK_KERNELS="")


def test_shared_constants_are_lines_that_cmake_reads():
    """CMake takes lines `NAME = number`; each is one, so that none is forgotten in C++."""
    import re
    from pathlib import Path

    text = Path(constants.__file__).read_text()
    read = dict(re.findall(r"^([A-Z_]+) = ([-+.0-9e]+)", text, re.MULTILINE))
    assert {name: float(value) for name, value in read.items()} == {
        name: float(value) for name, value in vars(constants).items() if name.isupper()
    }
