"""What K-means and its kin share: fitting, labelling and measuring distances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.estimators.base import (
    checked_array,
    checked_sparse,
    given_start,
    given_weight,
    number_type,
    real_number,
    takes_sparse,
    training_rows,
    warn_of,
    whole_number,
)
from ilk.estimators.frames import LABEL, Answer, answered, fitted_names, is_frame, opened
from ilk.estimators.habits import callback_of, called_starts, n_starts_of, threads_of
from ilk.estimators.texts import documented
from ilk.families.base import Family
from ilk.fitting.fit import Fit, fit
from ilk.fitting.loop import Stop
from ilk.fitting.restarts import Recipe, fit_recipe, given_params
from ilk.random import seed_of
from ilk.table.block import Array, Block
from ilk.table.condition import survey
from ilk.table.weights import in_unit


@documented
class CentroidEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Fitting, labelling and measuring distances, the same for every kind of centroid."""

    _recipe: Recipe
    _power_of_cost: int  # cost grows with this power of the unit
    _takes_sparse: ClassVar[bool] = False
    device: str = "cpu"  # those that run elsewhere have it as a parameter

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of the rows of X.

        Parameters
        ----------
        {X/numbers} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        k = whole_number("n_clusters", self.n_clusters)
        recipe = self._options()
        options: Any = {"scale": self.scale, "threads": threads_of(self), "device": self.device}
        rows = training_rows(self, X, sample_weight, k=k, **options)
        seed = seed_of(self.random_state)
        found = self._solve(rows, recipe, k, seed)
        self._finish(rows, recipe.family, found)
        warn_of(self, found)
        return self

    def _options(self) -> Recipe:
        stop = Stop(
            real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter, least=0)
        )
        return replace(self._recipe, n_starts=n_starts_of(self.n_init, self._recipe.n_starts), stop=stop)

    def _solve(self, rows: Rows, recipe: Recipe, k: int, seed: int) -> Fit:
        if isinstance(self.init, str):
            recipe = replace(recipe, init=self.init)
            return fit_recipe(rows, recipe, k, seed, callback=callback_of(self))
        if callable(self.init):
            drawn = called_starts(self.init, rows, k, recipe.n_starts, seed)
        else:
            drawn = [given_start(self.init, rows, k)]
        starts = [start for init in drawn for start in given_params(rows, recipe.family, init, k)]
        return fit(
            rows, recipe.family, starts, trim=recipe.trim, stop=recipe.stop, callback=callback_of(self)
        )

    def _finish(self, rows: Rows, family: Family[Any], found: Fit) -> None:
        self._family, self._encoding = family, rows.encoding
        self._params = found.params
        self.fit_ = found.in_unit(rows.encoding.weight_unit)
        self.cluster_centers_ = rows.encoding.undo(found.params.centre).astype(number_type(rows))
        self.labels_ = found.labels
        self.inertia_ = float(self._in_user_units(self.fit_.cost))
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
        if takes_sparse(self, X):
            return MemoryRows(checked_sparse(self, X, reset=False), self._encoding, threads=threads_of(self))
        raw = checked_array(self, X, reset=False)
        return MemoryRows(raw, self._encoding, complete=survey(raw).complete, threads=threads_of(self))

    def predict(self, X: Any) -> Any:
        """Return the group of each row: its nearest centre, the lowest number among equals.

        Parameters
        ----------
        {X/numbers}

        Returns
        -------
        int array of shape (n_rows,) or frame
            Group of each row. A Spark or Dask frame comes back with a column `label`.
        """
        X = opened(X)
        if is_frame(X):
            check_is_fitted(self)
            answer = Answer(self._encoding, *self._labelling())
            return answered(X, fitted_names(self, X), answer, LABEL, threads_of(self))
        return np.concatenate([*self._new_rows(X).scan(_visit_label, (self._family, self._params))])

    def _labelling(self) -> tuple[Any, Any]:
        """The visit that labels the rows of a frame, and its state."""
        return _visit_label, (self._family, self._params)

    def transform(self, X: Any) -> Array:
        """Return the distance of each row to each centre.

        Parameters
        ----------
        {X/numbers}

        Returns
        -------
        array of shape (n_rows, n_clusters)
            Distances, in the units given.
        """
        rows = self._new_rows(X)
        cost = np.concatenate([*rows.scan(_visit_cost, (self._family, self._params))])
        distance = cost ** (1.0 / self._power_of_cost)
        if self._encoding.factor is None:
            distance /= self._encoding.power
        return distance.astype(rows.raw.dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the cost of X, so that larger is better.

        Parameters
        ----------
        {X/numbers} {y} {sample_weight}

        Returns
        -------
        float
            Minus the sum of the costs of the rows to their nearest centres.
        """
        rows = self._new_rows(X)
        cost = np.concatenate([*rows.scan(_visit_least_cost, (self._family, self._params))])
        weight, unit = given_weight(sample_weight, len(cost))
        total = float(cost.sum() if weight is None else weight @ cost)
        return -float(self._in_user_units(in_unit(total, unit)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self._takes_sparse
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
