"""Whole fits out of core have the bits of fits in memory: K-means, mixtures, mixed and assorted tables, DP-means."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from ilk.assorted.columns import assort
from ilk.assorted.fit import SearchOptions, fit_assorted
from ilk.assorted.problem import ModelOptions
from ilk.engines.memory import MemoryRows
from ilk.engines.stream import StreamRows
from ilk.families.covariance import STRUCTURES, Structure
from ilk.families.gaussian import Gaussian
from ilk.families.opening import OpenMeans
from ilk.fitting.loop import Stop
from ilk.fitting.mixture import MixturePlan, fit_mixture
from ilk.fitting.opening import fit_batched
from ilk.fitting.product import make_product, partitioner_for
from ilk.fitting.restarts import fit_recipe
from ilk.fitting.table_moments import table_moments
from ilk.methods import by_search
from ilk.table.block import BLOCK_ROWS
from ilk.table.condition import encoding_of, survey
from ilk.table.out_of_core.disk import DiskArray

N_ROWS = 2 * BLOCK_ROWS + 77
SHORT = Stop(tolerance=1e-6, max_passes=4)


def kept(array):
    if array is None:
        return None
    disk = DiskArray(len(array), array.shape[1] if array.ndim == 2 else None, array.dtype)
    disk.write(0, array)
    return disk


def table(*, blanks=False, weights=False, codes=False, n_rows=N_ROWS):
    """The same rows in memory and on disk."""
    draws = np.random.default_rng(3)
    label = draws.integers(0, 3, n_rows)
    raw = draws.normal(size=(n_rows, 3)) * (1 + label[:, None] / 2) + 5 * label[:, None] + 1000
    if blanks:
        raw[draws.random(raw.shape) < 0.1] = np.nan
        raw[np.isnan(raw).all(axis=1)] = 1000.0
    weight = draws.integers(1, 4, n_rows) / 4 if weights else None
    level = None
    if codes:
        level = np.stack([(label + (draws.random(n_rows) < 0.2)) % 3, draws.integers(-1, 2, n_rows)], 1)
        level = level.astype(np.int32)
    facts = survey(raw, weight=weight)
    known: dict[str, Any] = {"encoding": encoding_of(raw, facts, scale="standard", weight=weight)}
    known |= {"complete": facts.complete, "threads": 2}
    return (
        MemoryRows(raw, weight=weight, codes=level, **known),
        StreamRows(kept(raw), weight=kept(weight), codes=kept(level), **known),
    )


def same(one: Any, other: Any) -> None:
    """Equal to the bit, through all that fits are made of."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            same(mine, theirs)
    elif isinstance(one, (np.ndarray, float)):
        assert np.array_equal(one, other, equal_nan=True)
    else:
        assert one == other


def same_fit(one, other):
    same(asdict(one), asdict(other))


KINDS = [{}, {"blanks": True}, {"weights": True}, {"blanks": True, "weights": True}]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("k-means", kind) for kind in KINDS] + [("k-medians", KINDS[0]), ("trimmed-k-means", KINDS[-1])],
    ids=str,
)
def test_centroids(name, kind):
    recipe = replace(by_search("recipe")[name].recipe, n_starts=2, stop=SHORT)
    one, other = (fit_recipe(rows, recipe, 3, 0) for rows in table(**kind))
    same_fit(one, other)


@pytest.mark.parametrize("structure", [s.name for s in STRUCTURES])
def test_mixtures(structure):
    plan = MixturePlan(n_init=2, stop=SHORT)
    one, other = (
        fit_mixture(rows, Gaussian(Structure(structure), table_moments(rows).variance), 3, 0, plan)
        for rows in table(weights=structure == "VVV")
    )
    same_fit(one, other)


def test_a_mixture_with_blanks():
    plan = MixturePlan(init="k-means", stop=replace(SHORT, max_passes=2))
    one, other = (
        fit_mixture(rows, Gaussian(Structure("VVV"), table_moments(rows).variance), 3, 0, plan)
        for rows in table(blanks=True)
    )
    same_fit(one, other)


def test_mixed_columns():
    starts, is_count = np.array([0, 3, 5]), np.zeros(3, dtype=bool)
    plan = MixturePlan(n_init=2, stop=SHORT)

    def fitted(rows):
        family, _ = make_product(rows, starts, is_count, structure=Structure("VVI"))
        return fit_mixture(rows, family, 3, 0, plan, partitions=partitioner_for(rows, starts))

    one, other = (fitted(rows) for rows in table(codes=True, blanks=True))
    same_fit(one, other)


@pytest.mark.parametrize("n_rows", [600, 2 * BLOCK_ROWS + 77])
def test_an_assorted_table_grown(n_rows):
    quest = SearchOptions(n_starts=1, most=3, rescale=False, stop=Stop(tolerance=1e-4, max_passes=5))

    def fitted(rows):
        plan = assort(rows, ["a", "b", "c"], [("kind", ("x", "y", "z")), ("flag", ("no", "yes"))])
        found = fit_assorted(rows, plan, ModelOptions(), quest, 0)
        return found.fit, plan, found.scene.scales

    one, other = (fitted(rows) for rows in table(codes=True, blanks=True, n_rows=n_rows))
    same_fit(one[0], other[0])
    assert one[1:] == other[1:]


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids=str)
def test_dp_means(kind):
    one, other = (fit_batched(rows, OpenMeans(open_cost=0.6), None, 0, SHORT) for rows in table(**kind))
    assert len(one.params.centre) > 20
    same_fit(one, other)
