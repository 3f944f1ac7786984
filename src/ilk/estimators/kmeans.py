"""K-means, K-medians and trimmed K-means as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.errors import UsageError
from ilk.estimators.base import (
    Callback,
    checked_array,
    given_start,
    number_type,
    real_number,
    training_rows,
    warn_of,
    whole_number,
)
from ilk.estimators.frames import LABEL, Answer, answered, fitted_names, is_frame, opened
from ilk.families.base import Family
from ilk.fitting.fit import Fit, fit
from ilk.fitting.loop import Stop
from ilk.fitting.restarts import Recipe, fit_exact, fit_recipe, given_params, solves_line
from ilk.random import seed_of
from ilk.recipes import K_MEANS, K_MEDIANS, TRIMMED_K_MEANS
from ilk.table.block import Array, Block
from ilk.table.condition import survey
from ilk.table.encode import check_weight


class CentroidEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Fitting, labelling and measuring distances, the same for every kind of centroid."""

    _recipe: Recipe
    _power_of_cost: int  # cost grows with this power of the unit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of the rows of X (numbers; NaN where missing)."""
        k = whole_number("n_clusters", self.n_clusters)
        recipe = self._options()
        rows = training_rows(self, X, sample_weight, scale=self.scale, threads=self.threads, k=k)
        seed = seed_of(self.random_state)
        found = self._solve(rows, recipe, k, seed)
        self._finish(rows, recipe.family, found)
        warn_of(self, found)
        return self

    def _options(self) -> Recipe:
        stop = Stop(
            real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter, least=0)
        )
        return replace(self._recipe, n_starts=whole_number("n_init", self.n_init), stop=stop)

    def _solve(self, rows: Rows, recipe: Recipe, k: int, seed: int) -> Fit:
        if isinstance(self.init, str):
            recipe = replace(recipe, init=self.init)
            return fit_recipe(rows, recipe, k, seed, callback=self.callback)
        starts = given_params(rows, recipe.family, given_start(self.init, rows, k), k)
        return fit(rows, recipe.family, starts, trim=recipe.trim, stop=recipe.stop, callback=self.callback)

    def _finish(self, rows: Rows, family: Family[Any], found: Fit) -> None:
        self._family, self._encoding = family, rows.encoding
        self._params = found.params
        self.fit_ = found
        self.cluster_centers_ = rows.encoding.undo(found.params.centre).astype(number_type(rows))
        self.labels_ = found.labels
        self.inertia_ = self._in_user_units(found.cost)
        self.n_iter_ = found.n_passes
        self.converged_ = found.converged
        self._n_features_out = len(self.cluster_centers_)

    def _in_user_units(self, cost: Any) -> Any:
        """Costs as the user would compute them; standardised columns have no unit."""
        if self._encoding.factor is not None:
            return cost
        with np.errstate(over="ignore", under="ignore"):
            for _ in range(self._power_of_cost):  # one by one: the square of a unit may be out of range
                cost = cost / np.float64(self._encoding.power)
        return cost

    def _new_rows(self, X: Any) -> MemoryRows:
        check_is_fitted(self)
        raw = checked_array(self, X, reset=False)
        return MemoryRows(raw, self._encoding, complete=survey(raw).complete, threads=self.threads)

    def predict(self, X: Any) -> Any:
        """The group of each row: its nearest centre, the lowest number among equals. A frame on a cluster gets a
        column `label`."""
        X = opened(X)
        if is_frame(X):
            check_is_fitted(self)
            answer = Answer(self._encoding, *self._labelling())
            return answered(X, fitted_names(self, X), answer, LABEL, self.threads)
        return np.concatenate([*self._new_rows(X).scan(_visit_label, (self._family, self._params))])

    def _labelling(self) -> tuple[Any, Any]:
        """The visit that labels the rows of a frame, and its state."""
        return _visit_label, (self._family, self._params)

    def transform(self, X: Any) -> Array:
        """Distance of each row to each centre (rows, groups)."""
        rows = self._new_rows(X)
        cost = np.concatenate([*rows.scan(_visit_cost, (self._family, self._params))])
        distance = cost ** (1.0 / self._power_of_cost)
        if self._encoding.factor is None:
            distance /= self._encoding.power
        return distance.astype(rows.raw.dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the cost of X: the reconstruction error of the code book `cluster_centers_`."""
        rows = self._new_rows(X)
        cost = np.concatenate([*rows.scan(_visit_least_cost, (self._family, self._params))])
        weight = np.ones(len(cost)) if sample_weight is None else check_weight(sample_weight, len(cost))
        return -float(self._in_user_units(weight @ cost))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _visit_label(state: Any, block: Block) -> Array:
    family, params = state
    found: Array = family.assign(params, block)[0]
    return found


def _visit_least_cost(state: Any, block: Block) -> Array:
    family, params = state
    found: Array = family.assign(params, block)[1]
    return found


def _visit_cost(state: Any, block: Block) -> Array:
    family, params = state
    cost: Array = family.cost(params, block)
    return cost


class KMeans(CentroidEstimator):
    """K-means: groups whose rows lie near their mean.

    Minimises the sum over rows of `weight * |x - centre|^2` by Lloyd's steps from several starts that advance
    together; one column is solved to the proven optimum. Missing cells are NaN: distances are taken over the
    observed columns and scaled up. Labels are in canonical order, larger groups first.

    Parameters
    ----------
    n_clusters : int
        Number of groups.
    init : str or array
        "k-means++", "k-log-k", "farthest-first", "random", "random-hull", "ward", "k-means||" (which draws from
        all rows, the others from a sample of a large table), an array of centres (n_clusters, n_features), or one
        label per row.
    n_init : int
        Starts that run, the best of which is kept; 1 when `init` is an array.
    max_iter, tol : int, float
        Most passes over the rows; a relative fall of the cost at which to stop. With tol=0 a run ends when
        nothing changes.
    scale : None or "standard"
        "standard" divides every column by its standard deviation first; constant columns then count nothing.
    exact : bool
        Prove the optimum: any table of one column, or at most 16 rows. Refused above that.
    random_state : None, int, Generator, RandomState or SeedSequence
    threads : None or int
        None for all cores. The result does not depend on it.
    callback : callable
        Called after each pass with an `Event`.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = ilk.KMeans(2, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.cluster_centers_
    array([[ 1.,  2.],
           [10.,  2.]])
    """

    _recipe = K_MEANS
    _power_of_cost = 2

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        scale: str | None = None,
        exact: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.exact = exact
        self.random_state = random_state
        self.threads = threads
        self.callback = callback

    def _solve(self, rows: Rows, recipe: Recipe, k: int, seed: int) -> Fit:
        by_default = isinstance(self.init, str) and self.init == "k-means++" and solves_line(rows, recipe)
        if not (self.exact or by_default):
            return super()._solve(rows, recipe, k, seed)
        if not rows.complete:
            raise UsageError(
                "exact-with-missing",
                "exact=True needs a table without missing values",
                do="Leave exact=False",
            )
        return fit_exact(rows, recipe, k, seed)


class KMedians(CentroidEstimator):
    """K-medians: groups whose rows lie near their column-wise median, in absolute distance.

    Minimises the sum over rows of `weight * |x - centre|_1`. Less moved by outliers than K-means. The median of
    an even number of rows is the lower one.

    Parameters
    ----------
    n_clusters, init, n_init, max_iter, tol, scale, random_state, threads, callback : as in `KMeans`

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.array([[0.0], [1], [2], [50], [51], [900]])
    >>> ilk.KMedians(2, random_state=0).fit(X).cluster_centers_.ravel().tolist()
    [2.0, 900.0]
    """

    _recipe = K_MEDIANS
    _power_of_cost = 1

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        scale: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.threads = threads
        self.callback = callback


class TrimmedKMeans(CentroidEstimator):
    """K-means that leaves out the share `trim` of the rows that fit worst, in every step.

    The rows left out still get the label of their nearest centre; `outliers_` marks them.

    Parameters
    ----------
    trim : float
        Share of the rows to leave out.
    n_clusters, init, n_init, max_iter, tol, scale, random_state, threads, callback : as in `KMeans`

    Attributes
    ----------
    outliers_ : array of bool
        Rows beyond the cut; their cost is not in `inertia_`.
    """

    _recipe = TRIMMED_K_MEANS
    _power_of_cost = 2

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        trim: float = 0.05,
        init: Any = "k-log-k",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        scale: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.trim = trim
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.threads = threads
        self.callback = callback

    def _options(self) -> Recipe:
        return replace(super()._options(), trim=real_number("trim", self.trim, 0.0, 1.0))

    def _finish(self, rows: Rows, family: Family[Any], found: Fit) -> None:
        super()._finish(rows, family, found)
        beyond = (
            np.zeros(rows.n_rows, dtype=bool) if found.row_cost is None else found.row_cost > found.cut.limit
        )
        self.outliers_ = beyond
