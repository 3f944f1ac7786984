"""Student mixtures: densities, degrees of freedom, missing cells, and the Gaussian limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_t

from ilk.families.base import KEEP_ALL
from ilk.families.gaussian import Gaussian
from ilk.families.student import LEAST_DOF, MOST_DOF, Student, best_dof, degrees, nodes_near
from ilk.fitting.restarts import from_labels
from tests.families.test_gaussian import (
    NAMES,
    assert_never_rises,
    clusters,
    every_structure,
    family_for,
    one_thread,
    rows_of,
    run_from,
    with_holes,
)

__all__ = ["one_thread"]  # a fixture that every test here uses


def heavy(seed: int, n: int = 60, d: int = 3, k: int = 2, dof: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    X, label = clusters(seed, n, d, k, away=1.0)
    pull = np.random.default_rng(seed + 1).chisquare(dof, n) / dof
    return X / np.sqrt(pull)[:, None], label


@every_structure
@pytest.mark.parametrize("share", [0.0, 0.25])
def test_scores_are_those_of_scipy(name, share):
    X, label = heavy(1)
    rows = rows_of(with_holes(X, share) if share else X)
    family = family_for(rows, name, kind=Student)
    params = run_from(rows, family, label, max_passes=3).params
    block = rows.take(np.arange(rows.n_rows))
    found, matrices, dof = family.scores(params, block), params.covariance.matrices(), degrees(params)
    for row, x in enumerate(block.numbers):
        o = ~np.isnan(x)
        for k in range(2):
            expected = np.log(params.mixing[k])
            if o.any():
                own = multivariate_t(params.mean[k][o], matrices[k][np.ix_(o, o)], df=dof[k])
                expected += own.logpdf(x[o])
            assert found[row, k] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_labels_are_those_of_the_tails():
    """Far out, the component with the heavier tail is likelier, though Gaussians of the same scale would not be."""
    X, label = heavy(3, n=200)
    rows = rows_of(np.vstack([X, 8 * X]))
    family = family_for(rows, "VVV", kind=Student)
    params = replace(from_labels(rows, family, np.tile(label, 2), 2), dof=np.array([1.0, 100.0]))
    block = rows.take(np.arange(rows.n_rows))
    best, top, cost = family.ranked(params, block, hard=False)
    scores = family.scores(params, block)
    assert np.array_equal(best, scores.argmax(axis=1))
    assert np.array_equal(top, scores.max(axis=1))
    np.testing.assert_allclose(cost, -np.logaddexp.reduce(scores, axis=1), rtol=1e-12)
    gaussian = family_for(rows, "VVV")
    assert (gaussian.ranked(replace(params, dof=None), block, hard=False)[0] != best).mean() > 0.03


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("dof", ["own", "shared"])
def test_degrees_of_freedom_maximise_the_log_density(dof, share):
    """Against the definition: sum r log f row by row, memberships known and pulls not, by direct search."""
    X, label = heavy(2, n=200)
    rows = rows_of(with_holes(X, share) if share else X)
    family = family_for(rows, "VVV", kind=Student, dof=dof)
    old = run_from(rows, family, label, max_passes=4).params
    block = rows.take(np.arange(len(X)))
    found = family.update(old, family.step(old, block, KEEP_ALL).sums).next_dof
    scores = family.scores(old, block)
    r = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    o = ~np.isnan(block.numbers)
    matrices = old.covariance.matrices()

    def minus_density(dof_of_k: float, k: int) -> float:
        density = [
            multivariate_t(old.mean[k][seen], matrices[k][np.ix_(seen, seen)], df=dof_of_k).logpdf(x[seen])
            for x, seen in zip(block.numbers, o, strict=True)
            if seen.any()
        ]
        return -float(r[o.any(axis=1), k] @ density)

    for k, start in enumerate(degrees(old)):
        which = range(2) if dof == "shared" else [k]
        best = minimize_scalar(
            lambda dof_of_k, which=which: sum(minus_density(dof_of_k, one) for one in which),
            bounds=(max(start / 2, LEAST_DOF), min(start * 2, MOST_DOF)),
            method="bounded",
            options={"xatol": 1e-4},
        )
        assert found[k] == pytest.approx(best.x, rel=1e-3)


def test_degrees_of_freedom_do_not_creep():
    """Where plain EM, which takes the hidden pulls for known, took 1,005 and 352 passes to these costs."""
    draws = np.random.default_rng(0)
    apart = np.vstack([draws.normal(size=(200, 2)), draws.standard_t(3, size=(200, 2)) + 6])
    overlapping = np.vstack([draws.standard_t(15, size=(500, 4)), draws.standard_t(8, size=(500, 4)) + 2.5])
    for X, creeping in ((apart, -693.39223970), (overlapping, -4393.16137811)):
        rows = rows_of(X)
        label = np.repeat([0, 1], len(X) // 2)
        run = run_from(rows, family_for(rows, "VVV", kind=Student), label, tolerance=1e-10)
        assert len(run.trace) <= 30
        assert run.cost <= creeping
        assert_never_rises(run)


def test_the_search_stays_within_its_limits():
    """From either limit, and from what lies between; where the old value is best, it stays to the bit."""
    dof = np.array([LEAST_DOF, 3.0, MOST_DOF])
    nodes = nodes_near(dof)
    assert nodes.min() >= LEAST_DOF
    assert nodes.max() <= MOST_DOF
    assert best_dof(dof, np.log(nodes)).tolist() == pytest.approx([2 * LEAST_DOF, 6.0, MOST_DOF])
    assert best_dof(dof, -np.log(nodes)).tolist() == pytest.approx([LEAST_DOF, 1.5, MOST_DOF / 2])
    assert best_dof(dof, -np.square(np.log(nodes / dof[:, None]))).tolist() == pytest.approx(dof.tolist())
    assert best_dof(dof, np.zeros_like(nodes)).tolist() == dof.tolist()


@every_structure
def test_many_degrees_of_freedom_are_gaussian(name):
    X, label = clusters(3, n=90, k=3)
    for table in (X, with_holes(X, 0.15)):
        rows = rows_of(table)
        student = run_from(rows, family_for(rows, name, kind=Student, dof=1e7), label, max_passes=40)
        gaussian = run_from(rows, family_for(rows, name), label, max_passes=40)
        assert student.cost == pytest.approx(gaussian.cost, abs=3e-5 * 3)


def test_degrees_of_freedom_of_t_rows_are_found():
    X = np.random.default_rng(0).standard_t(4.0, size=(4000, 1))
    rows = rows_of(X)
    run = run_from(rows, family_for(rows, "VVV", kind=Student), np.zeros(4000, np.int32), tolerance=1e-10)
    assert degrees(run.params)[0] == pytest.approx(4.0, rel=0.15)
    assert not run.family.gaussian_components(run.params).any()


def test_a_component_with_light_tails_is_called_gaussian():
    X = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    rows = rows_of(X)
    run = run_from(rows, family_for(rows, "VVV", kind=Student), np.zeros(500, np.int32), tolerance=0.0)
    assert run.family.gaussian_components(run.params).all()
    fixed = family_for(rows, "VVV", kind=Student, dof=300.0)
    assert not fixed.gaussian_components(fixed.start(np.zeros((1, 2)))).any()


def test_free_parameters_and_the_shape_of_the_family():
    rows = rows_of(clusters(0)[0])
    counts = []
    for dof in ("own", "shared", 5.0):
        family = family_for(rows, "VVV", kind=Student, dof=dof)
        counts.append(family.free_parameters(family.start(np.zeros((2, 3)))))
    plain = family_for(rows, "VVV")
    least = plain.free_parameters(plain.start(np.zeros((2, 3))))
    assert counts == [least + 2, least + 1, least]
    assert issubclass(Student, Gaussian)
    assert len(NAMES) == 14
