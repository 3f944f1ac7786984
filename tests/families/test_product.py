"""Mixtures over mixed columns: densities, special cases, what must change nothing, and a cost that never rises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, poisson

import ilk
from ilk.families.covariance import STRUCTURES

pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")

TYPES = {"kind": "categorical", "mark": "categorical", "visits": "count"}


def table_of(seed: int, n_rows: int = 120, missing: float = 0.15) -> tuple[dict[str, Any], np.ndarray]:
    """Two groups over three numbers, two categories and a count, with blanks; and the groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n_rows)
    numbers = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, 3)) + 2.0 * group[:, None]
    kind = np.where(rng.random(n_rows) < 0.8, group, rng.integers(3, size=n_rows))
    table: dict[str, Any] = {name: numbers[:, j].copy() for j, name in enumerate("abc")}
    for name in "abc":
        table[name][rng.random(n_rows) < missing] = np.nan
    table["kind"] = [None if rng.random() < missing else "xyz"[k] for k in kind]
    table["mark"] = [None if rng.random() < missing else "uv"[rng.integers(2)] for _ in range(n_rows)]
    table["visits"] = [None if rng.random() < missing else int(v) for v in rng.poisson(1 + 4 * group)]
    return table, group


def rows_in(table: dict[str, Any], order: Any) -> dict[str, Any]:
    return {name: [cells[i] for i in order] for name, cells in table.items()}


def fitted(table: dict[str, Any], group: np.ndarray, **options: Any) -> ilk.MixedMixture:
    options = {"types": TYPES, "init": group, "max_iter": 30, "tol": 0.0, **options}
    return ilk.MixedMixture(len(np.unique(group)), **options).fit(table)


@pytest.mark.parametrize("structure", ["VVI", "EII", "VVV", "EEE"])
def test_densities_are_products_of_known_ones(structure):
    table, group = table_of(0)
    model = fitted(table, group, structure=structure)
    numbers = np.column_stack([table[name] for name in "abc"])
    scores = np.tile(np.log(model.weights_), (len(group), 1))
    for row, k in np.ndindex(scores.shape):
        seen = np.flatnonzero(~np.isnan(numbers[row]))
        if len(seen):
            own = multivariate_normal(model.means_[k, seen], model.covariances_[k][np.ix_(seen, seen)])
            scores[row, k] += own.logpdf(numbers[row, seen])
        for name in ("kind", "mark"):
            if table[name][row] is not None:
                scores[row, k] += np.log(model.shares_[name][table[name][row]][k])
        if table["visits"][row] is not None:
            scores[row, k] += poisson(model.rates_["visits"][k]).logpmf(table["visits"][row])
    np.testing.assert_allclose(model.score_samples(table), logsumexp(scores, axis=1), rtol=1e-9)
    expected = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(table), expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(table), scores.argmax(axis=1))
    told = [any(c is not None and c == c for c in row) for row in zip(*table.values(), strict=True)]
    assert model.loglik_ == pytest.approx(logsumexp(scores, axis=1)[told].sum(), rel=1e-9)


@pytest.mark.parametrize("structure", [s.name for s in STRUCTURES])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_numbers_alone_are_a_gaussian_mixture(structure, missing):
    table, group = table_of(1, missing=missing)
    X = np.column_stack([table[name] for name in "abc"])
    X = X[~np.isnan(X).all(axis=1)]
    group = group[: len(X)]
    options = {"structure": structure, "init": group, "max_iter": 25, "tol": 0.0}
    ours, theirs = ilk.MixedMixture(2, **options).fit(X), ilk.GaussianMixture(2, **options).fit(X)
    assert ours.loglik_ >= theirs.loglik_ - 1e-9 * abs(theirs.loglik_)
    assert ours.n_parameters_ == theirs.n_parameters_
    if structure in ("EVE", "VVE"):  # GaussianMixture tries a second start of the common axes
        return
    assert ours.loglik_ == pytest.approx(theirs.loglik_, rel=1e-9)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-6)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)


def test_the_same_answer_without_a_start_given():
    table, _ = table_of(2, 300, missing=0.0)
    X = np.column_stack([table[name] for name in "abc"])
    options = {"structure": "VVI", "random_state": 3}
    ours, theirs = ilk.MixedMixture(2, **options).fit(X), ilk.GaussianMixture(2, **options).fit(X)
    assert ours.loglik_ == pytest.approx(theirs.loglik_, rel=1e-12)


CELLS = {
    "number": st.one_of(st.integers(-3, 3).map(float), st.floats(-10, 10, width=32)),
    "constant": st.just(2.5),
    "category": st.sampled_from("pqrs"),
    "single": st.just("only"),
    "count": st.integers(0, 9),
}


@st.composite
def mixed_tables(draw: Any) -> tuple[dict[str, list[Any]], dict[str, str]]:
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=5))
    n_rows = draw(st.integers(8, 24))
    columns = {}
    for j, kind in enumerate(kinds):
        cell = st.one_of(CELLS[kind], CELLS[kind], CELLS[kind], st.none())
        columns[f"c{j}"] = draw(st.lists(cell, min_size=n_rows, max_size=n_rows))
    names = {"number": "numeric", "constant": "numeric", "single": "categorical"}
    return columns, {
        f"c{j}": names.get(kind, {"category": "categorical"}.get(kind, kind)) for j, kind in enumerate(kinds)
    }


@settings(max_examples=100, deadline=None)
@given(
    made=mixed_tables(),
    k=st.integers(1, 3),
    structure=st.sampled_from(["EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VVV"]),
    smoothing=st.sampled_from([0.0, 0.5, 2.0]),
    membership=st.sampled_from(["soft", "hard"]),
    prior=st.sampled_from([None, "default"]),
    weighted=st.booleans(),
)
def test_cost_never_rises(made, k, structure, smoothing, membership, prior, weighted):
    table, types = made
    n_rows = len(table["c0"])
    weight = np.linspace(0.0, 2.0, n_rows) if weighted else None
    init = np.arange(n_rows) % k
    options = {"structure": structure, "smoothing": smoothing, "membership": membership, "prior": prior}
    model = ilk.MixedMixture(k, init=init, types=types, max_iter=40, tol=0.0, threads=1, **options)
    try:
        model.fit(table, sample_weight=weight)
    except ilk.errors.DataError as refusal:
        if refusal.code not in ("no-spread", "no-columns"):  # nothing varies
            raise
        return
    cost = np.array([record.cost for record in model.fit_.trace])
    anew = np.array([record.n_reopened > 0 for record in model.fit_.trace[1:]], dtype=bool)
    anew |= np.diff([record.n_components for record in model.fit_.trace]) < 0
    assert membership == "hard" or not anew.any()
    scale = n_rows * (1 + np.abs(cost).max())
    assert (anew | (np.diff(cost) <= 1e-13 * scale)).all(), np.diff(cost).max()
    membership = model.predict_proba(table)
    assert ((membership >= 0) & (membership <= 1)).all()
    np.testing.assert_allclose(membership.sum(axis=1), 1.0, rtol=1e-12)


def test_a_row_of_categories_alone_leaves_the_covariances_alone():
    """Its numbers are all missing: their expectation is the covariance itself."""
    numbers = [[None, None], [None, 0.0], [0.0, 0.0], [0.0, None], [0.0, 0.0], [1.0, 0.0], [None, 1.0]]
    table = {"a": [a for a, _ in numbers], "b": [b for _, b in numbers], "c": list("pppqpqq")}
    types = {"a": "numeric", "b": "numeric", "c": "categorical"}
    model = ilk.MixedMixture(1, structure="VVV", types=types, init=np.zeros(7, int), tol=0.0, max_iter=20)
    with pytest.warns(ilk.errors.IlkWarning):
        model.fit(table)
    cost = [record.cost for record in model.fit_.trace]
    assert len(cost) == 20
    assert (np.diff(cost) <= 1e-12).all()


@pytest.mark.parametrize("structure", ["VVI", "VVV"])
def test_what_changes_nothing(structure):
    table, group = table_of(3)
    model = fitted(table, group, structure=structure)
    order = np.random.default_rng(0).permutation(len(group))
    shuffled = fitted(rows_in(table, order), group[order], structure=structure)
    assert shuffled.loglik_ == pytest.approx(model.loglik_, rel=1e-11)
    np.testing.assert_array_equal(shuffled.labels_, model.labels_[order])
    turned = fitted(dict(reversed(table.items())), group, structure=structure)
    assert turned.loglik_ == pytest.approx(model.loglik_, rel=1e-11)
    np.testing.assert_array_equal(turned.labels_, model.labels_)
    names = {"x": "z", "y": "other", "z": "a", None: None}
    renamed = fitted({**table, "kind": [names[v] for v in table["kind"]]}, group, structure=structure)
    assert renamed.loglik_ == pytest.approx(model.loglik_, rel=1e-11)
    np.testing.assert_allclose(renamed.shares_["kind"]["a"], model.shares_["kind"]["z"], rtol=1e-9)


def test_a_change_of_unit_shifts_the_log_likelihood_and_nothing_else():
    table, group = table_of(4)
    model = fitted(table, group)
    seen = int((~np.isnan(table["b"])).sum())
    scaled = fitted({**table, "b": table["b"] * 1000 - 7e6}, group)
    assert scaled.loglik_ == pytest.approx(model.loglik_ - seen * np.log(1000), rel=1e-9)
    np.testing.assert_allclose(
        scaled.predict_proba({**table, "b": table["b"] * 1000 - 7e6}), model.predict_proba(table), atol=1e-7
    )


@pytest.mark.parametrize("structure", ["VVI", "VVV"])
def test_an_integer_weight_is_a_repeated_row(structure):
    table, group = table_of(5)
    times = np.random.default_rng(1).integers(0, 4, size=len(group))
    weighted = ilk.MixedMixture(
        2, structure=structure, types=TYPES, init=group, max_iter=30, tol=0.0, smoothing=1.0
    )
    weighted.fit(table, sample_weight=times.astype(float))
    again = np.repeat(np.arange(len(group)), times)
    repeated = fitted(rows_in(table, again), group[again], structure=structure, smoothing=1.0)
    assert weighted.loglik_ == pytest.approx(repeated.loglik_, rel=1e-10)
    assert weighted.bic() == pytest.approx(repeated.bic(), rel=1e-10)
    assert weighted.relative_entropy() == pytest.approx(repeated.relative_entropy(), rel=1e-8)
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
    assert len(weighted.labels_) == len(group)


def test_smoothing_is_a_number_of_pseudo_rows():
    table = {"kind": ["x"] * 6 + ["y"] * 2 + ["x"] * 1 + ["y"] * 3, "mark": ["u"] * 8 + ["v"] * 4}
    group = np.repeat([0, 1], [8, 4])
    model = ilk.MixedMixture(2, init=group, membership="hard", smoothing=3.0, max_iter=0).fit(table)
    pooled = 7 / 12
    np.testing.assert_allclose(model.shares_["kind"]["x"], [(6 + 3 * pooled) / 11, (1 + 3 * pooled) / 7])
    share, pooled = model._params.share, model._family.categories.pooled
    expected = 3.0 * (pooled * np.log(pooled / share)).sum()
    assert model._family.penalty(model._params) == pytest.approx(expected)


def test_parameters_are_counted():
    table, group = table_of(6)
    model = fitted(table, group, structure="VVV")
    assert model.n_parameters_ == 1 + 2 * 3 + 2 * 6 + 2 * (2 + 1) + 2 * 1
    assert fitted(table, group, structure="EEI").n_parameters_ == 1 + 2 * 3 + 3 + 2 * 3 + 2


def test_no_share_of_zero_traps_the_starts():
    """Carcinoma-like items: partitions have many empty cells by chance, and EM never leaves a share of 0."""
    rng = np.random.default_rng(8)
    group = rng.integers(3, size=120)
    chance = np.array([[0.02, 0.9, 0.9], [0.02, 0.05, 0.9], [0.3, 0.9, 0.95], [0.02, 0.1, 0.8]])
    items = (rng.random((120, 4)) < chance[:, group].T).astype(int).astype(str)
    table = {f"i{j}": items[:, j].tolist() for j in range(4)}
    model = ilk.MixedMixture(2, random_state=0, tol=1e-12, max_iter=5000).fit(table)
    best = max(
        ilk.MixedMixture(2, init=rng.dirichlet(np.ones(2), size=120), tol=1e-12, max_iter=5000)
        .fit(table)
        .loglik_
        for _ in range(20)
    )
    assert model.loglik_ >= best - 1e-6
    assert model.status_ == "ok"
