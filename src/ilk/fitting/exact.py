"""Proven optima of K-means: dynamic programming in one dimension, branch and bound for tiny tables.

The notes on clustering (docs/sources.md) state K-means as a mixed-integer program; these solve it where it is feasible.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ilk.errors import UsageError
from ilk.table.block import Array

LINE_ROWS = 100_000  # distinct values up to which one column is solved exactly without being asked
TINY_ROWS = 16  # rows up to which branch and bound answers in seconds, whatever K


def solve_line(values: Array, weight: Array, k: int) -> Array:
    """Centres of the optimal K-means of one column (Wang and Song 2011), in ascending order.

    cost[m, j] = min over i of cost[m-1, i] + spread(i..j) for the sorted distinct values; the best i grows
    with j, so each layer is found level by level, halving the gaps between known positions.

    >>> solve_line(np.array([0.0, 0.1, 5.0, 5.1, 9.0]), np.ones(5), 3)
    array([0.05, 5.05, 9.  ])
    """
    values, inverse = np.unique(values, return_inverse=True)
    weight = np.bincount(inverse, weights=weight)
    values, weight = values[weight > 0], weight[weight > 0]
    n, k = len(values), min(k, int((weight > 0).sum()))
    middle = values[n // 2]  # prefix sums about a middle value keep their digits
    shifted = values - middle
    prefix = [np.concatenate([[0.0], np.cumsum(weight * shifted**power)]) for power in (0, 1, 2)]

    def spread(first: Array, last: Array) -> Array:
        total, first_moment, second_moment = (p[last] - p[first] for p in prefix)
        return np.asarray(np.maximum(second_moment - first_moment**2 / total, 0.0))

    ends = np.arange(1, n + 1)
    cost = spread(np.zeros(n, np.intp), ends)  # cost[j-1]: values 0..j-1 in one group
    begins = []
    for layer in range(1, k):
        cost, begin = _next_layer(cost, spread, layer, n)
        begins.append(begin)
    cuts = [n]
    for begin in reversed(begins):
        cuts.append(int(begin[cuts[-1] - 1]))
    begin = np.array([0, *cuts[:0:-1]])
    lowest = values[begin]  # about its own lowest value a group's mean keeps all its digits
    above = values - np.repeat(lowest, np.diff([*begin, n]))
    return np.asarray(lowest + np.add.reduceat(weight * above, begin) / np.add.reduceat(weight, begin))


def _next_layer(
    cost: Array, spread: Callable[[Array, Array], Array], layer: int, n: int
) -> tuple[Array, Array]:
    """Best cost with one group more, and where its last group begins, for every end position."""
    best = np.full(n, np.inf)
    begin = np.zeros(n, dtype=np.intp)
    # Ends before `layer` cannot hold layer + 1 groups. Known positions bracket the unknown ones.
    low, high = layer, n - 1
    pending = [(low, high, layer, n - 1)] if low <= high else []
    while pending:
        first, last, least, most = (np.array(x) for x in zip(*pending, strict=True))
        middle = (first + last) // 2
        top = np.minimum(most, middle)
        length = top - least + 1
        offset = np.cumsum(length) - length
        end = np.repeat(middle, length)
        start = np.arange(length.sum()) - np.repeat(offset, length) + np.repeat(least, length)
        candidate = cost[start - 1] + spread(start, end + 1)
        lowest = np.minimum.reduceat(candidate, offset)
        hit = np.flatnonzero(candidate == np.repeat(lowest, length))
        segment = np.searchsorted(offset, hit, side="right") - 1
        _, where = np.unique(segment, return_index=True)
        best[middle], begin[middle] = lowest, start[hit[where]]
        found = begin[middle]
        left = [x for x in zip(first, middle - 1, least, found, strict=True) if x[0] <= x[1]]
        right = [x for x in zip(middle + 1, last, found, most, strict=True) if x[0] <= x[1]]
        pending = left + right
    return best, begin


def solve_tiny(points: Array, weight: Array, k: int, upper: float) -> tuple[Array, float]:
    """Labels of the optimal K-means of at most TINY_ROWS rows, and its cost; `upper` is a known cost.

    Depth first over partitions (row i joins a group or opens the next one), cut where the cost so far plus the
    optimum of the rows still to come, which is known from solving the table from its end (Brusco 2006),
    reaches the best found.
    """
    n = len(points)
    if n > TINY_ROWS:
        raise UsageError(
            "exact-too-large",
            f"exact=True proves the optimum for at most {TINY_ROWS} rows of several columns, this table has {n}",
            do="Leave exact=False",
        )
    rest = np.zeros(n + 1)
    best_labels = np.zeros(n, dtype=np.int32)
    for begin in range(n - 1, -1, -1):
        own = upper if begin == 0 else rest[begin + 1] + _spread(points[begin:], weight[begin:])
        best_labels, rest[begin] = _branch(points[begin:], weight[begin:], k, rest[begin + 1 :], own)
    return best_labels, float(rest[0])


def _spread(points: Array, weight: Array) -> float:
    mean = np.average(points, axis=0, weights=weight)
    return float(weight @ ((points - mean) ** 2).sum(axis=1))


def _branch(points: Array, weight: Array, k: int, rest: Array, upper: float) -> tuple[Array, float]:
    """Best labels and cost of these rows; `rest[i]` is the optimum of the rows after the i-th."""
    n, n_columns = points.shape
    mass, mean = np.zeros(k), np.zeros((k, n_columns))
    label, best = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    least = np.nextafter(upper * (1 + 1e-12), np.inf)

    def place(row: int, n_open: int, cost: float) -> None:
        nonlocal least, best
        if row == n:
            least, best = cost, label.copy()
            return
        n_choices = min(n_open + 1, k)
        gap = ((points[row] - mean[:n_choices]) ** 2).sum(axis=1)
        rise = gap * weight[row] * mass[:n_choices] / (mass[:n_choices] + weight[row])
        for group in np.argsort(rise, kind="stable"):
            if cost + rise[group] + rest[row] >= least:
                break
            old_mass, old_mean = mass[group], mean[group].copy()
            mass[group] += weight[row]
            mean[group] += (points[row] - old_mean) * (weight[row] / mass[group])
            label[row] = group
            place(row + 1, max(n_open, int(group) + 1), cost + float(rise[group]))
            mass[group], mean[group] = old_mass, old_mean

    place(0, 0, 0.0)
    return best, least if np.isfinite(least) else 0.0
