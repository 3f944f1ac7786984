"""Missing cells in Gaussian components: the observed-data likelihood, rows grouped by what they lack.

Components along the columns: a missing cell drops out of scores and sums. Components with axes: the conditional
expectation of the missing cells, and its covariance, enter the sums (covariance.md, section 4; Little and Rubin,
Statistical Analysis with Missing Data, chapter 11). With observed columns o, missing ones m:

    regression B_k = covariance_k[o, o]^-1 covariance_k[o, m]
    remainder  C_k = covariance_k[m, m] - covariance_k[m, o] B_k
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ilk.table.block import Array, Block

if TYPE_CHECKING:
    from ilk.families.gaussian import Mixture, Noise

LOG_2_PI = float(np.log(2 * np.pi))


def anything_observed(block: Block) -> Array:
    """1 for rows with an observed cell, 0 for those that say nothing and enter no sum."""
    return (~np.isnan(block.raw)).any(axis=1).astype(np.float64)


def patterns(block: Block) -> Iterator[tuple[Array, Array]]:
    """Row numbers of each pattern of missing cells, and its mask of observed columns."""
    observed = ~np.isnan(block.raw)
    masks, inverse = np.unique(observed, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    edges = np.searchsorted(inverse[order], np.arange(len(masks) + 1))
    for mask, begin, end in zip(masks, edges[:-1], edges[1:], strict=True):
        yield order[begin:end], mask


def scores(params: Mixture, block: Block, noise: Noise | None) -> Array:
    """Log of mixing share times density of the observed cells (rows, K), noise last; 0 observed cells: shares."""
    found = np.empty((block.n_rows, len(params.mean) + (noise is not None)))
    numbers = block.numbers.astype(np.float64, copy=False)
    with np.errstate(divide="ignore"):
        log_mixing, log_noise = np.log(params.mixing), np.log(params.noise_share)
    matrices = None if params.covariance.axes is None else params.covariance.matrices()
    for rows, mask in patterns(block):
        x = numbers[np.ix_(rows, np.flatnonzero(mask))]
        for k in range(len(params.mean)):
            away = x - params.mean[k, mask]
            if matrices is None:
                logs = params.covariance.log_variance[k, mask]
                distance, log_determinant = (away**2 * np.exp(-logs)).sum(axis=1), logs.sum()
            else:
                lower = np.linalg.cholesky(matrices[k][np.ix_(mask, mask)])
                distance = np.square(solve_triangular(lower, away.T, lower=True)).sum(axis=0)
                log_determinant = 2 * np.log(np.diagonal(lower)).sum()
            found[rows, k] = log_mixing[k] - (distance + log_determinant + mask.sum() * LOG_2_PI) / 2
        if noise is not None:
            away = (x - noise.mean[mask]) * noise.precision[mask]
            found[rows, -1] = log_noise + noise.log_density[mask].sum() - np.square(away).sum(axis=1) / 2
    return found


def gather(params: Mixture, block: Block, membership: Array) -> dict[str, Array]:
    """Sums about the current means; `membership` (rows, K or K + noise) holds the weights already."""
    if params.covariance.axes is None:
        return _gather_along_columns(params, block, membership)
    n_components, d = params.mean.shape
    shift, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
    numbers = block.numbers.astype(np.float64, copy=False)
    matrices = params.covariance.matrices()
    for rows, mask in patterns(block):
        if not mask.any():
            continue
        x = numbers[np.ix_(rows, np.flatnonzero(mask))]
        for k in range(n_components):
            weight = membership[rows, k]
            away = x - params.mean[k, mask]
            regression, remainder = _conditional(matrices[k], mask)
            weighted = away * weight[:, None]
            shift[k] += regression @ weighted.sum(axis=0)
            scatter[k] += regression @ (weighted.T @ away) @ regression.T + weight.sum() * remainder
    return {"count": membership.sum(axis=0), "shift": shift, "scatter": scatter}


def _conditional(covariance: Array, mask: Array) -> tuple[Array, Array]:
    """Matrix (d, observed) that completes a row's observed part, and the covariance (d, d) of what it leaves open."""
    d = len(mask)
    regression, remainder = np.zeros((d, int(mask.sum()))), np.zeros((d, d))
    regression[mask] = np.eye(int(mask.sum()))
    if not mask.all():
        across = covariance[np.ix_(mask, ~mask)]
        solved = cho_solve(cho_factor(covariance[np.ix_(mask, mask)], lower=True), across)
        regression[~mask] = solved.T
        remainder[np.ix_(~mask, ~mask)] = covariance[np.ix_(~mask, ~mask)] - across.T @ solved
    return regression, remainder


def _gather_along_columns(params: Mixture, block: Block, membership: Array) -> dict[str, Array]:
    numbers = block.numbers.astype(np.float64, copy=False)
    observed = ~np.isnan(numbers)
    n_components, d = params.mean.shape
    shift, scatter = np.zeros((n_components, d)), np.zeros((n_components, d))
    for k in range(n_components):
        away = np.where(observed, numbers - params.mean[k], 0.0)
        weighted = away * membership[:, k, None]
        shift[k], scatter[k] = weighted.sum(axis=0), (weighted * away).sum(axis=0)
    cells = membership[:, :n_components].T @ observed
    return {"count": membership.sum(axis=0), "cells": cells, "shift": shift, "scatter": scatter}
