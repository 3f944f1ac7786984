"""Are 15, 40 and 100 clear groups found without options? K, agreement and time for each table.

    python -m benchmarks.ceiling                     ten seeds of each, some minutes
    python -m benchmarks.ceiling --seeds 0..3 --k 15 40 --methods auto k-means

    python -m benchmarks.ceiling --mixed             with a column of six kinds, for the assorted model

Groups are round Gaussians of one deviation, their centres at least eight deviations apart, 60 rows each.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import ilk
from ilk.measures import ari

DISTANCE, ROWS = 8.0, 60
ROOM = 1.3  # side of the cube, in that of one filled by cubes of the least distance


def apart(k: int, columns: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their groups; centres drawn evenly in a cube, those too near to another drawn again."""
    draws = np.random.default_rng([seed, k, columns])
    side = ROOM * DISTANCE * k ** (1 / columns)
    centres = np.empty((0, columns))
    tried = 0
    while len(centres) < k:
        centre, tried = draws.uniform(0, side, columns), tried + 1
        if (np.linalg.norm(centres - centre, axis=1) >= DISTANCE).all():
            centres = np.vstack([centres, centre])
        elif tried > 40 * k:
            side, tried = side * 1.05, 0
    label = np.repeat(np.arange(k), rows)
    return centres[label] + draws.normal(size=(len(label), columns)), label


def _with_kinds(X: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    """The table with a category that several groups share."""
    return {**{f"x{j}": column for j, column in enumerate(X.T)}, "kind": np.array([*"uvwxyz"])[label % 6]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", default="0..10", help="a..b: from a, below b")
    parser.add_argument("--k", type=int, nargs="+", default=[15, 40, 100])
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--rows", type=int, default=ROWS, help="of each group")
    parser.add_argument("--methods", nargs="+", default=["auto"])
    parser.add_argument("--mixed", action="store_true")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(".."))
    for method in given.methods:
        for k in given.k:
            for columns in given.columns:
                _told(method, k, columns, given.rows, range(first, last), given.mixed)


def _told(method: str, k: int, columns: int, rows: int, seeds: range, mixed: bool) -> None:
    found, words, seconds = [], [], []
    for seed in seeds:
        X, label = apart(k, columns, rows, seed)
        began = time.process_time()
        result = ilk.cluster(_with_kinds(X, label) if mixed else X, method=method)
        seconds.append(time.process_time() - began)
        found.append((result.k, ari(label, result.labels)))
        words.append(result.verdict.word)
    exact = sum(number == k for number, _ in found)
    close = sum(value > 0.98 for _, value in found)
    listed = ", ".join(f"{word} {words.count(word)}" for word in dict.fromkeys(words))
    print(
        f"{method}, {k} groups, {columns} columns, {k * rows} rows: K exact {exact} of {len(found)}, "
        f"ARI above .98 {close}, least {min(value for _, value in found):.3f}; {listed}; "
        f"processor time {np.mean(seconds):.1f} s, most {max(seconds):.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
