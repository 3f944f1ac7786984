"""Partitions made from a fitted mixture: one component cut in two, or two made one."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ilk.families.gaussian import Gaussian, Mixture
from ilk.table.block import Array, Block


def split_labels(block: Block, family: Gaussian, params: Mixture) -> list[Array]:
    """Partitions with one component more: each component cut in two by 2-means on its own whitened rows."""
    label, _ = family.assign(params, block)
    k = len(params.mean)
    numbers = np.where(np.isnan(block.numbers), 0.0, block.numbers).astype(np.float64)
    made = []
    for component in range(k):
        rows = np.flatnonzero(label == component)
        if len(rows) < 4:
            continue
        away = numbers[rows] - params.mean[component]
        whiten = params.whiten[component]
        scaled = away @ whiten.T if whiten.ndim == 2 else away * whiten
        half = two_means(scaled)
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


def two_means(points: Array) -> Array:
    """Which rows belong to the second of two groups: 2-means from a cut across the longest axis."""
    centred = points - points.mean(axis=0)
    axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    half = centred @ axis > 0
    for _ in range(20):
        if half.all() or not half.any():
            break
        a, b = centred[~half].mean(axis=0), centred[half].mean(axis=0)
        new = centred @ (b - a) > (b @ b - a @ a) / 2  # nearer to b
        if np.array_equal(new, half):
            break
        half = new
    return np.asarray(half)
