"""How the rule for K and the verdict do on tables with known answers; counts are printed, cell by cell.

    python -m benchmarks.trust nulls --seeds 100 --rows 100 1000 --columns 2 5 20
    python -m benchmarks.trust groups --seeds 100 --delta 4 6
    python -m benchmarks.trust cigars --seeds 50
    python -m benchmarks.trust tables

Nulls are single clouds: right is one group, or a weak verdict. Groups have their nearest two centres `delta`
standard deviations apart (Mahalanobis, mean of the two covariances).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import ilk
from ilk.measures import ari

Draws = np.random.Generator


def gaussian(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.normal(size=(n, d))


def stretched(draws: Draws, n: int, d: int) -> np.ndarray:
    return turned(draws.normal(size=(n, d)) * np.geomspace(1, 20, d), draws)


def uniform(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.random((n, d))


def student(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.normal(size=(n, d)) / np.sqrt(draws.chisquare(3, n) / 3)[:, None]


def laplace(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.normal(size=(n, d)) * np.sqrt(draws.exponential(1, n))[:, None]


def lognormal(draws: Draws, n: int, d: int) -> np.ndarray:
    return np.exp(0.8 * draws.normal(size=(n, d)))


def lognormal_correlated(draws: Draws, n: int, d: int) -> np.ndarray:
    shared = draws.normal(size=(n, 1))
    return np.exp(np.sqrt(0.5) * shared + np.sqrt(0.5) * draws.normal(size=(n, d)))


def curved(draws: Draws, n: int, d: int) -> np.ndarray:
    X = draws.normal(size=(n, d))
    X[:, 1] = 0.5 * X[:, 1] + X[:, 0] ** 2
    return X


CLOUDS: dict[str, Callable[[Draws, int, int], np.ndarray]] = {
    "gaussian": gaussian,
    "stretched": stretched,
    "uniform": uniform,
    "student": student,
    "laplace": laplace,
    "lognormal": lognormal,
    "lognormal correlated": lognormal_correlated,
    "curved": curved,
}


def turned(X: np.ndarray, draws: Draws) -> np.ndarray:
    return X @ np.linalg.qr(draws.normal(size=(X.shape[1], X.shape[1])))[0]


def parted(seed: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Two to eight groups of unequal size, some stretched, a quarter each heavy-tailed and skewed, no outliers."""
    draws = np.random.default_rng([seed, int(10 * delta)])
    d, k = int(draws.choice([2, 5])), int(draws.integers(2, 9))
    n, aspect = int(draws.choice([100, 300, 1000])), float(draws.choice([1, 5, 20]))
    k = min(k, n // 25)
    shape = draws.choice(["gaussian", "gaussian", "student", "skewed"])
    share = draws.dirichlet(np.full(k, 5.0)) * 0.7 + 0.3 / k
    label = np.repeat(np.arange(k), draws.multinomial(n - 10 * k, share) + 10)
    halves = [
        np.linalg.qr(draws.normal(size=(d, d)))[0] * np.geomspace(1, 1 / np.sqrt(aspect), d) for _ in range(k)
    ]
    centres = draws.normal(size=(k, d))
    centres *= delta / _nearest(centres, halves)
    rows = np.empty((n, d))
    for g in range(k):
        size = int((label == g).sum())
        core = draws.normal(size=(size, d))
        if shape == "student":
            core /= np.sqrt(draws.chisquare(4, size) / 4)[:, None] * np.sqrt(2)
        if shape == "skewed":
            core = (draws.gamma(4, size=(size, d)) - 4) / 2
        rows[label == g] = centres[g] + core @ halves[g].T
    return rows, label


def _nearest(centres: np.ndarray, halves: list[np.ndarray]) -> float:
    covariances = [half @ half.T for half in halves]
    return min(
        float(np.sqrt(away @ np.linalg.solve((covariances[i] + covariances[j]) / 2, away)))
        for i in range(len(centres))
        for j in range(i)
        for away in [centres[i] - centres[j]]
    )


def cigars(seed: int, d: int) -> np.ndarray:
    """Three parallel cigars of aspect 20, six standard deviations apart, 100 rows each."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(300, d))
    X[:, 0] *= 20
    X[:, 1] += 6 * np.repeat(np.arange(3), 100)
    return turned(X, draws)


def run_nulls(seeds: range, rows: list[int], columns: list[int], clouds: list[str]) -> Iterator[str]:
    for name in clouds:
        for n in rows:
            for d in columns:
                began, one, weak, split, solid = time.process_time(), 0, 0, 0, 0
                for seed in seeds:
                    result = ilk.cluster(CLOUDS[name](np.random.default_rng([seed, n, d]), n, d), threads=1)
                    one += result.k == 1
                    split += result.pieces > 1
                    weak += result.verdict.word == "weak"
                    solid += result.verdict.word == "solid"
                yield (
                    f"null {name:<21} n {n:>5} d {d:>2}: weak {weak:>3} of {len(seeds)}, K = 1 {one:>3}, BIC "
                    f"K > 1 {split:>3}, solid {solid}  {(time.process_time() - began) / len(seeds):.2f} s each"
                )


def run_groups(seeds: range, deltas: list[float]) -> Iterator[str]:
    for delta in deltas:
        began, right, near, held, solid = time.process_time(), 0, 0, 0, 0
        bic_right, agreement, solid_agreement = 0, [], []
        for seed in seeds:
            X, truth = parted(seed, delta)
            result = ilk.cluster(X, threads=1)
            k = int(truth.max()) + 1
            right += result.k == k
            near += abs(result.k - k) <= 1
            bic_right += result.pieces == k
            held += result.verdict.word != "weak"
            agreement.append(ari(result.labels, truth) if result.k > 1 else 0.0)
            if result.verdict.word == "solid":
                solid += 1
                solid_agreement.append(agreement[-1])
        yield (
            f"groups delta {delta:g}: not weak {held} of {len(seeds)}, solid {solid}, K right {right}, within 1 "
            f"{near}, BIC {bic_right}, mean ARI {np.mean(agreement):.3f}, of solid "
            f"{np.mean(solid_agreement) if solid_agreement else np.nan:.3f}  "
            f"{(time.process_time() - began) / len(seeds):.2f} s each"
        )


def run_cigars(seeds: range) -> Iterator[str]:
    for d in (2, 5):
        right = said = 0
        for seed in seeds:
            result = ilk.cluster(cigars(seed, d), threads=1)
            unsettled = "search_unsettled" in {reason.code for reason in result.verdict.reasons}
            right += result.k == 3
            said += result.k == 3 or unsettled
        yield f"cigars d {d}: K right {right} of {len(seeds)}, right or said to be unsettled {said}"


TABLES = {
    "xclara": 3,
    "faithful": 2,
    "ruspini": 4,
    "craft_numeric_overlap": 3,
    "iris": 2,
    "penguins": 3,
    "wine": 3,
    "seven_normals_outliers": 7,
    "acidity": 2,
    "banknote_swiss": 2,
    "diabetes_reaven": 3,
}


def run_tables(folder: Path) -> Iterator[str]:
    for name, k in TABLES.items():
        path = folder / f"{name}.csv"
        if not path.exists():
            yield f"{name}: not here"
            continue
        table = _numeric(path)
        began = time.monotonic()
        result = ilk.cluster(table, truth="target" if "target" in table else None, threads=1)
        truth = result.summary()["truth"]
        agreement = "" if truth is None else f" ARI {truth['ari']:.3f}"
        yield (
            f"{name}: {result.pieces} pieces -> {result.k} (expected {k}), {result.verdict.word}: "
            f"{result.verdict.sentence}{agreement}  {time.monotonic() - began:.1f} s"
        )


def _numeric(path: Path) -> dict[str, list[object]]:
    """The numeric columns of a table, and its target."""
    import pandas as pd

    frame = pd.read_csv(path)
    keep = [c for c in frame if c == "target" or (frame[c].dtype.kind in "if" and c != "year")]
    return frame[keep]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["nulls", "groups", "cigars", "tables"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 5, 20])
    parser.add_argument("--clouds", nargs="+", default=list(CLOUDS), choices=list(CLOUDS))
    parser.add_argument("--delta", type=float, nargs="+", default=[4.0, 6.0])
    parser.add_argument("--tables", type=Path, default=Path("../shared/data/tables"))
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    lines = {
        "nulls": lambda: run_nulls(seeds, given.rows, given.columns, given.clouds),
        "groups": lambda: run_groups(seeds, given.delta),
        "cigars": lambda: run_cigars(seeds),
        "tables": lambda: run_tables(given.tables),
    }[given.what]()
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
