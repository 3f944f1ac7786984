"""
The table of mclust: every structure and every number of components
===================================================================

All fourteen covariance structures with one to nine components, and beside each BIC what `mclust` 6.0.0 reports of it
(Scrucca, Fop, Murphy and Raftery 2016, The R Journal 8). Both have the sign of mclust here: higher is better. `*` marks
a cell that is better by more than 1, `!` one that is worse by more than 0.1, `.` one that has no fit.
Run it with `python examples/comparisons/mclust_table.py`, with `all`, or with names of tables: made_line, made_ridges,
made_shapes and made_batches come with the tests, iris with scikit-learn; acidity, faithful, banknote_swiss and
diabetes_reaven are not free to copy and are read from `shared/data` beside the checkout.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import ilk

TABLES = (
    *("made_line", "made_ridges", "made_shapes", "made_batches"),
    *("iris", "acidity", "faithful", "banknote_swiss", "diabetes_reaven"),
)
ROOT = Path(__file__).resolve().parents[2]
MOST = 9
BETTER, WORSE = 1.0, 0.1


def numbers(name: str) -> np.ndarray | None:
    """The columns of a table but for its target, where the table is at hand."""
    if name == "iris":
        return np.asarray(load_iris().data)
    folders = (ROOT / "tests" / "data", ROOT.parent / "shared" / "data" / "tables")
    path = next((path for path in (folder / f"{name}.csv" for folder in folders) if path.exists()), None)
    if path is None:
        return None
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return np.array([[float(cell) for key, cell in row.items() if key != "target"] for row in rows])


def compare(name: str) -> tuple[int, int, int]:
    """Print one table; returns how many cells mclust fits, and how many are better and worse here."""
    table = numbers(name)
    if table is None:
        print(f"\n{name}: the table is not here")
        return 0, 0, 0
    theirs = json.loads((ROOT / "tests" / "agreement" / "golden" / f"mclust_{name}.json").read_text())
    found = ilk.select(table, k=range(1, MOST + 1))
    ours = {(cell.structure, cell.k): cell.bic for cell in found.candidates}
    print(f"\n{name}: {theirs['n']} rows, {theirs['d']} columns; BIC here, and of mclust below it")
    print("    " + "".join(f"{k:>11d}" for k in range(1, MOST + 1)))
    n_cells = better = worse = 0
    for structure, row in theirs["bic"].items():
        first, second = f"{structure:4s}", "    "
        for k, other in enumerate(row, start=1):
            bic = ours.get((structure, k))
            mark = " " if bic is not None else "."
            if other is not None:
                gain = -np.inf if bic is None else -bic - other
                mark = "*" if gain > BETTER else "!" if gain < -WORSE else mark
                n_cells, better, worse = n_cells + 1, better + (mark == "*"), worse + (mark == "!")
            first += f"{'' if bic is None else f'{-bic:.2f}':>10s}{mark}"
            second += f"{'' if other is None else f'{other:.2f}':>10s} "
        print(f"{first.rstrip()}\n{second.rstrip()}")
    best, chosen = found.chosen, theirs["chosen"]
    assert best.bic is not None
    print(
        f"chosen: {best.structure} {best.k} with {-best.bic:.2f}; "
        f"mclust: {chosen['model']} {chosen['G']} with {chosen['bic']:.2f}"
    )
    return n_cells, better, worse


def main() -> None:
    asked = TABLES if "all" in sys.argv[1:] else [name for name in sys.argv[1:] if name in TABLES]
    totals = np.array([compare(name) for name in asked or TABLES[:1]]).sum(axis=0)
    print(
        f"\n{totals[0]} cells that mclust fits: {totals[1]} better by more than 1, {totals[2]} worse by more than 0.1"
    )


if __name__ == "__main__":
    main()
