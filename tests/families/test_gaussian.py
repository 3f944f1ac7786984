"""Gaussian mixtures against independent densities, scikit-learn, direct maximisation, and what must never fail."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Peer
from threadpoolctl import threadpool_limits

from ilk.engines.memory import MemoryRows
from ilk.families.base import KEEP_ALL
from ilk.families.centroid import Means
from ilk.families.covariance import STRUCTURES, Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.families.prior import Prior
from ilk.fitting.loop import Run, Stop, run_starts
from ilk.fitting.restarts import from_labels
from ilk.fitting.table_moments import table_moments
from ilk.table.block import Array
from ilk.table.condition import encoding_of, survey
from tests.contracts.test_family import assert_never_rises, settings_of

NAMES = [structure.name for structure in STRUCTURES]
every_structure = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def rows_of(X: Array, weight: Array | None = None) -> MemoryRows:
    facts = survey(X, weight=weight)
    encoding = encoding_of(X, facts, weight=weight)
    return MemoryRows(X, encoding, weight=weight, complete=facts.complete, threads=1)


def family_for(rows: MemoryRows, name: str, *, kind: type = Gaussian, **options: object) -> Gaussian:
    structure = Structure.parse(name).for_columns(rows.n_columns)
    return kind(structure, table_moments(rows).variance, **options)


def run_from(rows: MemoryRows, family: Gaussian, label: Array, *, trim: float = 0.0, **stop: float) -> Run:
    start = from_labels(rows, family, label, int(label.max()) + 1)
    return run_starts(rows, [family], [start], trim=trim, stop=Stop(**stop))[0]


def clusters(seed: int, n: int = 60, d: int = 3, k: int = 2, away: float = 2.5) -> tuple[Array, Array]:
    """Correlated clusters that overlap, and their labels."""
    draw = np.random.default_rng(seed)
    label = np.arange(n) % k
    mix = draw.normal(size=(k, d, d)) * 0.5 + np.eye(d)
    X = np.einsum("nij,nj->ni", mix[label], draw.normal(size=(n, d))) + away * draw.normal(size=(k, d))[label]
    return X, label.astype(np.int32)


def with_holes(X: Array, share: float, seed: int = 0) -> Array:
    """A copy with missing cells and one row without any."""
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    X[-1] = np.nan
    return X


# --- against others ---------------------------------------------------------------------------------------


@every_structure
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_scores_are_those_of_scipy(name, share):
    X, label = clusters(1)
    rows = rows_of(with_holes(X, share) if share else X)
    family = family_for(rows, name)
    params = run_from(rows, family, label, max_passes=3).params
    block = rows.take(np.arange(rows.n_rows))
    found, matrices = family.scores(params, block), params.covariance.matrices()
    for row, x in enumerate(block.numbers):
        o = ~np.isnan(x)
        for k in range(2):
            expected = np.log(params.mixing[k])
            if o.any():
                expected += multivariate_normal(params.mean[k][o], matrices[k][np.ix_(o, o)]).logpdf(x[o])
            assert found[row, k] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(
    ("name", "kind"), [("VVV", "full"), ("EEE", "tied"), ("VVI", "diag"), ("VII", "spherical")]
)
def test_em_ends_where_scikit_learn_does(name, kind):
    X, label = clusters(2, n=120, k=3)
    rows = rows_of(X)
    family = family_for(rows, name)
    first = from_labels(rows, family, label, 3)
    run = run_starts(rows, [family], [first], stop=Stop(tolerance=1e-13, max_passes=3000))[0]
    Z = rows.take(np.arange(len(X))).numbers
    inverse = np.linalg.inv(first.covariance.matrices())
    precisions = {
        "full": inverse,
        "tied": inverse[0],
        "diag": np.diagonal(inverse, axis1=1, axis2=2),
        "spherical": inverse[:, 0, 0],
    }[kind]
    peer = Peer(
        3,
        covariance_type=kind,
        weights_init=first.mixing,
        means_init=first.mean,
        precisions_init=precisions,
        reg_covar=0,
        tol=1e-14,
        max_iter=3000,
    ).fit(Z)
    assert -run.cost == pytest.approx(peer.score(Z) * len(Z), rel=1e-6)
    assert np.allclose(run.params.mean, peer.means_, rtol=1e-4, atol=1e-4)


def assembled(vector: Array, name: str, params: Mixture) -> tuple[Array, Array, Array]:
    """Mixing, means and covariances from free parameters, turned about the fitted axes by exp(skew)."""
    k, d = params.mean.shape
    take = iter(np.split(vector, np.cumsum(sizes(name, k, d))[:-1]))
    logit, mean = np.append(next(take), 0.0), next(take).reshape(k, d)
    volume = np.broadcast_to(next(take), k)
    shape = next(take)
    shape = np.zeros((k, d)) if name[1] == "I" else np.broadcast_to(shape.reshape(-1, d - 1), (k, d - 1))
    if name[1] != "I":
        shape = np.column_stack([shape, -shape.sum(axis=1)])
    turns = next(take).reshape(-1, d * (d - 1) // 2) if name[2] != "I" else np.zeros((1, d * (d - 1) // 2))
    axes = []
    for component in range(k):
        skew = np.zeros((d, d))
        skew[np.triu_indices(d, 1)] = turns[component % len(turns)]
        axes.append(params.covariance.own_axes()[component] @ expm(skew - skew.T))
    half = np.array(axes) * np.exp((volume[:, None] + shape) / 2)[:, None, :]
    return np.exp(logit) / np.exp(logit).sum(), mean, half @ half.swapaxes(1, 2)


def sizes(name: str, k: int, d: int) -> list[int]:
    copies = {"I": 0, "E": 1, "V": k}
    return [k - 1, k * d, copies[name[0]], copies[name[1]] * (d - 1), copies[name[2]] * d * (d - 1) // 2]


def as_vector(name: str, params: Mixture) -> Array:
    k, d = params.mean.shape
    logs = params.covariance.log_variance
    volume = logs.mean(axis=1)
    shape = (logs - volume[:, None])[:, : d - 1]
    _, _, n_volume, n_shape, n_turn = sizes(name, k, d)
    parts = [np.log(params.mixing[:-1] / params.mixing[-1]), params.mean.ravel(), volume[:n_volume]]
    return np.concatenate([*parts, shape.ravel()[:n_shape], np.zeros(n_turn)])


def minus_loglik(vector: Array, name: str, params: Mixture, Z: Array) -> float:
    mixing, mean, matrices = assembled(vector, name, params)
    observed = ~np.isnan(Z)
    total = 0.0
    for mask in np.unique(observed, axis=0):
        if mask.any():
            x = Z[(observed == mask).all(axis=1)][:, mask]
            logs = []
            for k in range(len(mean)):
                part, away = matrices[k][np.ix_(mask, mask)], x - mean[k, mask]
                distance = (away @ np.linalg.inv(part) * away).sum(axis=1)
                logs.append(np.log(mixing[k]) - (distance + np.linalg.slogdet(2 * np.pi * part)[1]) / 2)
            total += np.logaddexp.reduce(logs, axis=0).sum()
    return -total


@every_structure
def test_missing_cells_reach_the_direct_maximum(name):
    X, label = clusters(5, n=55, away=4.0)
    rows = rows_of(with_holes(X, 0.2))
    run = run_from(rows, family_for(rows, name), label, tolerance=1e-12, max_passes=2000)
    assert run.status == "ok"
    Z = rows.take(np.arange(55)).numbers
    best = as_vector(name, run.params)
    assert minus_loglik(best, name, run.params, Z) == pytest.approx(run.cost, rel=1e-9)
    moved = best + 0.01 * np.random.default_rng(0).normal(size=len(best))
    direct = minimize(minus_loglik, moved, (name, run.params, Z), method="BFGS", options={"gtol": 1e-4})
    assert run.cost == pytest.approx(direct.fun, rel=1e-7)
    family = run.family
    assert family.free_parameters(run.params) == len(best)


# --- what must never fail ---------------------------------------------------------------------------------


@every_structure
@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), k=st.integers(2, 4), d=st.integers(2, 4))
def test_the_log_posterior_never_falls_with_prior_weights_and_missing_cells(name, seed, k, d):
    X, label = clusters(seed, n=50, d=d, k=k, away=1.0)
    rows = rows_of(with_holes(X, 0.2, seed), np.random.default_rng(seed).uniform(0.1, 3.0, size=50))
    family = family_for(rows, name, **settings_of(rows, "prior", k))
    run = run_from(rows, family, label, max_passes=25)
    assert run.status == "ok"
    assert len(run.trace) > 3
    assert_never_rises(run)


@every_structure
def test_degenerate_tables_have_a_status_and_no_nan(name):
    draw = np.random.default_rng(3)
    tables = [
        np.repeat(draw.normal(size=(3, 2)), 5, axis=0),  # three distinct rows
        np.column_stack([np.arange(12.0), 2 * np.arange(12.0)]),  # collinear
        np.vstack([draw.normal(size=(14, 2)), [[1e8, -1e8]]]),  # one row far out
    ]
    for X in tables:
        rows = rows_of(X)
        run = run_from(rows, family_for(rows, name), np.arange(len(X), dtype=np.int32) % 3, max_passes=100)
        assert run.status in {"ok", "singular", "component_vanished"}
        label, cost = run.family.assign(run.params, rows.take(np.arange(len(X))))
        assert np.isfinite(cost).all()
        assert ((label >= 0) & (label < 3)).all()


@pytest.mark.parametrize("seed", range(12))
def test_hard_round_components_of_equal_share_are_lloyd(seed):
    X, _ = clusters(seed, n=80, k=4, away=2.0)
    label = np.random.default_rng(seed).integers(0, 4, size=80).astype(np.int32)
    rows = rows_of(X)
    family, means = family_for(rows, "EII", membership="hard", equal_mixing=True), Means()
    block = rows.take(np.arange(80))
    params = from_labels(rows, family, label, 4)
    points = means.start(params.mean)
    for _ in range(30):
        ours, theirs = family.assign(params, block)[0], means.assign(points, block)[0]
        assert np.array_equal(ours, theirs)
        params = family.update(params, family.step(params, block, KEEP_ALL).sums)
        points = means.update(points, means.step(points, block, KEEP_ALL).sums)
        if len(np.unique(ours)) < 4:
            break


@pytest.mark.parametrize(
    ("one", "other"), [("EII", "VII"), ("EEI", "VVI"), ("EEE", "VEE"), ("EEV", "VVV"), ("VVE", "VVV")]
)
def test_a_structure_that_contains_another_fits_no_worse(one, other):
    X, label = clusters(11, n=90, k=3)
    rows = rows_of(X)
    run = run_from(rows, family_for(rows, one), label, tolerance=1e-10, max_passes=500)
    wider = family_for(rows, other)
    block = rows.take(np.arange(90))
    scores = run.family.scores(run.params, block)
    membership = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    first = wider.update(
        wider.start(run.params.mean), wider.gather(wider.start(run.params.mean), block, membership)
    )
    assert run_starts(rows, [wider], [first], stop=Stop(max_passes=50))[0].cost <= run.cost + 1e-6


def test_numbers_of_free_parameters():
    """K = 3 components in 4 columns: 2 shares, 12 means and mclust's counts."""
    expected = dict(zip(NAMES, [1, 3, 4, 6, 10, 12, 10, 12, 16, 18, 22, 24, 28, 30], strict=True))
    X, label = clusters(0, d=4, k=3)
    rows = rows_of(X)
    for name, count in expected.items():
        family = family_for(rows, name)
        params = from_labels(rows, family, label, 3)
        assert family.free_parameters(params) == 2 + 12 + count


def test_a_prior_from_pairwise_covariances_is_one():
    """Covariances of columns with gaps are taken pair by pair; with a negative direction the cost could rise."""
    pairwise = np.array([[0.94, -0.27, 1.37], [-0.27, 0.32, -0.02], [1.37, -0.02, 2.16]])
    assert np.linalg.eigvalsh(pairwise).min() < -0.05
    scale = Prior.from_table(np.zeros(3), pairwise, 1).scale
    assert np.linalg.eigvalsh(scale).min() > -1e-12
    np.testing.assert_allclose(np.diagonal(scale), np.diagonal(pairwise))
    whole = np.cov(np.random.default_rng(0).normal(size=(9, 3)).T)
    np.testing.assert_array_equal(Prior.from_table(np.zeros(3), whole, 1).scale, whole)
