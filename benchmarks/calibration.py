"""What the words of the verdict are worth: how often each is said, and how often the groups were then right.

    python -m benchmarks.calibration --seeds 10                    made tables, 100 to 20,000 rows
    python -m benchmarks.calibration --seeds 50 --rows 100 1000
    python -m benchmarks.calibration --real                        the tables of ../shared/data with known classes

Right is an adjusted Rand index of 0.8 with the groups that the table was made from, or with one of its references.
Of clouds no group is right.
Where another column of a table divides its classes into groups that are as real, both figures are printed: with the
classes alone, and with the classes and those groups as two references.
Asked: of "solid" 95 %, of "fair" 70 %.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ilk
from benchmarks.made import CLOUDS, MIXED_CLOUDS, Draws, mixed_cloud
from ilk.measures import ari

RIGHT = 0.8
ASKED = {"solid": 0.95, "fair": 0.70}
WORDS = ("solid", "fair", "weak", "no clear groups", "not tested")
DIVIDED = {"penguins": ("target", "sex")}  # males and females of a species differ as much as two species do
SHARED = Path(__file__).parents[2] / "shared" / "data"
Table = tuple[Any, "np.ndarray"]


def level_cloud(draws: Draws, n: int) -> dict[str, Any]:
    """Independent columns: a number, three plans, and a column of many levels, rare ones too."""
    n_levels = int(n * draws.choice([0.05, 0.1, 0.2]))
    share = 1 / np.arange(1, n_levels + 1) ** draws.choice([0.0, 1.1])
    return {
        "amount": draws.normal(size=n),
        "plan": draws.choice(list("abc"), n),
        "sku": [f"s{code}" for code in draws.choice(n_levels, n, p=share / share.sum())],
    }


def _groups(draws: Draws, n: int, d: int, delta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of two to six groups of unequal size, their centres at least `delta` apart, and round noise."""
    k = int(draws.integers(2, min(7, n // 25 + 1)))
    share = draws.dirichlet(np.full(k, 5.0)) * 0.6 + 0.4 / k
    label = draws.choice(k, n, p=share)
    centres = draws.normal(size=(k, d))
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(k, 1)]
    return label, centres * delta / apart.min(), draws.normal(size=(n, d))


def numeric(draws: Draws, n: int, delta: float) -> Table:
    label, centres, noise = _groups(draws, n, int(draws.choice([2, 4, 8])), delta)
    return centres[label] + noise, label


def skewed(draws: Draws, n: int, delta: float) -> Table:
    label, centres, noise = _groups(draws, n, int(draws.choice([2, 4])), delta)
    core = (draws.gamma(3, size=noise.shape) - 3) / np.sqrt(3)
    return centres[label] + core, label


def heavy(draws: Draws, n: int, delta: float) -> Table:
    label, centres, noise = _groups(draws, n, int(draws.choice([2, 4])), delta)
    return centres[label] + noise / np.sqrt(draws.chisquare(4, n) / 4)[:, None] / np.sqrt(2), label


def mixed(draws: Draws, n: int, delta: float) -> Table:
    """Two numbers, three categories that follow the groups in three of four rows, two of noise."""
    label, centres, noise = _groups(draws, n, 2, delta)
    frame: dict[str, Any] = {f"x{j}": column for j, column in enumerate((centres[label] + noise).T)}
    for j in range(3):
        follows = draws.permutation(6)[label]
        frame[f"c{j}"] = [
            f"l{code}" for code in np.where(draws.random(n) < 0.75, follows, draws.integers(0, 6, n))
        ]
    frame |= {f"e{j}": draws.choice(list("abcd"), n) for j in range(2)}
    return frame, label


def many_levels(draws: Draws, n: int, delta: float) -> Table:
    """The same with a city of n/20 to n/10 levels, of which each group has its own in nine of ten rows."""
    frame, label = mixed(draws, n, delta)
    n_levels, k = int(n * draws.choice([0.05, 0.1])), int(label.max()) + 1
    own = label + k * draws.integers(0, max(1, n_levels // k), n)
    frame["city"] = [
        f"t{code}" for code in np.where(draws.random(n) < 0.9, own, draws.integers(0, n_levels, n))
    ]
    return frame, label


GROUPS: dict[str, Callable[[Draws, int, float], Table]] = {
    "numeric": numeric,
    "skewed": skewed,
    "heavy-tailed": heavy,
    "mixed": mixed,
    "many-level": many_levels,
}


def made(seeds: range, rows: list[int]) -> Iterator[tuple[str, str, tuple[Any, np.ndarray | None]]]:
    """Kind, what is said of it, the table, and its groups from 1 on."""
    for n in rows:
        for seed in seeds:
            for name, cloud in CLOUDS.items():
                draws = np.random.default_rng([seed, n, 1])
                yield f"cloud, {name}", f"n {n}", (cloud(draws, n, int(draws.choice([2, 5]))), None)
            for name in MIXED_CLOUDS:
                yield f"cloud, mixed, {name}", f"n {n}", (mixed_cloud(name, seed, n), None)
            yield "cloud, many-level", f"n {n}", (level_cloud(np.random.default_rng([seed, n, 2]), n), None)
            for name, table in GROUPS.items():
                draws = np.random.default_rng([seed, n, 3])
                delta = float(draws.choice([3.0, 4.0, 5.0, 6.0, 8.0]))
                data, label = table(draws, n, delta)
                yield f"groups, {name}", f"n {n}", (data, label + 1)


def real() -> Iterator[tuple[str, str, tuple[Any, np.ndarray | None]]]:
    """Every shared table with known classes: one row of codes for each reference, 0 for a noise point of it."""
    for path in sorted([*(SHARED / "tables").glob("*.csv"), *(SHARED / "gagolewski" / "data").glob("*.csv")]):
        with path.open(encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        names = [name for name in table[0] if name == "target" or name.startswith("label")]
        if names:
            yield "real", path.stem, ((path, names), np.array([_codes(table, name) for name in names]))


def finer_reference(path: Path) -> np.ndarray | None:
    """Classes divided by another column, where that makes real groups of them; 0 where the column is empty."""
    if path.stem not in DIVIDED:
        return None
    with path.open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    cells = [[row[name] for name in DIVIDED[path.stem]] for row in table]
    codes = np.unique(["|".join(cell) for cell in cells], return_inverse=True)[1] + 1
    return np.where([all(cell) for cell in cells], codes, 0)


def _codes(table: list[dict[str, str]], name: str) -> np.ndarray:
    classes = [row[name] for row in table]
    if name == "target":
        return np.unique(classes, return_inverse=True)[1] + 1
    return np.array(classes, float).astype(int)


def score(labels: np.ndarray, references: np.ndarray) -> float:
    """The best of the references counts, and a row that is noise in it does not (Gagolewski's protocol)."""
    return max(ari(labels[truth > 0], truth[truth > 0]) for truth in np.atleast_2d(references))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=5000, help="first seed")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000, 5000, 20000])
    parser.add_argument("--real", action="store_true")
    given = parser.parse_args()
    tables = real() if given.real else made(range(given.first, given.first + given.seeds), given.rows)
    said: dict[str, Counter[str]] = defaultdict(Counter)
    right: Counter[str] = Counter()
    divided: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for kind, note, (table, truth) in tables:
        data, ignored = table if given.real else (table, ())
        result = ilk.cluster(data, ignore=ignored, threads=1)
        word = result.verdict.word
        reached = 0.0 if truth is None or result.k == 1 else score(result.labels, truth)
        finer = finer_reference(data) if given.real else None
        also = reached if finer is None or result.k == 1 else max(reached, score(result.labels, finer))
        said[kind][word] += 1
        total[word] += 1
        right[word] += reached >= RIGHT
        divided[word] += also >= RIGHT
        if given.real or (word in ASKED and reached < RIGHT):
            true_k = 1 if truth is None else len(np.unique(np.atleast_2d(truth)[0]))
            more = f", with its classes divided {also:.2f}" if also > reached else ""
            print(
                f"  {kind}, {note}: {word}, K {result.k} (true {true_k}), ARI {reached:.2f}{more}", flush=True
            )
    for kind, words in said.items():
        print(f"{kind:<36}" + "  ".join(f"{word} {words[word]}" for word in WORDS if words[word]))
    for word, share in ASKED.items():
        holds = "holds" if right[word] >= share * total[word] else "FAILS"
        also = f"; {divided[word]} with classes divided" if divided[word] > right[word] else ""
        print(f"{holds}  {word}: right in {right[word]} of {total[word]} (asked {share:.0%}){also}")


if __name__ == "__main__":
    main()
