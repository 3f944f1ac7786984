"""The unit of weights changes no answer: weights from 1e-300 to 1e300 find what the same weights near 1 find."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import ilk
from ilk.engines.condition import weighed
from ilk.engines.memory import MemoryRows
from ilk.engines.packed import Cutter, Pack
from ilk.engines.stream import StreamRows
from ilk.errors import DataError, IlkWarning
from ilk.fitting.weights import row_weights
from ilk.table.block import Encoding
from ilk.table.out_of_core import memory_limit as room
from ilk.table.out_of_core.table import PieceTable
from ilk.table.weights import WeightFacts, conditioned_weight
from tests.contracts.test_estimator import ESTIMATORS

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

N = 60
GROUP = np.arange(N) % 3
ROWS = np.random.default_rng(0).normal(size=(N, 3)) + 9.0 * np.eye(3)[GROUP]
WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, N)
WEIGHED = [e for e in ESTIMATORS if "sample_weight" in inspect.signature(type(e).fit).parameters]
UNITS = st.integers(-1000, 1000)
few = settings(max_examples=6, deadline=None)


def name_of(estimator: Any) -> str:
    return str(estimator).split("(")[0]


@cache
def reference(number: int) -> Any:
    return fitted(WEIGHED[number], WEIGHT)


def fitted(estimator: Any, weight: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IlkWarning)
        model = clone(estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        return model.fit(ROWS, sample_weight=weight)


@pytest.mark.parametrize("number", range(len(WEIGHED)), ids=[name_of(e) for e in WEIGHED])
@few
@given(exponent=UNITS)
def test_every_estimator_finds_the_same_in_any_unit(number: int, exponent: int) -> None:
    usual, found = reference(number), fitted(WEIGHED[number], np.ldexp(WEIGHT, exponent))
    np.testing.assert_array_equal(found.labels_, usual.labels_)
    for name in ("cluster_centers_", "means_", "weights_"):
        if hasattr(usual, name):
            np.testing.assert_array_equal(getattr(found, name), getattr(usual, name))
    for name in ("inertia_", "loglik_", "lower_bound_"):
        if hasattr(usual, name):
            assert getattr(found, name) == np.ldexp(getattr(usual, name), exponent)
    if hasattr(usual, "fit_"):
        np.testing.assert_array_equal(found.fit_.size, np.ldexp(usual.fit_.size, exponent))
    assert getattr(found, "bic", lambda: 0.0)() == getattr(usual, "bic", lambda: 0.0)()


@cache
def clustered(exponent: int) -> Any:
    columns = {f"c{j}": column for j, column in enumerate(ROWS.T)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IlkWarning)
        return ilk.cluster(columns | {"w": np.ldexp(WEIGHT, exponent)}, weight="w")


@settings(max_examples=5, deadline=None)
@given(exponent=UNITS)
def test_the_main_job_finds_the_same_in_any_unit(exponent: int) -> None:
    usual, found = clustered(0), clustered(exponent)
    np.testing.assert_array_equal(found.labels, usual.labels)
    assert (found.k, found.verdict.word) == (usual.k, usual.verdict.word) == (3, usual.verdict.word)
    sizes = [group.weight for group in usual.groups]
    assert [group.weight for group in found.groups] == np.ldexp(sizes, exponent).tolist()
    assert found.summary()["table"]["weight"] == pytest.approx(float(np.ldexp(WEIGHT, exponent).sum()))


@pytest.mark.parametrize("weight", [1e-300, 1e-200, 1e-10, 1e50, 1e200, 1e220, 1e300])
def test_equal_weights_of_any_size_are_no_weights(weight: float) -> None:
    """To the bit."""
    rows = np.random.default_rng(0).normal(size=(100, 2))  # memory outside was written
    everywhere = np.full(N, weight)
    for make in (lambda: ilk.KMeans(3, random_state=0), lambda: ilk.TrimmedKMeans(3, random_state=0)):
        plain, weighted = make().fit(ROWS), make().fit(ROWS, sample_weight=everywhere)
        np.testing.assert_array_equal(plain.labels_, weighted.labels_)
        np.testing.assert_array_equal(plain.cluster_centers_, weighted.cluster_centers_)
    plain = ilk.KMeans(3, random_state=0).fit(ROWS)
    weighted = ilk.KMeans(3, random_state=0).fit(ROWS, sample_weight=everywhere)
    assert weighted.inertia_ == pytest.approx(plain.inertia_ * weight, rel=1e-12)
    assert weighted.score(ROWS, sample_weight=everywhere) == pytest.approx(-weighted.inertia_, rel=1e-9)
    for make in (
        lambda: ilk.GaussianMixture(2, random_state=0),
        lambda: ilk.AssortedMixture(3, random_state=0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IlkWarning)
            found = make().fit(rows, sample_weight=np.full(100, weight)).labels_
            np.testing.assert_array_equal(found, make().fit(rows).labels_)


def test_all_that_overflows_is_refused_or_infinite() -> None:
    weight = np.full(N, 1e306)
    model = ilk.KMeans(3, random_state=0).fit(ROWS * 1e5, sample_weight=weight)
    assert model.inertia_ == np.inf
    np.testing.assert_array_equal(model.labels_, ilk.KMeans(3, random_state=0).fit(ROWS * 1e5).labels_)
    with pytest.raises(DataError, match="the sum of the weights is infinite"):
        ilk.KMeans(3).fit(ROWS, sample_weight=np.full(N, 1e308))


def test_counts_are_left_as_they_are() -> None:
    counts = np.array([3.0, 0.0, 2.0**40, 7.0])
    same, unit = conditioned_weight(counts)
    assert same is counts
    assert unit == 1


def test_whole_weights_that_no_count_can_be_are_relative() -> None:
    """Their sum is beyond what float64 counts."""
    weight, unit = conditioned_weight(np.array([2.0**52, 2.0**52, 2.0**53, 0.0]))
    assert (weight.tolist(), unit) == ([0.5, 0.5, 1.0, 0.0], 2.0**53)


@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=9), st.integers(-950, 950), st.integers(0, 9))
def test_the_weight_of_a_typical_row_is_next_to_one(shares: list[float], exponent: int, cut: int) -> None:
    given_weights = np.ldexp(np.array([1 / 3, *shares]), exponent)
    facts = WeightFacts.of(given_weights[:cut]) + WeightFacts.of(given_weights[cut:])
    weight, found = conditioned_weight(given_weights)
    assert facts.unit == found  # in parts, too
    assert 0.7 < (weight @ weight) / weight.sum() < 1.42
    np.testing.assert_array_equal(weight * found, given_weights)


def test_a_ratio_that_is_lost_in_rounding_is_refused_on_every_engine() -> None:
    weight = np.where(GROUP == 0, 1e300, 1e-300)
    with pytest.raises(DataError, match="lost in rounding"):
        ilk.KMeans(3).fit(ROWS, sample_weight=weight)
    with pytest.raises(DataError, match="lost in rounding"):
        weighed(streamed(weight))


def streamed(weight: Any) -> StreamRows:
    return StreamRows(ROWS, Encoding(1.0, np.zeros(3)), weight=weight, threads=1)


@pytest.mark.parametrize("exponent", [-1000, -3, 0, 999])
def test_engines_beyond_memory_see_the_same_weights(exponent: int) -> None:
    weight = np.ldexp(WEIGHT, exponent)
    wanted, found = conditioned_weight(weight)
    rows, n_counting = weighed(streamed(weight))
    assert n_counting == N
    assert rows.encoding.weight_unit == found
    np.testing.assert_array_equal(rows.take(np.arange(N)).weights, wanted)
    (block,) = Cutter(rows.encoding, True, N).blocks(Pack(ROWS, weight), 0)
    np.testing.assert_array_equal(block.weights, wanted)
    held = MemoryRows(ROWS, rows.encoding, weight=wanted, threads=1)
    np.testing.assert_array_equal(rows.sample(20, 0).raw, held.sample(20, 0).raw)
    assert row_weights(rows).effective_rows == row_weights(held).effective_rows


@pytest.mark.parametrize("exponent", [-990, 980])
def test_a_table_larger_than_memory_finds_the_same(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, exponent: int
) -> None:
    monkeypatch.setattr(room, "LEAST", 0)
    path = tmp_path / "rows.parquet"
    columns = {f"c{j}": column for j, column in enumerate(ROWS.T)}
    pq.write_table(pa.table(columns | {"w": np.ldexp(WEIGHT, exponent)}), path, row_group_size=20)
    usual = clustered(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IlkWarning)
        found = ilk.cluster(path, weight="w", memory=10.0)
        monkeypatch.setenv("ILK_MEMORY", "10 B")
        model = ilk.KMeans(3, random_state=0).fit(path, sample_weight="w")
    assert isinstance(found.table, PieceTable)
    np.testing.assert_array_equal(found.labels, usual.labels)
    assert (found.k, found.verdict.word) == (usual.k, usual.verdict.word)
    assert found.summary()["table"]["weight"] == pytest.approx(float(np.ldexp(WEIGHT, exponent).sum()))
    plain = ilk.KMeans(3, random_state=0).fit(ROWS, sample_weight=WEIGHT)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == np.ldexp(plain.inertia_, exponent)


ODD: list[Callable[[], Any]] = [
    lambda: ilk.KMeans(3, random_state=0),
    lambda: ilk.DPMeans(30.0, random_state=0),
]


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("odd", [1e200, 1e308])
def test_a_row_of_weight_zero_has_no_say_wherever_it_lies(make: Callable[[], Any], odd: float) -> None:
    rows, weight = ROWS.copy(), np.ones(N)
    rows[7, 1], weight[7] = odd, 0.0
    rest = weight > 0
    found, wanted = make().fit(rows, sample_weight=weight), make().fit(ROWS[rest])
    np.testing.assert_array_equal(found.labels_[rest], wanted.labels_)
    np.testing.assert_allclose(found.cluster_centers_, wanted.cluster_centers_, rtol=1e-12)
