"""SIGKILL at random moments of writing a run: what is there is the old run or the new one, whole."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import ilk
from ilk.analysis.run_folder import write_run
from tests.torture.calls import judged, state
from tests.torture.tally import Clock, Tally


def run(clock: Clock, seed: int = 0) -> Tally:
    """Forked writers, each killed somewhere between its start and a little after its usual end."""
    tally, draw = Tally("SIGKILL at random moments of writing a run folder"), random.Random(seed)
    draws = np.random.default_rng(0)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")
        one, two = (
            ilk.cluster(draws.normal(size=(n, 3)) + 6 * draws.integers(0, 2, (n, 1)), k=2, method="k-means")
            for n in (300, 400)
        )
        base, folder = Path(home, "base"), Path(home, "work", "run")
        write_run(one, str(base))
        folder.parent.mkdir()
        write_run(two, str(folder), force=True)
        names = set(state(base))
        usual = _killed(two, folder, None)
        while clock.more():
            shutil.rmtree(folder)
            shutil.copytree(base, folder)
            _killed(two, folder, draw.uniform(0, 1.2) * usual)
            found = judged(state(base), state(folder), names)
            tally.ended[found] += 1
            if found == "MIXTURE":
                tally.failed("neither old nor new", tally.tried)
            if tally.tried % 10 == 0:  # and what dead writers left is gone after the next
                write_run(two, str(folder), force=True)
                if os.listdir(folder.parent) != ["run"]:
                    tally.failed("something was left behind", tally.tried)
    tally.seconds = clock.spent
    return tally


def _killed(result: ilk.Result, folder: Path, after: float | None) -> float:
    """Write the run in a child, killed after some seconds; the seconds that it took."""
    began, pid = time.monotonic(), os.fork()
    if pid == 0:
        try:
            write_run(result, str(folder), force=True)
        finally:
            os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return time.monotonic() - began
