"""CRAFT word for word, a cell at a time: what a row costs a group, and one walk over the rows."""

from __future__ import annotations

from math import log

import numpy as np


def constants(m: float, rho: float) -> tuple[float, float]:
    """F0 and F_delta."""

    def F(a: float, b: float) -> float:
        return (a + b) * log(a + b) - a * log(a) - b * log(b)

    a, b = m**2 * (1 - m) / rho - m, m * (1 - m) ** 2 / rho + m
    return F(a, b), F(a + 1, b - 1) - F(a, b)


def row_cost(numbers, codes, group, background, f_delta) -> float:
    """`group` has mean, variance, shares (a list per coded column) and chosen (numbers, then coded columns)."""
    total = f_delta * sum(group["chosen"])
    for d, x in enumerate(numbers):
        if group["chosen"][d] and not np.isnan(x):
            total += (x - group["mean"][d]) ** 2 / (2 * group["variance"][d])
    for j, t in enumerate(codes):
        if t >= 0:
            own = group["chosen"][len(numbers) + j]
            total -= log(group["shares"][j][t] if own else background[j][t])
    return total


def walk(numbers, codes, groups, background, m, rho, open_cost, draws) -> tuple[list[int], list[dict]]:
    """Labels of one pass, and the groups with those opened; a new group has one row and one pseudo-row."""
    f0, f_delta = constants(m, rho)
    n_columns = numbers.shape[1] + codes.shape[1]
    groups, labels = list(groups), []
    for x, c in zip(numbers, codes, strict=True):
        cost = [row_cost(x, c, group, background, f_delta) for group in groups]
        if min(cost) > open_cost + n_columns * f0:
            share = np.mean([group["chosen"] for group in groups], axis=0)
            chance = m + (share - m) * rho / (m * (1 - m))
            chosen = draws.random(n_columns) < chance
            while not chosen.any():
                chosen = draws.random(n_columns) < chance
            shares = [np.array(b, dtype=float) for b in background]
            for j, t in enumerate(c):
                if t >= 0:
                    shares[j][t] += 1
                    shares[j] /= 2
            mean = np.where(np.isnan(x), 0.0, x)
            groups.append({"mean": mean, "variance": np.ones(len(x)), "shares": shares, "chosen": chosen})
            labels.append(len(groups) - 1)
        else:
            labels.append(int(np.argmin(cost)))
    return labels, groups
