"""The two functions that carry the fourteen covariance structures: `profile` and the axes.

A covariance is axes diag(exp(log_variance)) axes'. Every M-step minimises one cost,

    sum_k [ count_k log|covariance_k| + trace(scatter_k covariance_k^-1) ]

`profile` solves it for the volume and shape letters, given the scatter along the axes; the rest of this page
finds the axes. Celeux and Govaert (1995), Gaussian parsimonious clustering models, Pattern Recognition 28.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ilk.kernels.constants import (
    N_ANGLES,
    N_FINER_GRIDS,
    RACE_GAIN,
    RACE_LIMIT,
    ROUNDS_ALONE,
    ROUNDS_IN_EM,
    RUNAWAY,
    SCAN_COLUMNS,
    SCAN_GAIN,
    SCAN_LIMIT,
    STILL,
    SWEEP_GAIN,
    SWEEP_LIMIT,
)
from ilk.table.block import Array

SCAN_ANGLES = (np.arange(N_ANGLES) + 1 - N_ANGLES / 2) * (np.pi / 2 / N_ANGLES)  # (-45, 45] degrees
TINY = np.finfo(np.float64).tiny


# --- volume and shape -------------------------------------------------------------------------------------


def profile(volume: str, shape: str, count: Array, scatter: Array, log_volume: Array | None = None) -> Array:
    """Log-variances v (K, d) that minimise sum_kj [count_kj v_kj + scatter_kj exp(-v_kj)].

    `count` is (K,), or (K, d) when cells are missing. `log_volume` (K,) is where the alternation of equal
    shapes with free volumes starts. A variance that nothing supports is -inf.

    >>> np.exp(profile("V", "V", np.array([2.0, 4.0]), np.array([[4.0, 8.0], [4.0, 12.0]]))).round(9)
    array([[2., 4.],
           [1., 3.]])
    """
    cells = np.broadcast_to(count[:, None] if count.ndim == 1 else count, scatter.shape)
    match volume + shape:
        case "EI":
            solution = _log_ratio(scatter.sum(keepdims=True), cells.sum(keepdims=True))
        case "VI":
            solution = _log_ratio(scatter.sum(1, keepdims=True), cells.sum(1, keepdims=True))
        case "EE":
            solution = _log_ratio(scatter.sum(0, keepdims=True), cells.sum(0, keepdims=True))
        case "VV":
            solution = _log_ratio(scatter, cells)
        case "EV" if count.ndim == 1:
            solution = _equal_volumes(count, scatter)
        case "EV":
            solution = _equal_volumes_of_cells(cells, scatter)
        case _:
            solution = _equal_shapes(cells, scatter, log_volume)
    return np.array(np.broadcast_to(solution, scatter.shape))


def _log_ratio(scatter: Array, count: Array) -> Array:
    """log(scatter / count), -inf where there is no scatter."""
    with np.errstate(divide="ignore"):
        return np.where(scatter > 0, np.log(scatter) - np.log(np.where(scatter > 0, count, 1.0)), -np.inf)


def log_sum_exp(value: Array) -> Array:
    """log(sum(exp(value))) over the last axis."""
    top = value.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Array = np.log(np.exp(value - top).sum(axis=-1)) + top[..., 0]
    return total


def _equal_volumes(count: Array, scatter: Array) -> Array:
    """Shapes free, volumes equal: log_variance_kj = log scatter_kj - mean_j log scatter_kj + log volume."""
    logs = _log_ratio(scatter, np.ones_like(scatter))
    middle = logs.mean(axis=1, keepdims=True)
    log_volume = log_sum_exp(middle[:, 0]) - np.log(count.sum())
    whole = np.isfinite(middle)
    return np.where(whole, logs - np.where(whole, middle, 0.0) + log_volume, -np.inf)


def _equal_volumes_of_cells(count: Array, scatter: Array) -> Array:
    """The same with a count a cell: variance_kj = scatter_kj / (count_kj + shift_k), sum_k shift_k = 0.

    The log volume at which the shifts cancel is the root of a falling function; for each trial volume every
    shift is a root of its own.
    """
    plain = _log_ratio(scatter, count)
    if not np.isfinite(plain).all():
        return plain
    logs, middle = np.log(scatter), plain.mean(axis=1)
    low, high = float(middle.min()), float(middle.max())

    def excess(log_volume: float) -> float:
        return float(_shifts(count, logs.mean(axis=1) - log_volume).sum())

    # Rounding may put the end of the bracket on the wrong side of the root it touches.
    if high - low <= 1e-15 * max(1.0, abs(low)) or excess(low) <= 0:
        log_volume = low
    elif excess(high) >= 0:
        log_volume = high
    else:
        log_volume = _root(excess, low, high)
    shift = _shifts(count, logs.mean(axis=1) - log_volume)
    free = logs - np.log(count + shift[:, None])
    return np.asarray(free + (log_volume - free.mean(axis=1, keepdims=True)))


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function, positive at `low` and negative at `high`, is zero, to the last digits.

    Secants through both ends of the bracket; the value at an end that stays twice is halved (Illinois).
    """
    above, below, stayed = falling(low), falling(high), 0
    for _ in range(200):
        middle = low + (high - low) * above / (above - below)
        if not low < middle < high:
            middle = (low + high) / 2
        value = falling(middle)
        if value == 0 or not low < middle < high or high - low <= 1e-15 + 1e-14 * abs(low):
            return middle
        if value > 0:
            low, above, below = middle, value, below / 2 if stayed > 0 else below
        else:
            high, below, above = middle, value, above / 2 if stayed < 0 else above
        stayed = 1 if value > 0 else -1
    return middle


def _shifts(count: Array, target: Array) -> Array:
    """Shift of each row of counts with mean_j log(count_kj + shift_k) = target_k.

    With shift = exp(u) - min_j count_kj the left side is convex and rising in u and at least u, so Newton's
    steps from u = target come down to the root without overshooting.
    """
    least = count.min(axis=1, keepdims=True)
    u = target.copy()
    for _ in range(200):
        terms = count - least + np.exp(u)[:, None]
        step = (np.log(terms).mean(axis=1) - target) / (np.exp(u)[:, None] / terms).mean(axis=1)
        u = u - step
        if np.all(np.abs(step) <= 1e-15 * np.maximum(1.0, np.abs(u))):
            break
    shift: Array = np.exp(u) - least[:, 0]
    return shift


def _equal_shapes(count: Array, scatter: Array, log_volume: Array | None) -> Array:
    """Shapes equal, volumes free: log_variance_kj = log_volume_k + log_shape_j, by matrix scaling.

    scatter_kj exp(-log_variance_kj) gets the row and column sums of the counts; each half-step is an exact
    minimisation and the cost is convex, so the start does not matter.
    """
    rows, columns = scatter.sum(axis=1) > 0, scatter.sum(axis=0) > 0
    solution = np.full(scatter.shape, -np.inf)
    if not (rows.any() and columns.any()):
        return solution
    kept = np.ix_(rows, columns)
    inner, row_total, column_total = scatter[kept], count[kept].sum(axis=1), count[kept].sum(axis=0)
    if log_volume is None:
        volume, rounds = inner.sum(axis=1) / row_total, ROUNDS_ALONE
    else:
        volume, rounds = np.exp(log_volume[rows] - log_volume[rows].mean()), ROUNDS_IN_EM
    for _ in range(rounds):
        shape = (inner / volume[:, None]).sum(axis=0) / column_total
        volume = (inner / shape).sum(axis=1) / row_total
        scaled = (inner / volume[:, None] / shape).sum(axis=0) / column_total
        if np.abs(scaled - 1).max() < STILL or _runs_away(np.log(volume)):
            break
    solution[kept] = np.log(volume)[:, None] + np.log(shape)
    return solution


def _runs_away(log_volume: Array) -> bool:
    """Whether an alternation without a minimum has carried the volumes apart; the fit is singular then."""
    return not np.ptp(log_volume) < RUNAWAY


# --- axes -------------------------------------------------------------------------------------------------


def eigen_descending(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (clamped at zero, largest first) and eigenvectors (in columns) of symmetric matrices."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values[..., ::-1], 0.0), vectors[..., ::-1]


def proportional(count: Array, scatter: Array, log_volume: Array | None) -> tuple[Array, Array]:
    """VEE: log-volumes (K,) and the matrix common to all with covariance_k = exp(log_volume_k) common.

    Alternates common = sum_k exp(-log_volume_k) scatter_k / N and
    log_volume_k = log(trace(scatter_k common^-1) / (d count_k)), each an exact minimisation.
    """
    d, total = scatter.shape[-1], count.sum()
    unit = np.sqrt(np.diagonal(scatter.sum(axis=0)))
    relative = scatter / np.outer(unit, unit)  # the log-volumes do not depend on units, the inverse is safer
    rounds = ROUNDS_IN_EM
    if log_volume is None:
        log_volume, rounds = np.log(np.trace(relative, axis1=1, axis2=2) / (d * count)), ROUNDS_ALONE
    for _ in range(rounds):
        start = log_volume - log_volume.mean()
        common = np.tensordot(np.exp(-start), relative, axes=1) / total
        log_volume = np.log(_traces_within(common, relative) / (d * count))
        if _runs_away(log_volume) or np.abs(log_volume - log_volume.mean() - start).max() < STILL:
            break
    return log_volume, np.tensordot(np.exp(-start), scatter, axes=1) / total


def _traces_within(common: Array, scatter: Array) -> Array:
    """trace(scatter_k common^-1) for each k; inf where the common matrix is singular."""
    values, vectors = eigen_descending(common)
    along = np.einsum("ij,kil,lj->kj", vectors, scatter, vectors, optimize=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        traces = (np.maximum(along, 0.0) / values).sum(axis=1)
    return np.asarray(np.where(np.isnan(traces), np.inf, traces))


def common_axes(volume: str, count: Array, scatter: Array, previous: Array | None) -> Array:
    """EVE, VVE: orthogonal axes (d, d) that lower the cost with the log-variances profiled out.

        VVE   sum_k count_k sum_j log scatter along axis j      (common principal components, Flury 1984)
        EVE   sum_k (product_j scatter along axis j)^(1/d)

    One sweep of pairwise rotations from the previous axes; without them, searches from several, the best of
    them to the end. There are many local optima when the scatters are ill-conditioned and their axes all
    differ (eigenvalue ratios above 1e6): what is found is then good, not surely the lowest.
    """
    values, vectors = eigen_descending(scatter)
    root = np.sqrt(values)[:, :, None] * vectors.swapaxes(1, 2)  # scatter = root' root
    if previous is not None and previous.ndim == 2:
        axes = previous[None].copy()
        _sweep(volume, count, root @ axes[:, None], axes)
        return np.asarray(_orthogonal(axes)[0])
    axes = _starting_axes(count, scatter, values, vectors)
    first = SCAN if scatter.shape[-1] <= SCAN_COLUMNS else RACE
    axes, cost = _search(first, volume, count, root, axes)
    best = int(np.argmin(cost))
    return np.asarray(_search(SWEEP, volume, count, root, axes[best : best + 1])[0][0])


def _starting_axes(count: Array, scatter: Array, values: Array, vectors: Array) -> Array:
    """Eigenvectors of the three largest components and of four means over all of them: of the scatters, of
    the scatters with equal traces, of their logs and of their inverses."""
    traces = values.sum(axis=1)[:, None, None]
    variance = values / count[:, None]
    turned = vectors.swapaxes(1, 2)
    means = [
        scatter,
        scatter / traces,
        count[:, None, None] * (vectors * np.log(variance)[:, None]) @ turned,
        count[:, None, None] * (vectors / variance[:, None]) @ turned,
    ]
    largest = np.argsort(-count, kind="stable")[:3]
    return np.concatenate([eigen_descending(np.sum(means, axis=1))[1], vectors[largest]])


class AxesSearch(NamedTuple):
    """A move over all pairs of axes, the gain a row below which it is not repeated, and how often at most."""

    move: Callable[[str, Array, Array, Array], None]
    gain: float
    limit: int


def _search(search: AxesSearch, volume: str, count: Array, root: Array, axes: Array) -> tuple[Array, Array]:
    """Repeat a move on all starts (s, d, d) until none gains; the axes and their costs (s,)."""
    cost = _profiled_cost(volume, count, _along(root @ axes[:, None]))
    for _ in range(search.limit):
        search.move(volume, count, root @ axes[:, None], axes)
        axes = _orthogonal(axes)
        before, cost = cost, _profiled_cost(volume, count, _along(root @ axes[:, None]))
        if np.all(before - cost <= search.gain * count.sum()):
            break
    return axes, cost


def _orthogonal(axes: Array) -> Array:
    """Nearest orthogonal matrices: the polar factors."""
    left, _, right = np.linalg.svd(axes)
    return np.asarray(left @ right)


def _along(turned: Array) -> Array:
    """Scatter along the axes (s, K, d), from turned = root axes (s, K, d, d)."""
    return np.asarray(np.square(turned).sum(axis=-2))


def _profiled_cost(volume: str, count: Array, along: Array) -> Array:
    """The cost with the best log-variances put in, up to a constant, from (..., K, d)."""
    with np.errstate(divide="ignore"):
        logs = np.log(along)
    if volume == "V":
        return np.asarray((count[:, None] * logs).sum(axis=(-2, -1)))
    return np.asarray(count.sum() * logs.shape[-1] * log_sum_exp(logs.mean(axis=-1)))


@cache
def _rounds(d: int) -> tuple[tuple[Array, Array], ...]:
    """All pairs of d columns as rounds of disjoint pairs (the circle method of round-robin tournaments)."""
    circle, rounds = list(range(d + d % 2)), []
    for _ in range(len(circle) - 1):
        half = len(circle) // 2
        first, second = np.array(circle[:half]), np.array(circle[: half - 1 : -1])
        real = np.maximum(first, second) < d  # with d odd one column rests
        rounds.append((first[real], second[real]))
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return tuple(rounds)


def _rotate(columns: Array, first: Array, second: Array, angle: Array) -> None:
    """Turn pairs of columns in place; `angle` broadcasts against columns[..., first]."""
    cosine, sine = np.cos(angle), np.sin(angle)
    one, other = columns[..., first], columns[..., second]
    columns[..., first] = cosine * one + sine * other
    columns[..., second] = cosine * other - sine * one


def _sweep(volume: str, count: Array, turned: Array, axes: Array) -> None:
    """Turn every pair of axes once, in place, to the best angle with the variances held at their profile."""
    for first, second in _rounds(axes.shape[-1]):
        along = _along(turned)
        share = count[:, None]
        if volume == "E":
            middle = np.log(along).mean(axis=-1, keepdims=True)
            share = np.exp(middle - middle.max(axis=-2, keepdims=True))
        precision = share / along
        gap = precision[..., first] - precision[..., second]
        across = (turned[..., first] * turned[..., second]).sum(axis=-2)
        rise = (gap * (along[..., second] - along[..., first])).sum(axis=-2) + 0.0  # no minus zero
        angle = np.arctan2(-2 * (gap * across).sum(axis=-2) + 0.0, rise) / 2
        _rotate(turned, first, second, angle[:, None, None])
        _rotate(axes, first, second, angle[:, None])


def _scan(volume: str, count: Array, turned: Array, axes: Array) -> None:
    """Turn every pair of axes once, in place, to the best of a grid of angles of the profiled cost itself.

    The sweep, which holds the variances, stalls in poor optima of ill-conditioned scatters.
    """
    for first, second in combinations(range(axes.shape[-1]), 2):
        angle = _scanned_angle(volume, count, turned, first, second)[:, None, None]
        pair = np.array([first]), np.array([second])
        _rotate(turned, *pair, angle[..., None])
        _rotate(axes, *pair, angle)


def _scanned_angle(volume: str, count: Array, turned: Array, first: int, second: int) -> Array:
    """Best angle of one pair of axes for each start: a grid, then four finer ones around its best."""
    along = _along(turned)
    across = (turned[..., first] * turned[..., second]).sum(axis=-1)[:, None]
    one, other = along[:, None, :, first], along[:, None, :, second]
    rest = np.log(along).sum(axis=-1)[:, None] - np.log(one) - np.log(other)

    def cost(angle: Array) -> Array:  # (s, angles)
        cosine, sine = np.cos(angle)[..., None], np.sin(angle)[..., None]
        turned_one = cosine**2 * one + 2 * cosine * sine * across + sine**2 * other
        turned_other = sine**2 * one - 2 * cosine * sine * across + cosine**2 * other
        logs = np.log(np.maximum(turned_one, TINY)) + np.log(np.maximum(turned_other, TINY))
        if volume == "V":
            return np.asarray(logs @ count)
        return log_sum_exp((rest + logs) / along.shape[-1])

    def best_of(angle: Array) -> Array:
        return np.take_along_axis(angle, cost(angle).argmin(axis=1)[:, None], axis=1)

    best = best_of(np.broadcast_to(SCAN_ANGLES, (len(turned), SCAN_ANGLES.size)))
    spacing = SCAN_ANGLES[1] - SCAN_ANGLES[0]
    for _ in range(N_FINER_GRIDS):
        spacing /= 4
        best = best_of(best + spacing * np.arange(-4, 5))
    return np.asarray(np.where(cost(best) < cost(np.zeros_like(best)), best, 0.0)[:, 0])


SCAN = AxesSearch(_scan, gain=SCAN_GAIN, limit=SCAN_LIMIT)
RACE = AxesSearch(_sweep, gain=RACE_GAIN, limit=RACE_LIMIT)
SWEEP = AxesSearch(_sweep, gain=SWEEP_GAIN, limit=SWEEP_LIMIT)
