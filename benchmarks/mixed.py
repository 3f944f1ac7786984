"""Mixtures over mixed columns: the same passes from the same partition, against StepMix and kmodes' KPrototypes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contest import OURS, Answer, Array, Benchmark, Case, Contender, Setting, Size
from benchmarks.kmeans import TWO_THREADS
from benchmarks.peers import NOT_INSTALLED, installed
from benchmarks.requirement import Requirement
from benchmarks.tables import groups

N_NUMBERS, LEVELS, K = 5, (2, 3, 4, 5, 6, 2, 3, 4, 5, 6), 8
SPREAD = 0.8
CONCENTRATION = 2.0  # of the Dirichlet distribution of each group's shares: overlapping groups
PASSES = 20
MANY_PASSES, FEW_PASSES = 40, 5  # of StepMix and KPrototypes: later nothing changes any more
ROWS_MOST: dict[Size, int] = {"full": 1_000_000_000, "quick": 5_000, "tiny": 500}
CELL_BYTES = 8 * N_NUMBERS + 4 * len(LEVELS)  # of one encoded row


@dataclass(frozen=True)
class Task:
    """Numbers and codes; as a frame, what ilk and StepMix read; the partition everyone starts from."""

    numbers: Array
    codes: Array
    label: Array
    passes: int

    @property
    def frame(self) -> Any:
        import pandas as pd

        columns = {f"n{j}": self.numbers[:, j] for j in range(N_NUMBERS)}
        return pd.DataFrame(columns | {f"c{j}": self.codes[:, j] for j in range(len(LEVELS))})


def make(n_rows: int, passes: int) -> Task:
    numbers, group = groups(n_rows, N_NUMBERS, K, SPREAD, "float64")
    random = np.random.default_rng(21)
    codes = np.empty((n_rows, len(LEVELS)), dtype=np.int8)
    for column, size in enumerate(LEVELS):
        reached = np.cumsum(random.dirichlet(np.full(size, CONCENTRATION), size=K), axis=1)
        draws = random.random(n_rows)
        codes[:, column] = sum(draws >= reached[group, level] for level in range(size - 1))
    label = np.where(random.random(n_rows) < 0.5, group, random.integers(K, size=n_rows))
    return Task(numbers, codes, label.astype(np.int32), passes)


def ours(task: Task, name: str, threads: int) -> Contender:
    import ilk

    types = {f"c{j}": "categorical" for j in range(len(LEVELS))}
    frame = task.frame

    def fit() -> Any:
        options = {"init": task.label, "max_iter": task.passes, "tol": 0.0, "threads": threads}
        return ilk.MixedMixture(K, types=types, **options).fit(frame)

    return Contender(
        name, fit, lambda model: Answer(-float(np.mean(model.score_samples(frame))), int(model.n_iter_))
    )


def stepmix(task: Task) -> Contender:
    from stepmix.stepmix import StepMix

    class Started(StepMix):
        """StepMix from a given partition."""

        def _initialize_parameters(self, X: Any, random_state: Any) -> None:
            super()._initialize_parameters(X, random_state)
            self._m_step(X, np.eye(K)[task.label])

    measurement = {
        "numbers": {"model": "gaussian_diag", "n_columns": N_NUMBERS},
        "categories": {"model": "categorical", "n_columns": len(LEVELS)},
    }
    rows = np.column_stack([task.numbers, task.codes])

    def fit() -> Any:
        options = {"abs_tol": 0.0, "progress_bar": 0, "random_state": 0}
        return Started(K, measurement=measurement, max_iter=task.passes, **options).fit(rows)

    return Contender(
        "StepMix", fit, lambda model: Answer(-float(model.score(rows)), int(model.n_iter_)), most_rounds=2
    )


def kprototypes(task: Task) -> Contender:
    from kmodes.kprototypes import KPrototypes

    rows = np.column_stack([task.numbers.astype(object), task.codes])
    means = np.array([task.numbers[task.label == g].mean(axis=0) for g in range(K)])
    modes = np.array([[_mode(task.codes[task.label == g, j]) for j in range(len(LEVELS))] for g in range(K)])
    categorical = list(range(N_NUMBERS, N_NUMBERS + len(LEVELS)))

    def fit() -> Any:
        options = {
            "n_init": 1,
            "random_state": 0,
            "init": [means, modes],
        }  # its first pass is not in max_iter
        return KPrototypes(K, max_iter=task.passes - 1, **options).fit(rows, categorical=categorical)

    return Contender("KPrototypes", fit, lambda model: _partition_answer(task, model), most_rounds=1)


def _mode(codes: Array) -> int:
    return int(np.bincount(codes).argmax())


def _partition_answer(task: Task, model: Any) -> Answer:
    """Its own cost is in other units: the log-likelihood of the mixture that its partition makes."""
    import ilk

    types = {f"c{j}": "categorical" for j in range(len(LEVELS))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = ilk.MixedMixture(K, types=types, init=model.labels_, max_iter=0).fit(task.frame)
    return Answer(-made.loglik_ / len(task.label), int(model.n_iter_) + 1)


def build(n_rows: int, passes: int, makers: dict[str, Callable[[Task], Contender]], size: Size) -> Setting:
    task = make(min(n_rows, ROWS_MOST[size]), passes)
    contenders = [ours(task, OURS, 1), ours(task, TWO_THREADS, 2)]
    contenders += [start(task) for peer, start in makers.items() if installed(peer)]
    absent = {peer: NOT_INSTALLED for peer in makers if not installed(peer)}
    data_bytes = len(task.label) * CELL_BYTES
    return Setting(contenders, data_bytes, absent, passes=passes, objective="-loglik/row")


CASES = [
    Case(
        "2e4 StepMix",
        lambda size: build(20_000, MANY_PASSES, {"StepMix": stepmix}, size),
        rounds=3,
        memory=False,
    ),
    Case(
        "2e4 KPrototypes",
        lambda size: build(20_000, FEW_PASSES, {"KPrototypes": kprototypes}, size),
        rounds=1,
        memory=False,
    ),
    Case("1e6", lambda size: build(1_000_000, PASSES, {}, size), rounds=1),
]

REQUIREMENTS = [
    Requirement("2e4 rows: times StepMix", "2e4 StepMix", "StepMix", "times", least=8.0),
    Requirement(
        "2e4 rows: objective against StepMix", "2e4 StepMix", "StepMix", "objective excess", most=1e-4
    ),
    Requirement("2e4 rows: times KPrototypes", "2e4 KPrototypes", "KPrototypes", "times", least=100.0),
    Requirement("1e6 rows: peak memory, % of the encoded table", "1e6", OURS, "% of data", most=200.0),
]


def absence() -> str | None:
    import ilk

    return None if hasattr(ilk, "MixedMixture") else "ilk.MixedMixture does not exist yet"


MIXED = Benchmark(
    "mixed",
    f"Mixtures over {N_NUMBERS} numbers and {len(LEVELS)} categories, K = {K}, from the same partition",
    CASES,
    REQUIREMENTS,
    absence,
    notes="The objective is minus the mean log-likelihood. That of KPrototypes, which minimises distances, is of the "
    "mixture its partition makes. Memory is what a fit needs at its peak, the encoded table and the labels "
    "included, the frame it is read from not.",
)
