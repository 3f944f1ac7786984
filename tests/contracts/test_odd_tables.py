"""Tables that random ones found to end in an exception: each ends in an answer or in a refusal with a code."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from ilk.assorted.number_or_category import number_cost
from ilk.report.facts import decimals_of
from ilk.selection.merging import _bin_edges
from tests.kernels import fuzz_tables

pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_column_without_spread_in_common_units_is_refused() -> None:
    """Beside numbers of 1e308 the others have no spread left, and no row has a finite cost."""
    draws = np.random.default_rng(0)
    rows = np.column_stack([draws.normal(size=33), np.where(draws.random(33) < 0.5, -1e308, 1e308)])
    with pytest.raises(ilk.errors.DataError) as refused:
        ilk.MixedMixture(2, random_state=0).fit(rows)
    assert refused.value.code == "no-spread"


def test_hard_components_that_all_lose_their_rows_are_degenerate() -> None:
    rows = np.array(
        [[-0.4, 1e16, -1.7, 7e153, -1e308], [8.5, 1e16, 8.0, 4e154, -1e308], [1.0, 1e16, 3.0, 1e154, -1e308]]
    )
    for structure in ("EEE", "EEI", "VVV", "EII", "VVI", "EEV"):
        model = ilk.GaussianMixture(
            1, structure=structure, prior="default", membership="hard", random_state=0
        )
        assert len(model.fit(rows).labels_) == 3


@pytest.mark.parametrize("spread", [5e-324, 1e-310, 1e308, np.inf, np.nan, 0.0])
def test_decimals_of_any_spread(spread: float) -> None:
    assert 0 <= decimals_of(np.array([0.5, 1.5]), spread) <= 20


def test_numbers_so_close_that_their_variance_is_zero_have_a_cost() -> None:
    assert number_cost(np.array([1e-200, 2e-200, 3e-200]), np.ones(3), 0.5) is not None


def test_positions_too_close_for_bins_have_wider_ones() -> None:
    near = np.array([1.0, 1.0, np.nextafter(1.0, 2.0)])
    edges = _bin_edges(near)
    assert (np.diff(edges) > 0).all()
    assert np.histogram(near, edges)[0].sum() == 3
    assert len(_bin_edges(np.empty(0))) == len(edges)


def test_a_split_none_of_whose_fits_has_a_cost_is_no_split() -> None:
    assert not fuzz_tables.run(1, 8883).failures  # a table that the fuzz found
