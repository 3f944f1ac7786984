"""Gaussian mixtures as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

from ilk.engines.base import Rows
from ilk.errors import UsageError, warn
from ilk.estimators.base import Callback, one_of
from ilk.estimators.components import NumericMixture
from ilk.estimators.constants import full_matrices
from ilk.estimators.facts import in_memory, need
from ilk.estimators.texts import documented
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.constrained import fit_components
from ilk.fitting.constraints import Known
from ilk.fitting.cut_starts import cut_starts
from ilk.fitting.fit import Fit
from ilk.fitting.loop import OK
from ilk.fitting.mixture import MixturePlan, fit_mixture, reached_best, seldom_reached
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
    {tol/likelihood} {max_iter} {scale} {random_state} {device} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {weights_} {means_} {covariances_} {labels_/noise} {loglik_} {n_parameters_} {n_iter_} {converged_} {status_}
    {outliers_} {fit_} {known_labels_} {n_features_in_} {feature_names_in_}

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

    Nigam, McCallum, Thrun and Mitchell (2000). Text classification from labeled and unlabeled documents using EM.
    Machine Learning 39, 103-134.

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
        device: str = "auto",
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
        self.device = device
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        known: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> Self:
        """Find the components of the rows of X, with what is known of rows and pairs of rows kept.

        Rows that belong together share their memberships, which are those of the product of their densities; rows of
        a known label belong to their component (semi-supervised EM). `cannot_link` needs membership="hard". What
        cannot be kept is refused, with the rows in conflict; `predict` knows nothing of it.

        Parameters
        ----------
        {X/numbers} {y} {sample_weight} {known} {must_link} {cannot_link}

        Returns
        -------
        Self
            The fitted estimator.
        """
        facts = Known(known, must_link, cannot_link)
        solve: Any = fit_mixture
        if not facts.nothing:
            need(self, noise=False, trim=0.0, min_weight=0)
            solve = partial(_solve_kept, facts)
        if cannot_link is not None and self.membership != "hard":
            raise UsageError(
                "not-with-constraints",
                "cannot_link forbids whole assignments, and memberships are soft",
                do='Use membership="hard", or KMeans; must_link and known can be soft',
            )
        self._fit(X, sample_weight, solve)
        if facts.nothing and self._plan().further is not None:
            _warn_of_starts(self.fit_)
        self.known_labels_ = facts.of_groups(self.labels_, len(self.weights_))
        return self

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


def _warn_of_starts(fit: Fit) -> None:
    """Say where starts end in many places, so that another may end in a better one."""
    costs = [start.cost for start in fit.starts if start.status == OK]
    if seldom_reached(costs):
        at_best = reached_best(costs)
        warn(
            "seldom-reached",
            f"GaussianMixture ended at its best fit from {at_best} of {len(costs)} starts; another start may end in a "
            "better one. Give a larger n_init, or use ilk.select.",
            depth=4,
        )


def _solve_kept(
    facts: Known, rows: Rows, family: Gaussian, k: int, seed: int, plan: MixturePlan, **_: Any
) -> Fit:
    """The fit that keeps what is known of the rows."""
    return fit_components(in_memory(rows), family, k, seed, plan, facts.of(rows.n_rows, k))
