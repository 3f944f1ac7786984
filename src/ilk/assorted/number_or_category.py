"""Number or category: what a number of few values costs each way, before there is more than one cluster.

A density times the recording step is a probability, so the two costs are on one scale: minus the log-likelihood plus
half a log of the rows that inform each parameter, as in the cost J of the assorted model.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import xlogy

from ilk.assorted.scales import PLAIN, SCALES, Number
from ilk.assorted.transform import shares_cost
from ilk.table.block import Array

SMALLEST = float(np.finfo(np.float64).tiny)


def cheaper_as_levels(weight_of: Mapping[float, float], atom: float | None, step_quantile: float) -> bool:
    """Whether the values, with their weights, cost less as levels; `atom` is the value that would be split off."""
    value = np.array(sorted(weight_of))
    weight = np.array([weight_of[key] for key in value])
    apart, rest = 0.0, np.ones(len(value), dtype=bool)
    if atom is not None:
        rest = value != atom
        apart = levels_cost(np.array([weight[rest].sum(), weight[~rest].sum()]))
    if np.count_nonzero(rest) < 2:
        return True
    return levels_cost(weight) < apart + number_cost(value[rest], weight[rest], step_quantile)


def levels_cost(weight: Array) -> float:
    """Minus the log-likelihood, and what the free shares cost.

    >>> round(levels_cost(np.array([8.0, 8.0])), 4)
    12.1301
    """
    total = float(weight.sum())
    entropy = -float(xlogy(weight, weight / total).sum())
    return entropy + shares_cost(weight)


def number_cost(value: Array, weight: Array, step_quantile: float) -> float:
    """A normal on the scale, of six, where it costs least; no cell is denser than one per recording step."""
    total = float(weight.sum())
    share = weight / total
    mean = float(share @ value)
    deviation = float(np.sqrt(share @ np.square(value - mean)))
    number = Number(name="", source=0, low=float(value[0]), high=float(value[-1]), deviation=deviation)
    step = float(np.quantile(np.diff(value), step_quantile))
    costs = []
    for scale, way in enumerate(SCALES):
        placed = way.place(value, number)
        slope = float(share @ way.log_slope(placed, number))
        spread = float(share @ np.square(placed - share @ placed))
        floor = float(np.square(step * np.exp(slope)) / (2 * np.pi))
        variance = max(spread, floor, SMALLEST)
        log_density = -(np.log(2 * np.pi * variance) + spread / variance) / 2 + slope
        change = 0.0 if scale == PLAIN else np.log(max(total, 1.0)) / 2
        costs.append(-total * (log_density + np.log(step)) + np.log(max(total, 1.0)) + change)
    return float(min(costs))
