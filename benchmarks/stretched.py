"""How often BIC finds three stretched clusters, and one cloud where there is one (`python -m benchmarks.stretched`).

Starts that look at round distances cut cigars across; the split start finds them. Counts over seeds, not times:
too long for the tests, which run the first few seeds of the same tables (tests/selection/test_stretched.py).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

import ilk
from benchmarks.tables import Array

N_ROWS, ASPECT, APART = 300, 20.0, 6.0
K_MAX = 9


def cigars(seed: int, n_columns: int) -> Array:
    """Three parallel cigars of aspect 20, six standard deviations apart, 100 rows each, turned at random."""
    draws = np.random.default_rng(seed)
    rows = draws.normal(size=(N_ROWS, n_columns))
    rows[:, 0] *= ASPECT
    rows[:, 1] += APART * np.repeat(np.arange(3), N_ROWS // 3)
    return turned(rows, draws)


def cloud(seed: int, n_columns: int, stretch: float) -> Array:
    """One Gaussian cloud, round (`stretch` 1) or long, turned at random."""
    draws = np.random.default_rng(seed)
    rows = draws.normal(size=(N_ROWS, n_columns))
    rows[:, 0] *= stretch
    return turned(rows, draws)


def turned(rows: Array, draws: np.random.Generator) -> Array:
    n_columns = rows.shape[1]
    return np.asarray(rows @ np.linalg.qr(draws.normal(size=(n_columns, n_columns)))[0])


# Name: the table of a seed, how many groups it has, in how many of a hundred they must be found.
TABLES: dict[str, tuple[Callable[[int], Array], int, int]] = {
    "cigars-2": (lambda seed: cigars(seed, 2), 3, 90),
    "cigars-5": (lambda seed: cigars(seed, 5), 3, 90),
    "round-2": (lambda seed: cloud(seed, 2, 1.0), 1, 99),
    "round-5": (lambda seed: cloud(seed, 5, 1.0), 1, 99),
    "long-2": (lambda seed: cloud(seed, 2, ASPECT), 1, 99),
    "long-5": (lambda seed: cloud(seed, 5, ASPECT), 1, 99),
}


def chosen_k(rows: Array, *, thorough: bool = False) -> int:
    """K of the lowest BIC over fourteen structures and K = 1 .. 9."""
    found = ilk.select(rows, k=range(1, K_MAX + 1), scale="standard", thorough=thorough)
    return found.chosen.k


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every table met its figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stretched", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(TABLES)}; all if not given")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--thorough", action="store_true", help="every start in every cell")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.names if name not in TABLES]:
        parser.error(f"no table named {', '.join(unknown)}; there are {', '.join(TABLES)}")
    short = False
    for name in chosen.names or TABLES:
        made, groups, wanted = TABLES[name]
        seeds = range(chosen.first, chosen.first + chosen.seeds)
        found = Counter(chosen_k(made(seed), thorough=chosen.thorough) for seed in seeds)
        counts = ", ".join(f"{k}: {n}" for k, n in sorted(found.items()))
        print(f"{name:9} K = {groups} in {found[groups]} of {len(seeds)}   (K: times  {counts})", flush=True)
        short = short or 100 * found[groups] < wanted * len(seeds)
    return int(short)


if __name__ == "__main__":
    raise SystemExit(main())
