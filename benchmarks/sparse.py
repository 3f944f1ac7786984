"""K-means on a sparse matrix: ten Lloyd passes from the same rows, without a convergence stop."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contest import OURS, Answer, Benchmark, Case, Contender, Setting, Size
from benchmarks.kmeans import TWO_THREADS
from benchmarks.peers import NOT_INSTALLED, installed
from benchmarks.requirement import Requirement

ROWS, COLUMNS, FILLED, GROUPS, PASSES = 50_000, 20_000, 20, 20, 10
TOPIC = 400  # columns from which half of the cells of a group come
SHRINK: dict[Size, int] = {"full": 1, "quick": 5, "tiny": 50}


def table(n_rows: int) -> Any:
    """Zeros and ones in groups (CSR): of 20 ones in a row, half from the columns of its group."""
    from scipy.sparse import csr_matrix

    draws = np.random.default_rng(0)
    group = draws.integers(0, GROUPS, n_rows)
    topic = np.array([draws.permutation(COLUMNS)[:TOPIC] for _ in range(GROUPS)])
    own = topic[group[:, None], draws.integers(0, TOPIC, (n_rows, FILLED))]
    column = np.where(draws.random(own.shape) < 0.5, own, draws.integers(0, COLUMNS, own.shape))
    place = np.repeat(np.arange(n_rows), FILLED), column.ravel()
    made = csr_matrix((np.ones(n_rows * FILLED), place), shape=(n_rows, COLUMNS))
    made.data[:] = 1.0
    return made


def build(size: Size) -> Setting:
    import ilk

    rows = table(ROWS // SHRINK[size])
    centres = rows[np.random.default_rng(1).permutation(rows.shape[0])[:GROUPS]].toarray()

    def ours(threads: int) -> Any:
        return lambda: ilk.KMeans(GROUPS, init=centres, max_iter=PASSES, threads=threads).fit(rows)

    def theirs() -> Any:
        from sklearn.cluster import KMeans

        options = {"algorithm": "lloyd", "n_init": 1, "max_iter": PASSES, "tol": 0.0}
        return KMeans(GROUPS, init=centres, **options).fit(rows)

    def answer(model: Any) -> Answer:
        return Answer(float(model.inertia_), int(model.n_iter_), result_bytes=model.labels_.nbytes)

    size_bytes = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    contenders = [Contender(OURS, ours(1), answer), Contender(TWO_THREADS, ours(2), answer)]
    if not installed("scikit-learn"):
        return Setting(contenders, size_bytes, {"scikit-learn": NOT_INSTALLED}, PASSES, objective="inertia")
    contenders.append(Contender("scikit-learn", theirs, answer))
    return Setting(contenders, size_bytes, {}, PASSES, objective="inertia")


SPARSE = Benchmark(
    "sparse",
    f"K-means on a sparse matrix, {ROWS:,} x {COLUMNS:,} with {FILLED} ones in a row, {GROUPS} groups, {PASSES} passes",
    [Case("ones", build, rounds=5)],
    [Requirement("K-means on a sparse matrix: MB of extra memory", "ones", OURS, "MB", most=1000.0)],
    notes="From the same rows. As an array the table would take 8 GB.",
)
