"""Sparse matrices give the answers of the same table as an array, and what they cannot say is refused."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score

import ilk
from ilk.errors import DataError, IlkWarning, UsageError
from ilk.table.sparse import SPARSE_ESTIMATORS

FORMATS = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_array, sp.dok_array, sp.bsr_array)
tables = {
    "seed": st.integers(0, 2**32 - 1),
    "kind": st.sampled_from(["binary", "count", "number"]),
    "filled": st.sampled_from([0.05, 0.3, 0.7]),
}
pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


def made(seed: int, kind: str, filled: float, n: int = 40, d: int = 9) -> np.ndarray:
    """A table with an empty row, an empty column and one without a zero."""
    draws = np.random.default_rng(seed)
    values = {
        "binary": np.ones((n, d)),
        "count": 1.0 + draws.poisson(1.5, (n, d)),
        "number": draws.normal(size=(n, d)),
    }[kind]
    X = np.where(draws.random((n, d)) < filled, values, 0.0)
    X[draws.integers(n)] = 0.0
    X[:, 0] = 0.0
    X[:, 1] = values[:, 1]
    return X


def types_of(X: np.ndarray) -> dict[str, str]:
    """What the columns of the sparse matrix are taken for."""
    return {f"x{j}": "binary" if set(X[:, j]) <= {0.0, 1.0} else "count" for j in range(X.shape[1])}


def groups(seed: int, n: int = 300, d: int = 60, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(seed)
    label = draws.integers(0, k, n)
    share = np.where(draws.random((k, d)) < 0.2, 0.5, 0.04)
    return (draws.random((n, d)) < share[label]).astype(float), label


# --- K-means


@settings(max_examples=40, deadline=None)
@given(scale=st.sampled_from([None, "standard"]), weighted=st.booleans(), **tables)
def test_k_means_is_that_of_the_array(seed, kind, filled, scale, weighted):
    X = made(seed, kind, filled)
    draws = np.random.default_rng(seed)
    weight = draws.integers(0, 4, len(X)).astype(float) if weighted else None
    # From centres of no special place no row is as near to one as to another, so one pass is the same in all digits.
    start = X.mean(axis=0) + draws.normal(size=(3, X.shape[1]))
    passes = 300 if kind == "number" else 1
    model = ilk.KMeans(3, init=start, max_iter=passes, scale=scale)
    whole = model.fit(X, sample_weight=weight)
    few = ilk.KMeans(3, init=start, max_iter=passes, scale=scale).fit(sp.csr_array(X), sample_weight=weight)
    assert few.inertia_ == pytest.approx(whole.inertia_, rel=1e-9)
    np.testing.assert_allclose(few.cluster_centers_, whole.cluster_centers_, rtol=1e-9, atol=1e-12)
    if kind == "number":
        assert np.array_equal(few.labels_, whole.labels_)
        assert few.n_iter_ == whole.n_iter_


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), init=st.sampled_from(["k-means++", "random", "farthest-first", "k-log-k"])
)
def test_random_starts_draw_the_rows_that_they_draw_from_the_array(seed, init):
    X = made(seed, "number", 0.5, n=60)
    one = ilk.KMeans(3, init=init, n_init=2, random_state=seed).fit(X)
    two = ilk.KMeans(3, init=init, n_init=2, random_state=seed).fit(sp.csc_array(X))
    assert np.array_equal(one.labels_, two.labels_)
    assert two.inertia_ == pytest.approx(one.inertia_, rel=1e-9)


@pytest.mark.parametrize("init", ["ward", "k-means||"])
def test_the_other_starts_run(init):
    X, _ = groups(0)
    one = ilk.KMeans(3, init=init, n_init=1, random_state=0).fit(X)
    two = ilk.KMeans(3, init=init, n_init=1, random_state=0).fit(sp.csr_array(X))
    assert two.inertia_ == pytest.approx(one.inertia_, rel=1e-9)


def test_a_start_that_needs_all_columns_at_once_is_refused():
    with pytest.raises(UsageError) as refused:
        ilk.KMeans(3, init="random-hull").fit(sp.csr_array(groups(0)[0]))
    assert refused.value.code == "sparse-start"


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_in_any_order(seed):
    X, draws = made(seed, "number", 0.4), np.random.default_rng(seed)
    order, start = draws.permutation(len(X)), draws.normal(size=(3, X.shape[1]))
    one = ilk.KMeans(3, init=start).fit(sp.csr_array(X))
    two = ilk.KMeans(3, init=start).fit(sp.csr_array(X[order]))
    # Of two groups of equal size the one with the earlier row is first.
    assert np.array_equal(one.cluster_centers_[one.labels_][order], two.cluster_centers_[two.labels_])
    assert one.inertia_ == two.inertia_


@settings(max_examples=25, deadline=None)
@given(**tables)
def test_whole_weights_are_repeated_rows(seed, kind, filled):
    X, draws = made(seed, kind, filled), np.random.default_rng(seed)
    times, start = draws.integers(0, 4, len(X)), draws.normal(size=(2, X.shape[1]))
    one = ilk.KMeans(2, init=start).fit(sp.csr_array(X), sample_weight=times)
    two = ilk.KMeans(2, init=start).fit(sp.csr_array(np.repeat(X, times, axis=0)))
    assert np.array_equal(one.cluster_centers_, two.cluster_centers_)
    assert np.array_equal(np.repeat(one.labels_, times), two.labels_)
    assert one.inertia_ == two.inertia_


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_stored_zeros_and_entries_in_parts_are_the_cells_they_add_up_to(seed):
    X, draws = made(seed, "count", 0.4), np.random.default_rng(seed)
    row, column = np.nonzero(X)
    value = X[row, column]
    zeros = np.argwhere(X == 0)[:5]
    parts = np.concatenate([value - 1, np.ones(len(value)), np.zeros(len(zeros))])
    rows, columns = np.concatenate([row, row, zeros[:, 0]]), np.concatenate([column, column, zeros[:, 1]])
    mixed = draws.permutation(len(parts))
    given = sp.coo_array((parts[mixed], (rows[mixed], columns[mixed])), shape=X.shape)
    before = given.data.copy()
    start = draws.normal(size=(3, X.shape[1]))
    one, two = (ilk.KMeans(3, init=start).fit(cells) for cells in (sp.csr_array(X), given))
    assert np.array_equal(one.cluster_centers_, two.cluster_centers_)
    assert np.array_equal(given.data, before)  # what was given is not changed
    label = draws.integers(0, 3, len(X))
    label[:3] = 0, 1, 2
    one, two = (
        ilk.MixedMixture(3, init=label, smoothing=1.0).fit(cells) for cells in (sp.csr_array(X), given)
    )
    assert one.loglik_ == two.loglik_


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("form", FORMATS)
def test_any_format_and_number_type(form, dtype):
    X, label = groups(1, n=60, d=12)
    expected = ilk.KMeans(3, init=X[:3]).fit(X)
    found = ilk.KMeans(3, init=X[:3]).fit(form(X.astype(dtype)))
    assert np.array_equal(found.labels_, expected.labels_)
    assert found.cluster_centers_.dtype == (np.float32 if dtype == np.float32 else np.float64)
    classes = ilk.MixedMixture(3, init=label, smoothing=1.0).fit(form(X.astype(dtype)))
    assert classes.loglik_ == pytest.approx(
        ilk.MixedMixture(3, init=label, smoothing=1.0, types=types_of(X)).fit(X).loglik_, rel=1e-9
    )


def test_rows_on_their_centres_cost_nothing_and_too_few_different_rows_are_told():
    X = np.repeat([[0.0, 3, 0, 1], [2, 0, 0, 0], [0, 0, 0, 0]], 5, axis=0) / 3
    with pytest.warns(IlkWarning, match="3 distinct rows"):
        model = ilk.KMeans(5, random_state=0).fit(sp.csr_array(X))
    assert model.inertia_ == 0.0
    assert len(model.cluster_centers_) == 3
    assert model.transform(sp.csr_array(X)).min(axis=1).tolist() == [0.0] * 15


def test_ties_go_to_the_first_centre():
    start = np.array([[0.0, 2], [2, 0]])
    model = ilk.KMeans(2, init=start, max_iter=1).fit(sp.csr_array([[1.0, 1], [0, 2], [2, 0], [0, 0]]))
    assert model.fit_.trace[0].cost > 0
    labels = (
        ilk.KMeans(2, init=start, max_iter=0)
        .fit(sp.csr_array([[1.0, 1], [0, 2], [2, 0], [0, 0]]))
        .predict(sp.csr_array([[1.0, 1], [0, 0], [0, 3], [3, 0]]))
    )
    assert labels[0] == labels[1] == labels[2] != labels[3]


@pytest.mark.parametrize("form", [sp.csr_array, sp.coo_matrix])
def test_what_a_fitted_model_tells_of_either_form(form):
    X, _ = groups(2)
    new = groups(3)[0]
    model = ilk.KMeans(3, random_state=0).fit(form(X))
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.predict(form(new)), model.predict(new))
    np.testing.assert_allclose(model.transform(form(new)), model.transform(new), rtol=1e-9)
    assert model.score(form(new)) == pytest.approx(model.score(new), rel=1e-9)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(form(new)), model.predict(new))
    trimmed = ilk.TrimmedKMeans(3, trim=0.1, init=X[:3]).fit(X)
    few = ilk.TrimmedKMeans(3, trim=0.1, init=X[:3]).fit(form(X))
    assert few.inertia_ == pytest.approx(trimmed.inertia_, rel=1e-9)
    assert np.array_equal(few.outliers_, trimmed.outliers_)


# --- mixtures of zeros and ones and of counts


@settings(max_examples=40, deadline=None)
@given(
    smoothing=st.sampled_from([0.0, 1.0]),
    membership=st.sampled_from(["soft", "hard"]),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
    filled=st.sampled_from([0.05, 0.3, 0.7]),
    n_counts=st.integers(0, 9),
)
def test_a_mixture_is_that_of_the_array(seed, filled, n_counts, smoothing, membership, weighted):
    X = np.hstack([made(seed, "binary", filled)[:, n_counts:], made(seed, "count", filled)[:, :n_counts]])
    draws = np.random.default_rng(seed)
    label = draws.integers(0, 3, len(X))
    label[:3] = 0, 1, 2
    weight = draws.integers(1, 4, len(X)).astype(float) if weighted else None
    options = {"init": label, "smoothing": smoothing, "membership": membership, "max_iter": 8}
    whole = ilk.MixedMixture(3, types=types_of(X), **options).fit(X, sample_weight=weight)
    few = ilk.MixedMixture(3, **options).fit(sp.csr_array(X), sample_weight=weight)
    assert few.loglik_ == pytest.approx(whole.loglik_, rel=1e-9)
    assert few.bic() == pytest.approx(whole.bic(), rel=1e-9)
    np.testing.assert_allclose(few.predict_proba(sp.coo_array(X)), whole.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(few.score_samples(sp.csr_array(X)), whole.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(few.predict_proba(X), few.predict_proba(sp.csr_array(X)), atol=1e-8)
    clear = (np.sort(whole.predict_proba(X), axis=1)[:, ::-1] > 0.5 + 1e-6)[:, 0]
    assert np.array_equal(few.labels_[clear], whole.labels_[clear])


def test_weights_are_repeats_in_a_mixture():
    X, label = groups(4, n=80)
    times = np.random.default_rng(0).integers(1, 4, len(X))
    one = ilk.MixedMixture(3, init=label, smoothing=1.0).fit(sp.csr_array(X), sample_weight=times)
    two = ilk.MixedMixture(3, init=np.repeat(label, times), smoothing=1.0)
    two.fit(sp.csr_array(np.repeat(X, times, axis=0)))
    assert one.loglik_ == pytest.approx(two.loglik_, rel=1e-9)
    assert np.array_equal(np.repeat(one.labels_, times), two.labels_)


@pytest.mark.parametrize("counts", [False, True])
def test_a_mixture_finds_groups_and_survives_pickling(counts):
    X, label = groups(5, n=600)
    X = X * (1 + np.random.default_rng(0).poisson(0.5, X.shape)) if counts else X
    model = ilk.MixedMixture(3, smoothing=1.0, random_state=0).fit(sp.csr_array(X))
    assert adjusted_rand_score(label, model.labels_) > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(sp.csc_array(X)), model.labels_)
    kinds = {column.kind for column in model.schema_.columns}
    assert kinds == ({"count"} if counts else {"binary"})
    drawn, _ = model.sample(5)
    assert drawn.shape == (5, X.shape[1])


@pytest.mark.parametrize("init", ["principal", "k-means", "k-log-k", "k-means++", "random", "farthest-first"])
def test_every_start_of_a_sparse_mixture(init):
    model = ilk.MixedMixture(3, init=init, smoothing=1.0, random_state=0).fit(sp.csr_array(groups(6)[0]))
    assert np.isfinite(model.loglik_)


def test_other_starts_of_a_sparse_mixture_are_refused():
    with pytest.raises(UsageError) as refused:
        ilk.MixedMixture(3, init="tree").fit(sp.csr_array(groups(6)[0]))
    assert refused.value.code == "sparse-start"


def test_the_order_of_rows_does_not_change_a_mixture_that_starts_by_itself():
    X, _ = groups(7)
    order = np.random.default_rng(0).permutation(len(X))
    one = ilk.MixedMixture(3, smoothing=1.0, random_state=0).fit(sp.csr_array(X))
    two = ilk.MixedMixture(3, smoothing=1.0, random_state=0).fit(sp.csr_array(X[order]))
    assert one.loglik_ == pytest.approx(two.loglik_, rel=1e-9)
    assert np.array_equal(one.labels_[order], two.labels_)


def test_smoothing_pulls_rates_to_those_of_the_table():
    X = np.array([[0.0, 3], [0, 1], [4, 0], [2, 0]])
    model = ilk.MixedMixture(2, init=[0, 0, 1, 1], smoothing=1.0, max_iter=0, membership="hard").fit(
        sp.csr_array(X)
    )
    rate = {name: sorted(values.tolist()) for name, values in model.rates_.items()}
    assert rate["x0"] == pytest.approx([1.5 / 3, (6 + 1.5) / 3])
    assert rate["x1"] == pytest.approx([1 / 3, (4 + 1) / 3])


# --- the assorted model


@pytest.mark.parametrize("d", [12, 60])
def test_the_assorted_objective_is_that_of_the_array(d):
    X, label = groups(8, n=150, d=d)
    whole = ilk.AssortedMixture(3, types=types_of(X), random_state=0).fit(X)
    few = ilk.AssortedMixture(3, random_state=0).fit(sp.csr_array(X))
    for part in (label, whole.labels_, few.labels_):
        assert few.objective_from(part) == pytest.approx(whole.objective_from(part), rel=1e-9)
    assert np.array_equal(few.predict(sp.coo_array(X)), few.labels_)
    assert np.array_equal(few.predict(X), few.labels_)
    np.testing.assert_allclose(few.score_samples(sp.csr_array(X)), few.score_samples(X), rtol=1e-9)
    assert few.objective_ <= few.objective_from(label) * (1 + 1e-9)


def test_the_assorted_model_finds_groups_their_number_and_their_columns():
    X, label = groups(9, n=400, d=80)
    model = ilk.AssortedMixture(random_state=0).fit(sp.csr_array(X))
    assert model.n_components_ == 3
    assert adjusted_rand_score(label, model.labels_) > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(sp.csr_array(X)), model.labels_)
    top = model.traits()[0]
    assert top.chosen
    assert set(top.own) == {"0", "1"}


def test_the_assorted_model_takes_zeros_and_ones_alone():
    with pytest.raises(DataError) as refused:
        ilk.AssortedMixture(2).fit(sp.csr_array(groups(0)[0] * 2))
    assert refused.value.code == "sparse-counts"
    with pytest.raises(UsageError) as option:
        ilk.AssortedMixture(2, sharing="groups").fit(sp.csr_array(groups(0)[0]))
    assert option.value.code == "sparse-option"


# --- what is refused


@pytest.mark.parametrize(
    ("cell", "code"),
    [(np.nan, "sparse-missing"), (np.inf, "infinite"), (-1.0, "not-counts"), (0.5, "not-counts")],
)
@pytest.mark.parametrize("estimator", [ilk.KMeans(2), ilk.MixedMixture(2), ilk.AssortedMixture(2)])
def test_cells_that_are_no_counts(estimator, cell, code):
    X = groups(0)[0]
    X[3, 2] = cell
    if code == "not-counts" and isinstance(estimator, ilk.KMeans):
        assert len(estimator.fit(sp.csr_array(X)).labels_) == len(X)
        return
    with pytest.raises(DataError) as refused:
        estimator.fit(sp.csr_array(X))
    assert refused.value.code == code
    assert "rows 3" in str(refused.value)
    assert "'2'" in str(refused.value)


def test_kinds_of_columns_may_be_asked_for():
    X = groups(0)[0]
    asked = {f"x{j}": "count" for j in range(X.shape[1])} | {"x0": "ignore"}
    model = ilk.MixedMixture(2, types=asked, smoothing=1.0, random_state=0).fit(sp.csr_array(X))
    assert [c.kind for c in model.schema_.columns[:2]] == ["left out", "count"]
    for types, code in (({"x1": "numeric"}, "sparse-type"), ({"y": "count"}, "unknown-column")):
        with pytest.raises(UsageError) as refused:
            ilk.MixedMixture(2, types=types).fit(sp.csr_array(X))
        assert refused.value.code == code
    X[0, 0] = 2.0
    with pytest.raises(DataError) as refused:
        ilk.MixedMixture(2, types={"x0": "binary"}).fit(sp.csr_array(X))
    assert refused.value.code == "not-binary"


def test_a_cell_of_a_new_matrix_that_is_no_level_is_missing():
    X = groups(0)[0]
    model = ilk.MixedMixture(2, smoothing=1.0, random_state=0).fit(sp.csr_array(X))
    new = X[:20].copy()
    new[0, 0] = 2.0
    with pytest.warns(IlkWarning, match="neither 0 nor 1"):
        few = model.predict_proba(sp.csr_array(new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(few, model.predict_proba(new), atol=1e-9)


def test_empty_matrices_and_those_without_spread():
    with pytest.raises(DataError) as refused:
        ilk.MixedMixture(2).fit(sp.csr_array((5, 3)))
    assert refused.value.code == "no-spread"
    with pytest.raises(DataError) as refused:
        ilk.KMeans(6).fit(sp.csr_array((5, 3)))
    assert refused.value.code == "fewer-rows-than-groups"


OTHERS = [
    name
    for name in ilk.__all__
    if isinstance(getattr(ilk, name), type)
    and issubclass(getattr(ilk, name), BaseEstimator)
    and name not in SPARSE_ESTIMATORS
]


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_estimator_says_which_take_a_sparse_matrix(name):
    with pytest.raises(UsageError) as refused:
        getattr(ilk, name)().fit(sp.csr_array(groups(0)[0]))
    assert refused.value.code == "sparse-input"
    assert all(taker in str(refused.value) for taker in SPARSE_ESTIMATORS)


# --- the whole answer


@pytest.mark.parametrize("form", [sp.csr_array, sp.dok_array])
def test_a_small_matrix_is_read_as_any_other_table(form, tmp_path):
    X, _ = groups(10, n=200, d=20)
    whole, few = ilk.cluster(X, k=3, random_state=0), ilk.cluster(form(X), k=3, random_state=0)
    assert np.array_equal(few.labels, whole.labels)
    assert few.model.names == whole.model.names
    few.model.save(tmp_path / "model.ilk")
    placed = ilk.load(tmp_path / "model.ilk").assign(form(X))
    assert placed["group"].to_pylist() == few.model.assign(X)["group"].to_pylist()


def test_a_large_matrix_is_refused_by_the_whole_answer():
    with pytest.raises(UsageError) as refused:
        ilk.cluster(sp.csr_array((50_000, 20_000)))
    assert refused.value.code == "sparse-input"
    assert all(taker in str(refused.value) for taker in SPARSE_ESTIMATORS)


# --- size


@pytest.mark.parametrize("estimator", [ilk.KMeans(4, n_init=1, max_iter=3), ilk.MixedMixture(4, max_iter=3)])
def test_no_array_of_the_size_of_the_table_is_made(estimator):
    n, d, filled = 4_000, 5_000, 20
    draws = np.random.default_rng(0)
    place = np.repeat(np.arange(n), filled), draws.integers(0, d, n * filled)
    X = sp.csr_array((np.ones(n * filled), place), shape=(n, d))
    X.data[:] = 1.0
    estimator.set_params(random_state=0).fit(
        sp.csr_array(X[:50])
    )  # what is imported on the way does not count
    tracemalloc.start()
    estimator.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * n * d
