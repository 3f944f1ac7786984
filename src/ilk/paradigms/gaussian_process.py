"""scikit-learn's Dirichlet process mixture of Gaussians, as a plain mixture with the same memberships."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma
from sklearn.mixture import BayesianGaussianMixture

from ilk.errors import DataError
from ilk.table.block import Array

STATES = 2**32  # seeds that scikit-learn takes


@dataclass(frozen=True, eq=False)
class Gaussians:
    """`labels` of the rows; of every component `mixing`, `mean` and `covariance`.

    The expected log densities of the variational posterior are those of Gaussians times a factor per component, which
    is part of `mixing`.
    """

    labels: Array
    mixing: Array
    mean: Array
    covariance: Array
    converged: bool
    n_passes: int


def no_valid_model(error: ValueError) -> DataError | None:
    """What scikit-learn says of covariances that are none, as a refusal; None for another error."""
    if "infs or NaNs" not in str(error) and "ill-defined empirical covariance" not in str(error):
        return None
    said = "squares of these numbers are beyond all doubles, or vanish"
    return DataError("no-valid-model", said, do="Scale the columns")


def dirichlet_gaussians(points: Array, most: int, seed: int) -> Gaussians:
    """At most so many components with full covariances."""
    most = min(most, len(points))
    model = BayesianGaussianMixture(
        n_components=most,
        weight_concentration_prior_type="dirichlet_process",
        max_iter=300,
        random_state=seed % STATES,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells `converged_` too
        try:
            labels = np.asarray(model.fit_predict(points), dtype=np.int32)
        except ValueError as error:
            raise no_valid_model(error) or error from None
    stick, rest = model.weight_concentration_
    total = digamma(stick + rest)
    log_share = digamma(stick) - total + np.concatenate([[0.0], np.cumsum(digamma(rest) - total)[:-1]])
    n_columns = points.shape[1]
    dof = model.degrees_of_freedom_
    log_precision = n_columns * np.log(2.0) + digamma((dof[:, None] - np.arange(n_columns)) / 2).sum(axis=1)
    log_factor = (log_precision - n_columns * np.log(dof) - n_columns / model.mean_precision_) / 2
    score = log_share + log_factor
    mixing = np.exp(score - score.max())
    ended = bool(model.converged_), int(model.n_iter_)
    return Gaussians(labels, mixing / mixing.sum(), model.means_, model.covariances_, *ended)
