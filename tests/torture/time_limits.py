"""A limit of time is kept: how much later than asked an answer comes, in time of the processor."""

from __future__ import annotations

import random
import time
import warnings

import numpy as np

import ilk
from ilk.errors import IlkError
from tests.torture.resume import table
from tests.torture.tally import Clock, Tally

LATE = 2.0  # seconds, or a tenth of the limit (R20)


def run(clock: Clock, seed: int = 0) -> Tally:
    """Tables of several sizes, with limits from nothing to what they would take."""
    tally, draw = Tally("limits of time (budget=): answers at most 2 s or a tenth late"), random.Random(seed)
    wide = {f"x{j}": np.random.default_rng(j).normal(size=4000) for j in range(30)}
    tables = {"numbers": table("numbers"), "mixed": table("mixed"), "rows": table("rows"), "wide": wide}
    latest = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while clock.more():
            name, limit = draw.choice([*tables]), draw.choice([0.01, 0.2, 1.0, 3.0])
            began = time.process_time()
            try:
                ilk.cluster(tables[name], budget=limit, threads=1, seed=draw.randrange(99))
                ended = "answered"
            except IlkError as error:
                ended = f"refused by {type(error).__name__}"
            late = time.process_time() - began - limit
            latest = max(latest, late)
            tally.ended[ended] += 1
            if late > max(LATE, limit / 10):
                tally.failed(f"{late:.1f} s late", f"{name}, budget={limit}, seed {seed}")
    tally.ended[f"the latest by {max(latest, 0.0):.2f} s"] = 0
    tally.seconds = clock.spent
    return tally
