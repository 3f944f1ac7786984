"""All structures and G = 1..9 against mclust 6.0.0: no cell worse, the choice the same or better."""

from __future__ import annotations

import math

import pytest

import ilk
from ilk import kernels
from tests.conftest import at_hand, golden, numeric_table

TOLERANCE = 0.1
TABLES = (
    *("iris", "faithful", "diabetes_reaven", "banknote_swiss", "acidity"),
    *("made_ridges", "made_shapes", "made_batches", "made_line"),
)
if not kernels.COMPILED:
    pytest.skip("some 10,000 EM runs take an hour without a compiler", allow_module_level=True)


@pytest.mark.parametrize("name", at_hand(TABLES))
def test_no_cell_has_a_worse_bic(name, capsys):
    reference = golden(f"mclust_{name}")
    X, _ = numeric_table(name)
    found = ilk.select(X, k=range(1, 10))
    n_cells, better, worse = 0, 0, []
    for cell in found.candidates:
        theirs = reference["bic"][cell.structure][cell.k - 1]  # mclust's sign: higher is better
        if theirs is None:
            continue
        ours = -math.inf if cell.bic is None else -cell.bic
        n_cells += 1
        better += ours > theirs + 1
        if ours < theirs - TOLERANCE:
            worse.append((cell.structure, cell.k, ours, theirs))
    chosen = reference["chosen"]
    with capsys.disabled():
        print(
            f"\n{name}: {n_cells} cells, {better} better by more than 1, {len(worse)} worse; chosen "
            f"{found.chosen.structure},{found.chosen.k} {-found.chosen.bic:.2f} "
            f"(mclust {chosen['model']},{chosen['G']} {chosen['bic']:.2f})"
        )
    assert not worse
    same = (found.chosen.structure, found.chosen.k) == (chosen["model"], chosen["G"])
    assert same or -found.chosen.bic > chosen["bic"]
    for cell in found.candidates:
        expected = reference["npar"][cell.structure][cell.k - 1]
        assert cell.parameters is None or expected is None or cell.parameters == expected
