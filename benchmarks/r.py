"""Peers in R: tables go there and come back as raw binary files, times are taken inside R around the call."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
HERE = Path(__file__).parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ilk-benchmarks-")


def shared_file(name: str) -> Path:
    """A file in a folder that is removed when this process ends."""
    return Path(_folder().name) / name


def write_matrix(name: str, matrix: Array) -> Path:
    """Column by column, as R keeps a matrix; 8-byte reals."""
    path = shared_file(name)
    np.ascontiguousarray(np.asarray(matrix, dtype=np.float64).T).tofile(path)
    return path


def read_matrix(path: Path, n_rows: int) -> Array:
    return np.fromfile(path).reshape(-1, n_rows).T


def run_script(script: str, *arguments: object) -> dict[str, str]:
    """Run `benchmarks/<script>` and return the `key value` lines it printed."""
    command = ["Rscript", "--vanilla", str(HERE / script), str(HERE), *map(str, arguments)]
    told = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **ONE_THREAD}
    )
    if told.returncode:
        raise RuntimeError(" ".join(told.stderr.split()) or "Rscript failed")
    return dict(line.split(" ", 1) for line in told.stdout.splitlines() if " " in line)


def extra_bytes(told: dict[str, str]) -> int | None:
    return int(float(told["extra_bytes"])) if "extra_bytes" in told else None
