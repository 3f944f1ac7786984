"""Measures against known classes: reference figures, brute force over pairs, invariants, bad labels."""

from __future__ import annotations

import doctest
import itertools
import math

import numpy as np
import pytest
import sklearn.metrics as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import ilk.measures.external as external_module
import ilk.measures.labels as labels_module
from ilk import measures
from ilk.errors import DataError, ResourceError, UsageError
from tests.conftest import golden

NAN = float("nan")
SYMMETRIC = [measures.ari, measures.nmi, measures.variation_of_information]
ALL = [*SYMMETRIC, measures.entropy, measures.purity, measures.precision, measures.recall, measures.f_measure]
# The 4 x 3 example of the reference figures (seed_claims.json), stored so that it is always tested.
EXAMPLE = [[5, 0, 1], [0, 4, 4], [1, 0, 0], [0, 6, 0]]

partitions = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n)] * 2)
)


def test_the_reference_example():
    figures = golden("seed_claims")["supervised_measures"]
    counts = figures["contingency_rows_are_clusters"]
    assert counts == EXAMPLE
    close = {"rel": 1e-9, "abs": 1e-11}
    assert measures.entropy_per_cluster(counts) == pytest.approx(figures["entropy_bits_per_cluster"], **close)
    assert measures.entropy(counts) == pytest.approx(figures["entropy_bits_size_weighted"], **close)
    assert measures.purity(counts) == pytest.approx(figures["purity"], **close)
    for name in ("precision", "recall"):
        found = getattr(measures, f"{name}_matrix")(counts)
        np.testing.assert_allclose(found, figures[name], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(measures.f_measure_matrix(counts), figures["f"], rtol=1e-9, atol=1e-11)
    overall = figures["overall_f_best_cluster_per_class_size_weighted"]
    assert measures.f_measure(counts) == pytest.approx(overall, **close)


def test_the_example_by_hand():
    assert measures.purity(EXAMPLE) == 16 / 21
    assert measures.precision(EXAMPLE) == 16 / 21
    # Cluster 2 is half and half: of its two classes (10 and 5 rows) the one with the better recall counts.
    assert measures.recall(EXAMPLE) == pytest.approx((6 * 5 / 6 + 8 * 4 / 5 + 1 * 1 / 6 + 6 * 6 / 10) / 21)


def test_the_questions_of_the_seed():
    assert measures.entropy(["c"] * 4, ["x"] * 4) == 0.0
    assert math.copysign(1, measures.entropy(["c"] * 4, ["x"] * 4)) == 1
    assert measures.entropy_per_cluster([0, 0, 1], ["x", "x", "y"]).tolist() == [0.0, 0.0]
    assert measures.entropy([0] * 4, ["x", "x", "y", "y"]) == 1.0
    matrix = measures.f_measure_matrix([0, 0, 1, 1, 1], ["x", "x", "y", "y", "x"])
    assert matrix[0, 1] == 0.0  # precision and recall 0
    r = 2 / 3
    assert matrix[0, 0] == pytest.approx(2 * r / (1 + r))  # precision 1
    half = measures.f_measure_matrix([0, 0, 1], ["x", "y", "x"])[0, 0]
    assert half == pytest.approx(0.5 / (0.5 + 0.5))  # precision 1/2, recall 1/2: r / (0.5 + r)


@settings(deadline=None)
@given(partitions)
def test_against_brute_force_over_pairs(pair):
    a, b = pair
    pairs = list(itertools.combinations(range(len(a)), 2))
    both = sum(a[i] == a[j] and b[i] == b[j] for i, j in pairs)
    one, other = sum(a[i] == a[j] for i, j in pairs), sum(b[i] == b[j] for i, j in pairs)
    expected = one * other / len(pairs) if pairs else 0
    most = (one + other) / 2
    brute = (both - expected) / (most - expected) if most != expected else 1.0
    assert measures.ari(a, b) == pytest.approx(brute, abs=1e-12)


@settings(deadline=None)
@given(partitions)
def test_against_scikit_learn(pair):
    a, b = pair
    assert measures.ari(a, b) == pytest.approx(theirs.adjusted_rand_score(b, a), abs=1e-12)
    for average in ("arithmetic", "geometric", "min", "max"):
        expected = theirs.normalized_mutual_info_score(b, a, average_method=average)
        if average == "min" and min(len(set(a)), len(set(b))) == 1:
            continue  # 0 / 0 in theirs
        assert measures.nmi(a, b, average=average) == pytest.approx(expected, abs=1e-9)
    assert measures.nmi(a, b) == pytest.approx(theirs.v_measure_score(b, a), abs=1e-9)
    bits = (
        theirs.mutual_info_score(a, a) + theirs.mutual_info_score(b, b) - 2 * theirs.mutual_info_score(a, b)
    )
    assert measures.variation_of_information(a, b) == pytest.approx(bits / math.log(2), abs=1e-9)
    np.testing.assert_array_equal(measures.contingency(a, b).table, theirs.cluster.contingency_matrix(a, b))


@settings(deadline=None)
@given(partitions, st.permutations(range(6)), st.permutations("pqrstu"), st.randoms(use_true_random=False))
def test_p35_label_free_symmetric_bounded(pair, numbers, letters, random):
    a, b = pair
    order = list(range(len(a)))
    random.shuffle(order)
    renamed = [numbers[a[i]] for i in order], [letters[b[i]] for i in order]
    for measure in ALL:
        value = measure(a, b)
        assert measure(*renamed) == pytest.approx(value, abs=1e-12)
        assert -1 - 1e-12 <= value <= (1 + 1e-12 if measure not in (measures.entropy, SYMMETRIC[2]) else 10)
        if measure is not measures.ari:
            assert value >= 0
    for measure in SYMMETRIC:
        assert measure(a, b) == pytest.approx(measure(b, a), abs=1e-12)
    for measure in ALL:
        zero = measure in (measures.entropy, measures.variation_of_information)
        assert measure(a, a) == pytest.approx(0.0 if zero else 1.0, abs=1e-12)


@settings(deadline=None)
@given(
    st.integers(1, 20).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 3)
    )
)
def test_p35_variation_of_information_is_a_metric(three):
    a, b, c = three
    distance = measures.variation_of_information
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9
    assert (distance(a, b) < 1e-12) == (measures.ari(a, b) == 1.0)


def test_p35_random_labels_have_no_agreement():
    generator = np.random.default_rng(0)
    values = [measures.ari(generator.integers(0, 5, 500), generator.integers(0, 4, 500)) for _ in range(200)]
    assert abs(np.mean(values)) < 0.001


@pytest.mark.badinput("B23")
def test_p35_no_overflow_at_a_thousand_million_rows():
    table = np.array([[4 * 10**8, 10**8], [10**8, 4 * 10**8]])
    # With both margins equal the pairs can be written down: ARI -> 0.36 as the number of rows grows.
    assert measures.ari(table) == pytest.approx(0.36, abs=1e-8)
    assert measures.ari(table * 10**9) == pytest.approx(0.36, abs=1e-12)
    assert measures.ari([[10**9, 0], [0, 1]]) == 1.0
    assert measures.nmi(table) == pytest.approx(measures.nmi(table // 10**7))
    assert measures.purity(table) == 0.8
    assert measures.entropy(table) == pytest.approx(0.7219280948873623)


@pytest.mark.badinput("B22")
def test_every_row_its_own_cluster_needs_no_square_table():
    labels = np.arange(200_000)
    truth = labels % 3
    assert measures.purity(labels, truth) == 1.0
    assert measures.ari(labels, truth) == 0.0
    assert measures.ari(labels, labels) == 1.0
    assert measures.f_measure(labels, truth) < 1e-4
    with pytest.raises(ResourceError, match="200000 groups"):
        measures.f_measure_matrix(labels, labels)


@pytest.mark.badinput("B22")
@pytest.mark.parametrize(
    ("labels", "truth"),
    [
        ([0, 0, 1, 1], ["x", "x", "y", "y"]),
        ([0.0, 0.0, 1.5, 1.5], ["x", "x", "y", "y"]),
        (["0", "0", 1, 1], [True, True, False, False]),
        (np.array(["a", "a", "b", "b"], dtype=object), np.array([1, 1, 2, 2], dtype=np.uint8)),
        ((-1, -1, 7, 7), np.array(["2020-01-01"] * 2 + ["2021-01-01"] * 2, dtype="datetime64[D]")),
        ([[1], [1], [2], [2]], None),
    ],
)
def test_labels_of_every_kind(labels, truth):
    if truth is None:
        with pytest.raises(UsageError, match="dimensions"):
            measures.ari(np.array(labels), [0, 0, 1, 1])
        return
    assert measures.ari(labels, truth) == 1.0
    assert measures.contingency(labels, truth).table.tolist() in ([[2, 0], [0, 2]], [[0, 2], [2, 0]])


@settings(deadline=None)
@given(
    st.sampled_from(["int8", "uint8", "int64", "uint64", "bool", "float64"]).flatmap(
        lambda dtype: nps.arrays(
            dtype, st.integers(1, 30), elements={"allow_nan": False} if dtype[0] == "f" else None
        )
    )
)
def test_codes_are_the_places_of_the_sorted_levels(values):
    codes, levels = labels_module.codes_of(values)
    expected, inverse = np.unique(values, return_inverse=True)
    assert levels == expected.tolist()
    assert codes.tolist() == inverse.tolist()


@pytest.mark.badinput("B22")
def test_pandas_columns():
    pandas = pytest.importorskip("pandas")
    truth = pandas.Series(["x", None, "y", "y"], dtype="string")
    labels = pandas.Series([3, 3, 4, 4], dtype="category")
    found = measures.contingency(labels, truth)
    assert found.table.tolist() == [[1, 0], [0, 2]]
    assert found.n_left_out == 1
    assert measures.contingency([1, 2], pandas.Series([1, None], dtype="Int64")).n_left_out == 1


@pytest.mark.badinput("B22")
@pytest.mark.parametrize("missing", [None, NAN, np.float32("nan")])
def test_rows_without_truth_are_left_out_and_counted(missing):
    found = measures.contingency([0, 0, 1, 2], ["x", "y", "y", missing])
    assert found.n_left_out == 1
    assert found.cluster_names == [0, 1]
    assert measures.purity(found) == 2 / 3


@pytest.mark.badinput("B22")
@pytest.mark.parametrize(
    ("labels", "truth", "kind", "text"),
    [
        ([0, 1], [0, 1, 2], UsageError, "labels has 2 rows and truth has 3"),
        ([], [], DataError, "no rows"),
        ([0, None, 1], [0, 1, 1], DataError, r"labels has rows without a label \(rows 1 \(1 in all\)\)"),
        ([0, NAN, NAN], [0, 1, 1], DataError, r"rows 1, 2 \(2 in all\)"),
        ([0, 1], [None, NAN], DataError, "no row has a true class"),
        ("ab", "ab", UsageError, "labels is a str"),
        (3, 4, UsageError, "labels is a int"),
        ([[0], [1, 2]], [0, 1], UsageError, "cannot be compared"),
        ([0, 1], None, UsageError, "no truth"),
        ([[1, -1]], None, DataError, "whole numbers"),
        ([[1, 0.5]], None, DataError, "whole numbers"),
        ([[1, NAN]], None, DataError, "whole numbers"),
        ([["a", "b"]], None, DataError, "whole numbers"),
        ([[0, 0]], None, DataError, "one above 0"),
    ],
)
def test_bad_labels_are_refused_with_their_own_words(labels, truth, kind, text):
    with pytest.raises(kind, match=text):
        measures.ari(labels, truth)


def test_unknown_average():
    with pytest.raises(UsageError, match="arithmetic, geometric, min, max"):
        measures.nmi([0], [0], average="mean")


def test_empty_rows_and_columns_of_a_table_do_not_count():
    with_empty = [[5, 0, 0, 1], [0, 0, 0, 0], [0, 4, 0, 4]]
    assert measures.ari(with_empty) == measures.ari([[5, 0, 1], [0, 4, 4]])
    assert measures.contingency(with_empty).cluster_names == [0, 2]


def test_stability_by_hand():
    labels = ["a", "a", "a", "b", "b", "c"]
    found = measures.stability(labels, [[1, 1, 1, 2, 2, 3], [1, 1, 2, 2, 2, None]])
    assert found.cluster_names == ["a", "b", "c"]
    assert found.jaccard.tolist() == pytest.approx([(1 + 2 / 3) / 2, (1 + 2 / 3) / 2, 0.5])
    assert found.ari == pytest.approx((1 + measures.ari(labels[:5], [1, 1, 2, 2, 2])) / 2)
    with pytest.raises(UsageError, match="no repeats"):
        measures.stability(labels, [])


@settings(deadline=None)
@given(partitions)
def test_jaccard_against_sets(pair):
    a, b = pair
    sets = [{i for i, x in enumerate(b) if x == name} for name in set(b)]
    for name, found in zip(sorted(set(a)), measures.jaccard_per_cluster(a, b), strict=True):
        mine = {i for i, x in enumerate(a) if x == name}
        assert found == pytest.approx(max(len(mine & other) / len(mine | other) for other in sets))


@pytest.mark.parametrize("module", [external_module, labels_module], ids=["external", "labels"])
def test_examples(module):
    assert doctest.testmod(module).failed == 0
