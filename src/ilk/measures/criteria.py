"""Criteria for choosing a model: every one here is to be made small.

A model whose log-likelihood is not finite (a singular component, a fit that failed) gets +inf, so that it is
never the best and no NaN enters a comparison.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.errors import DataError, UsageError
from ilk.measures.texts import documented

Array = NDArray[Any]


@documented
def bic(loglik: float, n_parameters: float, n_rows: float) -> float:
    """Return BIC: `-2 loglik + n_parameters log(n_rows)`, lower is better.

    It is -2 times the form that textbooks maximise (STAT 391, lecture 20: Clustering, Meilă 2023).

    Parameters
    ----------
    {loglik} {n_parameters} {n_rows}

    Returns
    -------
    float
        BIC, infinite where the log-likelihood is not finite.

    References
    ----------
    Schwarz (1978). Estimating the dimension of a model. Annals of Statistics 6, 461-464.

    Examples
    --------
    >>> round(bic(-214.354704371, 29, 150), 4)
    574.0178
    """
    return _penalised(loglik, n_parameters, math.log(_positive(n_rows)))


@documented
def aic(loglik: float, n_parameters: float) -> float:
    """Return AIC: `-2 loglik + 2 n_parameters`, lower is better.

    Parameters
    ----------
    {loglik} {n_parameters}

    Returns
    -------
    float
        AIC, infinite where the log-likelihood is not finite.

    References
    ----------
    Akaike (1974). A new look at the statistical model identification. IEEE Transactions on Automatic Control 19,
    716-723.

    Examples
    --------
    >>> aic(-10.0, 3)
    26.0
    """
    return _penalised(loglik, n_parameters, 2.0)


@documented
def caic(loglik: float, n_parameters: float, n_rows: float) -> float:
    """Return the consistent AIC: `-2 loglik + n_parameters (log(n_rows) + 1)`, lower is better.

    Parameters
    ----------
    {loglik} {n_parameters} {n_rows}

    Returns
    -------
    float
        The criterion, infinite where the log-likelihood is not finite.

    References
    ----------
    Bozdogan (1987). Model selection and Akaike's information criterion. Psychometrika 52, 345-370.

    Examples
    --------
    >>> caic(-10.0, 3, 1)
    23.0
    """
    return _penalised(loglik, n_parameters, math.log(_positive(n_rows)) + 1)


@documented
def adjusted_bic(loglik: float, n_parameters: float, n_rows: float) -> float:
    """Return the adjusted BIC: `-2 loglik + n_parameters log((n_rows + 2) / 24)`, lower is better.

    Parameters
    ----------
    {loglik} {n_parameters} {n_rows}

    Returns
    -------
    float
        The criterion, infinite where the log-likelihood is not finite.

    References
    ----------
    Sclove (1987). Application of model-selection criteria to some problems in multivariate analysis. Psychometrika 52,
    333-343.

    Examples
    --------
    >>> adjusted_bic(-10.0, 3, 22)
    20.0
    """
    return _penalised(loglik, n_parameters, math.log((_positive(n_rows) + 2) / 24))


@documented
def icl(loglik: float, n_parameters: float, n_rows: float, log_certainty: float) -> float:
    """Return ICL in the form of mclust: `bic - 2 log_certainty`, lower is better, never below `bic`.

    Parameters
    ----------
    {loglik} {n_parameters} {n_rows}
    log_certainty : float
        What `log_certainty` returns.

    Returns
    -------
    float
        ICL, infinite where the log-likelihood is not finite.

    References
    ----------
    Biernacki, Celeux and Govaert (2000). Assessing a mixture model for clustering with the integrated completed
    likelihood. IEEE PAMI 22, 719-725.

    Examples
    --------
    >>> icl(-10.0, 3, 1, log_certainty([[0.5, 0.5], [1.0, 0.0]])) == 20.0 + 2 * math.log(2)
    True
    """
    if math.isnan(log_certainty) or log_certainty > 0:
        raise UsageError(
            "bad-certainty",
            f"log_certainty={log_certainty} is not a sum of logarithms of probabilities",
            do="Give the result of log_certainty()",
        )
    return bic(loglik, n_parameters, n_rows) - 2 * log_certainty


@documented
def log_certainty(membership: Any, weight: Any = None) -> float:
    """Return `sum_n weight_n log(max_k membership_nk)`: 0 where every row has probability 1. Sums over blocks add up.

    Parameters
    ----------
    membership : array of shape (n_rows, n_components)
        Probability of each component for each row.
    {weight}

    Returns
    -------
    float
        The sum, 0 or less.

    Examples
    --------
    >>> log_certainty([[1.0, 0.0], [0.0, 1.0]])
    0.0
    """
    largest = np.max(np.asarray(membership, dtype=np.float64), axis=1)
    logs = np.log(np.clip(largest, np.finfo(np.float64).tiny, 1.0))
    return math.fsum(logs if weight is None else logs * np.asarray(weight, dtype=np.float64))


@documented
def spherical_loglik(within_ss: float, sizes: Any, n_columns: int) -> float:
    """Return the log-likelihood of K-means read as round Gaussians of one variance with hard memberships.

    `sum_k n_k log(n_k / n) - n d / 2 (log(2 pi s2) + 1)` with `s2 = within_ss / (n d)`: the classification
    likelihood at its maximum, mixing proportions `n_k / n`.

    Parameters
    ----------
    {within_ss} {sizes} {n_columns}

    Returns
    -------
    float
        The log-likelihood, +inf where every row lies on its centre.

    Examples
    --------
    >>> round(spherical_loglik(2.0, [2], 1), 4)
    -2.8379
    """
    counts = _sizes(sizes)
    n_rows = math.fsum(counts)
    if math.isnan(within_ss) or within_ss < 0 or n_columns < 1:
        raise DataError(
            "bad-sum-of-squares",
            f"within_ss={within_ss}, n_columns={n_columns} cannot be",
            do="Give the sum of squared distances to the centres and the number of columns",
        )
    if within_ss == 0:
        return math.inf
    variance = within_ss / (n_rows * n_columns)
    mixing = math.fsum(counts * np.log(counts / n_rows))
    return mixing - n_rows * n_columns / 2 * (math.log(2 * math.pi) + math.log(variance) + 1)


@documented
def spherical_parameters(n_clusters: int, n_columns: int) -> int:
    """Return the number of mixing proportions, centres and one variance: `(K - 1) + K d + 1`.

    Parameters
    ----------
    n_clusters : int
        K.
    {n_columns}

    Returns
    -------
    int
        The number of free parameters.

    Examples
    --------
    >>> spherical_parameters(3, 4)
    15
    """
    return n_clusters - 1 + n_clusters * n_columns + 1


@documented
def kmeans_bic(within_ss: float, sizes: Any, n_columns: int) -> float:
    """Return BIC of K-means as an equal-variance spherical model, lower is better; empty clusters do not count.

    A penalty of `K d` on the loss (Introduction to Data Mining 05: Clustering, Paaßen, Bielefeld 2023) is in
    squared units: a factor of 10 on the table changes which K wins. Here a factor adds the same constant for every
    K, and so cannot.

    Parameters
    ----------
    {within_ss} {sizes} {n_columns}

    Returns
    -------
    float
        BIC. +inf (never chosen) if `within_ss` is 0: with as many clusters as distinct rows the likelihood is
        infinite and says nothing.

    Examples
    --------
    >>> a, b = kmeans_bic(40.0, [5, 5], 2), kmeans_bic(30.0, [4, 3, 3], 2)
    >>> round(b - a, 6) == round(kmeans_bic(3000.0, [4, 3, 3], 2) - kmeans_bic(4000.0, [5, 5], 2), 6)
    True
    """
    counts = _sizes(sizes)
    loglik = spherical_loglik(within_ss, counts, n_columns)
    return bic(loglik, spherical_parameters(len(counts), n_columns), math.fsum(counts))


def _penalised(loglik: float, n_parameters: float, price: float) -> float:
    if not math.isfinite(loglik):
        return math.inf
    if not (math.isfinite(n_parameters) and n_parameters >= 0):
        raise UsageError(
            "bad-parameter-count", f"n_parameters={n_parameters} cannot be", do="Count the free parameters"
        )
    return float(-2 * loglik + n_parameters * price)


def _positive(n_rows: float) -> float:
    if not (math.isfinite(n_rows) and n_rows > 0):
        raise UsageError("bad-row-count", f"n_rows={n_rows} cannot be", do="Give the number of rows, above 0")
    return n_rows


def _sizes(sizes: Any) -> Array:
    counts = np.asarray(sizes, dtype=np.float64)
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any() or not (counts > 0).any():
        raise DataError(
            "bad-sizes",
            "Sizes of clusters are finite numbers from 0, one above 0 at least",
            do="Give the number of rows of each cluster",
        )
    return counts[counts > 0]
