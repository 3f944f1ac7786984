"""Dirichlet process mixtures as scikit-learn estimators: own for tables of any columns, theirs for Gaussians."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.mixture import BayesianGaussianMixture
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk.errors import DataError
from ilk.estimators.base import Callback, real_number, refuse_sparse, warn_of, whole_number
from ilk.estimators.frames import LABEL, Reply, probabilities
from ilk.estimators.habits import callback_of, threads_of
from ilk.estimators.tables import table_rows, told
from ilk.estimators.texts import documented
from ilk.families.mixture import shares_of
from ilk.fitting.dirichlet import fit_process, make_process
from ilk.fitting.loop import Stop
from ilk.paradigms.gaussian_process import no_valid_model
from ilk.paradigms.order import by_size
from ilk.random import seed_of
from ilk.table.block import Array, Block


@documented
class DirichletProcessMixture(ClusterMixin, BaseEstimator):
    """A Dirichlet process mixture of tables with numbers, categories and missing values; K is found.

    Columns are independent within a component: Gaussian numbers, categories with their shares. Variational Bayes on
    sticks cut off after `max_components`; those that keep no row are left out of the answer. An ordinal column is
    taken as a category, a count as a number.

    Parameters
    ----------
    {max_components}
    concentration : float, default=1.0
        Concentration of the process: larger values expect more components.
    {types}
    tol : float, default=1e-08
        A run ends when a pass raises the evidence lower bound by less than this share of it.
    {max_iter} {scale} {random_state} {device} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {labels_} {n_components_} {weights_}
    means_ : array of shape (n_components, number of numeric columns)
        Expected mean of each numeric column in each component, in the units given.
    lower_bound_ : float
        The evidence lower bound, in conditioned units; `fit_.trace` holds minus this for every pass, and never rises.
    {n_iter_} {converged_} {fit_} {schema_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DirichletProcessGaussian : Gaussians with full covariances.
    AssortedMixture : Finds the number of clusters by BIC.

    References
    ----------
    Blei and Jordan (2006). Variational inference for Dirichlet process mixtures. Bayesian Analysis 1, 121-143.

    Examples
    --------
    >>> import ilk
    >>> table = {"size": [1.1, 0.9, 1.3, None, 1.0, 5.2, 4.8, 5.1, 5.3, 5.0], "kind": list("aaaaabbbbb")}
    >>> ilk.DirichletProcessMixture(5, random_state=0).fit(table).labels_
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], dtype=int32)
    """

    def __init__(
        self,
        max_components: int = 20,
        *,
        concentration: float = 1.0,
        types: Any = None,
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
        self.max_components = max_components
        self.concentration = concentration
        self.types = types
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the rows of X, and how many there are.

        Parameters
        ----------
        {X/table} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        most = whole_number("max_components", self.max_components)
        tiny = float(np.finfo(np.float64).tiny)
        concentration = real_number("concentration", self.concentration, tiny, np.inf)
        stop = Stop(real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter))
        options = {"types": self.types, "scale": self.scale, "threads": threads_of(self)}
        options["device"] = self.device
        rows, form = table_rows(self, X, sample_weight, **options)
        family = make_process(rows, form.level_start, concentration)
        found = fit_process(rows, family, most, seed_of(self.random_state), stop, callback=callback_of(self))
        kept = np.flatnonzero(found.size > 0)
        params = family.select(found.params, kept)
        self._family, self._params, self._form = family, params, form
        own = found.in_unit(rows.encoding.weight_unit)
        self.fit_ = replace(own, params=params, size=own.size[kept])
        self.labels_, self.schema_ = found.labels, form.schema
        self.n_components_, self.n_iter_, self.converged_ = len(kept), found.n_passes, found.converged
        self.weights_, self.means_ = params.mixing, rows.encoding.undo(params.mean)
        self.lower_bound_ = -own.trace[-1].cost
        warn_of(self, found)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each component for each row.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        array of shape (n_rows, n_components) or frame
            Probabilities. A Spark or Dask frame comes back with columns `probability_0`, `probability_1` and so on.
        """
        check_is_fitted(self)
        return self._told(X, _visit_membership, probabilities(len(self.weights_)))

    def predict(self, X: Any) -> Any:
        """Return the likeliest component of each row.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        int array of shape (n_rows,) or frame
            Component of each row. A Spark or Dask frame comes back with a column `label`.
        """
        check_is_fitted(self)
        return self._told(X, _visit_label, LABEL)

    def _told(self, X: Any, visit: Any, reply: Reply) -> Any:
        return told(self, X, self._form, (visit, (self._family, self._params)), reply, threads_of(self))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _visit_membership(state: Any, block: Block) -> Array:
    family, params = state
    return shares_of(family.scores(params, block))


def _visit_label(state: Any, block: Block) -> Array:
    return np.asarray(_visit_membership(state, block).argmax(axis=1), dtype=np.int32)


@documented
class DirichletProcessGaussian(ClusterMixin, BayesianGaussianMixture):
    """A Dirichlet process mixture of Gaussians: scikit-learn's `BayesianGaussianMixture` as a clustering.

    `labels_` numbers the components that keep rows, larger first, and `n_clusters_` counts them. Parameters and all
    other attributes are scikit-learn's, under its names: `n_components` is a maximum here.

    Parameters
    ----------
    n_components : int, default=10
        Largest number of components; fewer may keep rows.
    covariance_type : "full", "tied", "diag" or "spherical", default="full"
        What the covariances are like.
    tol : float, default=0.001
        A run ends when a pass raises the lower bound by less than this.
    reg_covar : float, default=1e-06
        Added to the diagonal of the covariances.
    max_iter : int, default=500
        Largest number of passes over the rows.
    n_init : int, default=1
        Number of starts, of which the best is kept.
    init_params : "kmeans", "k-means++", "random" or "random_from_data", default="kmeans"
        How rows are first parted.
    weight_concentration_prior_type : str, default="dirichlet_process"
        "dirichlet_process" or "dirichlet_distribution".
    weight_concentration_prior : None or float, default=None
        Concentration: larger values spread the weight over more components. None is 1 / n_components.
    mean_precision_prior : None or float, default=None
        How near the means are to `mean_prior`; None is 1.
    mean_prior : None or array of shape (n_features,), default=None
        Expected mean; None is the mean of the table.
    degrees_of_freedom_prior : None or float, default=None
        Of the Wishart prior on the precisions; None is the number of columns.
    covariance_prior : None, float or array, default=None
        Expected covariance; None is that of the table.
    random_state : None, int or RandomState, default=None
        Seed of the random draws.
    warm_start : bool, default=False
        Whether a fit begins with the result of the one before.
    verbose : int, default=0
        1 prints each start and some passes, 2 their bounds as well.
    verbose_interval : int, default=10
        Passes between two lines.

    Attributes
    ----------
    {labels_} {n_clusters_}
    weights_ : array of shape (n_components,)
        Share of each component.
    means_ : array of shape (n_components, n_features)
        Mean of each component.
    covariances_ : array
        Covariances; the shape depends on `covariance_type`.
    precisions_ : array
        Their inverses.
    precisions_cholesky_ : array
        The Cholesky factors of these.
    weight_concentration_ : tuple or array
        Posterior of the shares.
    weight_concentration_prior_ : float
        Prior concentration that was used.
    mean_precision_ : array of shape (n_components,)
        Posterior precision of the means.
    mean_precision_prior_ : float
        Prior precision that was used.
    mean_prior_ : array of shape (n_features,)
        Prior mean that was used.
    degrees_of_freedom_ : array of shape (n_components,)
        Posterior degrees of freedom.
    degrees_of_freedom_prior_ : float
        Prior degrees of freedom that were used.
    covariance_prior_ : float or array
        Prior covariance that was used.
    converged_ : bool
        Whether the best start settled.
    n_iter_ : int
        Passes of the best start.
    lower_bound_ : float
        Lower bound of the evidence of the best start.
    lower_bounds_ : list of float
        The bound after each of its passes.
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    DirichletProcessMixture : Tables of any columns, with missing values.
    GaussianMixture : With the number of components given.

    References
    ----------
    Blei and Jordan (2006). Variational inference for Dirichlet process mixtures. Bayesian Analysis 1, 121-143.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> draws = np.random.default_rng(0)
    >>> X = np.vstack([draws.normal(0, 1, (60, 2)), draws.normal(9, 1, (40, 2))])
    >>> ilk.DirichletProcessGaussian(random_state=0).fit(X).n_clusters_
    2
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 500,
        n_init: int = 1,
        init_params: str = "kmeans",
        weight_concentration_prior_type: str = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Any = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
    ) -> None:
        super().__init__(
            n_components=n_components,
            covariance_type=covariance_type,
            tol=tol,
            reg_covar=reg_covar,
            max_iter=max_iter,
            n_init=n_init,
            init_params=init_params,
            weight_concentration_prior_type=weight_concentration_prior_type,
            weight_concentration_prior=weight_concentration_prior,
            mean_precision_prior=mean_precision_prior,
            mean_prior=mean_prior,
            degrees_of_freedom_prior=degrees_of_freedom_prior,
            covariance_prior=covariance_prior,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
            verbose_interval=verbose_interval,
        )

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Fit, and return the group of each row.

        Parameters
        ----------
        {X/complete} {y}

        Returns
        -------
        int array of shape (n_rows,)
            Group of each row.
        """
        refuse_sparse(self, X)
        try:
            # The mixin's would call `fit`, which calls this.
            found = BayesianGaussianMixture.fit_predict(self, X, y)
        except ValueError as error:
            if (refusal := no_valid_model(error)) is not None:
                raise refusal from None
            if "n_samples >= n_components" not in str(error):
                raise
            raise DataError(
                "fewer-rows-than-groups",
                f"n_samples={len(X)} rows are fewer than n_components={self.n_components}",
                do="Ask for fewer components",
            ) from None
        self.labels_, order = by_size(np.asarray(found))
        self.n_clusters_ = len(order)
        return self.labels_
