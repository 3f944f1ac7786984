"""K-means and its kin as a user sees them: units, weights, order, missing cells, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ilk
from ilk.errors import DataError, IlkWarning, UsageError

METHODS = {
    "KMeans": ilk.KMeans,
    "KMedians": ilk.KMedians,
    "TrimmedKMeans": lambda k, **options: ilk.TrimmedKMeans(k, trim=0.1, **options),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@pytest.fixture(scope="module")
def three_groups() -> np.ndarray:
    """Three groups six standard deviations apart in three columns."""
    centres = np.array([[0.0, 0, 0], [6, 0, 0], [0, 6, 0]])
    return np.repeat(centres, 100, axis=0) + np.random.default_rng(0).normal(size=(300, 3))


@every_method
@pytest.mark.parametrize(
    ("factor", "offset"),
    [(1e-300, 0), (1e-6, 0), (1e200, 0), (1.0, 1e12), (2.0**-1000, 0), (2.0**1000, 0)],
)
def test_units_and_offsets_change_no_label(method, three_groups, factor, offset):
    expected = method(3, random_state=0).fit(three_groups).labels_
    moved = method(3, random_state=0).fit(three_groups * factor + offset)
    assert np.array_equal(moved.labels_, expected)


def test_a_power_of_two_is_exact(three_groups):
    one = ilk.KMeans(3, random_state=0).fit(three_groups)
    two = ilk.KMeans(3, random_state=0).fit(three_groups * 2.0**40)
    assert np.array_equal(one.cluster_centers_ * 2.0**40, two.cluster_centers_)
    assert one.inertia_ * 2.0**80 == two.inertia_


@every_method
def test_whole_weights_are_repeated_rows(method, three_groups):
    times = np.random.default_rng(1).integers(0, 4, size=300)
    weighted = method(3, random_state=0).fit(three_groups, sample_weight=times)
    repeated = method(3, random_state=0).fit(np.repeat(three_groups, times, axis=0))
    assert np.array_equal(weighted.cluster_centers_, repeated.cluster_centers_)
    assert np.array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    assert weighted.inertia_ == repeated.inertia_


@every_method
def test_shuffled_rows_change_only_their_order(method, three_groups):
    order = np.random.default_rng(2).permutation(300)
    start = three_groups[[0, 100, 200]]
    one = method(3, init=start, n_init=1).fit(three_groups)
    two = method(3, init=start, n_init=1).fit(three_groups[order])
    assert np.array_equal(np.sort(one.cluster_centers_, axis=0), np.sort(two.cluster_centers_, axis=0))
    assert len(set(zip(one.labels_[order].tolist(), two.labels_.tolist(), strict=True))) == 3


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_no_bit(threads):
    X = np.random.default_rng(3).normal(size=(50_000, 4))
    one = ilk.KMeans(5, random_state=0, n_init=2, threads=1).fit(X)
    many = ilk.KMeans(5, random_state=0, n_init=2, threads=threads).fit(X)
    assert one.cluster_centers_.tobytes() == many.cluster_centers_.tobytes()
    assert np.array_equal(one.labels_, many.labels_)


@every_method
def test_the_encoder_and_the_decoder(method, three_groups):
    model = method(3, random_state=0).fit(three_groups)
    assert np.array_equal(model.predict(three_groups), model.labels_)
    distance = model.transform(three_groups)
    assert np.array_equal(distance.argmin(axis=1), model.labels_)
    power = 1 if isinstance(model, ilk.KMedians) else 2
    assert -model.score(three_groups) == pytest.approx((distance.min(axis=1) ** power).sum())


def test_standardised_columns(three_groups):
    X = three_groups * [1.0, 1e6, 1e-3]
    by_hand = ilk.KMeans(3, random_state=0).fit((X - X.mean(axis=0)) / X.std(axis=0))
    model = ilk.KMeans(3, scale="standard", random_state=0).fit(X)
    assert np.array_equal(model.labels_, by_hand.labels_)
    assert model.inertia_ == pytest.approx(by_hand.inertia_)
    assert model.cluster_centers_ == pytest.approx(
        np.array([X[model.labels_ == g].mean(axis=0) for g in range(3)])
    )


def test_float32_stays_float32(three_groups):
    single = ilk.KMeans(3, random_state=0).fit(three_groups.astype(np.float32) + np.float32(1e4))
    assert single.cluster_centers_.dtype == np.float32
    assert np.array_equal(single.labels_, ilk.KMeans(3, random_state=0).fit(three_groups).labels_)


def test_missing_cells_need_no_imputer(three_groups):
    X = three_groups.copy()
    X[np.random.default_rng(4).random(X.shape) < 0.1] = np.nan
    full = ilk.KMeans(3, random_state=0).fit(three_groups).labels_
    assert (
        ilk.measures.ari(ilk.KMeans(3, random_state=0).fit(X).labels_, full) > 0.75
    )  # some rows lack the very cell that tells


def test_trimmed_rows_are_told():
    draws = np.random.default_rng(5)
    X = np.vstack(
        [draws.normal(0, 1, (50, 2)), draws.normal(20, 1, (40, 2)), draws.uniform(-500, 500, (10, 2))]
    )
    model = ilk.TrimmedKMeans(2, trim=0.1, random_state=0).fit(X)
    assert model.outliers_.sum() == 10
    assert model.outliers_[90:].sum() >= 9


@pytest.mark.badinput("B7")
@pytest.mark.parametrize("k", [0, -1, 2.5, "3", True, None, np.nan])
def test_a_number_of_groups_that_is_none(three_groups, k):
    with pytest.raises(UsageError, match="n_clusters"):
        ilk.KMeans(k).fit(three_groups)
    assert len(ilk.KMeans(3.0, random_state=0).fit(three_groups).cluster_centers_) == 3


@pytest.mark.badinput("B4")
def test_fewer_rows_than_groups():
    with pytest.raises(DataError, match="fewer than the 5 groups"):
        ilk.KMeans(5).fit(np.eye(3))


@pytest.mark.badinput("B6")
def test_fewer_distinct_rows_than_groups():
    with pytest.warns(IlkWarning, match="2 distinct rows"):
        model = ilk.KMeans(4, random_state=0).fit(np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0))
    assert len(model.cluster_centers_) == 2
    assert model.inertia_ == 0


@pytest.mark.badinput("B11")
def test_tolerance_and_passes(three_groups):
    for options in ({"tol": -1.0}, {"tol": np.nan}, {"max_iter": -1}, {"n_init": 0}):
        with pytest.raises(UsageError):
            ilk.KMeans(3, **options).fit(three_groups)
    with pytest.warns(IlkWarning, match="did not converge"):
        model = ilk.KMeans(3, max_iter=0, init=three_groups[[0, 1, 2]]).fit(three_groups)
    assert model.n_iter_ == 0


@pytest.mark.badinput("B12")
@pytest.mark.parametrize(
    "init", [np.zeros((2, 3)), np.full((3, 3), np.nan), np.zeros(5), "best", np.zeros((3, 2))]
)
def test_starts_that_cannot_be(three_groups, init):
    with pytest.raises(UsageError, match="init"):
        ilk.KMeans(3, init=init).fit(three_groups)


@pytest.mark.badinput("B12")
def test_a_start_is_copied_and_duplicates_are_parted(three_groups):
    start = np.repeat(three_groups[:1], 3, axis=0)
    kept = start.copy()
    model = ilk.KMeans(3, init=start).fit(three_groups)
    assert np.array_equal(start, kept)
    assert (model.fit_.size > 0).all()


@pytest.mark.badinput("B15")
@pytest.mark.parametrize("state", [-1, 1.5, "a", True])
def test_seeds_that_are_none(three_groups, state):
    with pytest.raises(UsageError, match="not a seed"):
        ilk.KMeans(3, random_state=state).fit(three_groups)


@pytest.mark.badinput("B15")
def test_seeds_of_every_form(three_groups):
    forms = [
        None,
        0,
        2**64,
        np.int64(3),
        np.random.default_rng(0),
        np.random.RandomState(0),
        np.random.SeedSequence(1),
    ]
    for form in forms:
        assert len(ilk.KMeans(3, random_state=form).fit(three_groups).labels_) == 300


@pytest.mark.badinput("B16")
@pytest.mark.parametrize("threads", [0, -3])
def test_threads_that_cannot_be(three_groups, threads):
    with pytest.raises(UsageError, match="threads"):
        ilk.KMeans(3, threads=threads).fit(three_groups)


@pytest.mark.badinput("C1")
def test_any_layout_gives_the_same_bits(three_groups):
    expected = ilk.KMeans(3, random_state=0).fit(three_groups).cluster_centers_
    locked = three_groups.copy()
    locked.flags.writeable = False
    for X in (np.asfortranarray(three_groups), np.repeat(three_groups, 2, axis=1)[:, ::2], locked):
        assert np.array_equal(ilk.KMeans(3, random_state=0).fit(X).cluster_centers_, expected)


@pytest.mark.badinput("A2")
def test_infinite_cells_are_refused(three_groups):
    X = three_groups.copy()
    X[7, 1] = np.inf
    with pytest.raises(DataError, match="infinite") as caught:
        ilk.KMeans(3).fit(X)
    assert caught.value.code == "data-infinite"


@pytest.mark.badinput("B20")
def test_a_second_fit_forgets_the_first(three_groups):
    model = ilk.KMeans(3, random_state=0).fit(three_groups)
    model.fit(three_groups[:, :2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = ilk.KMeans(3, random_state=0).fit(three_groups[:, :2])
    assert np.array_equal(model.cluster_centers_, again.cluster_centers_)
