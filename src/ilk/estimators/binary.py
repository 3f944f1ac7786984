"""BinaryDPMeans as a scikit-learn estimator: groups of rows of zeros and ones, their number found."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ilk.engines.memory import MemoryRows
from ilk.errors import SHOWN_ROWS, DataError, UsageError
from ilk.estimators.base import Callback, checked_array, real_number, warn_of, whole_number
from ilk.estimators.kmeans import CentroidEstimator
from ilk.families.bernoulli import Bernoulli
from ilk.fitting.binary import default_open_cost, fit_binary, pooled_shares
from ilk.fitting.loop import Stop
from ilk.table.block import Array, Encoding
from ilk.table.encode import check_weight


class BinaryDPMeans(CentroidEstimator):
    """Groups of binary rows, each described by its shares of ones; the number of groups is found.

    Minimises the cross entropy of rows to the shares of their group, plus `smoothing` times the divergence of these
    from the shares of the whole table, plus `open_cost` for each group (in nats). Begins with one group; then
    births, splits and merges, each taken only if the cost falls, until none does. Nothing is random. A missing cell
    (NaN) counts nowhere. This is Algorithm 3 of the CRAFT supplement, repaired: as printed, a group begun at a row is
    infinitely far from every other row.

    Parameters
    ----------
    open_cost : None or float
        What a group must gain, in nats. None: N log 2 + (columns + 1)/2 log N, which is what it takes to tell two
        groups from one in N rows (one bit a row for its group, and the BIC of a group's shares); noise gains less.
    smoothing : float
        Weight of the pseudo-row with the shares of the whole table that every group gets; above 0.
    binarize : None or float
        Values above it are ones, the others zeros. None: the table has only 0, 1 and NaN.
    max_iter, tol, threads, callback
        As in `KMeans`, for each round of moves.

    Attributes
    ----------
    cluster_centers_ : array (K, n_features)
        Smoothed shares of ones.
    n_clusters_, open_cost_, labels_
    inertia_, cost_ : float
        Cross entropy of the rows; all that is minimised.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 20, axis=0)
    >>> model = ilk.BinaryDPMeans().fit(X)
    >>> model.n_clusters_, model.labels_[[0, -1]].tolist()
    (2, [0, 1])
    """

    _power_of_cost = 1

    def __init__(
        self,
        open_cost: float | None = None,
        *,
        smoothing: float = 1.0,
        binarize: float | None = None,
        max_iter: int = 300,
        tol: float = 0.0,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.open_cost = open_cost
        self.smoothing = smoothing
        self.binarize = binarize
        self.max_iter = max_iter
        self.tol = tol
        self.threads = threads
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of the rows of X (0 and 1; NaN where missing)."""
        stop = Stop(
            real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter, least=0)
        )
        smoothing = real_number("smoothing", self.smoothing, 0.0, np.inf)
        if smoothing == 0:
            raise UsageError("bad-smoothing", "smoothing=0", do="Give a number above 0")
        rows = self._binary_rows(X, sample_weight, reset=True)
        pooled, n_rows = pooled_shares(rows)
        family = Bernoulli(pooled, self._open_cost(n_rows, rows.n_columns), smoothing)
        found = fit_binary(rows, family, stop, self.callback)
        self._finish(rows, family, found)
        self.n_iter_ = found.trace[-1].number if found.trace else 0
        self.open_cost_ = family.open_cost
        self.n_clusters_ = len(found.size)
        self.cost_ = found.cost + family.penalty(found.params)
        warn_of(self, found)
        return self

    def _open_cost(self, n_rows: float, n_columns: int) -> float:
        if self.open_cost is None:
            return default_open_cost(n_rows, n_columns)
        return real_number("open_cost", self.open_cost, 0.0, np.inf)

    def _new_rows(self, X: Any) -> MemoryRows:
        check_is_fitted(self)
        return self._binary_rows(X, None, reset=False)

    def _binary_rows(self, X: Any, sample_weight: Any, *, reset: bool) -> MemoryRows:
        raw = checked_array(self, X, reset=reset)
        if self.binarize is None:
            _refuse_other_values(raw)
        else:
            threshold = real_number("binarize", self.binarize, -np.inf, np.inf)
            raw = np.where(np.isnan(raw), raw, (raw > threshold).astype(raw.dtype))
        weight = None if sample_weight is None else check_weight(sample_weight, len(raw))
        untouched = Encoding(1.0, np.zeros(raw.shape[1]))
        complete = not np.isnan(raw).any()
        return MemoryRows(raw, untouched, weight=weight, complete=complete, threads=self.threads)


def _refuse_other_values(raw: Array) -> None:
    other = ~((raw == 0) | (raw == 1) | np.isnan(raw))
    if other.any():
        columns = np.flatnonzero(other.any(axis=0))[:SHOWN_ROWS]
        raise DataError(
            "not-binary",
            f"{int(other.sum())} cells are neither 0 nor 1",
            where=f"columns {', '.join(map(str, columns))}; first row {int(other.any(axis=1).argmax())}",
            do="Give a table of 0, 1 and NaN, or set binarize to a threshold",
        )
