"""Partitions that mixtures start from: every start, weights as repeats, what a row without weight gets."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk.fitting import partitions
from ilk.fitting.partitions import PARTITIONS, Partitioner
from ilk.fitting.start import STARTS, distinct_rows
from ilk.table.block import Block, Encoding

NAMES = sorted(PARTITIONS.keys() | STARTS.keys())
GROUPS = 3


def block(numbers: np.ndarray, weight: np.ndarray | None = None) -> Block:
    complete = not np.isnan(numbers).any()
    return Block(numbers, Encoding(1.0, np.zeros(numbers.shape[1])), weight=weight, complete=complete)


def groups(seed: int, n: int, d: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(seed)
    group = draws.integers(0, GROUPS, n)
    return draws.normal(size=(n, d)) + apart * np.eye(GROUPS, d)[group], group


def partition(label: np.ndarray) -> list[int]:
    """Labels by first row, so that equal partitions are equal lists."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(one, len(numbers)) for one in label.tolist()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_weight_is_so_many_equal_rows(name, missing):
    rows, _ = groups(1, 90, 3, 3.0)
    draws = np.random.default_rng(2)
    rows[draws.random(rows.shape) < missing] = np.nan
    weight = draws.integers(0, 4, len(rows))
    order = draws.permutation(weight.sum())
    repeated = Partitioner(block(np.repeat(rows, weight, axis=0)[order]), seed=5).labels(name, 4, 1)
    weighted = Partitioner(block(rows, weight.astype(float)), seed=5).labels(name, 4, 1)
    assert len(weighted) == len(rows)
    assert partition(np.repeat(weighted, weight)[order]) == partition(repeated)


@pytest.mark.parametrize("name", ["tree", "k-means", "two-step", "k-log-k"])
def test_groups_far_apart_are_found(name):
    rows, group = groups(3, 200, 3, 30.0)
    found = [Partitioner(block(rows), seed=seed).labels(name, GROUPS, 0) for seed in range(5)]
    right = sum(partition(label) == partition(group) for label in found)
    assert right >= (2 if "k-log-k" in name else 3)  # K log K rows may all miss a group


def test_a_tree_on_a_sample_labels_the_rows_beyond_by_their_nearest_row(monkeypatch):
    """Groups of any shape keep it: two long parallel ones, whose centres a row is often equally far from."""
    draws = np.random.default_rng(4)
    rows = draws.normal(size=(1200, 2)) * [20, 0.2]
    group = np.repeat([0, 1], 600)
    rows[:, 1] += 12 * group
    monkeypatch.setattr(partitions, "tree_rows", lambda n_columns: 300)
    label = Partitioner(block(rows), seed=1).labels("tree", 2, 0)
    assert partition(label) == partition(group)


def test_two_steps_are_k_log_k_and_one_em_step():
    """Against the formulas: shares, means and variances of the partition, memberships, again, likeliest group."""
    rows, _ = groups(6, 120, 2, 3.0)
    maker = Partitioner(block(rows), seed=1)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    membership = np.eye(GROUPS)[maker.labels("k-log-k", GROUPS, 0)]
    for _ in range(2):
        count = membership.sum(axis=0)
        mean = membership.T @ z / count[:, None]
        square = ((z[:, None, :] - mean) ** 2).sum(axis=2)
        variance = (membership * square).sum(axis=0) / (2 * count)
        log_density = np.log(count / len(z)) - np.log(2 * np.pi * variance) - square / (2 * variance)
        membership = np.exp(log_density - np.logaddexp.reduce(log_density, axis=1, keepdims=True))
    np.testing.assert_array_equal(maker.labels("two-step", GROUPS, 0), membership.argmax(axis=1))
    assert (maker.labels("two-step", GROUPS, 0) != maker.labels("k-log-k", GROUPS, 0)).any()


def test_a_named_start_of_a_mixture():
    rows, group = groups(7, 150, 2, 8.0)
    label = ilk.GaussianMixture(GROUPS, init="two-step", random_state=0).fit_predict(rows)
    assert partition(label) == partition(group)


def test_distinct_rows_add_their_weights():
    rows = np.array([[1.0, 2.0], [0.0, np.nan], [1.0, 2.0], [0.0, np.nan], [7.0, 0.0], [-0.0, np.nan]])
    distinct, where = distinct_rows(block(rows, np.array([1.0, 2.0, 0.5, 0.0, 0.0, 3.0])))
    assert sorted(distinct.weights.tolist()) == [1.5, 5.0]
    assert where.tolist() == [where[0], where[1], where[0], 0, 0, where[1]]
    np.testing.assert_array_equal(distinct.raw[where[:3]], rows[:3])


def test_rows_of_different_categories_are_distinct():
    rows = np.array([[1.0], [1.0], [1.0], [2.0]])
    codes = np.array([[0], [1], [0], [-1]], dtype=np.int32)
    mixed = Block(rows, Encoding(1.0, np.zeros(1)), codes=codes)
    distinct, where = distinct_rows(mixed)
    assert sorted(distinct.weights.tolist()) == [1.0, 1.0, 2.0]
    np.testing.assert_array_equal(distinct.codes[where], codes)
