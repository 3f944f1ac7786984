"""K-means: twenty Lloyd passes from the same centres, without a convergence stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import r
from benchmarks.contest import OURS, Answer, Benchmark, Case, Clocked, Contender, Setting, Size
from benchmarks.peers import NOT_INSTALLED, SKLEARNEX, installed
from benchmarks.requirement import Requirement
from benchmarks.tables import groups, inertia, some_rows

Array = NDArray[Any]
PASSES = 20
TWO_THREADS = f"{OURS}, 2 threads"


@dataclass(frozen=True)
class Shape:
    """Rows, columns and groups of a table; `least` times scikit-learn is the promise."""

    n_rows: int
    n_columns: int
    k: int
    spread: float
    least: float
    rounds: int = 5
    in_r: bool = False

    def at(self, size: Size) -> tuple[int, int]:
        """Rows and groups at a size."""
        if size == "full":
            return self.n_rows, self.k
        if size == "quick":
            return max(40_000, self.n_rows // 20), self.k
        return 16_000, min(self.k, 20)


SHAPES = {
    "A": Shape(1_000_000, 16, 20, spread=1.0, least=2.0, in_r=True),
    "B": Shape(1_000_000, 2, 100, spread=5.0, least=8.0, in_r=True),
    "C": Shape(100_000, 128, 256, spread=0.3, least=1.2),
    "D": Shape(200_000, 64, 1000, spread=0.4, least=1.2, rounds=3),
}


@dataclass(frozen=True)
class Task:
    rows: Array
    centres: Array

    @property
    def k(self) -> int:
        return len(self.centres)


def ours(task: Task, name: str, threads: int) -> Contender:
    import ilk

    def fit() -> Any:
        return ilk.KMeans(task.k, init=task.centres, max_iter=PASSES, threads=threads).fit(task.rows)

    return Contender(name, fit, lambda model: answer(task, model))


def answer(task: Task, model: Any) -> Answer:
    """Of any estimator with scikit-learn's names."""
    passes, labels = int(model.n_iter_), np.asarray(model.labels_)
    return Answer(inertia(task.rows, model.cluster_centers_), passes, result_bytes=labels.nbytes)


def scikit_learn(task: Task) -> Contender:
    from sklearn.cluster import KMeans

    return Contender("scikit-learn", _fit_like_scikit_learn(KMeans, task), lambda model: answer(task, model))


def scikit_learn_intelex(task: Task) -> Contender:
    from sklearnex.cluster import KMeans

    def checked(model: Any) -> Answer:
        assert hasattr(model, "_onedal_estimator"), "it fell back to scikit-learn"
        return answer(task, model)

    return Contender(SKLEARNEX, _fit_like_scikit_learn(KMeans, task), checked)


def _fit_like_scikit_learn(estimator: Any, task: Task) -> Callable[[], Any]:
    options = {"algorithm": "lloyd", "n_init": 1, "max_iter": PASSES, "tol": 0.0}
    return lambda: estimator(task.k, init=task.centres, **options).fit(task.rows)


def faiss_kmeans(task: Task) -> Contender:
    import faiss

    n_rows, n_columns = task.rows.shape

    def fit() -> Any:
        model = faiss.Kmeans(
            n_columns, task.k, niter=PASSES, max_points_per_centroid=n_rows, min_points_per_centroid=1
        )
        model.train(task.rows, init_centroids=task.centres)
        return model

    def read(model: Any) -> Answer:
        return Answer(inertia(task.rows, model.centroids), len(model.obj))

    return Contender("faiss", fit, read)


def r_kmeans(task: Task, name: str) -> Contender:
    n_rows, n_columns = task.rows.shape

    def fit() -> Clocked:
        data, start = r.shared_file(f"{name}.rows"), r.write_matrix(f"{name}.start", task.centres)
        if not data.exists():
            r.write_matrix(data.name, task.rows)
        result = r.shared_file(f"{name}.centres")
        told = r.run_script("kmeans.R", n_rows, n_columns, task.k, PASSES, data, start, result)
        found = Answer(inertia(task.rows, r.read_matrix(result, task.k)), int(told["passes"]))
        times = float(told["seconds"]), float(told["processor_seconds"])
        return Clocked(found, *times, r.extra_bytes(told))

    return Contender("R kmeans", fit, lambda clocked: clocked.answer, most_rounds=2, elsewhere=True)


def build(letter: str, dtype: str, size: Size) -> Setting:
    shape = SHAPES[letter]
    n_rows, k = shape.at(size)
    rows, _ = groups(n_rows, shape.n_columns, k, shape.spread, dtype)
    task = Task(rows, some_rows(rows, k))
    makers: dict[str, Callable[[], Contender]] = {
        "scikit-learn": lambda: scikit_learn(task),
        SKLEARNEX: lambda: scikit_learn_intelex(task),
    }
    if dtype == "float32":
        makers["faiss"] = lambda: faiss_kmeans(task)
    elif shape.in_r:
        makers["R"] = lambda: r_kmeans(task, f"kmeans-{letter}-{size}")
    contenders = [ours(task, OURS, 1), ours(task, TWO_THREADS, 2)]
    contenders += [make() for peer, make in makers.items() if installed(peer)]
    absent = {peer: NOT_INSTALLED for peer in makers if not installed(peer)}
    return Setting(contenders, rows.nbytes, absent, passes=PASSES, objective="inertia")


def _cases() -> list[Case]:
    return [
        Case(f"{letter} {dtype}", lambda size, a=letter, b=dtype: build(a, b, size), shape.rounds)  # type: ignore[misc]
        for letter, shape in SHAPES.items()
        for dtype in ("float64", "float32")
    ]


def _requirements() -> list[Requirement]:
    promises = []
    for letter, shape in SHAPES.items():
        for dtype in ("float64", "float32"):
            case = f"{letter} {dtype}"
            where = f"{shape.n_rows:.0e} x {shape.n_columns}, k={shape.k}, {dtype}".replace("e+0", "e")
            promises += [
                Requirement(f"{where}: times scikit-learn", case, "scikit-learn", "times", least=shape.least),
                Requirement(f"{where}: times {SKLEARNEX}", case, SKLEARNEX, "times", least=1.0),
            ]
            if dtype == "float32":
                promises.append(Requirement(f"{where}: times faiss", case, "faiss", "times", least=1.0))
            promises += [
                Requirement(f"{where}: 2 threads over 1", case, TWO_THREADS, "times", least=1.7),
                Requirement(f"{where}: % of data as extra memory", case, OURS, "% of data", most=10.0),
            ]
    return promises


KMEANS = Benchmark(
    "kmeans",
    f"K-means, {PASSES} Lloyd passes from the same centres",
    _cases(),
    _requirements(),
    notes="ilk and scikit-learn find labels after the last pass, inside the timed call; faiss gives none.",
)
