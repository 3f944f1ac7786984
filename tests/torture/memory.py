"""Limits of address space from "cannot start" to "enough": a fit ends with 0 or 5, and its files are old or new."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.torture.calls import judged, state
from tests.torture.tally import Clock, Tally

LIMITS = [*range(150, 600, 30), *range(600, 1200, 20), *range(1200, 2550, 90)]  # MB
CPU_SECONDS = 60


def run(clock: Clock, job: int = 0, jobs: int = 1) -> Tally:
    """Every limit, whatever time that takes: 60 of 60 were asked for, and a limit counts once."""
    tally = Tally("limits of address space (ulimit -v), exit 0 or 5")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        draws = np.random.default_rng(0)
        rows = draws.normal(size=(300, 3)) + 6 * draws.integers(0, 3, (300, 1))
        lines = [",".join([*(f"{cell:.3f}" for cell in row), "abc"[i % 3]]) for i, row in enumerate(rows)]
        (home / "t.csv").write_text("\n".join(["a,b,c,d", *lines]) + "\n")
        args = ["fit", str(home / "t.csv"), "-o", str(home / "run"), "-q", "--k", "3", "--force"]
        (home / "old.csv").write_text("\n".join(["a,b,c,d", *lines[:200]]) + "\n")  # another run is there
        assert _fit(["fit", str(home / "old.csv"), *args[2:]], None).returncode == 0
        shutil.copytree(home / "run", home / "base")
        for limit in LIMITS[job::jobs]:
            if Clock.ended:
                break
            shutil.rmtree(home / "run")
            shutil.copytree(home / "base", home / "run")
            before = state(home / "run")
            done = _fit(args, limit * 10**6)
            found = judged(before, state(home / "run"), set(before))
            tally.ended[f"exit {done.returncode}, {found}"] += 1
            if done.returncode not in (0, 5) or found == "MIXTURE":
                said = done.stderr.strip()[-160:]
                tally.failed(f"exit {done.returncode}, {found}: {said}", f"{limit} MB")
    tally.seconds = clock.spent
    return tally


def _fit(args: list[str], limit: int | None) -> subprocess.CompletedProcess[str]:
    def capped() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = [sys.executable, "-m", "ilk.cli.main", *args]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=capped, check=False)
