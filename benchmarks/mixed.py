"""Mixtures over mixed columns: passes from the same partition, against those of StepMix and kmodes' KPrototypes.

What a pass costs is told by two fits that differ in nothing but their number of passes, for every contender alike.
Both end at the limit of passes, before any contender has converged: every pass counted still moves rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
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
FEWER_PASSES = 2
EM_PASSES: dict[Size, int] = {"full": 42, "quick": 42, "tiny": 12}
PROTOTYPE_PASSES: dict[Size, int] = {"full": 20, "quick": 8, "tiny": 5}  # later no row moves any more
ROWS_MOST: dict[Size, int] = {"full": 1_000_000_000, "quick": 5_000, "tiny": 500}
CELL_BYTES = 8 * N_NUMBERS + 4 * len(LEVELS)  # of one encoded row


@dataclass(frozen=True)
class Task:
    """Numbers and codes; as a frame, what ilk and StepMix read; the partition everyone starts from."""

    numbers: Array
    codes: Array
    label: Array

    @property
    def frame(self) -> Any:
        import pandas as pd

        columns = {f"n{j}": self.numbers[:, j] for j in range(N_NUMBERS)}
        return pd.DataFrame(columns | {f"c{j}": self.codes[:, j] for j in range(len(LEVELS))})


def make(n_rows: int) -> Task:
    numbers, group = groups(n_rows, N_NUMBERS, K, SPREAD, "float64")
    random = np.random.default_rng(21)
    codes = np.empty((n_rows, len(LEVELS)), dtype=np.int8)
    for column, size in enumerate(LEVELS):
        reached = np.cumsum(random.dirichlet(np.full(size, CONCENTRATION), size=K), axis=1)
        draws = random.random(n_rows)
        codes[:, column] = sum(draws >= reached[group, level] for level in range(size - 1))
    label = np.where(random.random(n_rows) < 0.5, group, random.integers(K, size=n_rows))
    return Task(numbers, codes, label.astype(np.int32))


@dataclass(frozen=True)
class Program:
    """One program at one task: `fit` does so many passes."""

    name: str
    fit: Callable[[int], Any]
    answer: Callable[[Any], Answer]

    def whole(self, passes: int) -> Contender:
        return Contender(self.name, partial(self.fit, passes), self.answer)

    def by_pass(self, passes: int) -> Contender:
        return replace(self.whole(passes), shorter=partial(self.fit, FEWER_PASSES))


def ours(task: Task, name: str, threads: int) -> Program:
    import ilk

    types = {f"c{j}": "categorical" for j in range(len(LEVELS))}
    frame = task.frame

    def fit(passes: int) -> Any:
        options = {"init": task.label, "max_iter": passes, "tol": 0.0, "threads": threads}
        return ilk.MixedMixture(K, types=types, **options).fit(frame)

    return Program(
        name, fit, lambda model: Answer(-float(np.mean(model.score_samples(frame))), int(model.n_iter_))
    )


def stepmix(task: Task) -> Program:
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

    def fit(passes: int) -> Any:
        options = {"abs_tol": 0.0, "progress_bar": 0, "random_state": 0}
        return Started(K, measurement=measurement, max_iter=passes, **options).fit(rows)

    return Program("StepMix", fit, lambda model: Answer(-float(model.score(rows)), int(model.n_iter_)))


def kprototypes(task: Task) -> Program:
    from kmodes.kprototypes import KPrototypes

    rows = np.column_stack([task.numbers.astype(object), task.codes])
    means = np.array([task.numbers[task.label == g].mean(axis=0) for g in range(K)])
    modes = np.array([[_mode(task.codes[task.label == g, j]) for j in range(len(LEVELS))] for g in range(K)])
    categorical = list(range(N_NUMBERS, N_NUMBERS + len(LEVELS)))

    def fit(passes: int) -> Any:
        start = [means.copy(), modes.copy()]  # which it moves in place
        options = {"n_init": 1, "random_state": 0, "init": start}
        model = KPrototypes(K, max_iter=passes - 1, **options)  # its first pass is not in max_iter
        return model.fit(rows, categorical=categorical)

    return Program("KPrototypes", fit, lambda model: _partition_answer(task, model))


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


def against(
    peer: str, start: Callable[[Task], Program], passes: dict[Size, int], n_rows: int, size: Size
) -> Setting:
    """ilk and a peer, pass by pass."""
    task = make(min(n_rows, ROWS_MOST[size]))
    programs = [*both(task), *([start(task)] if installed(peer) else [])]
    return Setting(
        [program.by_pass(passes[size]) for program in programs],
        len(task.label) * CELL_BYTES,
        {} if installed(peer) else {peer: NOT_INSTALLED},
        passes=passes[size],
        fewer_passes=FEWER_PASSES,
        objective="-loglik/row",
    )


def alone(n_rows: int, size: Size) -> Setting:
    """Whole fits by ilk."""
    task = make(min(n_rows, ROWS_MOST[size]))
    contenders = [program.whole(PASSES) for program in both(task)]
    return Setting(contenders, len(task.label) * CELL_BYTES, passes=PASSES, objective="-loglik/row")


def both(task: Task) -> list[Program]:
    return [ours(task, OURS, 1), ours(task, TWO_THREADS, 2)]


STEPMIX, KPROTOTYPES = "2e4 StepMix", "2e4 KPrototypes"
CASES = [
    Case(STEPMIX, partial(against, "StepMix", stepmix, EM_PASSES, 20_000), rounds=7, memory=False),
    Case(
        KPROTOTYPES,
        partial(against, "KPrototypes", kprototypes, PROTOTYPE_PASSES, 20_000),
        rounds=3,
        memory=False,
    ),
    Case("1e6", partial(alone, 1_000_000), rounds=1),
]

REQUIREMENTS = [
    Requirement("2e4 rows: times StepMix per pass", STEPMIX, "StepMix", "times per pass", least=8.0),
    Requirement("2e4 rows: objective against StepMix", STEPMIX, "StepMix", "objective excess", most=1e-4),
    Requirement(
        "2e4 rows: times KPrototypes per pass", KPROTOTYPES, "KPrototypes", "times per pass", least=100.0
    ),
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
    notes=f"A pass costs what a longer fit takes beyond one of {FEWER_PASSES} passes from the same start, over the "
    "passes between them: reading, starting and labelling fall away, for each contender alike, and no fit ends before "
    "its last pass. Processor time counts, all being on one thread, by its median over the rounds. The tables show "
    "the longer fits as a whole. The objective is minus the mean log-likelihood. That of KPrototypes, which minimises "
    "distances, is of the mixture its partition makes. Memory is what a fit needs at its peak, the encoded table "
    "and the labels included, the frame it is read from not.",
)
