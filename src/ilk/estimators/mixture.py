"""Gaussian mixtures as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk import kernels
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError, UsageError, warn
from ilk.estimators.base import (
    Callback,
    checked_array,
    given_start,
    one_of,
    real_number,
    training_rows,
    warn_of,
    whole_number,
)
from ilk.families.covariance import Prior, Structure
from ilk.families.gaussian import Gaussian, Mixture, Noise
from ilk.fitting.fit import Fit
from ilk.fitting.loop import Stop
from ilk.fitting.mixture import MixturePlan, fit_mixture
from ilk.fitting.table_moments import TableMoments, bounding_noise, broad_noise, table_moments
from ilk.measures.criteria import aic, bic, icl, log_certainty
from ilk.random import seed_of, stream
from ilk.table.block import Array, Block
from ilk.table.condition import survey
from ilk.table.encode import check_weight


class GaussianMixture(DensityMixin, ClusterMixin, BaseEstimator):
    """A mixture of Gaussians with any of the fourteen covariance structures, fitted by EM.

    The density of a row is sum_k weight_k N(x | mean_k, covariance_k). Structures are named by three letters:
    volume, shape and orientation, each E (equal for all components) or V (free), I for round or along the
    columns. Missing cells are NaN and enter by the likelihood of the observed ones. EII VII EVE VVE EEV VEV
    depend on the units of single columns: use scale="standard" where columns have different units.

    Parameters
    ----------
    n_components : int
    structure : str
        One of EII VII EEI VEI EVI VVI EEE VEE EVE VVE EEV VEV EVV VVV, or full, tied, diag, spherical.
    init : str or array
        "auto" (a mix of starts), "tree", "k-means", "k-log-k", "principal", "quantile", any start of `KMeans`,
        an array of means (n_components, n_features), or one label per row.
    n_init : None or int
        How many starts; None for the default of `init`.
    membership : "soft" or "hard"
        "hard" is classification EM: each row belongs to its likeliest component.
    prior : None or "default" or Prior
        A conjugate prior on means and covariances, "default" with mclust's settings.
    noise : bool or "uniform" or "gaussian"
        One more component for rows that belong to none: uniform over the box of the table (True), or a broad
        Gaussian. Such rows have the label -1.
    trim : float
        Share of the rows, those of lowest density, left out of every step; `outliers_` marks them.
    tol, max_iter : float, int
        Relative rise of the log-likelihood at which to stop; most passes.
    scale : None or "standard"
    random_state, threads, callback : as in `KMeans`.

    Attributes
    ----------
    weights_, means_, covariances_ : arrays (K,), (K, d), (K, d, d)
    loglik_ : float
        Log-likelihood in the user's units (of the kept rows when trimmed).
    n_parameters_, n_iter_, converged_, status_, labels_, fit_

    Examples
    --------
    >>> import numpy as np, ilk
    >>> generator = np.random.default_rng(0)
    >>> X = np.vstack([generator.normal(0, 1, (60, 2)), generator.normal(8, 1, (40, 2))])
    >>> model = ilk.GaussianMixture(2, structure="EEE", random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.6, 0.4])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        structure: str = "VVV",
        init: Any = "auto",
        n_init: int | None = None,
        membership: str = "soft",
        prior: Any = None,
        noise: Any = False,
        trim: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        scale: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.structure = structure
        self.init = init
        self.n_init = n_init
        self.membership = membership
        self.prior = prior
        self.noise = noise
        self.trim = trim
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.random_state = random_state
        self.threads = threads
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the rows of X (numbers; NaN where missing)."""
        k = whole_number("n_components", self.n_components)
        plan = self._plan()
        rows = training_rows(self, X, sample_weight, scale=self.scale, threads=self.threads, k=k)
        if rows.n_rows < 2:
            raise DataError("one-row", "n_samples=1: one row has no spread", do="Give at least 2 rows")
        init = None if isinstance(self.init, str) else given_start(self.init, rows, k)
        rows, moments, constants = set_constant_aside(rows)
        varies = np.isnan(constants)
        if init is not None and init.ndim == 2:
            init = init[:, varies]
        family = self._make_family(rows, moments, k)
        found = fit_mixture(rows, family, k, seed_of(self.random_state), plan, init=init, callback=self.callback)
        self._finish(rows, family, moments, constants, found)
        warn_of(self, found)
        return self

    def _plan(self) -> MixturePlan:
        stop = Stop(real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter, least=0))
        n_init = None if self.n_init is None else whole_number("n_init", self.n_init)
        init = self.init if isinstance(self.init, str) else "auto"
        return MixturePlan(init, n_init, stop, real_number("trim", self.trim, 0.0, 1.0))

    def _make_family(self, rows: MemoryRows, moments: TableMoments, k: int) -> Gaussian:
        one_of("membership", self.membership, ("soft", "hard"))
        structure = Structure.parse(self.structure).for_columns(rows.n_columns)
        if not structure.applies_to(rows.n_columns):
            raise UsageError("bad-structure", f"structure {structure.name} is for one column",
                             do="Choose a structure of three letters")
        return Gaussian(
            structure,
            moments.variance,
            self.membership,
            prior=self._make_prior(moments, k),
            noise=self._make_noise(rows, moments),
        )

    def _make_prior(self, moments: TableMoments, k: int) -> Prior | None:
        if self.prior is None or isinstance(self.prior, Prior):
            return self.prior
        one_of("prior", self.prior, ("default",))
        unbiased = moments.row_weight / max(moments.row_weight - 1, 1)
        return Prior.from_table(moments.mean, moments.covariance * unbiased, k)

    def _make_noise(self, rows: MemoryRows, moments: TableMoments) -> Noise | None:
        if self.noise is False or self.noise is None:
            return None
        if self.noise is True or self.noise == "uniform":
            return bounding_noise(rows, moments)
        one_of("noise", self.noise, ("uniform", "gaussian"))
        return broad_noise(moments)

    def _finish(
        self, rows: MemoryRows, family: Gaussian, moments: TableMoments, constants: Array, found: Fit
    ) -> None:
        """Everything a user reads, in the user's units; `constants` holds NaN where a column varies."""
        varies = np.isnan(constants)
        encoding, params = rows.encoding, found.params
        unit = 1 / encoding.unit  # the user's units in one encoded unit, per column
        self._family, self._params, self._encoding, self._varies = family, params, encoding, varies
        k, d = len(params.mean), len(varies)
        self.fit_ = found
        self.weights_ = params.mixing
        self.means_ = np.tile(constants, (k, 1))
        self.means_[:, varies] = encoding.undo(params.mean)
        self.covariances_ = np.zeros((k, d, d))
        with np.errstate(over="ignore", under="ignore"):
            covariances = params.covariance.matrices() * unit[:, None] * unit
        self.covariances_[:, varies[:, None] & varies] = covariances.reshape(k, -1)
        self.labels_ = found.labels
        self._log_unit = np.log(encoding.unit)
        kept = 1.0 - self.trim
        self.loglik_ = -found.cost + kept * float(moments.cells @ self._log_unit)
        self.n_parameters_ = family.free_parameters(params)
        self.n_iter_ = found.n_passes
        self.converged_ = found.converged
        self.status_ = found.status
        self._n_rows = moments.row_weight * kept
        beyond = np.zeros(rows.n_rows, dtype=bool)
        self.outliers_ = beyond if found.row_cost is None else found.row_cost > found.cut.limit

    def _new_rows(self, X: Any) -> MemoryRows:
        check_is_fitted(self)
        raw = checked_array(self, X, reset=False)
        facts = survey(raw)
        if not self._varies.all():
            raw = raw[:, self._varies]
        return MemoryRows(raw, self._encoding, complete=facts.complete, threads=self.threads)

    def _scan(self, X: Any, visit: Any) -> Array:
        state = (self._family, self._params, self._log_unit)
        return np.concatenate([*self._new_rows(X).scan(visit, state)])

    def predict(self, X: Any) -> Array:
        """The likeliest component of each row, the lowest number among equals; -1 for noise."""
        return self._scan(X, _visit_label)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row (rows, K); the noise component, if any, comes last."""
        return self._scan(X, _visit_membership)

    def score_samples(self, X: Any) -> Array:
        """Log density of each row (of its observed cells), in the user's units."""
        return self._scan(X, _visit_log_density)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def _training_or(self, X: Any) -> tuple[float, float]:
        """Log-likelihood and number of rows: of the training rows, or of X."""
        check_is_fitted(self)
        if X is None:
            return self.loglik_, self._n_rows
        density = self.score_samples(X)
        return float(density.sum()), float(len(density))

    def bic(self, X: Any = None) -> float:
        """-2 log-likelihood + n_parameters log(rows), lower is better; of the training rows when X is None."""
        loglik, n_rows = self._training_or(X)
        return bic(loglik, self.n_parameters_, n_rows)

    def aic(self, X: Any = None) -> float:
        """-2 log-likelihood + 2 n_parameters, lower is better."""
        return aic(self._training_or(X)[0], self.n_parameters_)

    def icl(self, X: Any) -> float:
        """BIC of the rows with each counted for its likeliest component alone, lower is better."""
        loglik, n_rows = self._training_or(X)
        return icl(loglik, self.n_parameters_, n_rows, log_certainty(self.predict_proba(X)))

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Rows drawn from the mixture (without its noise), and their components."""
        check_is_fitted(self)
        n_samples = whole_number("n_samples", n_samples)
        draws = stream(seed_of(self.random_state), "sample mixture")
        label = draws.choice(len(self.weights_), n_samples, p=self.weights_ / self.weights_.sum()).astype(np.int32)
        covariance = self._params.covariance
        spread = covariance.own_axes() * np.exp(covariance.log_variance / 2)[:, None, :]
        standard = draws.standard_normal((n_samples, self._params.mean.shape[1]))
        numbers = self._params.mean[label] + np.einsum("nij,nj->ni", spread[label], standard)
        rows = self.means_[label].copy()
        rows[:, self._varies] = self._encoding.undo(numbers)
        return rows, label

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def set_constant_aside(rows: MemoryRows) -> tuple[MemoryRows, TableMoments, Array]:
    """The rows without constant columns, their moments, and the constants (NaN for a column that varies)."""
    moments = table_moments(rows)
    varies = moments.variance > 0
    constants = np.full(rows.n_columns, np.nan)
    if varies.all():
        return rows, moments, constants
    if not varies.any():
        raise DataError("no-spread", "every column is constant, so there is nothing to group",
                        do="Give at least one column that varies")
    fixed = np.flatnonzero(~varies)
    constants[fixed] = rows.encoding.undo(moments.mean)[fixed]
    warn("constant-column", f"columns {', '.join(map(str, fixed))} are constant and set aside.", depth=4)
    kept = MemoryRows(
        rows.raw[:, varies],
        rows.encoding.columns(varies),
        weight=rows.weight,
        complete=rows.complete,
        threads=rows.threads,
    )
    return kept, table_moments(kept), constants


State = tuple[Gaussian, Mixture, Array]


def _visit_label(state: State, block: Block) -> Array:
    family, params, _ = state
    return family.assign(params, block)[0]


def _visit_membership(state: State, block: Block) -> Array:
    family, params, _ = state
    membership: Array = kernels.memberships(family.scores(params, block), False)[0]
    return membership


def _visit_log_density(state: State, block: Block) -> Array:
    family, params, log_unit = state
    cost = kernels.memberships(family.scores(params, block), False)[1]
    return np.asarray((~np.isnan(block.raw)) @ log_unit - cost)
