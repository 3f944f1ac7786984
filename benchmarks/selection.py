"""Which structure and how many components: ilk.select and Mclust over fourteen structures and K = 1 to 9."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import r
from benchmarks.contest import OURS, Answer, Array, Benchmark, Case, Clocked, Contender, Setting, Size
from benchmarks.kmeans import TWO_THREADS
from benchmarks.peers import NOT_INSTALLED, installed
from benchmarks.requirement import Requirement

THOROUGH = f"thorough {OURS}"
PEER = "Mclust"
ROWS_MOST: dict[Size, int] = {"full": 1_000_000_000, "quick": 1_000, "tiny": 60}
SHAPES = ((1_000, 4), (1_000, 8), (10_000, 4), (10_000, 8))


@dataclass(frozen=True)
class Kind:
    """How the groups of a table differ: what is drawn for each group, and what all share."""

    own_shape: bool
    spread: float


# Groups of their own shape and direction well apart, and groups of one shape that overlap.
KINDS = {"own shapes": Kind(True, 4.0), "one shape": Kind(False, 1.5)}
N_GROUPS = 4
FEW_ROWS = 2_000  # beyond, Mclust takes half a minute


def table(n_rows: int, n_columns: int, kind: Kind) -> Array:
    """Rows of four Gaussians: stretched and turned at random, each by itself or all alike."""
    random = np.random.default_rng(7)
    turns = random.normal(size=(N_GROUPS, n_columns, n_columns)) / 2
    if not kind.own_shape:
        turns[:] = turns[0]
    centres = random.normal(scale=kind.spread, size=(N_GROUPS, n_columns))
    if not kind.own_shape:
        centres = centres @ turns[0]
    label = random.integers(N_GROUPS, size=n_rows)
    noise = random.normal(size=(n_rows, n_columns))
    return centres[label] + np.einsum("ni,nij->nj", noise, turns[label])


def ours(rows: Array, name: str, threads: int, *, thorough: bool = False) -> Contender:
    import ilk

    def search() -> Any:
        return ilk.select(rows, k=range(1, 10), thorough=thorough, seed=0, threads=threads)

    most_rounds = 1 if thorough else None
    return Contender(name, search, lambda found: _answer(rows, found), most_rounds=most_rounds)


def _answer(rows: Array, found: Any) -> Answer:
    """The BIC of the chosen model on all rows."""
    chosen = found.chosen
    whole = chosen.bic if found.n_rows_searched == len(rows) else chosen.bic_all_rows
    return Answer(float(whole), chosen=f"{chosen.structure} {chosen.k}")


def mclust(rows: Array, name: str) -> Contender:
    def search() -> Clocked:
        data = r.shared_file(f"selection-{name}.rows")
        if not data.exists():
            r.write_matrix(data.name, rows)
        told = r.run_script("selection.R", *rows.shape, data)
        found = Answer(float(told["bic"]), chosen=f"{told['structure'].strip()} {int(told['k'])}")
        times = float(told["seconds"]), float(told["processor_seconds"])
        return Clocked(found, *times, r.extra_bytes(told))

    most_rounds = 2 if len(rows) <= FEW_ROWS else 1
    return Contender(PEER, search, lambda clocked: clocked.answer, most_rounds=most_rounds, elsewhere=True)


def build(n_rows: int, n_columns: int, kind: str, size: Size) -> Setting:
    rows = table(min(n_rows, ROWS_MOST[size]), n_columns, KINDS[kind])
    contenders = [
        ours(rows, OURS, 1),
        ours(rows, TWO_THREADS, 2),
        ours(rows, THOROUGH, 1, thorough=True),
    ]
    absent = {}
    if installed("mclust"):
        contenders.append(mclust(rows, f"{len(rows)}-{n_columns}-{kind.replace(' ', '-')}"))
    else:
        absent[PEER] = NOT_INSTALLED
    return Setting(contenders, rows.nbytes, absent, objective="BIC")


def _name(n_rows: int, n_columns: int, kind: str) -> str:
    return f"{n_rows:.0e}x{n_columns} {kind}".replace("e+0", "e")


def _cases() -> list[Case]:
    return [
        Case(
            _name(n_rows, n_columns, kind),
            lambda size, a=n_rows, b=n_columns, c=kind: build(a, b, c, size),  # type: ignore[misc]
            rounds=3,
            memory=False,
        )
        for n_rows, n_columns in SHAPES
        for kind in KINDS
    ]


def _requirements() -> list[Requirement]:
    promises = []
    for n_rows, n_columns in SHAPES:
        for kind in KINDS:
            case = _name(n_rows, n_columns, kind)
            promises += [
                Requirement(f"selection {case}: times Mclust", case, PEER, "times", least=5.0),
                Requirement(
                    f"selection {case}: BIC above Mclust's, relative",
                    case,
                    PEER,
                    "objective excess",
                    most=0.0,
                ),
            ]
    return promises


SELECTION = Benchmark(
    "selection",
    "Gaussian mixtures, fourteen structures with K = 1 to 9: the lowest BIC",
    _cases(),
    _requirements(),
    notes="ilk is ilk.select(thorough=False), as ilk.cluster searches; thorough is ilk.select at its default. "
    "Mclust is at its defaults: a tree on at most 2,000 rows, EM on all. BIC is lower-is-better, on all rows.",
)
