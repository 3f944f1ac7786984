"""K groups are given to who asks for K: noise, few rows, hard memberships, rows alike, a search out of time."""

from __future__ import annotations

import numpy as np
import pytest

from ilk.assorted.filling import filled, occupied
from ilk.assorted.growth import FINAL_FIT, GrowthSearch
from ilk.assorted.problem import AssortedProblem, ModelOptions
from ilk.assorted.state import FitState, from_labels, step_of
from ilk.engines.memory import MemoryRows
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import Stop
from tests.assorted.test_growth import found_in, noise, planned, rows_of


def n_groups(found) -> int:
    return len(np.unique(found.fit.labels))


@pytest.mark.parametrize("kind", ["numbers", "categories", "mixed"])
@pytest.mark.parametrize("membership", ["soft", "annealed"])
def test_noise_is_cut_where_it_must_be(kind, membership):
    found = found_in(*noise(kind, 0), k=4, membership=membership)
    assert len(found.params) == n_groups(found) == 4
    cost = np.array([record.cost for record in found.fit.trace])
    assert (np.diff(cost) <= 1e-9 * np.abs(cost[:-1])).all()
    assert found.cost == pytest.approx(cost[-1], rel=1e-9)


def test_clear_groups_are_cut_further():
    draws = np.random.default_rng(0)
    z = np.repeat([0, 1], 60)
    found = found_in(draws.normal(20 * z, 1)[:, None], z[:, None].astype(np.int32), k=3)
    assert n_groups(found) == 3
    inside = [set(z[found.fit.labels == g].tolist()) for g in range(3)]
    assert all(len(one) == 1 for one in inside)  # a group was cut, none were mixed


def test_few_rows_are_many_groups_if_that_is_asked():
    raw, codes = noise("mixed", 1)
    found = found_in(raw[:12], np.ascontiguousarray(codes[:12]), k=8)
    assert n_groups(found) == 8


def test_rows_alike_are_no_two_groups():
    codes = np.repeat(np.array([[0, 0], [1, 1]], dtype=np.int32), 20, axis=0)
    found = found_in(np.empty((40, 0)), codes, k=3)
    assert len(found.params) == n_groups(found) == 2


def test_groups_are_cut_after_the_time_too():
    found = found_in(*noise("mixed", 2), k=3, stop=Stop(1e-7, 300, deadline=Deadline.after(0.0)))
    assert n_groups(found) == 3
    assert found.fit.reason == "time limit"


def test_a_sample_that_filled_them_fills_them_on_all_rows():
    assert n_groups(found_in(*noise("numbers", 3), k=4, search_rows=60)) == 4


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
def test_clusters_that_cooling_emptied_on_all_rows_are_filled_from_the_sample(kind, monkeypatch):
    cut = []
    whole = GrowthSearch.points
    monkeypatch.setattr(
        GrowthSearch, "points", lambda search, scene: cut.append(scene.rows.n_rows) or whole(search, scene)
    )
    found = found_in(*noise(kind, 2), k=4, seed=2, membership="annealed", search_rows=80)
    assert len(found.params) == n_groups(found) == 4
    assert set(cut) == {80}  # all rows would be many


def test_a_sample_and_its_table_are_other_points():
    rows = rows_of(*noise("mixed", 5))
    search, whole = GrowthSearch(0), AssortedProblem.plain(rows, planned(rows), ModelOptions())
    few = whole.on(MemoryRows.of_block(rows.sample(50, 0)), 0.25)
    assert [len(search.points(scene).points) for scene in (few, whole, few)] == [50, 200, 50]


def test_the_cut_costs_least_and_is_told_in_the_trace():
    raw, codes = noise("categories", 4)
    rows = rows_of(raw, codes)
    scene, search = (
        AssortedProblem.plain(rows, planned(rows), ModelOptions()),
        GrowthSearch(0, final=FINAL_FIT),
    )
    one = search.single(scene)
    two = filled(search, one, 2)
    assert two.k == 2
    assert two.full
    assert two.cost > one.cost  # noise: a rise that was asked for
    label = np.random.default_rng(0).integers(0, 2, len(codes))
    blind = from_labels(rows_of(raw, codes), scene.family.ungrouped, label.astype(np.int32), 2)
    assert two.cost < float(step_of(scene, blind).cost.value) + scene.family.penalty(blind)


def test_clusters_without_rows_are_left_out():
    raw, codes = noise("mixed", 5)
    rows = rows_of(raw, codes)
    scene = AssortedProblem.plain(rows, planned(rows), ModelOptions())
    twice = scene.family.joined(*[GrowthSearch(0).single(scene).params] * 2, np.array([0.6, 0.4]))
    state = FitState(scene, twice, 0.0)
    assert state.size.tolist() == [len(raw), 0.0]
    assert not state.full
    assert occupied(state).k == 1
