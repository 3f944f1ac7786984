"""Classification EM with free covariances, row by row and component by component, with reopening as documented."""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

Components = list[tuple[float, np.ndarray, np.ndarray] | None]  # share, mean, covariance; None when starved


def estimated(X: np.ndarray, label: np.ndarray, k: int) -> Components:
    found: Components = []
    for component in range(k):
        rows = X[label == component]
        enough = len(rows) > X.shape[1] and np.linalg.matrix_rank(rows - rows.mean(axis=0)) == X.shape[1]
        found.append(
            (float(len(rows)), rows.mean(axis=0), np.atleast_2d(np.cov(rows.T, bias=True)))
            if enough
            else None
        )
    total = sum(part[0] for part in found if part is not None)
    return [None if part is None else (part[0] / total, *part[1:]) for part in found]


def mean_spread(components: Components) -> np.ndarray:
    """Variances averaged by rank, along the axes of the pooled covariance."""
    shares = [part[0] for part in components if part is not None]
    matrices = [part[2] for part in components if part is not None]
    values = np.average([np.linalg.eigvalsh(matrix) for matrix in matrices], axis=0, weights=shares)
    axes = np.linalg.eigh(np.average(matrices, axis=0, weights=shares))[1]
    return np.asarray((axes * values) @ axes.T)


def scored(X: np.ndarray, components: Components) -> np.ndarray:
    scores = np.full((len(X), len(components)), -np.inf)
    for number, part in enumerate(components):
        if part is not None:
            scores[:, number] = np.log(part[0]) + multivariate_normal(part[1], part[2]).logpdf(X)
    return scores


def classification_em(X: np.ndarray, label: np.ndarray, k: int) -> tuple[np.ndarray, int, int]:
    """Final labels, how many components there are then, and how many times one was reopened."""
    components = estimated(X, label, k)
    last, reopened, in_vain, n_reopened = np.inf, [], [], 0
    measured = None
    while True:
        scores = scored(X, components)
        label, cost = scores.argmax(axis=1), -scores.max(axis=1).sum()
        if reopened:
            in_vain += reopened if cost >= last - 1e-12 * abs(last) else []
        elif cost >= last:
            return scored(X, measured).argmax(axis=1), len(components), n_reopened
        last, measured, reopened = cost, components, []
        new = estimated(X, label, len(components))
        starved = [number for number, part in enumerate(new) if part is None]
        if len(starved) == len(new):
            return label, 0, n_reopened
        if starved:
            dear = np.argsort(scored(X, new).max(axis=1), kind="stable")
            dear = [int(row) for row in dear if row not in in_vain]
            if not dear or len(in_vain) >= len(new):
                new = [part for part in new if part is not None]
                last, measured = np.inf, None
            else:
                reopened = dear[: len(starved)]
                spread = mean_spread(new)
                for number, row in zip(starved, reopened, strict=False):
                    new[number] = (1 / len(new), X[row], spread)
                total = sum(part[0] for part in new if part is not None)
                new = [None if part is None else (part[0] / total, *part[1:]) for part in new]
                n_reopened += len(reopened)
        components = new
