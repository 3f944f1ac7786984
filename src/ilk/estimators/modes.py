"""Modes of the density as scikit-learn estimators: mean shift, and Gaussian blurring mean shift."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ilk.engines.base import Rows
from ilk.errors import DataError, warn
from ilk.estimators.base import real_number, refuse_sparse, training_rows, whole_number
from ilk.estimators.texts import documented
from ilk.paradigms.blurring import blur
from ilk.paradigms.modes import flat_bandwidth, gaussian_bandwidth, mean_shift
from ilk.paradigms.order import by_size
from ilk.random import seed_of
from ilk.table.block import Array


@documented
class ModeEstimator(ClusterMixin, BaseEstimator, ABC):
    """Conditioned numbers in, modes in the user's units out. `bandwidth` is in the user's units too, or in standard
    deviations with scale="standard"."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the modes of the rows of X.

        Parameters
        ----------
        {X/complete} {y}

        Returns
        -------
        Self
            The fitted estimator.
        """
        rows = training_rows(self, X, None, scale=self.scale, threads=1, k=1)
        points = complete_points(rows)
        unit = rows.encoding.power if rows.encoding.factor is None else 1.0
        if self.bandwidth is None:
            width = self._default_bandwidth(points, seed_of(self.random_state))
        else:
            width = real_number("bandwidth", self.bandwidth, np.finfo(np.float64).tiny, np.inf) * unit
        labels, modes = self._find(points, width)
        self.labels_, order = by_size(labels)
        self.bandwidth_, self.n_clusters_ = width / unit, len(order)
        self.cluster_centers_ = rows.encoding.undo(modes[order])
        self._encoding, self._modes = rows.encoding, modes[order]
        return self

    @abstractmethod
    def _default_bandwidth(self, points: Array, seed: int) -> float: ...

    @abstractmethod
    def _find(self, points: Array, width: float) -> tuple[Array, Array]:
        """Labels in any order, and the mode of each."""


def complete_points(rows: Rows) -> Array:
    """The encoded numbers of all rows; blanks are refused."""
    if not rows.complete:
        raise DataError(
            "missing-values",
            "mean shift needs numbers without missing values, and some values are missing (NaN)",
            do="Leave these rows out, or use a method that handles missing values",
        )
    return np.asarray(rows.take(np.arange(rows.n_rows)).numbers, dtype=np.float64)


@documented
class MeanShift(ModeEstimator):
    """Mean shift: groups are the regions that climb to one mode of the density; scikit-learn's, K is found.

    Parameters
    ----------
    bandwidth : None or float, default=None
        Radius of the flat kernel in the units given, or in standard deviations with scale="standard". None is
        scikit-learn's estimate.
    {scale} {random_state}

    Attributes
    ----------
    {labels_} {n_clusters_}
    cluster_centers_ : array of shape (n_clusters, n_features)
        The modes, in the units given.
    {bandwidth_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    BlurringMeanShift : The rows themselves move; fewer passes.
    DPMeans : Groups of a given radius around means.

    References
    ----------
    Comaniciu and Meer (2002). Mean shift: a robust approach toward feature space analysis. IEEE PAMI 24, 603-619.

    Examples
    --------
    >>> import ilk
    >>> ilk.MeanShift(bandwidth=2).fit([[1.0], [1.2], [1.1], [8.0], [8.1]]).labels_
    array([0, 0, 0, 1, 1], dtype=int32)
    """

    def __init__(
        self, *, bandwidth: float | None = None, scale: str | None = None, random_state: Any = None
    ) -> None:
        self.bandwidth = bandwidth
        self.scale = scale
        self.random_state = random_state

    def _default_bandwidth(self, points: Array, seed: int) -> float:
        return flat_bandwidth(points, seed)

    def _find(self, points: Array, width: float) -> tuple[Array, Array]:
        return mean_shift(points, width)

    def predict(self, X: Any) -> Array:
        """Return the nearest mode of each row.

        Parameters
        ----------
        {X/complete}

        Returns
        -------
        int array of shape (n_rows,)
            Group of each row.
        """
        check_is_fitted(self)
        refuse_sparse(self, X)
        raw = validate_data(self, X, reset=False, dtype=np.float64)
        points = self._encoding.apply(raw)
        return np.asarray(cdist(points, self._modes).argmin(axis=1), dtype=np.int32)


@documented
class BlurringMeanShift(ModeEstimator):
    """Gaussian blurring mean shift: the rows themselves move to the kernel means, until groups have become points.

    It needs few passes and finds the number of groups. The entropy of the lengths of the moves says when to end,
    before all points meet in one. Each pass compares all pairs of rows.

    Parameters
    ----------
    bandwidth : None or float, default=None
        Standard deviation of the kernel in the units given, or in standard deviations of the columns with
        scale="standard". None takes the one with the spread of mean shift's flat kernel.
    {max_iter} {scale} {random_state}

    Attributes
    ----------
    {labels_} {n_clusters_}
    cluster_centers_ : array of shape (n_clusters, n_features)
        The points in which the groups ended, in the units given.
    {bandwidth_} {n_iter_} {converged_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    MeanShift : The density stays as it is, and has a rule for new rows.

    References
    ----------
    Carreira-Perpiñán (2006). Fast nonparametric clustering with Gaussian blurring mean-shift. ICML, 153-160.

    Examples
    --------
    >>> import ilk
    >>> ilk.BlurringMeanShift(bandwidth=1).fit([[1.0], [1.2], [1.1], [8.0], [8.1]]).labels_
    array([0, 0, 0, 1, 1], dtype=int32)
    """

    def __init__(
        self,
        *,
        bandwidth: float | None = None,
        max_iter: int = 100,
        scale: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.max_iter = max_iter
        self.scale = scale
        self.random_state = random_state

    def _default_bandwidth(self, points: Array, seed: int) -> float:
        return gaussian_bandwidth(points, seed)

    def _find(self, points: Array, width: float) -> tuple[Array, Array]:
        found = blur(points, width, whole_number("max_iter", self.max_iter))
        self.n_iter_, self.converged_ = found.n_passes, found.converged
        if not found.converged:
            warn(
                "not-converged",
                f"BlurringMeanShift did not converge within {found.n_passes} passes.",
                depth=4,
            )
        return found.labels, means_of(found.points, found.labels)


def means_of(points: Array, labels: Array) -> Array:
    """The mean of the points of each label."""
    count = np.bincount(labels)
    return np.column_stack([np.bincount(labels, weights=column) for column in points.T]) / count[:, None]
