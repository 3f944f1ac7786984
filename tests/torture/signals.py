"""Ctrl-C, SIGTERM and SIGHUP, once or several times, at random moments of a fit: the folder holds the old run or a new
one, the exit code is that of the signal, and nothing untrue is said."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path

from tests.torture.calls import judged, state
from tests.torture.resume import OFTEN, Trial, make_old
from tests.torture.tally import Clock, Tally

KINDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LATEST = 10.0  # seconds of a busy machine, after which a process that was told to stop is said to hang


def run(clock: Clock, seed: int = 0) -> Tally:
    """Fits over an old run, signalled."""
    tally, draw = (
        Tally("signals (INT, TERM, HUP, one to three) at random moments of a fit"),
        random.Random(seed),
    )
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")
        trials = [Trial(Path(home), name) for name in ("assorted", "K-means, K open")]
        while clock.more():
            trial, kind = draw.choice(trials), draw.choice(KINDS)
            folder = trial.home / "work"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(trial.home / "whole", folder)
            make_old(folder / "run")
            before = state(folder / "run")
            code, said = _signalled(trial, folder, [kind] * draw.randint(1, 3), draw)
            now = state(folder / "run")
            found = judged(
                before, now, set(before) - ({"fits.ilk"} - set(now))
            )  # a run that was stopped keeps none
            tally.ended[f"exit {code}, {found}"] += 1
            where = f"{trial.name}, {kind.name}, seed {seed}, {tally.tried}"
            if code not in (0, 130, 128 + kind, -kind) or "Traceback" in said or "[bug]" in said:
                tally.failed(f"exit {code}: {said.strip()[-120:]}", where)
            if found == "MIXTURE" or ("nothing was written" in said and found == "new"):
                tally.failed(f"{found}: {said.strip()[-120:]}", where)
    tally.seconds = clock.spent
    return tally


def _signalled(
    trial: Trial, folder: Path, signals: list[signal.Signals], draw: random.Random
) -> tuple[int, str]:
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # not those of the harness
        signal.signal(signal.SIGINT, signal.default_int_handler)
        said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        code = 1
        try:
            code = trial.in_folder(folder, ["--force"], OFTEN)
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    time.sleep(draw.uniform(0.02, 1.1) * trial.seconds)
    for one in signals:
        os.kill(pid, one)
        time.sleep(draw.choice([0, 0.001, 0.02]))
    late = time.monotonic() + LATEST
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > late:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -1, "it hangs"
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(ended[1]), (folder / "said").read_text(errors="replace")
