"""Is Ctrl-C heard whenever it comes? SIGINT at random moments of runs (`python -m benchmarks.signals`).

    python -m benchmarks.signals --signals 100
    python -m benchmarks.signals long --signals 20 --command-line
    python -m benchmarks.signals mixed --signals 20 --after 0

Moments are drawn evenly over the processor time that a whole run takes, from the first second on (`--after`; a shorter
run has no such moment, and its signals come in its second half). One line for each table, with counts: *heard*
(there is an answer, it says that it was interrupted, and that its stability was not measured where no resample had
ended), *early* (nothing was found yet: KeyboardInterrupt, exit code 130), and what must not be: *lost* (an answer that
says nothing of the signal) and *broken* (another error or exit code). Where a run had ended before its moment there
was no signal: *late* ones are counted, and another moment is drawn for them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.budgets import TABLES, named
from benchmarks.time_to_answer import ROOT, WARM_UP, mixed

TICK = 0.002  # seconds between two looks at the processor time
INTERRUPTED = 130
MOST_DRAWS = 4  # for each signal asked for: a busy machine ends runs before their moment


def rounded(n: int = 3000) -> dict[str, Any]:
    """Rows of six numbers in five groups."""
    draws = np.random.default_rng(5)
    return named(draws.normal(0, 4, (5, 6))[draws.integers(0, 5, n)] + draws.normal(0, 1, (n, 6)))


RUNS: dict[str, tuple[Callable[[], dict[str, Any]], dict[str, Any]]] = {
    "long": (TABLES["long"], {}),
    "mixed": (lambda: mixed(10_000), {}),
    "k-means": (TABLES["long"], {"method": "k-means"}),
    "given-k": (rounded, {"k": 4}),
    "numbers": (rounded, {}),
    "wide": (lambda: dict(list(TABLES["wide"]().items())[:1000]), {}),
    "linkage": (lambda: rounded(7000), {"method": "average-linkage", "k": 5}),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signals", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(RUNS)}; all of them if none is given")
    parser.add_argument("--signals", type=int, default=100, help="in all, shared among the tables")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--after", type=float, default=1.0, help="seconds of a run before the first moment")
    parser.add_argument("--command-line", action="store_true", help="every run a process `ilk fit`")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one:
        drawing = Drawing(chosen.signals, chosen.seed, chosen.after)
        print(json.dumps(in_this_process(chosen.names[0], drawing)))
        return
    names, total = chosen.names or list(RUNS), Counter[str]()
    for number, name in enumerate(names):
        n_signals = chosen.signals // len(names) + (number < chosen.signals % len(names))
        drawing = Drawing(n_signals, chosen.seed, chosen.after)
        told = by_command(name, drawing) if chosen.command_line else in_a_process(name, drawing)
        total += Counter(told["counts"])
        counts = ", ".join(f"{key} {n}" for key, n in sorted(told["counts"].items()))
        print(
            f"{name:10} whole run {told['seconds']:5.1f} s: {counts}  {'; '.join(told['words'])}", flush=True
        )
    print(
        f"{sum(total.values()) - total['late']} signals: {', '.join(f'{key} {n}' for key, n in sorted(total.items()))}"
    )


@dataclass
class Drawing:
    """Moments for signals."""

    n_signals: int
    seed: int
    after: float

    def outcomes(self, seconds: float, once: Callable[[int, float], tuple[str, str]]) -> dict[str, Any]:
        """What `once` says for so many moments of a run that takes so long; of those that came too late others."""
        draws, counts, words = np.random.default_rng(self.seed), Counter[str](), Counter[str]()
        first = self.after if self.after < seconds else seconds / 2
        for number in range(MOST_DRAWS * self.n_signals):
            if counts.total() - counts["late"] == self.n_signals:
                break
            outcome, word = once(number, float(draws.uniform(first, seconds)))
            counts[outcome] += 1
            words[word] += 1
        return {"seconds": seconds, "counts": counts, "words": [f"{word} {n}" for word, n in words.items()]}


def in_a_process(name: str, drawing: Drawing) -> dict[str, Any]:
    """One process for all runs over a table: SIGINT does there what it does in a terminal."""
    command = [sys.executable, "-m", "benchmarks.signals", name, "--one", "--signals", str(drawing.n_signals)]
    command += ["--seed", str(drawing.seed), "--after", str(drawing.after)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def in_this_process(name: str, drawing: Drawing) -> dict[str, Any]:
    import ilk

    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    make, options = RUNS[name]
    data = make()
    ilk.cluster(WARM_UP, k=2)
    began = time.process_time()
    whole = ilk.cluster(data, **options)
    seconds = time.process_time() - began
    return drawing.outcomes(
        seconds, lambda _, moment: _once(lambda: ilk.cluster(data, **options), moment, whole)
    )


def _once(run: Callable[[], Any], after: float, whole: Any) -> tuple[str, str]:
    """What becomes of a run that gets a signal once it has used so much processor time."""
    sent, ended = threading.Event(), threading.Event()
    began = time.process_time()

    def send() -> None:
        while time.process_time() - began < after:
            if ended.wait(TICK):
                return
        sent.set()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        result = run()
        before = sent.is_set()
        ended.set()
        thread.join()
        time.sleep(TICK)  # a signal on its way comes now
    except KeyboardInterrupt as stopped:
        late = ended.is_set()
        ended.set()
        thread.join()
        where = [
            frame.name for frame in traceback.extract_tb(stopped.__traceback__) if "ilk" in frame.filename
        ]
        return ("late", "") if late else ("early", f"after {after:.1f} s in {' '.join(where[-6:])}")
    except Exception as error:
        ended.set()
        thread.join()
        return "broken", f"{type(error).__name__}: {error}"[:80]
    if not before:
        return "late", ""
    if not result.interrupted:
        same = result.k == whole.k and (result.labels == whole.labels).all()
        return "lost", "the same answer" if same else "another answer"
    if "interrupted" not in dict(result.warnings):
        return "broken", "no caution"
    return "heard", result.verdict.word


def by_command(name: str, drawing: Drawing) -> dict[str, Any]:
    """`ilk fit` as a process for each signal, at a moment of the processor time of a whole one."""
    import pyarrow as pa
    import pyarrow.csv

    make, options = RUNS[name]
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "table.csv"
        pa.csv.write_csv(pa.table({key: pa.array(value) for key, value in make().items()}), file)
        command = [sys.executable, "-c", "from ilk.cli.main import main; main()", "fit", str(file), "-q"]
        for key, value in options.items():
            command += [f"--{key}", str(value)]

        def once(number: int, moment: float) -> tuple[str, str]:
            folder = Path(place) / str(number)
            _, code, late = _commanded([*command, "-o", str(folder)], moment, folder)
            return _outcome(code, folder / "summary.json", late), ""

        seconds, _, _ = _commanded([*command, "-o", f"{place}/whole"], np.inf, Path(place) / "whole")
        return drawing.outcomes(seconds, once)


def _commanded(command: list[str], after: float, folder: Path) -> tuple[float, int, bool]:
    """Processor seconds and exit code of a command that gets a signal after so many of them, and whether all was
    written before."""
    ticks, spent, late = os.sysconf("SC_CLK_TCK"), 0.0, True
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=_as_in_a_terminal)
    while process.poll() is None:
        try:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except FileNotFoundError:
            break
        spent = max(spent, (int(fields[11]) + int(fields[12])) / ticks)
        if spent >= after:
            late = (folder / "summary.json").exists()
            process.send_signal(signal.SIGINT)
            after = np.inf
        time.sleep(TICK)
    return spent, process.wait(), late


def _as_in_a_terminal() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _outcome(code: int, summary: Path, late: bool) -> str:
    if code not in (0, INTERRUPTED, -signal.SIGINT):
        return "broken"
    if not summary.exists():
        return "early" if code in (INTERRUPTED, -signal.SIGINT) else "broken"
    told = json.loads(summary.read_text())["interrupted"]
    if told:
        return "heard" if code == INTERRUPTED else "broken"
    return "late" if late else "lost"


if __name__ == "__main__":
    main()
