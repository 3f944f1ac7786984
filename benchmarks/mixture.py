"""Gaussian mixtures: twenty EM passes from the same partition, for the structures the peers have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import r
from benchmarks.contest import OURS, Answer, Array, Benchmark, Case, Clocked, Contender, Setting, Size
from benchmarks.kmeans import TWO_THREADS
from benchmarks.peers import NOT_INSTALLED, installed
from benchmarks.requirement import Requirement
from benchmarks.tables import groups, some_rows

PASSES = 20
SPREAD = 1.5
# Tiny tables still hold more rows of every group than columns, so that no precision of the start is singular.
ROWS_MOST: dict[Size, int] = {"full": 1_000_000_000, "quick": 10_000, "tiny": 4_000}
FOURTEEN = (
    *("EII", "VII"),
    *("EEI", "VEI", "EVI", "VVI"),
    *("EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV"),
)
SKLEARN_NAME = {"VVV": "full", "EEE": "tied", "VVI": "diag", "VII": "spherical"}


@dataclass(frozen=True)
class Shape:
    """Rows, columns and components; `least` times scikit-learn with VVV is the promise."""

    n_rows: int
    n_columns: int
    k: int
    least: float
    structures: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.n_rows:.0e}x{self.n_columns} k={self.k}".replace("e+0", "e")


# All fourteen only where mclust takes seconds; on the largest table its VVV needs minutes.
SHAPES = (
    Shape(1_000_000, 8, 10, 15.0, tuple(SKLEARN_NAME)),
    Shape(200_000, 32, 20, 8.0, tuple(SKLEARN_NAME)),
    Shape(100_000, 2, 5, 12.0, FOURTEEN),
)


@dataclass(frozen=True)
class Task:
    rows: Array
    label: Array  # the partition everyone starts from
    k: int
    structure: str
    name: str


def ours(task: Task, name: str, threads: int) -> Contender:
    import ilk

    def fit() -> Any:
        options = {"init": task.label, "max_iter": PASSES, "tol": 0.0, "threads": threads}
        return ilk.GaussianMixture(task.k, structure=task.structure, **options).fit(task.rows)

    return Contender(name, fit, lambda model: _answer(task, model))


def _answer(task: Task, model: Any) -> Answer:
    return Answer(-float(np.mean(model.score_samples(task.rows))), int(model.n_iter_))


def start_of(task: Task) -> dict[str, Array]:
    """Weights, means and precisions of the partition, as scikit-learn wants them."""
    members = [task.rows[task.label == g].astype(np.float64) for g in range(task.k)]
    weights = np.array([len(part) for part in members]) / len(task.rows)
    covariances = np.array([np.cov(part.T, bias=True) for part in members])
    kind = SKLEARN_NAME[task.structure]
    if kind == "full":
        precisions = np.linalg.inv(covariances)
    elif kind == "tied":
        precisions = np.linalg.inv(np.tensordot(weights, covariances, axes=1))
    else:
        precisions = 1.0 / np.diagonal(covariances, axis1=1, axis2=2)
    if kind == "spherical":
        precisions = 1.0 / (1.0 / precisions).mean(axis=1)
    if kind in ("full", "tied"):
        precisions = (
            precisions + precisions.swapaxes(-1, -2)
        ) / 2  # scikit-learn asks for symmetry to the last digit
    means = np.array([part.mean(axis=0) for part in members])
    return {"weights_init": weights, "means_init": means, "precisions_init": precisions}


def scikit_learn(task: Task) -> Contender:
    from sklearn.mixture import GaussianMixture

    start = start_of(task)
    options = {
        "covariance_type": SKLEARN_NAME[task.structure],
        "max_iter": PASSES,
        "tol": 0.0,
        "reg_covar": 0.0,
    }

    def fit() -> Any:
        return GaussianMixture(task.k, **options, **start).fit(task.rows)

    return Contender("scikit-learn", fit, lambda model: _answer(task, model), most_rounds=2)


def mclust(task: Task) -> Contender:
    n_rows, n_columns = task.rows.shape

    def fit() -> Clocked:
        data, label = r.shared_file(f"{task.name}.rows"), r.shared_file(f"{task.name}.labels")
        if not label.exists():
            r.write_matrix(data.name, task.rows)
            r.write_matrix(label.name, task.label[:, None])
        told = r.run_script("mixture.R", n_rows, n_columns, task.k, PASSES, task.structure, data, label)
        found = Answer(-float(told["loglik"]) / n_rows, int(told["passes"]))
        times = float(told["seconds"]), float(told["processor_seconds"])
        return Clocked(found, *times, r.extra_bytes(told))

    return Contender("mclust", fit, lambda clocked: clocked.answer, most_rounds=1, elsewhere=True)


def build(shape: Shape, structure: str, size: Size) -> Setting:
    n_rows = min(shape.n_rows, ROWS_MOST[size])
    rows, _ = groups(n_rows, shape.n_columns, shape.k, SPREAD, "float64")
    label = _nearest(rows, some_rows(rows, shape.k))
    task = Task(rows, label, shape.k, structure, f"mixture-{n_rows}-{shape.n_columns}-{shape.k}")
    makers: dict[str, Callable[[], Contender]] = {"mclust": lambda: mclust(task)}
    if structure in SKLEARN_NAME:
        makers = {"scikit-learn": lambda: scikit_learn(task), **makers}
    contenders = [ours(task, OURS, 1), ours(task, TWO_THREADS, 2)]
    contenders += [make() for peer, make in makers.items() if installed(peer)]
    absent = {peer: NOT_INSTALLED for peer in makers if not installed(peer)}
    return Setting(contenders, rows.nbytes, absent, passes=PASSES, objective="-loglik/row")


def _nearest(rows: Array, centres: Array) -> Array:
    squares = np.square(centres).sum(axis=1)
    parts = np.array_split(rows, max(1, len(rows) // 16_384))
    return np.concatenate([(squares - 2.0 * (part @ centres.T)).argmin(axis=1) for part in parts])


def absence() -> str | None:
    import ilk

    return None if hasattr(ilk, "GaussianMixture") else "ilk.GaussianMixture does not exist yet"


def _cases() -> list[Case]:
    return [
        Case(
            f"{shape.name} {structure}",
            lambda size, a=shape, b=structure: build(a, b, size),  # type: ignore[misc]
            rounds=2 if shape.n_rows > 100_000 else 10,  # what takes milliseconds is timed more often
            memory=structure == "VVV",
        )
        for shape in SHAPES
        for structure in shape.structures
    ]


def _requirements() -> list[Requirement]:
    promises = []
    for shape in SHAPES:
        for structure in shape.structures:
            case = f"{shape.name} {structure}"
            if structure in SKLEARN_NAME:
                least = shape.least if structure == "VVV" else 5.0
                promises.append(
                    Requirement(f"{case}: times scikit-learn", case, "scikit-learn", "times", least)
                )
            least = 20.0 if structure in ("VVV", "EEE") else 1.0
            promises.append(Requirement(f"{case}: times mclust", case, "mclust", "times", least))
            if structure == "VVV":
                promises += [
                    Requirement(f"{case}: 2 threads over 1", case, TWO_THREADS, "times", least=1.7),
                    Requirement(f"{case}: MB of extra memory", case, OURS, "MB", most=100.0),
                ]
    return promises


MIXTURE = Benchmark(
    "mixture",
    f"Gaussian mixtures, {PASSES} EM passes from the same partition",
    _cases(),
    _requirements(),
    absence,
    notes="The objective is minus the mean log-likelihood. mclust counts the M step on the partition as part "
    "of its first pass, so its objective is that of one pass less.",
)
