"""The compiled covariance updates against `families.covariance`: cost, covariances, statuses, never a rise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ilk import kernels
from ilk.families.covariance import (
    STRUCTURES,
    Covariance,
    Structure,
    scatter_cost,
    update_covariance,
)
from ilk.families.gaussian import plain_whitening

if not kernels.COMPILED:
    pytest.skip("no compiled kernels here", allow_module_level=True)
from ilk.kernels import _compiled, compiled

Array = np.ndarray
EVERY = [*STRUCTURES, Structure("E"), Structure("V")]
SEARCHING = ("EVE", "VVE")  # their first update is a search from several axes
every_structure = pytest.mark.parametrize("structure", EVERY, ids=[s.name for s in EVERY])


def random_sums(structure: Structure, seed: int, k: int, d: int, spread: float) -> tuple[Array, Array]:
    """Counts and scatters of free axes; the eigenvalues differ by about exp(4 spread)."""
    rng = np.random.default_rng([seed, k, d])
    d = 1 if len(structure.name) == 1 else d
    count = rng.uniform(1, 50, k)
    axes = np.linalg.qr(rng.normal(size=(k, d, d)))[0] * np.exp(spread * rng.normal(size=(k, 1, d)))
    scatter = count[:, None, None] * axes @ axes.swapaxes(1, 2)
    if structure.orientation == "I":
        return count, np.ascontiguousarray(np.diagonal(scatter, axis1=1, axis2=2))
    return count, (scatter + scatter.swapaxes(1, 2)) / 2


def compiled_update(
    structure: Structure, count: Array, scatter: Array, previous: Covariance | None, unit: Array
) -> tuple[Covariance, str, Array]:
    before = None
    if previous is not None:
        axes = None if previous.axes is None else np.ascontiguousarray(previous.axes)
        before = (np.ascontiguousarray(previous.log_variance), axes)
    logs, axes, status, poor = compiled.update_covariance(
        structure.name.ljust(3, "I"), count, np.ascontiguousarray(scatter), before, unit
    )
    return Covariance(logs, axes), status, poor


def unit_of(scatter: Array, count: Array) -> Array:
    return (
        np.einsum("kii->i", scatter) / count.sum() if scatter.ndim == 3 else scatter.sum(axis=0) / count.sum()
    )


def assert_agrees(structure: Structure, count: Array, scatter: Array, previous: Covariance | None) -> None:
    unit = unit_of(scatter, count)
    expected = update_covariance(structure, count, scatter, previous, unit)
    found, status, poor = compiled_update(structure, count, scatter, previous, unit)
    assert (status, poor.tolist()) == (expected.status, expected.components.tolist())
    cost, other = scatter_cost(count, scatter, found), scatter_cost(count, scatter, expected.covariance)
    assert cost <= other + 1e-12 * abs(other)
    matrices, others = found.matrices(), expected.covariance.matrices()
    scale = np.abs(others).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(matrices / scale, others / scale, rtol=0, atol=1e-9)
    if found.axes is not None:
        turned = np.swapaxes(found.axes, -1, -2) @ found.axes
        np.testing.assert_allclose(
            turned, np.broadcast_to(np.eye(turned.shape[-1]), turned.shape), atol=1e-13
        )


def test_rounding_raises_no_cost_of_proportional_covariances() -> None:
    """Eigenvalues eight powers of ten apart: the second update is as good as the first, not better."""
    structure, rng = Structure("VEE"), np.random.default_rng(3458)
    count = rng.uniform(1, 50, 2)
    half = np.stack(
        [np.linalg.qr(rng.normal(size=(3, 3)))[0] * np.exp(3 * rng.normal(size=3)) for _ in count]
    )
    scatter = count[:, None, None] * half @ half.swapaxes(1, 2)
    covariance = update_covariance(structure, count, scatter).covariance
    cost = scatter_cost(count, scatter, covariance)
    for _ in range(9):
        covariance, _, _ = compiled_update(structure, count, scatter, covariance, np.ones(3))
        new = scatter_cost(count, scatter, covariance)
        assert new <= cost + 1e-12 * (abs(cost) + 3 * count.sum())
        cost = new


@every_structure
@pytest.mark.parametrize("instructions", _compiled.all_instructions())
@pytest.mark.parametrize(("k", "d"), [(1, 2), (3, 2), (2, 3), (5, 4), (4, 8), (3, 13), (2, 40)])
def test_the_update_is_that_of_the_family(structure: Structure, instructions: str, k: int, d: int) -> None:
    _compiled.use_instructions(instructions)
    try:
        for seed in range(1 if d == 40 else 3):  # as many columns as are ever compiled take long
            count, scatter = random_sums(structure, seed, k, d, 0.7)
            first = update_covariance(structure, count, scatter).covariance
            if structure.name not in SEARCHING:
                assert_agrees(structure, count, scatter, None)
            near = scatter * np.random.default_rng(seed).uniform(0.9, 1.1, (k, *[1] * (scatter.ndim - 1)))
            assert_agrees(structure, count, near, first)
    finally:
        _compiled.use_instructions(kernels.INSTRUCTIONS)


@every_structure
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 4), d=st.integers(2, 6), spread=st.floats(0.0, 3.0))
def test_the_cost_never_rises(structure: Structure, seed: int, k: int, d: int, spread: float) -> None:
    """From the covariances of any other sums: also far away and badly conditioned ones."""
    count, scatter = random_sums(structure, seed, k, d, spread)
    other_count, other_scatter = random_sums(structure, seed + 1, k, d, spread)
    before = update_covariance(structure, other_count, other_scatter)
    assume(before.status == "ok")
    found, status, _ = compiled_update(structure, count, scatter, before.covariance, unit_of(scatter, count))
    assume(status == "ok")
    old, new = (scatter_cost(count, scatter, cov) for cov in (before.covariance, found))
    again, _, _ = compiled_update(structure, count, scatter, found, unit_of(scatter, count))
    # Both the smallest eigenvalues and the cost itself are known to rounding times the condition only.
    condition = np.exp(max(np.ptp(cov.log_variance) for cov in (before.covariance, found)))
    scale = (1e-12 + 1e-15 * condition) * (count.sum() * d + abs(new))
    assert new <= old + scale
    assert scatter_cost(count, scatter, again) <= new + scale


def poor_sums(structure: Structure, what: str) -> tuple[Array, Array]:
    count, scatter = random_sums(structure, 5, 3, 4, 0.5)
    full = scatter if scatter.ndim == 3 else scatter[:, :, None] * np.eye(scatter.shape[1])
    d = full.shape[-1]
    flat, unit = np.eye(d), np.eye(d)
    flat[-1, -1] = 0.0
    unit[-1, -1] = 1e-6
    if what == "one component without scatter":
        full[1] = 0.0
    elif what == "one component flat":
        full[1] = flat @ full[1] @ flat
    elif what == "all flat":
        full = flat @ full @ flat
    elif what == "one component nearly flat":
        full[1] = unit @ full[1] @ unit
    elif what == "all nearly flat":
        full = unit @ full @ unit
    elif what == "not a number":
        full[2, 0, 0] = np.nan
    elif what == "nothing":
        full[:] = 0.0
    elif what == "one row":
        point = np.arange(1.0, d + 1)
        full[0] = np.outer(point, point)
    return count, np.diagonal(full, axis1=1, axis2=2).copy() if scatter.ndim == 2 else full


POOR = (
    "one component without scatter",
    "one component flat",
    "all flat",
    "one component nearly flat",
    "all nearly flat",
    "not a number",
    "nothing",
    "one row",
)


@every_structure
@pytest.mark.parametrize("what", POOR)
def test_the_same_sums_are_singular(structure: Structure, what: str) -> None:
    good_count, good = random_sums(structure, 5, 3, 4, 0.5)
    previous = update_covariance(structure, good_count, good).covariance
    count, scatter = poor_sums(structure, what)
    unit = unit_of(good, good_count)
    expected = update_covariance(structure, count, scatter, previous, unit)
    _, status, poor = compiled_update(structure, count, scatter, previous, unit)
    assert status.replace("starved", "singular") == expected.status
    assert poor.tolist() == expected.components.tolist()


@pytest.mark.parametrize("name", SEARCHING)
@pytest.mark.parametrize(("k", "d"), [(1, 3), (3, 2), (5, 4), (3, 8), (2, 10)])
def test_the_first_search_for_common_axes(name: str, k: int, d: int) -> None:
    """As low as the family's search of the same starts, to the gain below which either stops."""
    structure, worse = Structure(name), 0
    for seed in range(3):
        count, scatter = random_sums(structure, seed, k, d, 0.7)
        unit = unit_of(scatter, count)
        expected = update_covariance(structure, count, scatter, None, unit)
        found, status, _ = compiled_update(structure, count, scatter, None, unit)
        assert status == expected.status == "ok"
        cost, other = (scatter_cost(count, scatter, cov) for cov in (found, expected.covariance))
        worse += cost > other + 1e-7 * count.sum()
    assert worse <= 1  # rounding may take a turn at a fork


@every_structure
def test_axes_of_another_structure_are_not_gone_on_from(structure: Structure) -> None:
    count, scatter = random_sums(structure, 3, 2, 3, 0.5)
    d, unit = scatter.shape[-1], unit_of(scatter, count)
    logs = np.tile(np.log(unit), (2, 1))
    for axes in (None, np.eye(d), np.broadcast_to(np.eye(d), (2, d, d))):
        found, status, _ = compiled_update(structure, count, scatter, Covariance(logs, axes), unit)
        assert status == "ok"
        assert np.isfinite(found.matrices()).all()


@pytest.mark.parametrize("instructions", _compiled.all_instructions())
@pytest.mark.parametrize("name", ["EEE", "VVV"])
@pytest.mark.parametrize("d", [2, 5, 8, 13, 40])
def test_the_whitening_is_that_of_the_family(name: str, d: int, instructions: str) -> None:
    count, scatter = random_sums(Structure(name), 7, 3, d, 0.7)
    covariance = update_covariance(Structure(name), count, scatter).covariance
    _compiled.use_instructions(instructions)
    try:
        found = compiled.whitening(covariance.log_variance, covariance.axes)
    finally:
        _compiled.use_instructions(kernels.INSTRUCTIONS)
    assert not np.triu(found, 1).any()
    expected = plain_whitening(covariance)
    signs = np.sign(np.diagonal(expected, axis1=1, axis2=2))[:, :, None]  # a row may be turned round
    np.testing.assert_allclose(found, expected * signs, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
