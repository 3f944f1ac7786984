"""What the mixture estimators share: fitting, scoring, criteria and sampling, the same for every family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import compress
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk import kernels
from ilk.engines.base import Rows
from ilk.engines.devices import mixture_pays_from
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError, UsageError, warn
from ilk.estimators.base import (
    checked_array,
    given_start,
    one_of,
    real_number,
    training_rows,
    warn_of,
    whole_number,
)
from ilk.estimators.constants import set_constant_aside
from ilk.estimators.frames import (
    LABEL,
    LOG_DENSITY,
    Answer,
    Reply,
    answered,
    fitted_names,
    is_frame,
    opened,
    probabilities,
)
from ilk.estimators.habits import callback_of, n_starts_of, threads_of
from ilk.estimators.texts import documented
from ilk.families.covariance import Structure
from ilk.families.mixture import Noise, shares_of
from ilk.families.prior import Prior
from ilk.fitting.fit import Fit
from ilk.fitting.loop import COMPONENT_VANISHED, OK, Stop, run_starts
from ilk.fitting.mixture import MixturePlan, finish_mixture, fit_mixture
from ilk.fitting.table_moments import TableMoments, bounding_noise, broad_noise
from ilk.measures.criteria import aic, bic, icl, log_certainty
from ilk.random import seed_of, stream
from ilk.table.block import Array, Block, is_sparse
from ilk.table.condition import survey
from ilk.table.weights import in_unit
from ilk.threads import one_blas_thread


@documented
class MixtureEstimator(DensityMixin, ClusterMixin, BaseEstimator):
    """The options and the answers of all mixtures; how they are fitted is theirs."""

    _structures: ClassVar[tuple[str, ...] | None] = None  # those the family has; None for all fourteen

    # --- options

    def _plan(self) -> MixturePlan:
        stop = Stop(
            real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter, least=0)
        )
        n_init = None if self.n_init in (None, "auto") else n_starts_of(self.n_init, 1)
        init = self.init if isinstance(self.init, str) else "auto"
        return MixturePlan(init, n_init, stop, real_number("trim", self.trim, 0.0, 1.0))

    def _make_structure(self, n_columns: int) -> Structure:
        structure = Structure.parse(self.structure).for_columns(n_columns)
        if not structure.applies_to(n_columns):
            raise UsageError(
                "bad-structure",
                f"structure {structure.name} is for one column",
                do="Choose a structure of three letters",
            )
        if n_columns > 1 and self._structures is not None and structure.name not in self._structures:
            raise UsageError(
                "bad-structure",
                f"{type(self).__name__} has no structure {structure.name}",
                do=f"Choose one of {' '.join(self._structures)}",
            )
        return structure

    def _make_prior(self, rows: Rows, moments: TableMoments, k: int) -> Prior | None:
        if isinstance(self.prior, Prior):
            return self.prior.encoded(rows.encoding, self._varies)
        return self._default_prior(moments.mean, moments.covariance, moments.row_weight, k)

    def _default_prior(self, mean: Array, covariance: Array, row_weight: float, k: int) -> Prior | None:
        if self.prior is None:
            return None
        one_of("prior", self.prior, ("default",))
        if not len(mean):
            return None
        return Prior.from_table(mean, covariance * (row_weight / max(row_weight - 1, 1)), k)

    def _make_noise(self, rows: Rows, moments: TableMoments) -> Noise | None:
        if self.noise is False or self.noise is None:
            return None
        if self.noise is True or self.noise == "uniform":
            return bounding_noise(rows, moments)
        one_of("noise", self.noise, ("uniform", "gaussian"))
        return broad_noise(moments)

    # --- what a user reads

    def _scan(self, X: Any, visit: Any, reply: Reply) -> Any:
        """What a visit tells of each row: an array, or columns beside those of a frame on a cluster."""
        check_is_fitted(self)
        state = (self._family, self._params, self._log_unit)
        X = opened(X)
        if is_frame(X):
            names = [*compress(fitted_names(self, X), self._varies)]
            return answered(X, names, Answer(self._encoding, visit, state), reply, threads_of(self))
        raw = checked_array(self, X, reset=False)
        facts = survey(raw)
        if not self._varies.all():
            raw = raw[:, self._varies]
        rows = MemoryRows(raw, self._encoding, complete=facts.complete, threads=threads_of(self))
        return np.concatenate([*rows.scan(visit, state)])

    def predict(self, X: Any) -> Any:
        """Return the likeliest component of each row, the lowest number among equals; -1 for noise.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        int array of shape (n_rows,) or frame
            Component of each row. A Spark or Dask frame comes back with a column `label`.
        """
        return self._scan(X, _visit_label, LABEL)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each component for each row.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        array of shape (n_rows, n_components) or frame
            Probabilities; those of the noise component, if there is one, come last. A Spark or Dask frame comes
            back with columns `probability_0`, `probability_1` and so on.
        """
        check_is_fitted(self)
        n_columns = len(self.weights_) + (getattr(self._family, "noise", None) is not None)
        return self._scan(X, _visit_membership, probabilities(n_columns))

    def score_samples(self, X: Any) -> Any:
        """Return the log density of the observed values of each row, in the units given.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        array of shape (n_rows,) or frame
            Log densities. A Spark or Dask frame comes back with a column `log_density`.
        """
        return self._scan(X, _visit_log_density, LOG_DENSITY)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows.

        Parameters
        ----------
        {X/table} {y}

        Returns
        -------
        float
            The mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    def _training_or(self, X: Any) -> tuple[float, float]:
        """Log-likelihood and number of rows: of the training rows as they were weighed, or of X."""
        check_is_fitted(self)
        if X is None:
            return self._loglik, self._n_rows
        density = self.score_samples(X)
        return float(density.sum()), float(len(density))

    def bic(self, X: Any = None) -> float:
        """Return BIC: -2 log-likelihood + n_parameters log(rows), lower is better.

        Parameters
        ----------
        {X/criterion}

        Returns
        -------
        float
            BIC of the rows.
        """
        loglik, n_rows = self._training_or(X)
        return bic(loglik, self.n_parameters_, n_rows)

    def aic(self, X: Any = None) -> float:
        """Return AIC: -2 log-likelihood + 2 n_parameters, lower is better.

        Parameters
        ----------
        {X/criterion}

        Returns
        -------
        float
            AIC of the rows.
        """
        return aic(self._training_or(X)[0], self.n_parameters_)

    def icl(self, X: Any = None) -> float:
        """Return ICL: BIC - 2 sum_n log(max_k probability_nk), lower is better.

        Parameters
        ----------
        {X/criterion}

        Returns
        -------
        float
            ICL of the rows.
        """
        loglik, n_rows = self._training_or(X)
        certainty = self._log_certainty if X is None else log_certainty(self.predict_proba(X))
        return icl(loglik, self.n_parameters_, n_rows, certainty)

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the mixture, without its noise.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
            The rows, in the units given.
        components : int array of shape (n_samples,)
            The component of each.
        """
        check_is_fitted(self)
        n_samples = whole_number("n_samples", n_samples)
        draws = stream(seed_of(self.random_state), "sample mixture")
        label = draws.choice(len(self.weights_), n_samples, p=self.weights_ / self.weights_.sum()).astype(
            np.int32
        )
        rows = self.means_[label]
        rows[:, self._varies] = self._encoding.undo(self._family.draw(self._params, label, draws))
        return rows, label

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@documented
class NumericMixture(MixtureEstimator, ABC):
    """Mixtures over numbers: everything but what a component is."""

    device: str = "cpu"  # those that run elsewhere have it as a parameter
    _pays_from = staticmethod(mixture_pays_from)

    @abstractmethod
    def _make_family(self, rows: Rows, moments: TableMoments, k: int) -> Any:
        """The family of such components."""

    @abstractmethod
    def _show_spread(self, params: Any, unit: Array, varies: Array) -> None:
        """Set the attributes that tell of spread; `unit` is the user's units in one encoded unit, per column."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the rows of X.

        Parameters
        ----------
        {X/numbers} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        return self._fit(X, sample_weight, fit_mixture)

    @one_blas_thread()
    def _fit(self, X: Any, sample_weight: Any, solve: Callable[..., Fit]) -> Self:
        """The fit by a solver of rows, family, number of components, seed and plan."""
        k = whole_number("n_components", self.n_components)
        plan, min_weight = self._plan(), real_number("min_weight", self.min_weight, 0.0, np.inf)
        options: Any = {"scale": self.scale, "threads": threads_of(self), "device": self.device}
        rows = training_rows(self, X, sample_weight, k=k, gaps=True, pays_from=self._pays_from(k), **options)
        if rows.n_rows < 2:
            raise DataError("one-row", "n_samples=1: one row has no spread", do="Give at least 2 rows")
        init = None if isinstance(self.init, str) else given_start(self.init, rows, k)
        rows, moments, constants = set_constant_aside(rows)
        self._varies = varies = np.isnan(constants)
        if init is not None and init.ndim == 2:
            init = init[:, varies]
        family = self._make_family(rows, moments, k)
        seed, options = seed_of(self.random_state), {"init": init, "callback": callback_of(self)}
        found = solve(rows, family, k, seed, plan, **options)
        n_before = len(found.size)
        found = without_small(rows, family, found, plan, min_weight / rows.encoding.weight_unit)
        if len(found.size) < n_before:
            n_gone = n_before - len(found.size)
            warn(
                "small-components",
                f"{n_gone} of {n_before} components held less than min_weight={min_weight:g} "
                "and were merged into the others.",
                depth=4,
            )
        self._finish(rows, family, moments, constants, found)
        warn_of(self, found)
        return self

    def _finish(self, rows: Rows, family: Any, moments: TableMoments, constants: Array, found: Fit) -> None:
        """Everything in the user's units; `constants` holds NaN where a column varies."""
        varies = np.isnan(constants)
        encoding, params = rows.encoding, found.params
        self._family, self._params, self._encoding, self._varies = family, params, encoding, varies
        self.fit_ = found.in_unit(encoding.weight_unit)
        self.weights_ = params.mixing
        self.means_ = np.tile(constants, (len(params.mean), 1))
        self.means_[:, varies] = encoding.undo(params.mean)
        self._show_spread(params, 1 / encoding.unit, varies)
        self.labels_ = found.labels
        self._log_unit = encoding.log_unit
        kept = 1.0 - self.trim
        self._loglik = -found.cost + kept * float(moments.cells @ self._log_unit)
        self.loglik_ = in_unit(self._loglik, encoding.weight_unit)
        self.n_parameters_ = family.free_parameters(params)
        self.n_iter_ = found.n_passes
        self.converged_ = found.converged
        self.status_ = found.status
        self._n_rows = moments.row_weight * kept
        self._log_certainty = found.log_certainty
        beyond = np.zeros(rows.n_rows, dtype=bool)
        self.outliers_ = beyond if found.row_cost is None else found.row_cost > found.cut.limit


def without_small(rows: Rows, family: Any, found: Fit, plan: MixturePlan, min_weight: float) -> Fit:
    """The fit without components that hold less than `min_weight` rows (sum of weights, by label).

    The smallest goes, the others take its share of the mixing and run to their own end, and so on until every
    one is large enough or one is left: what comes back is a fit of the smaller mixture, not a relabelling.
    """
    while len(found.size) > 1 and found.size[-1] < min_weight:  # components stand in order of size
        first = family.remaining(found.params, np.arange(len(found.size) - 1))
        runs = run_starts(rows, [family], [first], trim=plan.trim, stop=plan.stop)
        again = finish_mixture(rows, runs[0], runs, trim=plan.trim)
        later = [replace(record, number=record.number + found.n_passes) for record in again.trace]
        trace = (*found.trace, *later)
        lost_before = again.status == OK and found.status == COMPONENT_VANISHED and found.converged
        found = replace(
            again,
            n_passes=found.n_passes + again.n_passes,
            trace=trace,
            starts=found.starts,
            status=found.status if lost_before else again.status,
        )
    return found


State = tuple[Any, Any, Array]  # family, parameters, log of the units


def _visit_label(state: State, block: Block) -> Array:
    family, params, _ = state
    label: Array = family.assign(params, block)[0]
    return label


def _visit_membership(state: State, block: Block) -> Array:
    family, params, _ = state
    return shares_of(family.scores(params, block))


def _visit_log_density(state: State, block: Block) -> Array:
    family, params, log_unit = state
    cost = kernels.memberships(family.scores(params, block), False)[1]
    if is_sparse(block.raw):  # counts, which have no unit
        return -cost
    return np.asarray((~np.isnan(block.raw)) @ log_unit - cost)
