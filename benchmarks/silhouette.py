"""The exact silhouette of every row."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contest import OURS, Answer, Array, Benchmark, Case, Contender, Setting, Size
from benchmarks.kmeans import TWO_THREADS
from benchmarks.peers import NOT_INSTALLED, installed
from benchmarks.requirement import Requirement
from benchmarks.tables import groups

COLUMNS, GROUPS = 16, 10
ROWS = {"2e4": 20_000, "5e4": 50_000}
SHRINK: dict[Size, int] = {"full": 1, "quick": 10, "tiny": 40}


def build(name: str, size: Size) -> Setting:
    from ilk import measures

    rows, label = groups(ROWS[name] // SHRINK[size], COLUMNS, GROUPS, 1.0, "float64")

    def ours(threads: int) -> Callable[[], Array]:
        return lambda: measures.silhouette(rows, label, threads=threads)

    def theirs() -> Array:
        from sklearn.metrics import silhouette_samples

        return silhouette_samples(rows, label)  # type: ignore[no-any-return]

    def answer(values: Array) -> Answer:
        return Answer(float(values.mean()), values=values, result_bytes=values.nbytes)

    contenders = [Contender(OURS, ours(1), answer), Contender(TWO_THREADS, ours(2), answer)]
    if not installed("scikit-learn"):
        return Setting(contenders, rows.nbytes, {"scikit-learn": NOT_INSTALLED}, objective="mean silhouette")
    contenders.append(Contender("scikit-learn", theirs, answer))
    return Setting(contenders, rows.nbytes, objective="mean silhouette")


SILHOUETTE = Benchmark(
    "silhouette",
    f"Exact silhouette, {COLUMNS} columns, {GROUPS} groups",
    [
        Case("2e4", lambda size: build("2e4", size), rounds=5),
        Case("5e4", lambda size: build("5e4", size), rounds=3),
    ],
    [
        Requirement("silhouette of 5e4 x 16: times scikit-learn", "5e4", "scikit-learn", "times", least=2.0),
        Requirement("silhouette of 5e4 x 16: MB of extra memory", "5e4", OURS, "MB", most=64.0),
    ],
    notes="Both return one value per row.",
)
