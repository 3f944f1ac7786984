"""Clusters found in assorted tables: moves that only lower J, known answers, noise that stays whole, ends in time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import ilk
from ilk.assorted.columns import assort
from ilk.assorted.fit import SEARCH_ROWS, AssortedFit, SearchOptions, fit_assorted
from ilk.assorted.growth import FINAL_FIT, GrowthSearch
from ilk.assorted.problem import AssortedProblem, ColumnTransform, ModelOptions
from ilk.assorted.scales import PLAIN
from ilk.engines.base import Rows
from ilk.engines.derived import DerivedRows, derive
from ilk.engines.memory import MemoryRows
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import Stop
from ilk.table.condition import encoding_of, survey
from tests.conftest import golden, numeric_table


def rows_of(raw, codes=None, threads=1) -> MemoryRows:
    facts = survey(raw)
    return MemoryRows(raw, encoding_of(raw, facts), codes=codes, complete=facts.complete, threads=threads)


def planned(rows: Rows, n_levels: int = 8):
    block = rows.take(np.arange(0))
    names = [f"x{j}" for j in range(block.n_columns)]
    n_coded = 0 if block.codes is None else block.codes.shape[1]
    return assort(rows, names, [(f"c{j}", [str(t) for t in range(n_levels)]) for j in range(n_coded)])


def found_in(
    raw, codes=None, k=None, seed=0, stop=FINAL_FIT, callback=None, search_rows=SEARCH_ROWS, **options
) -> AssortedFit:
    rows = rows_of(raw, codes)
    quest = SearchOptions(k, stop=stop, search_rows=search_rows)
    return fit_assorted(rows, planned(rows), ModelOptions(**options), quest, seed, callback=callback)


def binary(probability: np.ndarray, seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).random(probability.shape) < probability).astype(np.int32)


@pytest.fixture(scope="module")
def blobs():
    draws = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], 60)
    raw = draws.normal(0, 1, (180, 5))
    raw[:, 0] += 5 * z
    codes = np.where(draws.random((180, 3)) < 0.9, z[:, None], draws.integers(0, 3, (180, 3))).astype(
        np.int32
    )
    return raw, codes, z


def test_clusters_and_their_columns_are_found(blobs):
    raw, codes, z = blobs
    found = found_in(raw, codes)
    assert adjusted_rand_score(z, found.fit.labels) == 1.0
    tells = np.array([True, False, False, False, False, True, True, True])
    assert (found.chosen[:, tells].sum(axis=0) == 2).all()  # one of three stands for the background
    assert found.chosen[:, ~tells].sum() <= 1
    assert (found.relevance >= 0).all()
    assert ((found.relevance > 0) == found.chosen).all()
    assert [c.k for c in found.candidates] == [1, 2, 3, 4]
    assert min(found.candidates, key=lambda c: c.cost).k == 3


def test_the_same_seed_gives_the_same_bits(blobs):
    raw, codes, _ = blobs
    one, two = found_in(raw, codes, seed=3), found_in(raw, codes, seed=3)
    assert one.cost == two.cost
    assert np.array_equal(one.fit.labels, two.fit.labels)


def test_two_clean_binary_groups_are_two():
    z = np.repeat([0, 1], 100)
    codes = binary(np.where(z, 0.9, 0.1)[:, None] * np.ones(20), 0)
    found = found_in(np.empty((200, 0)), codes)
    assert adjusted_rand_score(z, found.fit.labels) == 1.0


@pytest.mark.parametrize("name", ["craft_binary_disjoint", "craft_numeric_overlap"])
def test_the_papers_synthetic_tables(name):
    """Labels exact and at most two wrong switches, neither K nor a budget given."""
    table, target = numeric_table(name)
    sets = golden("craft_synthetic_subspaces")["sets"][name]["subspaces_0_based_columns"]
    is_binary = name.startswith("craft_binary")
    raw = np.empty((len(table), 0)) if is_binary else table
    found = found_in(raw, table.astype(np.int32) if is_binary else None)
    assert adjusted_rand_score(target, found.fit.labels) == 1.0
    truth = np.zeros((3, table.shape[1]), dtype=bool)
    for label, columns in sets.items():
        here = found.fit.labels[target == sorted(set(target))[int(label)]][0]
        truth[here, columns] = True
    assert (found.chosen != truth).sum() <= 2


def test_a_full_factorial_is_one_cluster():
    table, _ = coded_table("monk3_full")
    assert len(found_in(np.empty((len(table), 0)), table).params) == 1


def coded_table(name: str):
    from tests.conftest import table_path

    cells = np.genfromtxt(table_path(name), delimiter=",", dtype=str, skip_header=1)
    codes = [np.unique(column, return_inverse=True)[1] for column in cells[:, :-1].T]
    return np.ascontiguousarray(np.column_stack(codes).astype(np.int32)), cells[:, -1]


def noise(kind: str, seed: int):
    draws = np.random.default_rng(seed)
    if kind == "numbers":
        return draws.normal(size=(300, 10)), None
    n, n_numbers, n_coded = (300, 0, 10) if kind == "categories" else (200, 6, 6)
    sizes = draws.integers(2, 6, n_coded)
    codes = np.column_stack([draws.choice(s, n, p=draws.dirichlet(np.full(s, 3.0))) for s in sizes])
    return draws.normal(size=(n, n_numbers)), np.ascontiguousarray(codes.astype(np.int32))


@pytest.mark.parametrize("kind", ["numbers", "categories", "mixed"])
def test_noise_is_one_cluster(kind):
    assert [len(found_in(*noise(kind, seed)).params) for seed in range(3)] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "categories", "mixed"])
def test_noise_is_one_cluster_in_nineteen_of_twenty(kind):
    alone = [len(found_in(*noise(kind, seed), seed=seed).params) == 1 for seed in range(100, 120)]
    assert sum(alone) >= 19


def test_skewed_noise_is_one_cluster_on_its_scale():
    raw = np.exp(np.random.default_rng(0).normal(size=(300, 4)))
    found = found_in(raw)
    assert len(found.params) == 1
    assert all(scale != 0 for scale in found.scene.scales)


@pytest.mark.parametrize("sharing", ["groups", "global", "none"])
def test_other_ways_of_sharing_find_clear_clusters(blobs, sharing):
    raw, codes, z = blobs
    found = found_in(raw, codes, k=3, sharing=sharing)
    assert adjusted_rand_score(z, found.fit.labels) == 1.0
    if sharing == "global":
        chosen = found.chosen.sum(axis=0)
        assert set(chosen.tolist()) <= {0, 2}  # all but the one that stands for the background


def test_a_budget_holds(blobs):
    raw, codes, z = blobs
    found = found_in(raw, codes, k=3, budget=2)
    assert found.chosen.sum(axis=1).max() <= 2
    assert adjusted_rand_score(z, found.fit.labels) > 0.9


@pytest.mark.parametrize("membership", ["hard", "annealed"])
def test_hard_memberships_cost_no_less(blobs, membership):
    raw, codes, z = blobs
    hard, soft = found_in(raw, codes, k=3, membership=membership), found_in(raw, codes, k=3)
    assert hard.cost >= soft.cost - 1e-9
    assert hard.entropy == pytest.approx(0, abs=1e-9)
    assert adjusted_rand_score(z, hard.fit.labels) == 1.0


def test_moves_only_lower_the_cost(blobs):
    raw, codes, _ = blobs
    rows = rows_of(raw, codes)
    search = GrowthSearch(0)
    scene = AssortedProblem.plain(rows, planned(rows), ModelOptions())
    costs: dict[int, list[float]] = {}
    keep = search.keep

    def noted(state):
        costs.setdefault(state.k, []).append(state.cost)
        return keep(state)

    search.keep = noted  # type: ignore[method-assign]
    search.grown(scene)
    assert {k: min(values) for k, values in costs.items()} == {k: s.cost for k, s in search.best.items()}
    accepted = [search.best[k].cost for k in (1, 2, 3)]
    assert accepted == sorted(accepted, reverse=True)


def test_an_open_cost_makes_fewer_clusters(blobs):
    raw, codes, _ = blobs
    assert len(found_in(raw, codes, open_cost=1e4).params) == 1


def test_an_interrupt_gives_the_best_so_far(blobs):
    raw, codes, _ = blobs
    calls = []

    def interrupt(event):
        calls.append(event)
        if len(calls) == 8:  # runs that have ended
            raise KeyboardInterrupt

    found = found_in(raw, codes, callback=interrupt)
    assert found.fit.reason == "interrupted"
    assert len(found.fit.labels) == len(raw)


def test_the_time_limit_ends_a_search(blobs):
    raw, codes, _ = blobs
    found = found_in(raw, codes, stop=Stop(1e-7, 300, deadline=Deadline.after(0.02)))
    assert found.fit.reason == "time limit"


def test_large_tables_are_searched_on_a_sample():
    draws = np.random.default_rng(1)
    z = draws.integers(0, 3, 3000)
    raw = draws.normal(0, 1, (3000, 4))
    raw[:, :2] += 6 * z[:, None]
    found = found_in(raw, search_rows=200)
    assert adjusted_rand_score(z, found.fit.labels) > 0.99
    assert found.cost > max(c.cost for c in found.candidates)  # the candidates' J is that of the sample


def test_rows_of_any_engine_give_the_same_parameters(blobs):
    raw, codes, _ = blobs
    rows = rows_of(raw, codes)
    plan = planned(rows)
    treat = ColumnTransform(plan, (0,) * len(plan.numbers))
    held, fresh = derive(rows, treat), DerivedRows(rows, treat)
    assert isinstance(held, MemoryRows)
    one, two = (r.reduce(_sum, None) for r in (held, fresh))
    assert np.array_equal(one, two)
    assert np.array_equal(held.take(np.arange(5)).raw, fresh.take(np.arange(5)).raw)
    assert np.array_equal(held.sample(7, 1).codes, fresh.sample(7, 1).codes)
    assert len([*fresh.scan(_sum, None)]) == 1


def _sum(_, block):
    return np.append(np.nansum(block.raw, axis=0), block.codes.sum(axis=0))


def test_growth_runs_once_whatever_the_scales(monkeypatch):
    """Skewed numbers prefer other scales from one cluster on; what was grown on plain ones is fitted there."""
    draws = np.random.default_rng(4)
    z = np.repeat(np.arange(3), 120)
    raw = np.exp(draws.normal(0, 0.4, (360, 4)) + np.array([0.0, 2.0, 4.0])[z][:, None])
    codes = draws.integers(0, 3, (360, 2)).astype(np.int32)
    grown, times = GrowthSearch.grown, []
    monkeypatch.setattr(GrowthSearch, "grown", lambda search, scene: times.append(grown(search, scene)))
    found = found_in(raw, codes)
    assert len(times) == 1
    assert PLAIN not in found.scene.scales
    assert adjusted_rand_score(z, found.fit.labels) > 0.95


def test_many_tight_clusters_of_few_rows():
    """A prior of a whole row of the table would widen them, and two would pass for one."""
    draws = np.random.default_rng(0)
    centres = np.stack(np.meshgrid(*[np.linspace(-9, 9, 5)] * 2), axis=-1).reshape(-1, 2)
    group = draws.permutation(np.arange(900) % 25)
    points = centres[group] + draws.normal(0, 0.35, (900, 2))
    found = ilk.cluster({"x": points[:, 0], "y": points[:, 1], "kind": np.array(list("uvwxyz"))[group % 6]})
    assert found.k == 25
    assert adjusted_rand_score(group, found.labels) == 1.0
