"""What the rule for K and the verdict must hold, criterion by criterion, with the counts beside what is asked.

    python -m benchmarks.acceptance --seeds 100 --rows 100 1000 --columns 2 5 20     hours
    python -m benchmarks.acceptance --seeds 10 --rows 100 --columns 2 5              minutes
    python -m benchmarks.acceptance --only groups cigars --seeds 25

Criteria: `nulls` (single clouds are weak), `categories` (independent ones too), `groups` (parted groups are found),
`cigars`, `tables` (known answers), `same` (row order, units, whole weights leave the verdict), `dip` (its scale).
`benchmarks.trust` tells more of each table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ilk
from benchmarks.made import CLAIMS, CLOUDS, cigars, mixed_cloud, parted
from ilk.measures import ari
from ilk.measures.dip import dip

SHARED = Path(__file__).parents[2] / "shared" / "data"
BUNDLED = Path(__file__).parents[1] / "tests" / "data"
NEVER_SPLIT = ("gaussian", "stretched")
KNOWN = {  # groups, and the first words of the verdicts allowed
    "xclara": (3, "solid fair"),
    "faithful": (2, "solid fair"),
    "ruspini": (4, "solid fair"),
    "craft_numeric_overlap": (3, "solid fair"),
    "craft_binary_disjoint": (3, "solid fair"),
    "fcps_hepta": (7, "solid fair"),
    "fcps_tetra": (4, "solid fair"),
    "votes": (2, "solid fair weak"),
    "monk3_full": (1, "no"),
}


@dataclass(frozen=True)
class Count:
    """How many tables did what is asked of at least a share of them."""

    what: str
    right: int
    of: int
    share: float

    @property
    def holds(self) -> bool:
        return self.right >= self.share * self.of

    def __str__(self) -> str:
        word = "holds" if self.holds else "FAILS"
        return f"{word}  {self.what}: {self.right} of {self.of} (asked {self.share:.0%})"


def nulls(seeds: range, rows: list[int], columns: list[int]) -> Iterator[Count]:
    for name, cloud in CLOUDS.items():
        for n in rows:
            for d in columns:
                tables = (cloud(np.random.default_rng([seed, n, d]), n, d) for seed in seeds)
                weak = sum(ilk.cluster(X, threads=1).verdict.word not in CLAIMS for X in tables)
                share = 0.99 if name in NEVER_SPLIT else 0.95
                yield Count(f"{name}, n {n}, d {d}: weak", weak, len(seeds), share)


def categories(seeds: range, rows: list[int]) -> Iterator[Count]:
    for n in rows:
        tables = (mixed_cloud("categories", seed, n) for seed in seeds)
        weak = sum(ilk.cluster(X, threads=1).verdict.word not in CLAIMS for X in tables)
        yield Count(f"independent categories, n {n}: weak", weak, len(seeds), 0.99)


def groups(seeds: range) -> Iterator[Count]:
    agreement = []
    for delta, held_share, right_share in ((6.0, 0.95, 0.85), (4.0, 0.70, 0.0)):
        held = right = 0
        for seed in seeds:
            X, truth = parted(seed, delta)
            result = ilk.cluster(X, threads=1)
            held += result.verdict.word in CLAIMS
            right += result.k == truth.max() + 1
            if result.verdict.word == "solid":
                agreement.append(ari(result.labels, truth))
        yield Count(f"groups at delta {delta:g}: not weak", held, len(seeds), held_share)
        yield Count(f"groups at delta {delta:g}: K right", right, len(seeds), right_share)
    mean = float(np.mean(agreement)) if agreement else 1.0
    yield Count(
        f"solid tables, of 100 their mean ARI ({len(agreement)} tables)", round(100 * mean), 100, 0.85
    )


def stretched(seeds: range) -> Iterator[Count]:
    right = said = 0
    tables = [cigars(seed, d) for seed in seeds for d in (2, 5)]
    for X in tables:
        result = ilk.cluster(X, threads=1)
        right += result.k == 3
        said += result.k == 3 or "search-unsettled" in {reason.code for reason in result.verdict.reasons}
    yield Count("cigars: K right", right, len(tables), 0.90)
    yield Count("cigars: K right, or said to be unsettled", said, len(tables), 0.95)


def known(names: Sequence[str] = tuple(KNOWN)) -> Iterator[Count]:
    for name in names:
        k, words = KNOWN[name]
        places = (SHARED / "tables", SHARED / "gagolewski" / "data", BUNDLED)
        path = next((place / f"{name}.csv" for place in places if (place / f"{name}.csv").exists()), None)
        if path is None:
            print(f"       {name}: not here")
            continue
        with path.open(encoding="utf-8") as file:
            columns = file.readline().strip().split(",")
            ignored = [column for column in columns if column == "target" or column.startswith("label")]
        result = ilk.cluster(path, ignore=ignored, threads=1)
        told = (
            f"{name}: {result.components} components -> {result.k}, {result.verdict.word}; asked {k}, {words}"
        )
        yield Count(told, int(result.k == k and result.verdict.word.split()[0] in words.split()), 1, 1.0)


def same(seeds: range) -> Iterator[Count]:
    kept = {"row order": 0, "units": 0, "whole weights": 0}
    for seed in seeds:
        X, _ = parted(seed, 4.0)
        draws = np.random.default_rng(seed)
        weight = draws.integers(1, 3, len(X))
        frame = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        base, twice = _verdict(X), _verdict(np.repeat(X, weight, axis=0))
        kept["row order"] += _verdict(X[draws.permutation(len(X))]) == base
        kept["units"] += _verdict(X * np.geomspace(1e-3, 1e3, X.shape[1])) == base
        kept["whole weights"] += _verdict({**frame, "w": weight}, weight="w") == twice
    for what, count in kept.items():
        yield Count(f"other {what}: same groups and verdict", count, len(seeds), 1.0)


def _verdict(data: object, weight: str | None = None) -> tuple[int, str]:
    result = ilk.cluster(data, weight=weight, threads=1)
    return result.k, result.verdict.word


def scale_of_the_dip(n_tables: int = 2000) -> Iterator[Count]:
    for n in (50, 200, 1000):
        draws = np.random.default_rng(n)
        values = [dip(draws.random(n), np.ones(n)) * np.sqrt(n) for _ in range(n_tables)]
        high = float(np.quantile(values, 0.95))
        yield Count(f"dip of {n} uniform values: 95 % point {high:.3f}", int(0.47 <= high <= 0.56), 1, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--rows", type=int, nargs="+", default=[100])
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 5])
    given_names = ("dip", "tables", "same", "cigars", "groups", "categories", "nulls")
    parser.add_argument("--only", nargs="+", default=given_names, choices=given_names)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    made = {
        "dip": scale_of_the_dip,
        "tables": known,
        "same": lambda: same(seeds),
        "cigars": lambda: stretched(seeds),
        "groups": lambda: groups(seeds),
        "categories": lambda: categories(seeds, given.rows),
        "nulls": lambda: nulls(seeds, given.rows, given.columns),
    }
    counts = []
    for name in given.only:
        for count in made[name]():
            counts.append(count)
            print(count, flush=True)
    print(f"{sum(count.holds for count in counts)} of {len(counts)} hold")


if __name__ == "__main__":
    main()
