"""Measures of the table alone: reference figures, brute force, invariants, bad input."""

from __future__ import annotations

import doctest
import math
import tracemalloc
from itertools import permutations

import numpy as np
import pytest
import sklearn.metrics as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import ilk.measures.internal as internal_module
import ilk.measures.silhouettes as silhouettes_module
from ilk import measures
from ilk.errors import DataError, UsageError
from tests.conftest import at_hand, golden, numeric_table

RUSPINI = np.repeat([0, 1, 2, 3], [20, 23, 17, 15])
GENERATOR = np.random.default_rng(7)
X = np.concatenate(
    [GENERATOR.normal(size=(n, 3)) + shift for n, shift in [(40, 0), (30, 3), (20, 9), (1, 30)]]
)
LABELS = np.repeat(["d", "b", "a", "c"], [40, 30, 20, 1])

COUNTED = [
    "cohesion",
    "cohesion_centres",
    "separation",
    "separation_centres",
    "sse",
    "within_sum_of_squares",
    "davies_bouldin",
    "calinski_harabasz",
]

tables = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        nps.arrays(
            np.float64, (n, 2), elements=st.integers(-4, 4).map(float) | st.floats(-1e6, 1e6, width=32)
        ),
        st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(lambda labels: len(set(labels)) > 1),
    )
)


def brute_silhouette(rows, labels):
    distance = np.sqrt(np.square(rows[:, None, :] - rows[None, :, :]).sum(axis=2))
    values = []
    for i, own in enumerate(labels):
        same = [j for j, other in enumerate(labels) if other == own and j != i]
        means = [
            np.mean([distance[i, j] for j, other in enumerate(labels) if other == name])
            for name in sorted(set(labels))
            if name != own
        ]
        a, b = (np.mean(distance[i, same]) if same else 0.0), min(means)
        values.append((b - a) / max(a, b) if same and max(a, b) > 0 else 0.0)
    return np.array(values)


SKLEARN = golden("sklearn_internal_measures")["sets"]


@pytest.mark.parametrize("name", at_hand(SKLEARN, table=lambda name: name.split("_")[0]))
def test_scikit_learns_figures(name):
    rows, truth = numeric_table(name.split("_")[0])
    if "zscored" in name:
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    if name.startswith("ruspini"):
        truth = RUSPINI
    elif name.startswith("xclara"):
        truth = rows[:, 0] >= 40
    figures = SKLEARN[name]
    assert len(rows) == figures["rows"]
    assert measures.silhouette(rows, truth).mean() == pytest.approx(figures["silhouette"], rel=1e-9)
    for measure in ("davies_bouldin", "calinski_harabasz"):
        assert getattr(measures, measure)(rows, truth) == pytest.approx(figures[measure], rel=1e-9)


R_SETS = golden("r_kmeans_pam_silhouette")["sets"] | golden("r_made_tables")["sets"]


@pytest.mark.parametrize("name", at_hand(R_SETS, table=lambda name: R_SETS[name]["table"]))
def test_figures_of_r(name):
    figures = R_SETS[name]
    rows = numeric_table(figures["table"])[0]
    if figures["scaled"]:
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0, ddof=1)
    for run in figures["runs"]:
        for lloyd in run["lloyd"]:
            if lloyd["labels"]:
                within = measures.within_sum_of_squares(rows, lloyd["labels"])
                assert within == pytest.approx(lloyd["within_ss"], rel=1e-9)
                each = measures.sse(rows, lloyd["labels"]) * lloyd["sizes"]
                assert each == pytest.approx(lloyd["withinss_per_cluster"], rel=1e-9)
        if "silhouette_mean" in run:
            check_silhouette(rows, run)
        if "pam" in run:
            around = measures.silhouette(rows, run["pam"]["labels"])
            assert around.mean() == pytest.approx(run["pam"]["avg_silhouette"], rel=1e-9)


def test_enough_runs_of_r_have_a_silhouette():
    runs = [run for figures in R_SETS.values() for run in figures["runs"]]
    assert sum("silhouette_mean" in run for run in runs) >= 22
    assert sum("pam" in run for run in runs) >= 22


def check_silhouette(rows, run):
    labels = np.array(run["best_labels"])
    found = measures.silhouette(rows, labels)
    assert found.mean() == pytest.approx(run["silhouette_mean"], rel=1e-9)
    assert found[:10] == pytest.approx(run["silhouette_first10"], rel=1e-9)
    each = [found[labels == k].mean() for k in range(1, run["K"] + 1)]
    assert each == pytest.approx(run["silhouette_per_cluster"], rel=1e-9)
    assert measures.calinski_harabasz(rows, labels) == pytest.approx(run["calinski_harabasz"], rel=1e-9)


APART = {
    "ruspini": golden("seed_claims")["cohesion_separation_ruspini_rows_20_23_17_15"],
    "made_places": golden("r_made_tables")["cohesion_separation"],
}


@pytest.mark.parametrize("name", at_hand(APART))
def test_cohesion_and_separation(name):
    rows, truth = numeric_table(name)
    labels = RUSPINI if truth is None else truth
    figures, sizes = APART[name]["clusters"], [20, 23, 17, 15]
    assert [cluster["size"] for cluster in figures] == sizes
    found = {
        "cohesion_inverse_ordered_pairs": measures.cohesion(rows, labels),
        "cohesion_inverse_unordered_pairs": 2 * measures.cohesion(rows, labels),
        "cohesion_sum_to_centroid": measures.cohesion_centres(rows, labels),
        "mean_square_as_seed_SSE": measures.sse(rows, labels),
        "sum_squares": measures.sse(rows, labels) * sizes,
    }
    for measure in found.keys() & figures[0].keys():
        assert found[measure] == pytest.approx([c[measure] for c in figures], rel=1e-9), measure
    sums, centres = measures.separation(rows, labels), measures.separation_centres(rows, labels)
    assert len(APART[name]["pairs"]) == 6
    for pair in APART[name]["pairs"]:
        i, j = pair["pair"]
        assert sums[i, j] == sums[j, i] == pytest.approx(pair["separation_sum"], rel=1e-9)
        assert centres[i, j] == centres[j, i] == pytest.approx(pair["separation_centroids"], rel=1e-9)


@settings(deadline=None)
@given(tables)
def test_p36_silhouette_against_brute_force(case):
    rows, labels = case
    found = measures.silhouette(rows, labels)
    np.testing.assert_allclose(found, brute_silhouette(rows, labels), atol=1e-7)
    assert (np.abs(found) <= 1 + 1e-12).all()
    for name in set(labels):
        if labels.count(name) == 1:
            assert found[labels.index(name)] == 0.0


def test_against_scikit_learn():
    np.testing.assert_allclose(
        measures.silhouette(X, LABELS), theirs.silhouette_samples(X, LABELS), atol=1e-12
    )
    assert measures.davies_bouldin(X, LABELS) == pytest.approx(theirs.davies_bouldin_score(X, LABELS))
    assert measures.calinski_harabasz(X, LABELS) == pytest.approx(theirs.calinski_harabasz_score(X, LABELS))


def test_order_does_not_show_where_centres_nearly_meet():
    rows = np.array([[3, 0], [0, 970961.188], [0, 0], [0, 329773.812], [0, -322926.0], [-3, 1e-5]])
    labels = np.array([2, 1, 0, 1, 1, 2])
    found = [
        measures.davies_bouldin(rows[list(order)], labels[list(order)]) for order in permutations(range(6))
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


@settings(deadline=None)
@given(tables, st.permutations("wxyz"), st.randoms(use_true_random=False))
def test_p36_label_free_and_row_order_free(case, letters, random):
    rows, labels = case
    order = list(range(len(rows)))
    random.shuffle(order)
    renamed = [letters[labels[i]] for i in order]
    np.testing.assert_allclose(
        measures.silhouette(rows[order], renamed), measures.silhouette(rows, labels)[order], atol=1e-7
    )
    for measure in (measures.calinski_harabasz, measures.davies_bouldin, measures.within_sum_of_squares):
        assert measure(rows[order], renamed) == pytest.approx(measure(rows, labels), rel=1e-6, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(tables, st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_p21_a_weight_is_the_row_so_many_times(case, weight):
    rows, labels = case
    labels, weight = np.array(labels), np.array(weight[: len(rows)])
    if len(set(labels[weight > 0].tolist())) < 2:
        return
    copies = np.repeat(np.arange(len(rows)), weight)
    kept = np.unique(copies, return_index=True)[1]
    weighted = measures.silhouette(rows, labels, weight=weight)
    repeated = measures.silhouette(rows[copies], labels[copies])
    np.testing.assert_allclose(weighted[weight > 0], repeated[kept], atol=1e-7)
    if set(labels[weight > 0].tolist()) != set(labels.tolist()):
        return
    for name in COUNTED:
        measure = getattr(measures, name)
        expected = measure(rows[copies], labels[copies])
        np.testing.assert_allclose(measure(rows, labels, weight=weight), expected, rtol=1e-6, atol=1e-9)


def test_small_equal_weights_change_nothing():
    weight = np.full(len(X), 0.01)
    np.testing.assert_allclose(measures.silhouette(X, LABELS, weight=weight), measures.silhouette(X, LABELS))


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 2.0**-1000, 2.0**900, 1e300])
def test_p14_units_do_not_matter(scale):
    for measure in (
        measures.silhouette,
        measures.silhouette_centres,
        measures.davies_bouldin,
        measures.calinski_harabasz,
    ):
        np.testing.assert_allclose(measure(X * scale, LABELS), measure(X, LABELS), rtol=1e-9)
    np.testing.assert_allclose(
        measures.cohesion_centres(X * scale, LABELS), measures.cohesion_centres(X, LABELS) * scale
    )
    np.testing.assert_allclose(measures.separation(X * scale, LABELS), measures.separation(X, LABELS) * scale)


def test_an_offset_does_not_matter():
    np.testing.assert_allclose(
        measures.silhouette(X + 1e9, LABELS), measures.silhouette(X, LABELS), atol=1e-6
    )


def test_threads_and_layout_give_the_same_bits():
    rows = GENERATOR.normal(size=(7000, 3))
    labels = GENERATOR.integers(0, 7, 7000)
    one = measures.silhouette(rows, labels)
    for threads in (2, 5):
        assert measures.silhouette(rows, labels, threads=threads).tobytes() == one.tobytes()
        pairs = measures.separation(rows, labels, threads=threads)
        assert pairs.tobytes() == measures.separation(rows, labels).tobytes()
    frozen = np.asfortranarray(rows)
    frozen.setflags(write=False)
    assert measures.silhouette(frozen, labels).tobytes() == one.tobytes()


def test_exact_silhouette_needs_little_memory():
    """64 MB beside the table at 50,000 x 16 is the bound; memory grows with the rows, so a tenth is tried."""
    rows = GENERATOR.normal(size=(5000, 16))
    labels = GENERATOR.integers(0, 8, 5000)
    tracemalloc.start()
    measures.silhouette(rows, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Blocks (2 MiB) do not grow; three copies of the table do.
    assert peak < 3 * rows.nbytes + 8 * 2**20


def test_coincident_clusters_and_duplicates():
    rows = np.array([[0.0], [0.0], [0.0], [0.0]])
    assert measures.silhouette(rows, [0, 0, 1, 1]).tolist() == [0.0] * 4
    assert measures.silhouette_centres(rows, [0, 0, 1, 1]).tolist() == [0.0] * 4
    assert measures.cohesion(rows, [0, 0, 1, 1]).tolist() == [math.inf, math.inf]
    assert measures.calinski_harabasz(rows, [0, 0, 1, 1]) == 0.0
    assert measures.davies_bouldin(rows, [0, 0, 1, 1]) == 0.0
    assert measures.calinski_harabasz([[0.0], [0.0], [1.0]], [0, 0, 1]) == math.inf
    assert measures.davies_bouldin([[-1.0], [1.0], [0.0], [0.0]], [0, 0, 1, 1]) == math.inf
    assert measures.cohesion([[0.1, 1e9]] * 3 + [[5.0, 5.0]], [0, 0, 0, 1]).tolist() == [math.inf, math.inf]


def test_silhouette_centres_by_hand_and_with_given_centres():
    rows = np.array([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0], [14.0, 0.0], [50.0, 0.0]])
    labels = [1, 1, 2, 2, 3]
    assert measures.silhouette_centres(rows, labels) == pytest.approx([11 / 12, 9 / 10, 7 / 9, 11 / 13, 0.0])
    centres = [[1.0, 0.0], [12.0, 0.0], [50.0, 0.0]]
    found = measures.silhouette_centres(rows + 1e6, labels, centres=np.array(centres) + 1e6)
    assert found == pytest.approx(measures.silhouette_centres(rows, labels))
    with pytest.raises(UsageError, match=r"shape \(3, 2\)"):
        measures.silhouette_centres(rows, labels, centres=[[0.0, 0.0]])


def test_silhouette_sample_covers_the_truth():
    rows = np.concatenate([GENERATOR.normal(size=(n, 4)) + k for k, n in enumerate([800, 300, 20, 1])])
    labels = np.repeat([0, 1, 2, 3], [800, 300, 20, 1])
    exact = measures.silhouette(rows, labels).mean()
    drawn = [measures.silhouette_sample(rows, labels, 100, seed) for seed in range(200)]
    scores = [(mean - exact) / error for mean, error in drawn]
    assert abs(np.mean(scores)) < 0.25
    assert 0.85 < np.std(scores) < 1.2
    assert measures.silhouette_sample(rows, labels, 5000)[0] == pytest.approx(exact)
    assert measures.silhouette_sample(rows, labels, 5000)[1] == 0.0
    assert measures.silhouette_sample(rows, labels, 90, 3) == measures.silhouette_sample(
        rows, labels, 90, 3, threads=2
    )
    with pytest.raises(UsageError, match="at least 7"):
        measures.silhouette_sample(rows, labels, 6)


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(0, 300))
def test_drawn_rows_add_up(sizes, extra):
    sizes = np.array(sizes)
    n_rows = min(int(np.minimum(sizes, 2).sum()) + extra, int(sizes.sum()))
    drawn = silhouettes_module._shares(sizes, n_rows)
    assert drawn.sum() == n_rows
    assert (drawn <= sizes).all()
    assert (drawn >= np.minimum(sizes, 2)).all()


@pytest.mark.badinput("B22")
@pytest.mark.parametrize("name", ["silhouette", "silhouette_centres", "calinski_harabasz", "davies_bouldin"])
def test_one_cluster_is_refused_and_n_clusters_have_a_value(name):
    measure = getattr(measures, name)
    with pytest.raises(DataError, match="not defined for one group") as caught:
        measure(X, ["only"] * len(X))
    assert caught.value.code == "one-cluster"
    alone = measure(X, np.arange(len(X)))
    if name.startswith("silhouette"):
        assert (alone == 0).all()
    else:
        assert alone == (math.inf if name == "calinski_harabasz" else 0.0)


@pytest.mark.badinput("B22")
@pytest.mark.parametrize(
    ("rows", "labels", "options", "kind", "text"),
    [
        ([[1.0], [2.0]], [0, 1, 2], {}, UsageError, "X has 2 rows and labels has 3"),
        (np.zeros((0, 2)), [], {}, DataError, "no rows"),
        ([1.0, 2.0], [0, 1], {}, UsageError, "reshape"),
        (np.zeros((2, 0)), [0, 1], {}, UsageError, "shape"),
        ([[1.0], [math.nan]], [0, 1], {}, DataError, r"missing cells \(rows 1 "),
        ([[1.0], [math.inf]], [0, 1], {}, DataError, r"infinite cells \(rows 1 "),
        ([["a"], ["b"]], [0, 1], {}, DataError, "not a table of numbers"),
        ([["1"], ["2"]], [0, 1], {}, DataError, "not a table of numbers"),
        ([[1.0], [2.0, 3.0]], [0, 1], {}, DataError, "not a table of numbers"),
        ([[1j], [2.0]], [0, 1], {}, DataError, "not a table of numbers"),
        ([[1.0], [2.0]], [0, None], {}, DataError, "without a label"),
        ([[1.0], [2.0]], [0, 1], {"threads": 0}, UsageError, "threads=0"),
        ([[1.0], [2.0]], [0, 1], {"threads": True}, UsageError, "threads=True"),
        ([[1.0], [2.0]], [0, 1], {"weight": [1.0]}, UsageError, "one weight per row"),
        ([[1.0], [2.0]], [0, 1], {"weight": [1.0, -1.0]}, DataError, r"from 0 \(rows 1 "),
        ([[1.0], [2.0]], [0, 1], {"weight": [1.0, math.nan]}, DataError, r"from 0 \(rows 1 "),
        ([[1.0], [2.0]], [0, 1], {"weight": [0.0, 0.0]}, DataError, "all weights are 0"),
        ([[1.0], [2.0]], [0, 1], {"weight": [0.0, 1.0]}, DataError, "one group"),
    ],
)
def test_bad_input_is_refused_with_its_own_words(rows, labels, options, kind, text):
    with pytest.raises(kind, match=text):
        measures.silhouette(rows, labels, **options)


@pytest.mark.badinput("B13")
def test_a_cluster_without_weight():
    rows, labels, weight = [[0.0], [1.0], [5.0], [6.0], [9.0]], [0, 0, 1, 1, 2], [1, 1, 1, 1, 0]
    found = measures.silhouette(rows, labels, weight=weight)
    assert found[:4] == pytest.approx(measures.silhouette(rows[:4], labels[:4]))
    assert found[4] == 0.0
    with pytest.raises(DataError, match="group 2 have weight 0"):
        measures.sse(rows, labels, weight=weight)


@pytest.mark.parametrize("module", [internal_module, silhouettes_module], ids=["internal", "silhouettes"])
def test_examples(module):
    assert doctest.testmod(module).failed == 0
