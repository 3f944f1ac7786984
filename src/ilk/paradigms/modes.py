"""Modes of the density by scikit-learn's mean shift, and how wide its kernel is by default."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MeanShift, estimate_bandwidth

from ilk.random import stream
from ilk.table.block import Array

MANY_ROWS = 1_000  # above, only cells that hold rows are climbed from: a climb from every row takes minutes
BANDWIDTH_ROWS = 2_000  # on which the bandwidth is estimated


def flat_bandwidth(points: Array, seed: int) -> float:
    """Radius of the flat kernel of mean shift: scikit-learn's estimate, the mean distance to the farthest of the 30 %
    nearest rows; the mean distance of all where that is 0."""
    state = int(stream(seed, "bandwidth").integers(2**31))
    n_rows = min(BANDWIDTH_ROWS, len(points))
    found = float(estimate_bandwidth(points, n_samples=n_rows, random_state=state))
    return found or float(np.sqrt(np.square(points - points.mean(axis=0)).sum(axis=1)).mean()) or 1.0


def gaussian_bandwidth(points: Array, seed: int) -> float:
    """Standard deviation of the Gaussian kernel with the second moment of that flat one: radius / sqrt(columns + 2)."""
    return flat_bandwidth(points, seed) / float(np.sqrt(points.shape[1] + 2))


def mean_shift(points: Array, bandwidth: float) -> tuple[Array, Array]:
    """Labels and modes; a row belongs to its nearest mode."""
    model = MeanShift(bandwidth=bandwidth, bin_seeding=len(points) > MANY_ROWS).fit(points)
    return np.asarray(model.labels_, dtype=np.int32), np.asarray(model.cluster_centers_)
