"""Binary components: the cost against its definition, stored figures, and the two printed forms of it."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ilk.families.base import KEEP_ALL
from ilk.families.bernoulli import Bernoulli
from ilk.families.centroid import Centroids
from ilk.table.block import Block, Encoding
from tests.conftest import golden, table_path


def binary_tables(least: int = 4, missing: bool = True) -> st.SearchStrategy[np.ndarray]:
    cell = st.sampled_from([0.0, 1.0, np.nan]) if missing else st.sampled_from([0.0, 1.0])
    shape = st.tuples(st.integers(least, 20), st.integers(1, 6))
    return shape.flatmap(lambda s: arrays(np.float64, s, elements=cell))


def block_of(X: np.ndarray, weight: np.ndarray | None = None) -> Block:
    return Block(X, Encoding(1.0, np.zeros(X.shape[1])), weight=weight, complete=not np.isnan(X).any())


def family_of(X: np.ndarray, **options: float) -> Bernoulli:
    share = np.nan_to_num(np.nanmean(np.vstack([X, np.full((1, X.shape[1]), 0.5)]), axis=0), nan=0.5)
    return Bernoulli(share, **options)


def by_definition(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    cost = np.zeros((len(X), len(mean)))
    for n, row in enumerate(X):
        for k, shares in enumerate(mean):
            for x, m in zip(row, shares, strict=True):
                if not np.isnan(x):
                    cost[n, k] -= np.log(m) if x == 1 else np.log(1 - m)
    return cost


@settings(max_examples=40, deadline=None)
@given(X=binary_tables())
def test_cost_agrees_with_its_definition(X):
    family = family_of(X)
    params = family.start(X[:3])
    assert np.allclose(family.cost(params, block_of(X)), by_definition(X, params.centre), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(X=binary_tables(), data=st.data())
def test_the_update_is_the_least_cost_of_its_labels(X, data):
    """`group_cost` is the cost at the updated means, and any other means cost more."""
    family = family_of(X)
    ones, zeros = np.nansum(X == 1, axis=0)[None] * 1.0, np.nansum(X == 0, axis=0)[None] * 1.0
    best = family.means_of(ones, zeros, np.ones(1))

    def cost(mean: np.ndarray) -> float:
        return float(by_definition(X, mean).sum()) + family.penalty(Centroids(mean, np.ones(1)))

    assert cost(best.centre) == pytest.approx(float(family.group_cost(ones, zeros)[0]), abs=1e-9)
    other = np.clip(best.centre + data.draw(st.floats(-0.2, 0.2)), 1e-6, 1 - 1e-6)
    assert cost(other) >= cost(best.centre) - 1e-9


def test_components_without_rows_are_dropped():
    X = np.array([[1.0, 1], [1, 1], [0, 0]])
    family = family_of(X)
    params = family.start(np.array([[1.0, 1], [0, 0], [1, 0]]))
    after = family.update(params, family.step(params, block_of(X), KEEP_ALL).sums)
    assert len(after.centre) == 2


def read_binary(name: str, columns: slice | list[str] | None = None) -> tuple[np.ndarray, np.ndarray]:
    with table_path(name).open(newline="") as file:
        lines = list(csv.DictReader(file))
    names = [c for c in lines[0] if c != "target"]
    cells = np.array([[line[c] for c in names] for line in lines])
    return cells, np.array([line["target"] for line in lines])


def entropy_objective(X: np.ndarray, label: np.ndarray) -> float:
    family = Bernoulli(np.full(X.shape[1], 0.5), smoothing=0.0)
    groups = [X[label == g] for g in np.unique(label)]
    return sum(
        float(family.group_cost((g == 1).sum(axis=0) * 1.0, (g == 0).sum(axis=0) * 1.0)) for g in groups
    )


def test_stored_entropy_objective_of_votes():
    figures = golden("seed_claims")["binary_entropy_objective"]["votes_complete_rows"]
    cells, party = read_binary("votes")
    complete = np.isin(cells, ["y", "n"]).all(axis=1)
    X, party = (cells[complete] == "y").astype(float), party[complete]
    assert len(X) == figures["rows"]
    everyone = np.arange(len(X))
    assert entropy_objective(X, 0 * everyone) == pytest.approx(figures["one_cluster"], rel=1e-10)
    assert entropy_objective(X, party) == pytest.approx(figures["by_target"], rel=1e-10)
    assert entropy_objective(X, everyone % 2) == pytest.approx(figures["row_mod_2"], rel=1e-10)
    assert entropy_objective(X, everyone) == pytest.approx(figures["every_row_alone"], abs=1e-12)


def test_stored_entropy_objective_of_zoo():
    figures = golden("seed_claims")["binary_entropy_objective"]["zoo_15_binary_columns"]
    cells, kind = read_binary("zoo")
    binary = [j for j in range(cells.shape[1]) if len(set(cells[:, j])) == 2]
    X = np.column_stack([cells[:, j] == max(cells[:, j]) for j in binary]).astype(float)
    assert X.shape == (figures["rows"], 15)
    everyone = np.arange(len(X))
    assert entropy_objective(X, 0 * everyone) == pytest.approx(figures["one_cluster"], rel=1e-10)
    assert entropy_objective(X, kind) == pytest.approx(figures["by_target"], rel=1e-6)
    assert entropy_objective(X, everyone % 7) == pytest.approx(figures["row_mod_7"], rel=1e-10)


def test_the_printed_discrepancy_is_the_cross_entropy():
    """H(mean) + (mean - x) log(mean / (1 - mean)), and its sum over a group is the group's entropies."""
    X = (np.random.default_rng(0).random((40, 5)) < 0.3).astype(float)
    mean = X.mean(axis=0)
    entropy = -mean * np.log(mean) - (1 - mean) * np.log(1 - mean)
    printed = (entropy + (mean - X) * np.log(mean / (1 - mean))).sum(axis=1)
    family = Bernoulli(mean)
    assert family.cost(Centroids(mean[None], np.ones(1)), block_of(X))[:, 0] == pytest.approx(printed)
    assert printed.sum() == pytest.approx(entropy_objective(X, np.zeros(40)))


def test_a_row_without_gaps_costs_the_same_bits_beside_rows_with_gaps():
    draws = np.random.default_rng(0)
    X = (draws.random((200, 7)) < 0.3).astype(float)
    gaps = np.vstack([X, np.full((1, 7), np.nan)])
    encoding = Encoding(1.0, np.zeros(7))
    family = Bernoulli(np.full(7, 0.3))
    centres = family.start(X[:3])
    alone = family.cost(centres, Block(X, encoding, complete=True))
    beside = family.cost(centres, Block(gaps, encoding, complete=False))
    assert np.array_equal(beside[:200], alone)
    np.testing.assert_allclose(beside[200], 0, atol=1e-14)
