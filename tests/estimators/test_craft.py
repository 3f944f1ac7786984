"""CRAFT as a user sees it: the paper's synthetic tables, mixed frames, gaps, budgets, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.errors import UsageError
from tests.conftest import golden, numeric_table

pytestmark = pytest.mark.filterwarnings("ignore::ilk.errors.IlkWarning")


def wrong_choices(model: ilk.CRAFT, target: np.ndarray, subspaces: dict) -> int:
    """Columns chosen but not of the group's subspace, or the other way round."""
    wrong = 0
    for k in range(model.n_clusters_):
        own = np.zeros(model.chosen_.shape[1], dtype=bool)
        own[subspaces[target[model.labels_ == k][0]]] = True
        wrong += int((model.chosen_[k] != own).sum())
    return wrong


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_subspaces_of_numbers(seed):
    """The paper's claim holds: labels exact, and one column wrong, since 12 are chosen where 13 matter."""
    X, target = numeric_table("craft_numeric_overlap")
    subspaces = golden("craft_synthetic_subspaces")["sets"]["craft_numeric_overlap"][
        "subspaces_0_based_columns"
    ]
    model = ilk.CRAFT(target_clusters=3, share=1 / 3, random_state=seed).fit(X)
    assert ilk.measures.ari(model.labels_, target) == 1.0
    assert wrong_choices(model, target, subspaces) == 1
    assert model.converged_


def test_disjoint_subspaces_of_categories():
    """From some starts the labels are exact and every column right; the walk depends on chance."""
    X, target = numeric_table("craft_binary_disjoint")
    subspaces = golden("craft_synthetic_subspaces")["sets"]["craft_binary_disjoint"][
        "subspaces_0_based_columns"
    ]
    types = {f"x{j}": "categorical" for j in range(24)}
    models = [ilk.CRAFT(target_clusters=3, share=1 / 3, types=types, random_state=s).fit(X) for s in range(3)]
    best = max(models, key=lambda model: ilk.measures.ari(model.labels_, target))
    assert ilk.measures.ari(best.labels_, target) == 1.0
    assert wrong_choices(best, target, subspaces) == 0


def test_figures_of_the_paper():
    """Monk-3 within the band in which it can be repeated, 0.05; decision 18 has the tables that cannot be."""
    X, target = numeric_table("monk3_full")
    types = {f"x{j}": "categorical" for j in range(X.shape[1])}
    models = [ilk.CRAFT(target_clusters=2, share=0.5, types=types, random_state=s).fit(X) for s in range(10)]
    printed = golden("craft_published")["tables"]["Monk-3"]["m_0.5"]
    purity = np.mean([ilk.measures.purity(m.labels_, target) for m in models])
    nmi = np.mean([ilk.measures.nmi(m.labels_, target, average="geometric") for m in models])
    assert purity == pytest.approx(printed["purity"]["CRAFT"], abs=0.05)
    assert nmi == pytest.approx(printed["nmi"]["CRAFT"], abs=0.05)


def test_the_objective_can_rise():
    """No log variance in it: what the paper hopes to minimise goes up on its own table."""
    X, _ = numeric_table("craft_numeric_overlap")
    model = ilk.CRAFT(target_clusters=3, share=1 / 3, random_state=0).fit(X)
    trace = np.array([record.cost for record in model.fit_.trace])
    assert (np.diff(trace) > 0).any()
    assert model.objective_ == trace[-1]


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], 80)
    frame = pd.DataFrame(
        {
            "height": draws.normal(0, 1, 160) + 12 * group,
            "noise": draws.normal(0, 1, 160),
            "colour": np.where(draws.random(160) < 0.9, np.array(["red", "blue"])[group], "green"),
            "shape": draws.choice(["round", "square"], 160),
        }
    )
    return frame, group


@pytest.mark.parametrize("selection", ["exact", "approximate"])
def test_mixed_columns_with_gaps(mixed, selection):
    frame, group = mixed
    gappy = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.05)
    scores = []
    for seed in range(4):
        model = ilk.CRAFT(target_clusters=2, selection=selection, random_state=seed).fit(gappy)
        assert model.columns_ == ["height", "noise", "colour", "shape"]
        assert model.chosen_.shape == (model.n_clusters_, 4)
        assert np.array_equal(model.predict(gappy), model.labels_)
        scores.append(ilk.measures.ari(model.labels_, group))
    assert max(scores) > 0.85


def test_an_exact_budget_is_kept_for_each_kind(mixed):
    model = ilk.CRAFT(target_clusters=2, share=0.5, random_state=0).fit(mixed[0])
    assert (model.chosen_[:, :2].sum(axis=1) == 1).all()
    assert (model.chosen_[:, 2:].sum(axis=1) == 1).all()


def test_one_seed_gives_one_answer_and_few_groups_come_of_a_high_open_cost(mixed):
    frame, _ = mixed
    one, two = (ilk.CRAFT(5.0, random_state=3).fit(frame) for _ in range(2))
    assert np.array_equal(one.labels_, two.labels_)
    assert ilk.CRAFT(1e6, random_state=3).fit(frame).n_clusters_ == 1


def test_rows_of_no_weight_open_nothing(mixed):
    frame, group = mixed
    model = ilk.CRAFT(30.0, random_state=0).fit(frame, sample_weight=(group == 0).astype(float))
    alone = ilk.CRAFT(30.0, random_state=0).fit(frame[group == 0])
    assert len(model.labels_) == 160
    assert model.fit_.size.sum() == 80
    assert alone.n_clusters_ == model.n_clusters_


@pytest.mark.badinput("B11")
@pytest.mark.parametrize(
    "options",
    [
        {"share": 0},
        {"share": 1},
        {"share": 0.5, "locality": 0.25},
        {"locality": 0},
        {"locality": -0.1},
        {"open_cost": -1},
        {"target_clusters": 0},
        {"selection": "tight"},
        {"least_gain": 2},
        {"max_iter": -1},
    ],
)
def test_options_that_cannot_be(mixed, options):
    with pytest.raises(UsageError):
        ilk.CRAFT(**options).fit(mixed[0])
