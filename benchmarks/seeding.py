"""Ten k-means++ starts, seeded and run to the end, everything else at its default."""

from __future__ import annotations

from typing import Any

from benchmarks.contest import OURS, Answer, Benchmark, Case, Contender, Setting, Size
from benchmarks.kmeans import SHAPES, TWO_THREADS
from benchmarks.peers import NOT_INSTALLED, installed
from benchmarks.requirement import Requirement
from benchmarks.tables import groups, inertia

STARTS = 10
ROWS: dict[Size, int] = {"full": 1_000_000, "quick": 100_000, "tiny": 2_000}
GROUPS: dict[Size, int] = {"full": 100, "quick": 100, "tiny": 10}


def build(size: Size) -> Setting:
    import ilk

    k = GROUPS[size]
    rows, _ = groups(ROWS[size], SHAPES["B"].n_columns, k, SHAPES["B"].spread, "float64")

    def ours(threads: int) -> Any:
        return ilk.KMeans(k, n_init=STARTS, random_state=0, threads=threads).fit(rows)

    def theirs() -> Any:
        from sklearn.cluster import KMeans

        return KMeans(k, n_init=STARTS, random_state=0).fit(rows)

    def answer(model: Any) -> Answer:
        return Answer(inertia(rows, model.cluster_centers_), int(model.n_iter_))

    contenders = [
        Contender(OURS, lambda: ours(1), answer),
        Contender(TWO_THREADS, lambda: ours(2), answer),
    ]
    if not installed("scikit-learn"):
        return Setting(contenders, rows.nbytes, {"scikit-learn": NOT_INSTALLED}, objective="inertia")
    contenders.append(Contender("scikit-learn", theirs, answer, most_rounds=1))  # minutes
    return Setting(contenders, rows.nbytes, objective="inertia")


SEEDING = Benchmark(
    "seeding",
    f"K-means, {STARTS} k-means++ starts seeded and run to the end",
    [Case("B float64", build, rounds=2, memory=False)],
    [
        Requirement(
            "10 starts on 1e6 x 2, k=100: times scikit-learn", "B float64", "scikit-learn", "times", 10.0
        ),
        Requirement(
            "10 starts on 1e6 x 2, k=100: inertia above scikit-learn's, relative",
            "B float64",
            "scikit-learn",
            "objective excess",
            most=0.0,
        ),
    ],
    notes="The passes are those of the start that won. scikit-learn stops at its default tolerance of 1e-4, "
    "ilk when nothing changes or after 300 passes. scikit-learn runs once.",
)
