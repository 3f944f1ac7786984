"""Must-link, cannot-link and known labels: kept whole, or refused with rows that are in conflict."""

from __future__ import annotations

import re
from itertools import pairwise, product

import numpy as np
import pytest

import ilk
from ilk.errors import UsageError
from ilk.fitting.colouring import components_apart
from ilk.fitting.constraints import constraints_of


def possible(n_rows, k, together, apart, rows=None):
    """Whether labels of these rows exist that keep every pair among them, by trying all: the slow oracle."""
    rows = range(n_rows) if rows is None else sorted(rows)
    sets = {row: row for row in rows}
    for one, other in together:
        if one in sets and other in sets:
            old, new = sets[one], sets[other]
            sets = {row: new if name == old else name for row, name in sets.items()}
    if any(sets[i] == sets[j] for i, j in apart if i in sets and j in sets):
        return False
    edges = {frozenset((sets[i], sets[j])) for i, j in apart if i in sets and j in sets}
    nodes = sorted({name for edge in edges for name in edge})
    assert len(nodes) <= 9
    place = {name: i for i, name in enumerate(nodes)}
    pairs = [tuple(place[name] for name in edge) for edge in edges]
    return any(all(way[i] != way[j] for i, j in pairs) for way in product(range(k), repeat=len(nodes)))


def random_case(number):
    draws = np.random.default_rng(number)
    n_rows, k = int(draws.integers(12, 30)), int(draws.integers(2, 5))
    X = draws.normal(size=(n_rows, 2)) + 4 * draws.integers(0, k, n_rows)[:, None]
    some = draws.choice(n_rows, 9, replace=False)
    together = [tuple(draws.choice(n_rows, 2, replace=False)) for _ in range(draws.integers(0, 7))]
    apart = [tuple(draws.choice(some, 2, replace=False)) for _ in range(draws.integers(1, 13))]
    return X, k, [tuple(map(int, p)) for p in together], [tuple(map(int, p)) for p in apart]


@pytest.mark.parametrize("number", range(200))
def test_pairs_are_kept_or_the_conflict_is_named(number):
    X, k, together, apart = random_case(number)
    model = ilk.KMeans(k, n_init=2, random_state=0)
    if not possible(len(X), k, together, apart):
        with pytest.raises(UsageError) as refused:
            model.fit(X, must_link=together, cannot_link=apart)
        assert refused.value.code == "constraint-conflict"
        named = {int(row) for row in re.findall(r"row (\d+)", refused.value.what)}
        if "chain" not in refused.value.what:  # each stands for the rows that it must be together with
            sets = constraints_of(len(X), len(X), together, None, None).chunklet
            named = {row for row in range(len(X)) if sets[row] in sets[[*named]]}
        assert not possible(len(X), k, together, apart, named)
        return
    labels = model.fit(X, must_link=together, cannot_link=apart).labels_
    assert all(labels[i] == labels[j] for i, j in together)
    assert all(labels[i] != labels[j] for i, j in apart)
    costs = [record.cost for record in model.fit_.trace]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(costs))


@pytest.mark.parametrize("number", range(40))
def test_hard_mixtures_keep_the_same_pairs(number):
    X, k, together, apart = random_case(number)
    X = np.vstack([X, X + np.random.default_rng(number).normal(0, 0.3, X.shape)])
    if not possible(len(X), k, together, apart):
        return
    model = ilk.GaussianMixture(k, structure="EEI", membership="hard", random_state=0)
    labels = model.fit(X, must_link=together, cannot_link=apart).labels_
    assert all(labels[i] == labels[j] for i, j in together)
    assert all(labels[i] != labels[j] for i, j in apart)


@pytest.mark.parametrize("number", range(30))
def test_known_labels_are_kept_exactly(number):
    draws = np.random.default_rng(number)
    k = int(draws.integers(2, 5))
    truth = draws.integers(0, k, 80)
    X = draws.normal(size=(80, 3)) + truth[:, None]
    known = np.where(draws.random(80) < 0.3, draws.integers(0, k, 80), -1)  # often against the data
    for model in (
        ilk.KMeans(k, n_init=2, random_state=0),
        ilk.GaussianMixture(k, structure="EII", random_state=0),
        ilk.GaussianMixture(k, structure="EII", membership="hard", random_state=0),
    ):
        model.fit(X, known=known)
        marked = known >= 0
        assert [model.known_labels_[g] for g in model.labels_[marked]] == known[marked].tolist()


def test_must_links_are_k_means_of_weighted_means():
    draws = np.random.default_rng(3)
    X = np.vstack([draws.normal(0, 1, (50, 2)), draws.normal(5, 1, (50, 2))])
    pairs = [(0, 1), (1, 60), (7, 80), (20, 21), (22, 23), (23, 24)]
    sets = constraints_of(100, 2, pairs, None, None).chunklet
    size = np.bincount(sets).astype(float)
    means = np.stack([np.bincount(sets, column) / size for column in X.T], axis=1)
    model = ilk.KMeans(2, n_init=20, random_state=0).fit(X, must_link=pairs)
    other = ilk.KMeans(2, n_init=20, random_state=0).fit(means, sample_weight=size)
    within = float(np.square(X - means[sets]).sum())
    assert model.inertia_ == pytest.approx(other.inertia_ + within, rel=1e-10)


def test_weights_are_repeated_rows_under_constraints():
    draws = np.random.default_rng(4)
    X, weight = draws.normal(size=(40, 2)), draws.integers(1, 4, 40)
    pairs, apart = [(0, 9), (9, 11)], [(0, 20), (20, 30)]
    start = np.repeat(np.arange(40), weight)
    copies = [
        (int(np.flatnonzero(start == i)[0]), int(j))
        for i in range(40)
        for j in np.flatnonzero(start == i)[1:]
    ]
    first = {i: int(np.flatnonzero(start == i)[0]) for i in range(40)}
    one = ilk.KMeans(3, n_init=30, random_state=0).fit(
        X, sample_weight=weight, must_link=pairs, cannot_link=apart
    )
    two = ilk.KMeans(3, n_init=30, random_state=0).fit(
        X[start],
        must_link=copies + [(first[i], first[j]) for i, j in pairs],
        cannot_link=[(first[i], first[j]) for i, j in apart],
    )
    assert one.inertia_ == pytest.approx(two.inertia_)


def test_missing_cells_under_constraints():
    draws = np.random.default_rng(5)
    X = np.vstack([draws.normal(0, 1, (40, 3)), draws.normal(6, 1, (40, 3))])
    X[draws.random(X.shape) < 0.1] = np.nan
    plain = ilk.KMeans(2, random_state=0).fit(X)
    none = ilk.KMeans(2, random_state=0).fit(X, must_link=[])
    assert none.inertia_ == pytest.approx(plain.inertia_)
    linked = ilk.KMeans(2, random_state=0).fit(X, must_link=[(0, 50)]).labels_
    assert linked[0] == linked[50]


def test_the_cheapest_assignment_of_rows_apart_is_found():
    draws = np.random.default_rng(6)
    for _ in range(60):
        n, k = int(draws.integers(2, 8)), int(draws.integers(2, 5))
        pairs = np.array([p for p in product(range(n), repeat=2) if p[0] < p[1] and draws.random() < 0.5])
        for part in components_apart(pairs.reshape(-1, 2), n, k):
            costs = draws.random((len(part.members), k))
            ways = [
                way
                for way in product(range(k), repeat=len(part.members))
                if all(way[i] != way[j] for i, near in enumerate(part.neighbours) for j in near)
            ]
            assert (part.colours is None) == (not ways)
            if ways:
                found = part.assigned(costs, None)
                least = min(sum(costs[i, c] for i, c in enumerate(way)) for way in ways)
                assert tuple(found) in ways
                assert sum(costs[i, c] for i, c in enumerate(found)) == pytest.approx(least)


def test_seeded_em_with_every_label_known_is_the_closed_form():
    draws = np.random.default_rng(7)
    known = np.repeat([0, 1], [30, 20])
    X = draws.normal(size=(50, 2)) + 0.5 * known[:, None]
    model = ilk.GaussianMixture(2, structure="VVV", random_state=0).fit(X, known=known)
    np.testing.assert_allclose(model.weights_, [0.6, 0.4])
    for g in (0, 1):
        np.testing.assert_allclose(model.means_[g], X[known == g].mean(axis=0))
        np.testing.assert_allclose(model.covariances_[g], np.cov(X[known == g].T, bias=True))
    from scipy.stats import multivariate_normal

    loglik = sum(
        np.log(share) + multivariate_normal(model.means_[g], model.covariances_[g]).logpdf(x)
        for g, share, x in zip(known, np.array([0.6, 0.4])[known], X, strict=True)
    )
    assert model.loglik_ == pytest.approx(loglik)


def test_em_without_facts_is_em_and_its_likelihood_never_falls():
    draws = np.random.default_rng(8)
    X = np.vstack([draws.normal(0, 1, (60, 2)), draws.normal(3, 1, (60, 2))])
    plain = ilk.GaussianMixture(2, random_state=0).fit(X)
    none = ilk.GaussianMixture(2, random_state=0).fit(X, must_link=[])
    assert none.loglik_ == pytest.approx(plain.loglik_, rel=1e-6)
    kept = ilk.GaussianMixture(2, random_state=0).fit(
        X, must_link=[(0, 100), (3, 90)], known=[0] + [-1] * 119
    )
    costs = [record.cost for record in kept.fit_.trace]
    assert all(after <= before for before, after in pairwise(costs))
    assert kept.labels_[0] == kept.labels_[100]
    assert kept.loglik_ < plain.loglik_


def test_known_rows_pull_groups_to_where_they_are():
    """Four corners in two groups: which sides belong together is what the labels say."""
    draws = np.random.default_rng(9)
    corner = np.repeat([[0, 0], [0, 9], [9, 0], [9, 9]], 25, axis=0)
    X = corner + draws.normal(size=(100, 2))
    known = np.full(100, -1)
    known[[0, 25]], known[[50, 75]] = 0, 1
    labels = ilk.KMeans(2, random_state=0).fit(X, known=known).labels_
    assert len(set(labels[:50])) == 1
    known[[0, 50]], known[[25, 75]] = 0, 1
    labels = ilk.KMeans(2, random_state=0).fit(X, known=known).labels_
    assert ilk.measures.ari(labels, corner[:, 1]) == 1.0


@pytest.mark.parametrize(
    ("options", "given", "code"),
    [
        ({}, {"must_link": [(0, 99)]}, "bad-must_link"),
        ({}, {"cannot_link": [0, 1]}, "bad-cannot_link"),
        ({}, {"cannot_link": [(0.5, 1)]}, "bad-cannot_link"),
        ({}, {"cannot_link": [(3, 3)]}, "constraint-conflict"),
        ({}, {"known": [0, 1]}, "lengths-differ"),
        ({}, {"known": list(range(20))}, "constraint-conflict"),
        ({"exact": True}, {"must_link": [(0, 1)]}, "not-with-constraints"),
        ({"init": np.zeros((2, 2))}, {"must_link": [(0, 1)]}, "not-with-constraints"),
    ],
)
def test_what_cannot_be_kept_is_refused(options, given, code):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(UsageError) as refused:
        ilk.KMeans(2, **options).fit(X, **given)
    assert refused.value.code == code


def test_soft_memberships_refuse_rows_apart():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(UsageError, match="memberships are soft"):
        ilk.GaussianMixture(2).fit(X, cannot_link=[(0, 1)])
    with pytest.raises(UsageError, match="noise"):
        ilk.GaussianMixture(2, noise=True).fit(X, must_link=[(0, 1)])


def test_the_names_of_labels_stand_in_the_chain():
    X = np.random.default_rng(0).normal(size=(20, 2))
    known = ["gold", *[None] * 18, "tin"]
    with pytest.raises(
        UsageError, match=r"label 'tin' - row 19 - row 4 - row 0 - label 'gold'|label 'gold' - row 0"
    ):
        ilk.KMeans(3).fit(X, known=known, must_link=[(0, 4), (4, 19)])
