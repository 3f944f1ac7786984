"""BinaryDPMeans as a scikit-learn estimator: groups of rows of zeros and ones, their number found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ilk.engines.base import Rows
from ilk.engines.condition import is_complete
from ilk.engines.derived import derive
from ilk.engines.memory import MemoryRows
from ilk.errors import SHOWN_ROWS, DataError, UsageError
from ilk.estimators.base import Callback, checked_array, given_weight, real_number, warn_of, whole_number
from ilk.estimators.centroid import CentroidEstimator
from ilk.estimators.frames import is_frame, number_rows, opened, without_weight
from ilk.estimators.habits import callback_of, threads_of
from ilk.estimators.texts import documented
from ilk.families.bernoulli import Bernoulli
from ilk.fitting.binary import default_open_cost, fit_binary, pooled_shares
from ilk.fitting.loop import Stop
from ilk.table.block import Array, Block, Encoding
from ilk.table.read import Table


@documented
class BinaryDPMeans(CentroidEstimator):
    """Groups of rows of zeros and ones, each described by its shares of ones; the number of groups is found.

    Minimises the cross entropy of rows to the shares of their group, plus `smoothing` times the divergence of these
    from the shares of the whole table, plus `open_cost` for each group (in nats). Begins with one group; then
    births, splits and merges, each taken only if the cost falls, until none does. Nothing is random. A missing
    value (NaN) counts nowhere.

    Parameters
    ----------
    open_cost : None or float, default=None
        Cost of each group (the penalty lambda), in nats. None: N log 2 + (columns + 1)/2 log N, which is what it
        takes to tell two groups from one in N rows (one bit a row for its group, and the BIC of a group's shares).
    smoothing : float, default=1.0
        Weight of the pseudo-row with the shares of the whole table that every group gets; above 0.
    binarize : None or float, default=None
        Values above it are ones, the others zeros. None: the table has only 0, 1 and NaN.
    {max_iter} {tol/cost} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        Smoothed shares of ones of each group.
    {labels_} {n_clusters_} {open_cost_} {inertia_} {cost_} {n_iter_} {converged_} {fit_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPMeans : The same for numbers.
    MixedMixture : Latent classes, with soft memberships.

    Notes
    -----
    This is Algorithm 3 of the supplement of the paper, repaired: as printed, a group begun at a row is infinitely
    far from every other row.

    References
    ----------
    Garg, Rudin and Jaakkola (2016). CRAFT: cluster-specific assorted feature selection. AISTATS, 305-313.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 20, axis=0)
    >>> model = ilk.BinaryDPMeans().fit(X)
    >>> model.n_clusters_, model.labels_[[0, -1]].tolist()
    (2, [1, 0])
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
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.open_cost = open_cost
        self.smoothing = smoothing
        self.binarize = binarize
        self.max_iter = max_iter
        self.tol = tol
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of the rows of X, and how many there are.

        Parameters
        ----------
        X : array, frame or path of shape (n_rows, n_features)
            0 and 1, NaN where a value is missing; numbers where `binarize` is given.
        {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        stop = Stop(
            real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter, least=0)
        )
        smoothing = real_number("smoothing", self.smoothing, 0.0, np.inf)
        if smoothing == 0:
            raise UsageError("bad-smoothing", "smoothing=0", do="Give a number above 0")
        rows = self._training_rows(X, sample_weight)
        pooled, n_rows = pooled_shares(rows)
        family = Bernoulli(pooled, self._open_cost(n_rows, rows.n_columns), smoothing)
        found = fit_binary(rows, family, stop, callback_of(self))
        self._finish(rows, family, found)
        self.n_iter_ = found.trace[-1].number if found.trace else 0
        self.open_cost_ = family.open_cost
        self.n_clusters_ = len(found.size)
        self.cost_ = self.fit_.cost + family.penalty(found.params)
        warn_of(self, found)
        return self

    def _open_cost(self, n_rows: float, n_columns: int) -> float:
        if self.open_cost is None:
            return default_open_cost(n_rows, n_columns)
        return real_number("open_cost", self.open_cost, 0.0, np.inf)

    def _new_rows(self, X: Any) -> MemoryRows:
        check_is_fitted(self)
        return self._binary_rows(X, None, reset=False)

    def _labelling(self) -> tuple[Any, Any]:
        return _visit_label, (self._threshold(), self._family, self._params)

    def _threshold(self) -> float | None:
        return None if self.binarize is None else real_number("binarize", self.binarize, -np.inf, np.inf)

    def _training_rows(self, X: Any, sample_weight: Any) -> Rows:
        X = opened(X)
        if isinstance(X, Table) and isinstance(sample_weight, str):
            X, sample_weight = without_weight(X, sample_weight)
        if not is_frame(X):
            return self._binary_rows(X, sample_weight, reset=True)
        found = number_rows(self, X, sample_weight, threads=threads_of(self), k=1)
        rows: Rows = found.encoded(found.encoding, is_complete(found))
        if self.binarize is not None:
            return derive(rows, _Binarize(self._threshold()))
        _refuse_others(rows.reduce(_visit_others, None))
        return rows

    def _binary_rows(self, X: Any, sample_weight: Any, *, reset: bool) -> MemoryRows:
        raw = checked_array(self, X, reset=reset)
        weight, unit = given_weight(sample_weight, len(raw))
        untouched = Encoding(1.0, np.zeros(raw.shape[1]), weight_unit=unit)
        complete = not np.isnan(raw).any()
        made = _Binarize(self._threshold())(Block(raw, untouched, complete=complete))
        if self.binarize is None:
            _refuse_others(_visit_others(None, made))
        return MemoryRows(made.raw, untouched, weight=weight, complete=complete, threads=threads_of(self))


@dataclass(frozen=True)
class _Binarize:
    """Cells above a threshold become 1, the others 0; without a threshold they stay."""

    threshold: float | None

    def __call__(self, block: Block) -> Block:
        if self.threshold is None:
            return block
        above = (block.raw > self.threshold).astype(block.raw.dtype)
        return replace(block, raw=np.where(np.isnan(block.raw), block.raw, above))


def _visit_label(state: tuple[float | None, Any, Any], block: Block) -> Array:
    threshold, family, params = state
    if threshold is None:
        _refuse_others(
            replace(_visit_others(None, block), first_row=np.inf)
        )  # parts of a frame do not know theirs
    found: Array = family.assign(params, _Binarize(threshold)(block))[0]
    return found


@dataclass(frozen=True)
class _Others:
    """Cells that are neither 0 nor 1, by column, and the first row that has one; infinite where it is not known."""

    columns: Array
    first_row: float

    def __add__(self, other: _Others) -> _Others:
        return _Others(self.columns + other.columns, min(self.first_row, other.first_row))


def _visit_others(_: None, block: Block) -> _Others:
    other = ~((block.raw == 0) | (block.raw == 1) | np.isnan(block.raw))
    rows = np.flatnonzero(other.any(axis=1))
    return _Others(other.sum(axis=0), block.first_row + float(rows[0]) if len(rows) else np.inf)


def _refuse_others(others: _Others) -> None:
    columns = np.flatnonzero(others.columns)[:SHOWN_ROWS]
    if len(columns):
        row = f"; first row {int(others.first_row)}" if np.isfinite(others.first_row) else ""
        raise DataError(
            "not-binary",
            f"{int(others.columns.sum())} cells are neither 0 nor 1",
            where=f"columns {', '.join(map(str, columns))}{row}",
            do="Give a table of 0, 1 and NaN, or set binarize to a threshold",
        )
