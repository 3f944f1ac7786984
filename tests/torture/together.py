"""Several at once: two fits into one folder, fits in threads, fits in forked children; and what many fits leave."""

from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import ilk
from ilk.threads import _pool, thread_count
from tests.torture.calls import judged, state
from tests.torture.resume import OFTEN, Trial, in_child, make_old, table
from tests.torture.tally import Clock, Tally

WARM_UP, LEAST_FITS = 300, 10_000  # 10,000 take a minute
MOST_GROWTH = 0.01


def writers(clock: Clock, seed: int = 0) -> Tally:
    """Two fits into one folder at once: one of them is there whole, the other is refused or comes after it."""
    tally, draw = (
        Tally("two fits into one folder at once; fits in threads and forked children"),
        random.Random(seed),
    )
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")
        trial = Trial(Path(home), "K-means, K open")
        data, plain = table("numbers"), ilk.cluster(table("numbers"), k=3, method="k-means").labels
        while clock.more():
            _two(tally, trial, draw)
            with ThreadPoolExecutor(4) as pool:
                fits = [
                    pool.submit(ilk.cluster, data, k=3, method="k-means", threads=n) for n in (1, 2, 1, 2)
                ]
            same = all((fit.result().labels == plain).all() for fit in fits)
            forked = in_child(
                lambda: int((ilk.cluster(data, k=3, method="k-means").labels != plain).any()), None
            )
            tally.ended["threads, same labels"] += 1
            tally.ended["forked child, same labels"] += 1
            if not same or forked:
                tally.failed("other labels in threads or in a forked child", f"{same} {forked}")
    tally.seconds = clock.spent
    return tally


def _two(tally: Tally, trial: Trial, draw: random.Random) -> None:
    folder = trial.home / "work"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(trial.home / "whole", folder)
    make_old(folder / "run")
    before = state(folder / "run")
    codes: list[int] = []

    def one(late: float) -> None:
        threading.Event().wait(late)
        codes.append(in_child(lambda: trial.in_folder(folder, ["--force"], OFTEN), None))

    both = [threading.Thread(target=one, args=(draw.uniform(0, 0.3) * number,)) for number in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    found = judged(before, state(folder / "run"), set(before))
    tally.ended[f"two writers: exits {sorted(codes)}, {found}"] += 1
    if found != "new" or not set(codes) <= {0, 5} or 0 not in codes:
        tally.failed(f"exits {sorted(codes)}, {found}", tally.tried)


def leaks(clock: Clock) -> Tally:
    """Fits one after the other: memory, handles and threads are those after the first few."""
    tally = Tally(
        "fits one after the other (K-means, mixture, cluster, save, load): memory, handles, threads"
    )
    draws = np.random.default_rng(0)
    data = draws.normal(size=(300, 3)) + 5 * draws.integers(0, 3, (300, 1))
    first: tuple[int, int, int] | None = None
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")
        while clock.more() or tally.tried < LEAST_FITS:
            ilk.KMeans(3, n_init=1, random_state=0).fit(data)
            if tally.tried % 50 == 0:
                ilk.GaussianMixture(3, random_state=0).fit(data)
                ilk.cluster(data, k=3, method="k-means").model.save(Path(home, "model.ilk"), overwrite=True)
                ilk.load(Path(home, "model.ilk")).assign(data[:9])
            tally.ended["fits"] += 1
            if tally.tried == WARM_UP:
                _fill_pool()
                first = _held()
    assert first is not None
    last = _held()
    growth = last[0] / first[0] - 1
    tally.ended[f"memory {growth:+.2%}, handles {last[1] - first[1]:+d}, threads {last[2] - first[2]:+d}"] = 0
    if growth > MOST_GROWTH or last[1:] != first[1:]:
        tally.failed(f"from {first} to {last} (bytes, handles, threads)", tally.tried)
    tally.seconds = clock.spent
    return tally


def _fill_pool() -> None:
    """The pool of ilk grows to its size when passes overlap, which may be late: that is no leak."""
    size = thread_count(None)
    for one in [_pool(size).submit(time.sleep, 0.1) for _ in range(size)]:
        one.result()


def _held() -> tuple[int, int, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        pages * os.sysconf("SC_PAGESIZE"),
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/proc/self/task")),
    )
