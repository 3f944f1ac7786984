"""The assorted model: its cost by its definition, that it never rises, its invariances and its special cases."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from ilk.assorted.columns import assort
from ilk.assorted.family import Assorted, Clusters
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.assorted.sharing import firsts, naming_costs
from ilk.assorted.state import from_labels, labels_of
from ilk.engines.memory import MemoryRows
from ilk.families.base import KEEP_ALL
from ilk.fitting.loop import Stop, run_starts
from ilk.table.condition import encoding_of, survey


def rows_of(raw, codes=None, weight=None) -> MemoryRows:
    facts = survey(raw, weight=weight)
    encoding = encoding_of(raw, facts, weight=weight)
    return MemoryRows(raw, encoding, weight=weight, codes=codes, complete=facts.complete, threads=1)


def scene_of(raw, codes=None, weight=None, few_values=0, atom_share=2.0, **options) -> AssortedProblem:
    rows = rows_of(raw, codes, weight)
    names = [f"x{j}" for j in range(raw.shape[1])]
    levels = [] if codes is None else [(f"c{j}", list("abcdefgh")) for j in range(codes.shape[1])]
    plan = assort(rows, names, levels, few_values=few_values, most_values=few_values, atom_share=atom_share)
    return AssortedProblem.plain(rows, plan, ModelOptions(**options))


def mixed_table(seed: int, n: int = 60, blank: float = 0.1):
    """Numbers and codes of two clusters, with blanks, a constant column and a single level."""
    draws = np.random.default_rng(seed)
    z = draws.integers(0, 2, n)
    raw = draws.normal(z[:, None] * draws.choice([0.0, 3.0], 4), 1.0, (n, 4))
    raw[:, 3] = 7.0
    codes = (draws.random((n, 4)) < 0.2 + 0.6 * z[:, None]).astype(np.int32) + draws.integers(
        0, 2, (n, 4), dtype=np.int32
    )
    codes[:, 3] = 2
    raw[draws.random(raw.shape) < blank] = np.nan
    codes[draws.random(codes.shape) < blank] = -1
    return raw, codes, z


def definition(scene: AssortedProblem, params: Clusters) -> float:
    """J written out with densities."""
    family, columns = scene.family, scene.family.columns
    block = scene.rows.take(np.arange(scene.rows.n_rows))
    k, n = len(params), columns.n_numbers
    score = np.tile(np.log(params.mixing), (block.n_rows, 1))
    for c in range(k):
        cells = norm.logpdf(block.raw, params.mean[c], np.sqrt(params.variance[c]))
        score[:, c] += np.nansum(cells, axis=1)
        for j, begin in enumerate(columns.level_start[:-1]):
            seen = block.codes[:, j] >= 0
            score[seen, c] += params.log_level[c, begin + block.codes[seen, j]]
    per_row = score.max(axis=1) if family.hard else logsumexp(score, axis=1)
    cost = -(block.weights * per_row).sum()
    for d in range(columns.n_columns):
        for c in np.unique(params.group[:, d]):
            cost += columns.penalty[d]
            if d < n:
                s2 = params.variance[c, d]
                cost += columns.spread_prior / 2 * (np.log(s2) + 1 / s2 - 1)
            else:
                here = slice(columns.level_start[d - n], columns.level_start[d - n + 1])
                share = columns.share[here]
                cost += columns.level_prior * (share * (np.log(share) - params.log_level[c, here])).sum()
    weight = block.weights.sum()
    d, n_relevant = columns.n_columns, sum(len(set(names)) > 1 for names in params.group.T.tolist())
    named = np.log(d + 1) + np.log(comb(d, n_relevant)) + n_relevant * np.log(max(2**k - k - 1, 1))
    cost += min((k - 1) * d * np.log(2), named) + (k - 1) * np.log(weight) / 2 + family.open_cost * k
    jacobian = sum(number.log_jacobian[s] for number, s in zip(scene.plan.numbers, scene.scales, strict=True))
    changed = sum(
        np.log(number.weight) / 2 for number, s in zip(scene.plan.numbers, scene.scales, strict=True) if s
    )
    return float(cost - jacobian + changed)


def first_fit(scene: AssortedProblem, label, k: int, passes: int = 60):
    start = from_labels(scene.rows, scene.family.ungrouped, label, k)
    return run_starts(scene.rows, [scene.family], [start], stop=Stop(max_passes=passes))[0]


@pytest.mark.parametrize("membership", ["soft", "hard"])
def test_the_traced_cost_is_J(membership):
    raw, codes, _ = mixed_table(0)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(raw))
    scene = scene_of(raw, codes, weight, membership=membership, open_cost=1.5)
    run = first_fit(scene, np.arange(len(raw)) % 3, 3, passes=5)
    assert run.trace[-1].cost == pytest.approx(definition(scene, run.measured), rel=1e-12)


def test_changes_of_scale_lower_the_cost():
    draws = np.random.default_rng(3)
    z = draws.integers(0, 2, 200)
    raw = np.exp(draws.normal(z[:, None] * [2.0, 0.0, 1.0], 0.5, (200, 3)))
    scene = scene_of(raw)
    run = first_fit(scene, z, 2)
    there, params = scene.rescaled(run.measured)
    assert there.scales != scene.scales
    after = run_starts(there.rows, [there.family], [params], stop=Stop(max_passes=5))[0]
    assert after.trace[0].cost < run.cost
    assert after.trace[0].cost == pytest.approx(definition_without_codes(there, params), rel=1e-12)


def definition_without_codes(scene: AssortedProblem, params: Clusters) -> float:
    block = scene.rows.take(np.arange(scene.rows.n_rows))
    family = scene.family
    density = [
        norm.logpdf(block.raw, m, np.sqrt(v)).sum(axis=1)
        for m, v in zip(params.mean, params.variance, strict=True)
    ]
    return float(
        -logsumexp(np.array(density).T + np.log(params.mixing), axis=1).sum() + family.penalty(params)
    )


# --- invariances


def outcome(raw, codes, label, weight=None):
    scene = scene_of(raw, codes, weight)
    run = first_fit(scene, label, 2)
    return run.cost, labels_of(scene, run.measured), scene.family.chosen(run.measured)


def test_levels_rows_columns_and_units_do_not_matter():
    raw, codes, z = mixed_table(5, n=120)
    cost, label, chosen = outcome(raw, codes, z)
    order = np.random.default_rng(0).permutation(len(raw))
    cost2, label2, chosen2 = outcome(raw[order], codes[order], z[order])
    assert cost2 == pytest.approx(cost, rel=1e-10)
    assert np.array_equal(label2, label[order])
    assert np.array_equal(chosen2, chosen)
    renamed = np.where(codes >= 0, 5 - codes, -1).astype(np.int32)
    cost3, label3, _ = outcome(raw, renamed, z)
    assert cost3 == pytest.approx(cost, rel=1e-10)
    assert np.array_equal(label3, label)
    cost4, label4, chosen4 = outcome(raw[:, ::-1].copy(), codes[:, ::-1].copy(), z)
    assert cost4 == pytest.approx(cost, rel=1e-10)
    assert np.array_equal(label4, label)
    assert np.array_equal(chosen4[:, :3], chosen[:, 2::-1])
    cost5, label5, chosen5 = outcome(raw * [1e-3, 50.0, 1.0, 1.0] + [0, 1e4, 0, 0], codes, z)
    assert np.array_equal(label5, label)
    assert np.array_equal(chosen5, chosen)
    cells = (~np.isnan(raw)).sum(axis=0)
    assert cost5 == pytest.approx(cost + cells[0] * np.log(1e-3) + cells[1] * np.log(50), rel=1e-9)


def test_a_weight_is_a_repeated_row():
    raw, codes, z = mixed_table(6, n=80)
    times = np.random.default_rng(1).integers(1, 4, len(raw))
    one = outcome(raw, codes, z, times.astype(float))
    two = outcome(np.repeat(raw, times, axis=0), np.repeat(codes, times, axis=0), np.repeat(z, times))
    assert two[0] == pytest.approx(one[0], rel=1e-10)
    assert np.array_equal(two[1], np.repeat(one[1], times))


def test_a_cell_that_is_missing_says_nothing():
    raw, codes, z = mixed_table(8, blank=0.0)
    scene = scene_of(raw, codes)
    params = first_fit(scene, z, 2, passes=3).params
    block = scene.rows.take(np.arange(1))
    hidden = replace(
        block, raw=np.full_like(block.raw, np.nan), codes=np.full_like(block.codes, -1), complete=False
    )
    assert scene.family.scores(params, hidden)[0] == pytest.approx(np.log(params.mixing))


# --- special cases (methods.md 3.2)


def plainly(family: Assorted) -> Assorted:
    """Without priors and penalties."""
    columns = replace(
        family.columns, penalty=np.zeros(family.columns.n_columns), spread_prior=0.0, level_prior=0.0
    )
    return replace(family, columns=columns, offset=0.0, sharing="none")


def test_fixed_variances_and_no_mixing_make_the_cost_of_dp_means():
    raw = np.random.default_rng(0).normal(size=(50, 3))
    scene = scene_of(raw, membership="hard", open_cost=4.0)
    family = plainly(scene.family)
    params = family.blank(4)
    params = replace(
        params, mixing=np.ones(4), variance=np.full((4, 3), 0.5), mean=scene.rows.take(np.arange(4)).raw
    )
    block = scene.rows.take(np.arange(50))
    cost = float(family.step(params, block, KEEP_ALL).cost.value) + family.open_cost * 4
    nearest = np.square(block.raw[:, None] - params.mean).sum(axis=2).min(axis=1)
    assert cost == pytest.approx(nearest.sum() + 4.0 * 4 + 50 * 3 / 2 * np.log(np.pi), rel=1e-12)


def test_binary_columns_all_chosen_make_the_cross_entropy_of_algorithm_3():
    codes = np.random.default_rng(1).integers(0, 2, (60, 5)).astype(np.int32)
    label = np.arange(60) % 2
    scene = scene_of(np.empty((60, 0)), codes, membership="hard", sharing="none")
    params = from_labels(scene.rows, scene.family, label, 2)
    params = replace(params, mixing=np.ones(2))
    share = codes.mean(axis=0)
    cost = np.inf
    per_cluster = []
    for c in range(2):
        mean = (codes[label == c].sum(axis=0) + share) / ((label == c).sum() + 1)
        per_cluster.append(-(codes * np.log(mean) + (1 - codes) * np.log(1 - mean)).sum(axis=1))
    cost = np.min(per_cluster, axis=0).sum()
    block = scene.rows.take(np.arange(60))
    assert float(scene.family.step(params, block, KEEP_ALL).cost.value) == pytest.approx(cost, rel=1e-12)


def test_categories_all_chosen_make_latent_classes():
    """EM written out by hand: shares and level shares by weighted counts."""
    draws = np.random.default_rng(2)
    z = draws.integers(0, 2, 150)
    codes = np.where(draws.random((150, 6)) < 0.8, z[:, None], draws.integers(0, 3, (150, 6))).astype(
        np.int32
    )
    scene = scene_of(np.empty((150, 0)), codes, sharing="none", level_prior=0.0)
    family = plainly(scene.family)
    membership = draws.dirichlet([1, 1], 150)
    from ilk.assorted.state import from_membership

    run = run_starts(
        scene.rows, [family], [from_membership(scene.rows, family, membership)], stop=Stop(max_passes=30)
    )[0]
    onehot = (codes[:, :, None] == np.arange(3)).astype(float)
    loglik = []
    for _ in range(30):
        mixing = membership.mean(axis=0)
        eta = np.einsum("nk,ndt->kdt", membership, onehot) / membership.sum(axis=0)[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_eta = np.where(onehot[:, None] > 0, np.log(eta)[None], 0.0)
        score = np.log(mixing) + log_eta.sum(axis=(2, 3))
        loglik.append(logsumexp(score, axis=1).sum())
        membership = np.exp(score - logsumexp(score, axis=1, keepdims=True))
    traced = [record.cost - family.penalty(run.measured) for record in run.trace]
    assert -np.array(traced) == pytest.approx(np.array(loglik[: len(traced)]), rel=1e-9)


def test_numbers_all_chosen_make_a_diagonal_gaussian_mixture():
    from sklearn.mixture import GaussianMixture

    draws = np.random.default_rng(4)
    z = draws.integers(0, 2, 200)
    raw = draws.normal(z[:, None] * 3.0, [1.0, 2.0, 0.5], (200, 3))
    scene = scene_of(raw, sharing="none")
    family = plainly(scene.family)
    start = from_labels(scene.rows, family, z, 2)
    run = run_starts(scene.rows, [family], [start], stop=Stop(tolerance=1e-13, max_passes=500))[0]
    standard = scene.rows.take(np.arange(200)).raw
    means = np.array([standard[z == c].mean(axis=0) for c in range(2)])
    theirs = GaussianMixture(
        2, covariance_type="diag", means_init=means, tol=1e-12, reg_covar=0, max_iter=500
    )
    theirs.fit(standard)
    ours = -(run.cost - family.penalty(run.measured))
    assert ours == pytest.approx(theirs.score(standard) * 200, rel=1e-8)


# --- what a report asks


def test_relevance_is_the_divergence_of_cluster_and_background():
    draws = np.random.default_rng(9)
    z = np.repeat([0, 1, 2], 300)
    raw = draws.normal(0, 1, (900, 2))
    raw[z == 2, 0] += 6.0
    scene = scene_of(raw)
    run = first_fit(scene, z, 3)
    family, params = scene.family, run.measured
    assert family.chosen(params).tolist() == [[False, False], [False, False], [True, False]]
    sums = scene.rows.reduce(_step, (family, params)).sums
    relevance = family.relevance(params, family.cells(params, sums))
    mean, s2 = params.mean[:, 0], params.variance[:, 0]
    divergence = (np.log(s2[0] / s2[2]) + (s2[2] + (mean[2] - mean[0]) ** 2) / s2[0] - 1) / 2
    assert relevance[2, 0] == pytest.approx(divergence, rel=0.02)
    assert relevance[2, 1] == 0
    assert relevance[0].tolist() == [0, 0]


def _step(state, block):
    return state[0].step(state[1], block, KEEP_ALL)


def test_where_no_two_share_the_broadest_is_the_background():
    draws = np.random.default_rng(10)
    z = np.repeat([0, 1], 200)
    raw = np.column_stack([np.where(z == 0, draws.normal(0, 1, 400), draws.normal(20, 3, 400))])
    scene = scene_of(raw)
    run = first_fit(scene, z, 2)
    assert scene.family.chosen(run.measured).tolist() == [[True], [False]]


def test_groups_name_their_cost():
    group = np.array([[0, 0], [0, 1], [2, 2]])
    n_groups = firsts(group).sum(axis=0)
    assert n_groups.tolist() == [2, 3]
    assert naming_costs(group) == pytest.approx([3 * np.log(2) - np.log(2), 3 * np.log(3) - np.log(6)])
