"""Distances and sums over the observed cells of Gaussian and Student components, rows grouped by what they lack.

Components along the columns: a missing cell drops out of distances and sums. Components with axes: the conditional
expectation of the missing cells, and its covariance, enter the sums (Little and Rubin,
Statistical Analysis with Missing Data, chapter 11). With observed columns o, missing ones m:

    regression B_k = covariance_k[o, o]^-1 covariance_k[o, m]
    remainder  C_k = covariance_k[m, m] - covariance_k[m, o] B_k
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ilk.table.block import Array, Block

if TYPE_CHECKING:
    from ilk.families.gaussian import Mixture

KEPT_CELLS = 300_000  # of conditional distributions kept at a time; about 8 MB


@dataclass(frozen=True)
class ComponentDistances:
    """Of the observed cells of each row from each component: all that an elliptical density needs."""

    squared: Array  # (rows, K) Mahalanobis distances
    log_determinant: Array  # (rows or 1, K) of the covariance of the observed columns
    n_observed: Array  # (rows, 1) cells


def patterns(block: Block) -> Iterator[tuple[Array, Array]]:
    """Row numbers of each pattern of missing cells, and its mask of observed columns."""
    if block.complete:
        yield np.arange(block.n_rows), np.ones(block.n_columns, dtype=bool)
        return
    observed = ~np.isnan(block.raw)
    masks, inverse = np.unique(observed, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    edges = np.searchsorted(inverse[order], np.arange(len(masks) + 1))
    for mask, begin, end in zip(masks, edges[:-1], edges[1:], strict=True):
        yield order[begin:end], mask


def distances(params: Mixture, block: Block) -> ComponentDistances:
    """Squared Mahalanobis distances and log-determinants over the observed cells; 0 for a row with none."""
    numbers = block.numbers.astype(np.float64, copy=False)
    n_components, d = params.mean.shape
    squared = np.empty((block.n_rows, n_components))
    if block.complete:
        for k in range(n_components):
            away = numbers - params.mean[k]
            with np.errstate(over="ignore"):  # so far out that no density is left
                scaled = away * params.whiten[k] if params.whiten.ndim == 2 else away @ params.whiten[k].T
                squared[:, k] = np.square(scaled).sum(axis=1)
        return ComponentDistances(
            squared, params.covariance.log_determinants()[None], np.full((block.n_rows, 1), d)
        )
    observed = ~np.isnan(numbers)
    n_observed = observed.sum(axis=1, keepdims=True)
    if params.covariance.axes is None:
        for k in range(n_components):
            away = np.where(observed, (numbers - params.mean[k]) * params.whiten[k], 0.0)
            squared[:, k] = np.square(away).sum(axis=1)
        return ComponentDistances(squared, observed @ params.covariance.log_variance.T, n_observed)
    log_determinant = np.empty_like(squared)
    for rows, mask in patterns(block):
        known = conditional(params, mask)
        away = numbers[np.ix_(rows, np.flatnonzero(mask))] - params.mean[:, None, mask]
        squared[rows] = np.square(away @ known.whiten.swapaxes(1, 2)).sum(axis=2).T
        log_determinant[rows] = known.log_determinant
    return ComponentDistances(squared, log_determinant, n_observed)


@dataclass(frozen=True)
class Conditional:
    """What the observed columns o of a pattern say under each component."""

    whiten: Array  # (K, o, o): inverse of the lower root of covariance[o, o]
    log_determinant: Array  # (K,) of covariance[o, o]
    regression: Array  # (K, d, o): completes the observed part of a row, less its mean
    remainder: Array  # (K, d, d): covariance of what that leaves open, 0 outside the missing columns


def conditional(params: Mixture, mask: Array) -> Conditional:
    """The conditional distribution given the columns in `mask`, kept for the next block where memory allows."""
    name, kept = mask.tobytes(), params.conditionals
    found = kept.get(name)
    if found is None:
        found = _conditional(params.covariance.matrices(), mask)
        if (len(kept) + 1) * params.mean.size * params.mean.shape[1] <= KEPT_CELLS:
            kept[name] = found
    return found


def _conditional(covariance: Array, mask: Array) -> Conditional:
    k, d = len(covariance), len(mask)
    o, m = np.flatnonzero(mask), np.flatnonzero(~mask)
    lower = np.linalg.cholesky(covariance[:, o[:, None], o])
    whiten = np.linalg.inv(lower)
    across = whiten @ covariance[:, o[:, None], m]
    regression, remainder = np.zeros((k, d, len(o))), np.zeros((k, d, d))
    regression[:, o] = np.eye(len(o))
    regression[:, m] = across.swapaxes(1, 2) @ whiten
    remainder[:, m[:, None], m] = covariance[:, m[:, None], m] - across.swapaxes(1, 2) @ across
    log_determinant = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return Conditional(whiten, log_determinant, regression, remainder)


def gather(params: Mixture, block: Block, membership: Array, pull: Array | None = None) -> dict[str, Array]:
    """Sums about the current means; `membership` (rows, K or K + noise) holds the weights already.

    `pull` (rows, K) is how much a row counts in means and scatters, one where None (Student components):

        count = sum r,  shift = sum r u (x - mean),  scatter = sum r u (x - mean)(x - mean)' + sum r C

    with `cells` (K, d), the counts of the observed cells, along columns, and `pull`, the counts with u.
    """
    if params.covariance.axes is None:
        return _gather_along_columns(params, block, membership, pull)
    n_components, d = params.mean.shape
    shift, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
    numbers = block.numbers.astype(np.float64, copy=False)
    pulled = membership[:, :n_components] * (1.0 if pull is None else pull)
    for rows, mask in patterns(block):
        if not mask.any() and not membership[rows].any():
            continue
        away = numbers[np.ix_(rows, np.flatnonzero(mask))] - params.mean[:, None, mask]
        weighted = away * pulled[rows].T[:, :, None]
        total, products = weighted.sum(axis=1), weighted.swapaxes(1, 2) @ away
        if mask.all():
            shift += total
            scatter += products
        else:
            known = conditional(params, mask)
            shift += (known.regression @ total[:, :, None])[:, :, 0]
            scatter += known.regression @ products @ known.regression.swapaxes(1, 2)
            scatter += membership[rows, :n_components].sum(axis=0)[:, None, None] * known.remainder
    sums = {"count": membership.sum(axis=0), "shift": shift, "scatter": scatter}
    return sums if pull is None else sums | {"pull": pulled.sum(axis=0)}


def _gather_along_columns(
    params: Mixture, block: Block, membership: Array, pull: Array | None
) -> dict[str, Array]:
    numbers = block.numbers.astype(np.float64, copy=False)
    n_components, d = params.mean.shape
    shift, scatter = np.zeros((n_components, d)), np.zeros((n_components, d))
    own = membership[:, :n_components]
    pulled = own * (1.0 if pull is None else pull)
    observed = None if block.complete else ~np.isnan(numbers)
    for k in range(n_components):
        away = numbers - params.mean[k]
        if observed is not None:
            away = np.where(observed, away, 0.0)
        weighted = away * pulled[:, k, None]
        shift[k], scatter[k] = weighted.sum(axis=0), np.einsum("ij,ij->j", weighted, away)
    sums = {"count": membership.sum(axis=0), "shift": shift, "scatter": scatter}
    if observed is not None:
        sums["cells"] = own.T @ observed
    if pull is not None:
        sums["pull"] = pulled.sum(axis=0) if observed is None else pulled.T @ observed
    return sums
