"""Whatever the doubles, not numbers and infinities among them: no index that kernels make of them leaves its array."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ilk import kernels

Array = np.ndarray
ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
on_every_path = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
sizes = st.tuples(st.integers(0, 60), st.integers(1, 5), st.integers(1, 20))
compiled_only = pytest.mark.skipif(not kernels.COMPILED, reason="no compiled kernels here")


def any_array(data: st.DataObject, *shape: int) -> Array:
    """Few odd numbers among plain ones: where all are odd, the first of them decides all there is."""
    cells = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=shape)
    for _ in range(data.draw(st.integers(0, 6)) if cells.size else 0):
        cells.flat[data.draw(st.integers(0, cells.size - 1))] = data.draw(ANY_NUMBER)
    return cells


@on_every_path
@given(st.data(), sizes, st.sampled_from([np.float32, np.float64]))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_has_some_nearest_centre(
    path: ModuleType, data: st.DataObject, size: tuple[int, int, int], kind: type
) -> None:
    n, d, k = size
    rows, centres = any_array(data, n, d).astype(kind), any_array(data, k, d)
    encoding = 1.0, np.zeros(d), None
    label, _ = path.nearest(rows, *encoding, centres)
    assert ((label >= 0) & (label < k)).all()
    sums, weights, _ = path.nearest_step(rows, *encoding, np.abs(any_array(data, n)), centres)
    assert sums.shape == (k, d, 2)
    assert weights.shape == (k,)


@compiled_only
@settings(max_examples=60, deadline=None)
@given(st.data(), sizes, st.booleans(), st.booleans())
def test_a_row_has_some_component(
    data: st.DataObject, size: tuple[int, int, int], along: bool, hard: bool
) -> None:
    n, d, k = size
    rows, weight = any_array(data, n, d), np.abs(any_array(data, n))
    whiten = any_array(data, k, d) if along else any_array(data, k, d, d)
    components = any_array(data, k, d), whiten, any_array(data, k)
    encoding = 1.0, np.zeros(d), None
    label, _, _ = kernels.mixture_labels(rows, *encoding, *components, hard)
    assert ((label >= 0) & (label < k)).all()
    count, shift, _, _ = kernels.mixture_step(rows, *encoding, weight, *components, hard)
    assert count.shape == (k,)
    assert shift.shape == (k, d)


@pytest.mark.parametrize("odd", [1e30, 1e200, 1e308, -1e308, np.inf])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_of_weight_zero_adds_nothing_wherever_it_lies(path: ModuleType, odd: float) -> None:
    rng = np.random.default_rng(0)
    rows, weight, centres = rng.normal(size=(130, 3)), rng.random(130), rng.normal(size=(4, 3))
    rows[57, 1], weight[57] = odd, 0.0
    rest = np.arange(130) != 57
    encoding = 1.0, np.zeros(3), None
    for limit in (np.inf, 2.0):
        found = path.nearest_step(rows, *encoding, weight, centres, limit)
        wanted = path.nearest_step(rows[rest], *encoding, weight[rest], centres, limit)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-25)
    label = np.zeros(130, dtype=np.int32)
    sums = path.group_sums(rows, np.tile(weight[:, None], 3), label, 1)
    left = path.group_sums(rows[rest], np.tile(weight[rest, None], 3), label[rest], 1)
    np.testing.assert_allclose(sums, left, rtol=1e-13, atol=1e-25)


@compiled_only
def test_clusters_that_end_before_they_begin_are_refused() -> None:
    table = np.zeros((4, 2))
    with pytest.raises(ValueError, match="must not fall"):
        kernels.silhouette_sums(table, table, np.array([0, 9, 4]))
