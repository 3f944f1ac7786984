"""DP-means as a scikit-learn estimator: K-means that finds its K by what a group costs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ilk.engines.base import Rows
from ilk.errors import UsageError
from ilk.estimators.base import (
    Callback,
    given_start,
    one_of,
    real_number,
    training_rows,
    warn_of,
    whole_number,
)
from ilk.estimators.centroid import CentroidEstimator
from ilk.estimators.habits import callback_of, threads_of
from ilk.estimators.texts import documented
from ilk.families.opening import OpenMeans
from ilk.fitting.fit import Fit
from ilk.fitting.loop import Stop
from ilk.fitting.opening import fit_batched, fit_sequential, open_cost_for
from ilk.random import seed_of
from ilk.table.block import Array, Encoding

MODES = ("batched", "sequential")


@documented
class DPMeans(CentroidEstimator):
    """DP-means: K-means that creates a group wherever a row is farther than a group costs.

    Minimises the sum over rows of `weight * |x - centre|^2`, plus `open_cost` for each group. It ends with every
    row of weight 1 or more within `open_cost` (a squared distance) of its centre, and every centre the mean of its
    rows. A cost of at least the largest squared distance to the mean gives one group; 0 gives a group for each
    distinct row. No cost suits all tables, since it has the unit of the data.

    Parameters
    ----------
    open_cost : None or float, default=None
        Cost of each group (the penalty lambda), in squared units of the data, or of standard deviations with
        scale="standard". None derives it from `target_clusters`.
    target_clusters : int, default=8
        Number of groups to aim at, used where `open_cost` is None: the cost is the squared distance at which
        farthest-first, begun at the mean, meets its row of this number. More or fewer groups may be found.
    mode : "batched" or "sequential", default="batched"
        "batched" lets each group propose its worst-fitting rows in a pass and creates groups there one by one; the
        cost never rises and the order of the rows does not matter. "sequential" is the published walk from row to
        row, in memory, where their order does matter.
    init : "mean" or array, default="mean"
        One group at the mean of the table, or centres of shape (any number, n_features).
    {max_iter} {tol/cost} {scale} {random_state} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {cluster_centers_} {labels_} {n_clusters_} {open_cost_} {inertia_} {cost_} {n_iter_} {converged_} {fit_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    suggest_open_cost : The cost that `target_clusters` leads to.
    KMeans : With the number of groups given.
    BinaryDPMeans : For rows of zeros and ones.

    Notes
    -----
    `random_state` matters for tables of more than 65,536 rows, which begin on a sample; `callback` and `verbose`
    are for mode="batched".

    References
    ----------
    Kulis and Jordan (2012). Revisiting k-means: new algorithms via Bayesian nonparametrics. ICML.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = ilk.DPMeans(open_cost=20).fit(X)
    >>> model.n_clusters_, model.inertia_, model.cost_
    (2, 16.0, 56.0)
    """

    _power_of_cost = 2

    def __init__(
        self,
        open_cost: float | None = None,
        *,
        target_clusters: int = 8,
        mode: str = "batched",
        init: Any = "mean",
        max_iter: int = 300,
        tol: float = 0.0,
        scale: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.open_cost = open_cost
        self.target_clusters = target_clusters
        self.mode = mode
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of the rows of X, and how many there are.

        Parameters
        ----------
        {X/numbers} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        one_of("mode", self.mode, MODES)
        stop = Stop(
            real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter, least=0)
        )
        rows = training_rows(self, X, sample_weight, scale=self.scale, threads=threads_of(self), k=1)
        seed = seed_of(self.random_state)
        family = OpenMeans(open_cost=self._encoded_open_cost(rows, seed))
        found = self._solve_open(rows, family, seed, stop)
        self._finish(rows, family, found)
        self.open_cost_ = float(self._in_user_units(family.open_cost))
        self.n_clusters_ = len(found.size)
        self.cost_ = float(self._in_user_units(self.fit_.cost + family.penalty(found.params)))
        warn_of(self, found)
        return self

    def _encoded_open_cost(self, rows: Rows, seed: int) -> float:
        if self.open_cost is None:
            return open_cost_for(rows, whole_number("target_clusters", self.target_clusters), seed)
        return _encoded(real_number("open_cost", self.open_cost, 0.0, np.inf), rows.encoding)

    def _solve_open(self, rows: Rows, family: OpenMeans, seed: int, stop: Stop) -> Fit:
        start = self._given_centres(rows)
        if self.mode == "sequential":
            return fit_sequential(rows, family, start, stop)
        return fit_batched(rows, family, start, seed, stop, callback_of(self))

    def _given_centres(self, rows: Rows) -> Array | None:
        if isinstance(self.init, str):
            one_of("init", self.init, ("mean",))
            return None
        shape = np.shape(self.init)
        if len(shape) != 2 or shape[0] < 1:
            raise UsageError(
                "bad-start", f"init has shape {shape}", do='Give centres (any number, n_features), or "mean"'
            )
        return rows.encoding.apply(given_start(self.init, rows, shape[0]))


def _encoded(open_cost: float, encoding: Encoding) -> float:
    """A squared distance of the user in encoded units; standardised columns have none."""
    if encoding.factor is not None:
        return open_cost
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float64(open_cost) * encoding.power * encoding.power)


@documented
def suggest_open_cost(
    X: Any,
    target_clusters: int,
    *,
    sample_weight: Any = None,
    scale: str | None = None,
    random_state: Any = None,
) -> float:
    """Return the cost of a group at which `DPMeans` finds about `target_clusters` groups.

    It is the squared distance at which farthest-first, begun at the mean, meets its row of this number.

    Parameters
    ----------
    {X/numbers}
    target_clusters : int
        Number of groups to aim at.
    {sample_weight} {scale} {random_state}

    Returns
    -------
    float
        The cost, in squared units of the data, or of standard deviations with scale="standard".

    See Also
    --------
    DPMeans : Takes it as `open_cost`.

    Examples
    --------
    >>> import ilk
    >>> ilk.suggest_open_cost([[0.0], [1.0], [10.0], [12.0]], 2)
    33.0625
    """
    model = DPMeans(target_clusters=target_clusters, scale=scale)
    k = whole_number("target_clusters", target_clusters)
    rows = training_rows(model, X, sample_weight, scale=scale, threads=None, k=1)
    cost = open_cost_for(rows, k, seed_of(random_state))
    return cost if scale is not None else cost / rows.encoding.power / rows.encoding.power
