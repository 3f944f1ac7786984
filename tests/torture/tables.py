"""Random tables through every method and estimator, the command line among them: an answer, or a refusal with a code.

An answer has labels in range, probabilities that add up, no number that is not finite, no warning of another library,
and is the same after it was saved and read back.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner

import ilk
from ilk.cli.main import cli
from ilk.errors import IlkError, IlkWarning, ModelFileError
from ilk.methods import names
from tests.kernels.fuzz_tables import STRUCTURES, refused_by_scikit_learn, weights
from tests.torture.tally import Clock, Tally, TooSlow, limited, named

CORPUS = Path(__file__).parent / "corpus" / "tables"
SECONDS = 60.0  # of the processor, for one table
COMMAND_LINE = 0.15  # the share of tables that also go through it
Draws = np.random.Generator

ESTIMATORS: dict[str, dict[str, list[Any]]] = {
    "KMeans": {"n_clusters": [1, 2, 3]},
    "KMedians": {"n_clusters": [1, 2, 3]},
    "TrimmedKMeans": {"n_clusters": [1, 2], "trim": [0, 0.1, 0.4]},
    "GaussianMixture": {
        "n_components": [1, 2, 3],
        "structure": STRUCTURES,
        "noise": [False, True],
        "trim": [0, 0.1],
    },
    "StudentMixture": {"n_components": [1, 2], "structure": ["EEE", "VVV", "VII"]},
    "LaplaceMixture": {"n_components": [1, 2]},
    "MixedMixture": {"n_components": [1, 2, 3]},
    "AssortedMixture": {"n_components": ["auto", 2]},
    "CRAFT": {"open_cost": [0.5, 5.0, 1e300], "share": [0.5]},
    "DPMeans": {"open_cost": [0.0, 1.0, 1e300, 1e-300]},
    "BinaryDPMeans": {"open_cost": [1.0, 10.0]},
    "DirichletProcessMixture": {},
    "DirichletProcessGaussian": {},
    "InformationBottleneck": {"n_clusters": [2]},
    "MeanShift": {},
    "BlurringMeanShift": {},
    "SpectralClustering": {"n_clusters": [2]},
    "TypicalCuts": {},
    "AffinityPropagation": {},
    "HierarchicalClustering": {"n_clusters": [2]},
}
OF_FRAMES = ("CRAFT", "AssortedMixture", "MixedMixture", "DirichletProcessMixture", "InformationBottleneck")


@dataclass(frozen=True)
class Case:
    """A table and what is asked of it, as plain data."""

    columns: dict[str, list[Any]]
    types: dict[str, str]
    method: str  # of `ilk.cluster`, or the name of an estimator
    options: dict[str, Any] = field(default_factory=dict)
    weight: list[float] | None = None
    by_command: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        made = {}
        for name, values in self.columns.items():
            kind = self.types[name]
            cells = pd.Categorical(values) if kind == "category" else np.array(values, dtype=kind)
            made[name] = pd.Series(cells, dtype=kind)  # pandas would make a text column of objects
        return pd.DataFrame(made)

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> Case:
        return cls(**json.loads(path.read_text()))


def numbers(draws: Draws, n: int) -> Any:
    """A column of numbers, most often odd."""
    plain = draws.normal(0, 1, n)
    with np.errstate(all="ignore"):
        made = [
            lambda: np.full(n, draws.choice([0.0, 1.0, -3.5, 1e308, 5e-324])),
            lambda: plain,
            lambda: plain + 5 * draws.integers(0, 3, n),
            lambda: np.clip(
                plain * draws.choice([1e308, 1e300, 1e-300, 1e-320, 1e154, 1e-160]), -1.7e308, 1.7e308
            ),
            lambda: plain + draws.choice([1e8, 1e12, 1e15, 1e16, -1e300]),
            lambda: draws.integers(0, 3, n).astype(float),
            lambda: draws.integers(-(2**63), 2**63 - 1, n),
            lambda: draws.integers(2**53, 2**53 + 8, n),
            lambda: draws.integers(0, 2**63, n).astype(np.uint64) * 2 + 1,
            lambda: np.full(n, np.nan),
            lambda: np.where(draws.random(n) < 0.5, np.nan, plain),
            lambda: np.where(np.arange(n) == draws.integers(0, n), draws.choice([np.inf, -np.inf]), plain),
            lambda: np.where(
                np.arange(n) == draws.integers(0, n), draws.choice([1e308, -1e308, 1e200]), plain
            ),
            lambda: draws.random(n) < 0.5,
            lambda: np.where(draws.random(n) < 0.5, 5e-324, 1e-323),
            lambda: np.where(draws.random(n) < 0.5, -1e308, 1e308),
            lambda: draws.standard_cauchy(n) * 10.0 ** draws.integers(-5, 6),
            lambda: np.where(draws.random(n) < 0.5, -0.0, 0.0),
            lambda: np.where(draws.random(n) < 0.7, 0.0, draws.exponential(1, n)),
        ]
        return made[draws.integers(0, len(made))]()


def words(draws: Draws, n: int) -> Any:
    """A column of texts, most often odd."""
    pools: list[list[Any]] = [
        ["v0", "v1", "v2"],
        [f"id{i}" for i in range(n)],
        ["only"],
        ["a", "b", None, None],
        [None],
        ["", "\x00", "\u202e", "<b>", "a\nb", "'", '"', "é", "e\u0301", "\ud800"],
        [1, "a", None, 2.5, True],
        ["1", "2", "3"],
        ["2024-01-05", "2024-02-30", "x"],
        [10**400, 3, -(10**400)],
    ]
    pool = pools[draws.integers(0, len(pools))]
    chosen = [pool[i] for i in draws.integers(0, len(pool), n)]
    return pd.Categorical(["x", "y", "z"] * n)[:n] if draws.random() < 0.1 else np.array(chosen, dtype=object)


def drawn(seed: int) -> Case:
    """The table of a number."""
    draws = np.random.default_rng([19, seed])
    n = int(draws.choice([1, 2, 3, 4, 5, 8, 13, 30, 60]))
    made = {
        f"c{j}": numbers(draws, n) if draws.random() < 0.65 else words(draws, n)
        for j in range(int(draws.integers(1, 6)))
    }
    rows = draws.integers(0, n, n) if draws.random() < 0.3 else np.arange(n)
    columns = {name: [_plain(cell) for cell in np.asarray(values)[rows]] for name, values in made.items()}
    types = {name: str(getattr(values, "dtype", "object")) for name, values in made.items()}
    weight = [float(w) for w in weights(draws, n)] if draws.random() < 0.25 else None
    if draws.random() < 0.6:
        method = str(draws.choice(["auto", "auto", "auto", *(m for m in names() if m != "given")]))
        options: dict[str, Any] = {"k": int(draws.integers(1, 5))} if draws.random() < 0.5 else {}
        if draws.random() < 0.1:
            options["scale"] = None
        if draws.random() < 0.1:
            options["merge"] = "none"
        return Case(columns, types, method, options, weight, by_command=bool(draws.random() < COMMAND_LINE))
    method = str(draws.choice(list(ESTIMATORS)))
    options = {key: those[draws.integers(0, len(those))] for key, those in ESTIMATORS[method].items()}
    return Case(columns, types, method, options, weight)


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


class Wrong(AssertionError):
    """An answer that cannot be."""


def attempt(case: Case) -> str:
    """Ask, look at the answer; how it ended in one word. What escapes is a failure."""
    try:
        with limited(SECONDS), warnings.catch_warnings(record=True) as made:
            warnings.simplefilter("always")
            if case.method in ESTIMATORS:
                _look_at_estimator(case)
            else:
                _look_at_result(case)
    except IlkError as error:
        return f"refused by {type(error).__name__}" if error.code != "bug" else "bug"
    except TooSlow:
        raise Wrong(f"more than {SECONDS:.0f} s of the processor: {case.method}") from None
    except Exception as error:
        if refused_by_scikit_learn(error):
            return "refused by scikit-learn"
        raise
    foreign = [w for w in made if not issubclass(w.category, IlkWarning) and "/sklearn/" not in w.filename]
    if foreign:
        first = foreign[0]
        raise Wrong(f"foreign warning: {first.message} @ {Path(first.filename).name}:{first.lineno}")
    return "answered"


def _look_at_result(case: Case) -> None:
    frame, options = case.frame, dict(case.options)
    if case.weight is not None:
        frame["w"], options["weight"] = case.weight, "w"
    if case.by_command:
        _look_at_command(frame, case)
    found = ilk.cluster(frame, method=case.method, seed=0, **options)
    label = np.asarray(found.labels)
    _need(label.shape == (len(frame),), "labels of another length")
    _need(label.max(initial=0) < max(found.k, 1) and label.min(initial=0) >= -1, "a label out of range")
    if found.probabilities is not None:
        placed = np.asarray(found.probabilities)[label >= 0]
        _need(bool(np.isfinite(placed).all()), "a probability that is no number")
        _need(not len(placed) or np.abs(placed.sum(axis=1) - 1).max() < 1e-9, "probabilities do not add up")
    json.dumps(found.summary(), allow_nan=False)
    str(found)
    found._repr_html_()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.ilk")
        found.save(path)
        try:
            back = ilk.load(path)
        except ModelFileError as error:
            raise Wrong(f"saved and not read back: {error.what}") from error
        if found.model.has_rule:
            _need(found.assign(frame).equals(back.assign(frame)), "another answer after saving")


def _look_at_command(frame: pd.DataFrame, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "t.csv")
        frame.to_csv(table, index=False, errors="backslashreplace")
        args = ["fit", table, "-o", os.path.join(folder, "t.ilk"), "-q", "--method", case.method]
        args += ["--k", str(case.options["k"])] if "k" in case.options else []
        done = CliRunner().invoke(cli, args + (["--weight", "w"] if case.weight is not None else []))
        _need(done.exit_code in (0, 2, 3, 4, 5), f"exit code {done.exit_code}: {done.output[-200:]}")


def _look_at_estimator(case: Case) -> None:
    kind = getattr(ilk, case.method)
    known = inspect.signature(kind).parameters
    options = {key: value for key, value in case.options.items() if key in known}
    options |= {"random_state": 0} if "random_state" in known else {}
    frame = case.frame
    X = frame
    if case.method not in OF_FRAMES:
        X = frame.select_dtypes(["number", "bool"]).to_numpy(dtype=float)
    given = {}
    if case.weight is not None and "sample_weight" in inspect.signature(kind.fit).parameters:
        given = {"sample_weight": np.array(case.weight)}
    model = kind(**options).fit(X, **given)
    _need(model.labels_.shape == (len(frame),), "labels of another length")
    if hasattr(model, "predict_proba"):
        share = model.predict_proba(X)
        _need(bool(np.isfinite(share).all()), "a probability that is no number")
        whole = np.abs(share.sum(axis=1) - 1).max() < 1e-9 or options.get("noise")
        _need(bool(whole), "probabilities do not add up")
    for name in ("cluster_centers_", "means_", "weights_", "loglik_"):
        value = getattr(model, name, None)
        _need(value is None or bool(np.isfinite(np.asarray(value, float)).all()), f"{name} is no number")


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


def kind_of(error: BaseException) -> str:
    """What a failure is called, without the numbers in it."""
    return str(error) if isinstance(error, Wrong) else named(error)


def smaller(case: Case) -> Iterator[Case]:
    """Cases with less in them: no weights, fewer columns, fewer rows, no option."""
    if case.weight is not None:
        yield replace(case, weight=None)
    if case.by_command:
        yield replace(case, by_command=False)
    for name in case.columns if len(case.columns) > 1 else ():
        yield replace(case, columns={key: those for key, those in case.columns.items() if key != name})
    n = len(next(iter(case.columns.values())))
    step = max(n // 2, 1)
    while step and n > 1:
        for first in range(0, n, step):
            kept = [i for i in range(n) if not first <= i < first + step]
            if kept:
                weight = None if case.weight is None else [case.weight[i] for i in kept]
                cells = {name: [those[i] for i in kept] for name, those in case.columns.items()}
                yield replace(case, columns=cells, weight=weight)
        step //= 2


def minimised(case: Case, how: str, clock: Clock) -> Case:
    """The smallest case found in the time that fails in the same way."""
    for less in smaller(case):
        if clock.spent > clock.seconds:
            break
        try:
            attempt(less)
        except Exception as error:
            if kind_of(error).split(" @ ")[-1] == how.split(" @ ")[-1]:
                return minimised(less, how, clock)
    return case


def run(clock: Clock, first: int = 0, keep: Path | None = None) -> Tally:
    """Tables until the time is over."""
    tally = Tally("random tables x methods and estimators (API and command line)")
    seed = first
    while clock.more():
        case = drawn(seed)
        try:
            tally.ended[attempt(case)] += 1
        except Exception as error:
            how = kind_of(error)
            tally.ended["failed"] += 1
            if how not in tally.failures and keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                name = f"{hashlib.sha256(how.encode()).hexdigest()[:8]}-{seed}.json"
                (keep / name).write_text(minimised(case, how, Clock(120.0)).text())
            tally.failed(how, seed)
        seed += 1
    tally.seconds = clock.spent
    return tally
