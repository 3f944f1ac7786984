"""Partitions made from a fitted mixture: one component cut in two, or two made one."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ilk.families.gaussian import Gaussian, Mixture
from ilk.table.block import Array, Block

FEWEST_ROWS = 4  # that are cut in two
SPLIT_PASSES = 5  # of each cut, before the best goes on
AS_LONG = 1e-6  # of a variance: axes that differ by less are as long as each other


def split_labels(block: Block, family: Gaussian, params: Mixture) -> list[Array]:
    """Partitions with one component more: each component cut in two by 2-means on its own whitened rows."""
    label, _ = family.assign(params, block)
    k = len(params.mean)
    numbers = np.where(np.isnan(block.numbers), 0.0, block.numbers).astype(np.float64)
    made = []
    for component in range(k):
        rows = np.flatnonzero(label == component)
        if block.weights[rows].sum() < FEWEST_ROWS:
            continue
        away = numbers[rows] - params.mean[component]
        whiten = params.whiten[component]
        scaled = away @ whiten.T if whiten.ndim == 2 else away * whiten
        half = two_means(scaled, block.weights[rows])
        split = label.copy()
        split[rows[half]] = k
        if half.any() and not half.all():
            made.append(split)
    return made


def joined_labels(block: Block, family: Gaussian, params: Mixture) -> list[Array]:
    """Partitions with one component less: every two of the components joined."""
    label, _ = family.assign(params, block)
    made = []
    for a, b in combinations(range(len(params.mean)), 2):
        joined = np.where(label == b, a, label)
        made.append(joined - (joined > b))
    return [label for label in made if len(np.unique(label)) == len(params.mean) - 1]


def two_means(points: Array, weight: Array) -> Array:
    """Which rows belong to the second of two groups: 2-means from a cut across the longest axis."""
    centred = points - np.average(points, axis=0, weights=weight)
    half = centred @ _longest_axis(centred, weight) > 0
    for _ in range(20):
        if half.all() or not half.any():
            break
        a, b = (np.average(centred[part], axis=0, weights=weight[part]) for part in (~half, half))
        new = centred @ (b - a) > (b @ b - a @ a) / 2  # nearer to b
        if np.array_equal(new, half):
            break
        half = new
    return np.asarray(half)


def _longest_axis(centred: Array, weight: Array) -> Array:
    """The axis of largest variance. Rows whitened by their own covariance have the same along all axes, and rounding
    would choose: of axes as long as each other, the one along which the rows are flattest, as two groups apart are."""
    variance, axes = np.linalg.eigh((centred * weight[:, None]).T @ centred)
    tied = axes[:, variance >= (1 - AS_LONG) * variance[-1]]
    return np.asarray(tied[:, 0]) if tied.shape[1] == 1 else _flattest_axis(centred, weight, tied @ tied.T)


def _flattest_axis(centred: Array, weight: Array, within: Array) -> Array:
    """Of the coordinates and of the axes of fourth moments (Cardoso 1989), both projected by `within`, the one along
    which the rows have the least fourth moment."""
    inside = centred @ within
    fourth = (inside * (weight * np.square(inside).sum(axis=1))[:, None]).T @ inside
    tried = np.hstack([within, within @ np.linalg.eigh(fourth)[1]])
    length = np.sqrt(np.square(tried).sum(axis=0))
    tried = tried[:, length > np.sqrt(AS_LONG)] / length[length > np.sqrt(AS_LONG)]
    moment = weight @ np.square(np.square(centred @ tried))
    return np.asarray(tried[:, int(np.argmin(moment))])
