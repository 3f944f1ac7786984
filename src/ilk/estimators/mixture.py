"""Gaussian mixtures as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ilk.engines.base import Rows
from ilk.estimators.base import Callback, one_of
from ilk.estimators.components import NumericMixture
from ilk.estimators.constants import full_matrices
from ilk.estimators.texts import documented
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.cut_starts import cut_starts
from ilk.fitting.mixture import MixturePlan
from ilk.fitting.table_moments import TableMoments
from ilk.table.block import Array


@documented
class GaussianMixture(NumericMixture):
    """A mixture of Gaussians with any of the fourteen covariance structures, fitted by EM.

    The density of a row is sum_k weight_k N(x | mean_k, covariance_k). Missing values are NaN and enter by the
    likelihood of the observed ones. EII VII EVE VVE EEV VEV depend on the units of single columns: use
    scale="standard" where columns have different units.

    Parameters
    ----------
    {n_components} {structure} {init/partitions} {n_init/partitions} {membership} {prior} {noise} {trim} {min_weight}
    {tol/likelihood} {max_iter} {scale} {random_state} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {weights_} {means_} {covariances_} {labels_/noise} {loglik_} {n_parameters_} {n_iter_} {converged_} {status_}
    {outliers_} {fit_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    select : Every structure at every number of components, compared by BIC.
    StudentMixture : Components with heavy tails.
    MixedMixture : Numbers, categories and counts together.
    DirichletProcessGaussian : Finds the number of components.

    References
    ----------
    Celeux and Govaert (1995). Gaussian parsimonious clustering models. Pattern Recognition 28, 781-793.

    Fraley and Raftery (2002). Model-based clustering, discriminant analysis, and density estimation. Journal of the
    American Statistical Association 97, 611-631.

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
        n_init: int | str | None = None,
        membership: str = "soft",
        prior: Any = None,
        noise: Any = False,
        trim: float = 0.0,
        min_weight: float = 0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        scale: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.structure = structure
        self.init = init
        self.n_init = n_init
        self.membership = membership
        self.prior = prior
        self.noise = noise
        self.trim = trim
        self.min_weight = min_weight
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.random_state = random_state
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def _plan(self) -> MixturePlan:
        plan = super()._plan()
        alone = plan.init == "auto" and plan.n_init is None and not plan.trim
        return replace(plan, further=cut_starts) if alone else plan

    def _make_family(self, rows: Rows, moments: TableMoments, k: int) -> Gaussian:
        one_of("membership", self.membership, ("soft", "hard"))
        return Gaussian(
            self._make_structure(rows.n_columns),
            moments.variance,
            self.membership,
            prior=self._make_prior(rows, moments, k),
            noise=self._make_noise(rows, moments),
        )

    def _show_spread(self, params: Mixture, unit: Array, varies: Array) -> None:
        self.covariances_ = full_matrices(params.covariance.matrices(), unit, varies)
