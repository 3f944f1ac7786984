"""The dip by its definition: for every mode, the distribution with that mode that is nearest, by linear programming."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def dip_by_definition(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    x, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=weight, minlength=len(x)).astype(float)
    high = np.cumsum(mass) / mass.sum()
    low = high - mass / mass.sum()
    return min(_nearest(x, low, high, mode) for mode in range(len(x)))


def _nearest(x: np.ndarray, low: np.ndarray, high: np.ndarray, mode: int) -> float:
    """Unknowns: G just below each value, G at each value (equal but at the mode, which may hold mass), distance."""
    n = len(x)
    rows, bounds = [], []
    equal = []

    def need(terms: dict[int, float], most: float) -> None:
        row = np.zeros(2 * n + 1)
        for place, factor in terms.items():
            row[place] += factor
        rows.append(row)
        bounds.append(most)

    for i in range(n):
        before, at, distance = i, n + i, 2 * n
        for place, target in ((before, low[i]), (at, high[i])):
            need({place: 1.0, distance: -1.0}, target)
            need({place: -1.0, distance: -1.0}, -target)
        if i == mode:
            need({before: 1.0, at: -1.0}, 0.0)
        else:
            row = np.zeros(2 * n + 1)
            row[before], row[at] = 1.0, -1.0
            equal.append(row)
        if i + 1 < n:
            need({at: 1.0, i + 1: -1.0}, 0.0)
    for i in range(n - 2):  # slopes of two neighbouring intervals, i to i + 1 and i + 1 to i + 2
        one, two = 1 / (x[i + 1] - x[i]), 1 / (x[i + 2] - x[i + 1])
        if i + 1 == mode:
            continue
        sign = 1.0 if i + 1 < mode else -1.0
        slopes = {i + 1: sign * one, n + i: -sign * one}
        for place, factor in ((i + 2, -sign * two), (n + i + 1, sign * two)):
            slopes[place] = slopes.get(place, 0.0) + factor
        need(slopes, 0.0)
    found = linprog(
        [*np.zeros(2 * n), 1.0],
        A_ub=np.array(rows),
        b_ub=bounds,
        A_eq=np.array(equal) if equal else None,
        b_eq=np.zeros(len(equal)) if equal else None,
        bounds=(0, 1),
    )
    assert found.success, found.message
    return float(found.fun)
