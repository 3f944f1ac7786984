"""Model files that lie, their digest recomputed, put to every use."""

from __future__ import annotations

import gc
import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.store.hostile import bases
from tests.store.ordeal import many
from tests.torture.tally import IN_MEMORY, Clock, Tally

A_TIME = 500


def run(clock: Clock, first: int = 0, keep: Path | None = None) -> Tally:
    """Files until the time is over. The models that they are made from are fitted in another process, since no fit is
    tried here: a change of a fit leaves the count alone."""
    tally, seed = Tally("hostile model files: loaded, then assign, SQL, JSON, check, save"), first
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as apart:
        known = apart.submit(bases).result()
    gc.freeze()  # or its walks through all that is imported take a tenth of the time
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        while clock.more():
            tried = many(A_TIME, seed, Path(folder), known)
            tally.ended["refused"] += tried.refused
            tally.ended["taken"] += tried.count - tried.refused
            for number, (how, (times, data)) in enumerate(tried.escaped.items()):
                for _ in range(times):
                    tally.failed(how, f"seed {seed}")
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{seed}-{number}.ilk").write_bytes(data)
            seed += 1
    tally.seconds = clock.spent
    return tally
