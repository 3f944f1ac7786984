"""Random tables through the callers of the kernels: few rows, odd numbers, weights from 1e-300 to 1e300.

Each table is fitted by one estimator, or by `ilk.cluster`, and must end in an answer or in a refusal with a code. A
table has the number of its seed, and `python -m tests.kernels.fuzz_tables 1 SEED` runs it alone.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ilk
from ilk.errors import IlkError, IlkWarning

Array = np.ndarray
Draws = np.random.Generator
STRUCTURES = [
    "EII",
    "VII",
    "EEI",
    "VEI",
    "EVI",
    "VVI",
    "EEE",
    "VEE",
    "EVE",
    "VVE",
    "EEV",
    "VEV",
    "EVV",
    "VVV",
]


@dataclass
class Tried:
    """How tables ended; `failures` by what was raised and where, `warned` by what NumPy warned of, each with how often
    and the first table."""

    ended: Counter[str] = field(default_factory=Counter)
    failures: dict[str, tuple[int, int]] = field(default_factory=dict)
    warned: dict[str, tuple[int, int]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        found = [("failed", self.failures), ("warned", self.warned)]
        return [
            f"{kind} {count} x {what} (first: table {seed})"
            for kind, those in found
            for what, (count, seed) in sorted(those.items())
        ]


def counted(those: dict[str, tuple[int, int]], what: str, seed: int) -> None:
    count, first = those.get(what, (0, seed))
    those[what] = count + 1, first


def numbers(draws: Draws, n: int) -> Array:
    """A column, often of groups, often odd."""
    plain = draws.normal(0, 1, n) + 4 * draws.integers(0, 3, n)
    kind = draws.integers(0, 12)
    if kind == 0:
        return np.full(n, draws.choice([0.0, 1.0, -3.5, 1e308, 5e-324]))
    if kind == 1:
        return plain * draws.choice([1e300, 1e-300, 1e-320, 1e154, 1e-160])
    if kind == 2:
        return plain + draws.choice([1e8, 1e15, 1e16, -1e300])
    if kind == 3:
        return draws.integers(0, 3, n).astype(float)
    if kind == 4:
        return np.where(draws.random(n) < 0.3, np.nan, plain)
    if kind == 5:
        plain[draws.integers(0, n)] = draws.choice([1e308, -1e308, 1e200, 1e30])
    if kind == 6:
        return np.where(draws.random(n) < 0.5, -1e308, 1e308)
    if kind == 7:
        return np.round(plain)
    return plain


def table(draws: Draws) -> Array:
    n = int(draws.choice([1, 2, 3, 4, 5, 8, 13, 20, 33, 50]))
    cells = np.column_stack([numbers(draws, n) for _ in range(int(draws.integers(1, 6)))])
    if draws.random() < 0.3:
        cells = cells[draws.integers(0, n, n)]
    if draws.random() < 0.15:
        with np.errstate(over="ignore"):
            cells = cells.astype(np.float32)
    return cells


def weights(draws: Draws, n: int) -> Array:
    """In any unit from 1e-300 to 1e300: alike, whole, of any size, some of them zero."""
    unit = 10.0 ** draws.uniform(-300, 300)
    kind = draws.integers(0, 6)
    if kind == 0:
        return np.full(n, unit)
    if kind == 1:
        return draws.integers(0, 5, n).astype(float)
    if kind == 2 and draws.random() < 0.3:
        return 10.0 ** draws.uniform(-300, 300, n)  # mostly refused: some would be lost in rounding
    if kind == 3:
        return np.where(draws.random(n) < 0.3, 0.0, draws.random(n) * unit)
    if kind == 4:
        return np.full(n, draws.choice([1e300, 1e-300, 1e220, 5e-324, 1.7e308]))
    return draws.lognormal(0, 2, n) * unit


def k_of(draws: Draws) -> int:
    return int(draws.choice([1, 2, 3, 7]))


def gaussian(draws: Draws) -> Any:
    return ilk.GaussianMixture(
        k_of(draws),
        structure=str(draws.choice(STRUCTURES)),
        noise=bool(draws.random() < 0.2),
        prior="default" if draws.random() < 0.3 else None,
        trim=float(draws.choice([0.0, 0.0, 0.1])),
        membership=str(draws.choice(["soft", "hard"])),
        random_state=0,
    )


def student(draws: Draws) -> Any:
    return ilk.StudentMixture(k_of(draws), structure=str(draws.choice(["EEE", "VVV", "VII"])), random_state=0)


def assorted(draws: Draws) -> Any:
    return ilk.AssortedMixture("auto" if draws.random() < 0.3 else min(k_of(draws), 3), random_state=0)


ESTIMATORS: list[tuple[float, Callable[[Draws], Any]]] = [  # how often, and which
    (0.20, lambda draws: ilk.KMeans(k_of(draws), random_state=0)),
    (0.10, lambda draws: ilk.KMedians(k_of(draws), random_state=0)),
    (0.10, lambda draws: ilk.TrimmedKMeans(k_of(draws), trim=0.1, random_state=0)),
    (0.28, gaussian),
    (0.08, student),
    (0.06, lambda draws: ilk.LaplaceMixture(k_of(draws), random_state=0)),
    (0.08, lambda draws: ilk.MixedMixture(k_of(draws), random_state=0)),
    (0.02, assorted),
    (0.06, lambda draws: ilk.DPMeans(float(draws.choice([0.5, 4.0, 1e300, 1e-300])), random_state=0)),
]
CLUSTERED = 0.02  # the share of tables that `ilk.cluster` gets


def fit(seed: int) -> str:
    """Fit one table; in one word how that ended."""
    draws = np.random.default_rng([20, seed])
    cells = table(draws)
    weight = weights(draws, len(cells)) if draws.random() < 0.8 else None
    share = np.array([CLUSTERED, *(share for share, _ in ESTIMATORS)])
    chosen = int(draws.choice(len(share), p=share / share.sum()))
    if chosen == 0:
        columns: dict[str, Any] = {f"c{j}": column for j, column in enumerate(cells.T)}
        named = {} if weight is None else {"weight": "w"}
        ilk.cluster(columns | ({} if weight is None else {"w": weight}), k=int(draws.integers(1, 4)), **named)
        return "answered"
    model = ESTIMATORS[chosen - 1][1](draws).fit(cells, sample_weight=weight)
    label = model.labels_
    assert label.shape == (len(cells),)
    assert label.min() >= -1
    assert label.max() < len(model.fit_.size)
    return "answered"


def run(n_tables: int, first: int) -> Tried:
    """Fit tables of seeds from `first` on."""
    tried = Tried()
    for seed in range(first, first + n_tables):
        with warnings.catch_warnings(record=True) as made:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", IlkWarning)
            try:
                how = fit(seed)
            except IlkError:
                how = "refused"
            except Exception as error:  # whatever it is, the other tables are tried
                how = "refused" if refused_by_scikit_learn(error) else "failed"
                if how == "failed":
                    counted(tried.failures, named(error), seed)
        tried.ended[how] += 1
        for what in {f"{w.message} @ {Path(w.filename).name}:{w.lineno}" for w in made}:
            counted(tried.warned, what, seed)
    return tried


def refused_by_scikit_learn(error: Exception) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, ValueError) and "sklearn/utils/validation" in frames[-1].filename.replace(
        "\\", "/"
    )


def named(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/ilk/" in frame.filename.replace("\\", "/")] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"
    return f"{type(error).__name__}: {str(error)[:90]} @ {place}"


if __name__ == "__main__":
    found = run(int(sys.argv[1]), int(sys.argv[2]))
    print(dict(found.ended))
    print(*found.lines(), sep="\n")
    sys.exit(bool(found.failures))
