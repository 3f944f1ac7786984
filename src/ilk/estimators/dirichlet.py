"""Dirichlet process mixtures as scikit-learn estimators: own for tables of any columns, theirs for Gaussians."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.mixture import BayesianGaussianMixture
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk import kernels
from ilk.estimators.base import Callback, real_number, warn_of, whole_number
from ilk.estimators.frames import LABEL, Reply, probabilities
from ilk.estimators.habits import callback_of, threads_of
from ilk.estimators.tables import table_rows, told
from ilk.estimators.texts import documented
from ilk.fitting.dirichlet import fit_process, make_process
from ilk.fitting.loop import Stop
from ilk.paradigms.order import by_size
from ilk.random import seed_of
from ilk.table.block import Array, Block


@documented
class DirichletProcessMixture(ClusterMixin, BaseEstimator):
    """A Dirichlet process mixture of tables with numbers, categories and blanks; K is found.

    Columns are independent within a component: Gaussian numbers, categories with their levels' shares. Variational
    Bayes on sticks cut off after `n_components`; those that keep no row are left out of the answer. For Gaussians with
    full covariances see `DirichletProcessGaussian`.

    Parameters
    ----------
    n_components : int
        The most components.
    concentration : float
        Of the process: larger values expect more components.
    types, scale : as in `MixedMixture`; an ordinal column is taken as a category, a count as a number
    tol, max_iter, random_state, threads, callback : as in `GaussianMixture`

    Attributes
    ----------
    labels_, n_components_, n_iter_, converged_, fit_, schema_
    weights_ : array (K,), expected shares
    means_ : array (K, numeric columns), expected means in the user's units
    lower_bound_ : float
        The evidence lower bound, in conditioned units; `fit_.trace` holds minus this for every pass, and never rises.

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
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the rows of X: a frame, an Arrow table, a dictionary, a path or an array."""
        most = whole_number("max_components", self.max_components)
        tiny = float(np.finfo(np.float64).tiny)
        concentration = real_number("concentration", self.concentration, tiny, np.inf)
        stop = Stop(real_number("tol", self.tol, 0.0, np.inf), whole_number("max_iter", self.max_iter))
        options = {"types": self.types, "scale": self.scale, "threads": threads_of(self)}
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
        """Probability of each component for each row (rows, K). A frame on a cluster gets columns `probability_0` and
        so on."""
        check_is_fitted(self)
        return self._told(X, _visit_membership, probabilities(len(self.weights_)))

    def predict(self, X: Any) -> Any:
        """The likeliest component of each row. A frame on a cluster gets a column `label`."""
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
    membership: Array = kernels.memberships(family.scores(params, block), False)[0]
    return membership


def _visit_label(state: Any, block: Block) -> Array:
    return np.asarray(_visit_membership(state, block).argmax(axis=1), dtype=np.int32)


@documented
class DirichletProcessGaussian(ClusterMixin, BayesianGaussianMixture):
    """scikit-learn's `BayesianGaussianMixture` with a Dirichlet process, and with the labels of a clustering.

    All its options and attributes; `labels_` numbers the components that keep rows, larger first, and `n_clusters_`
    counts them.

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
        """Fit, and the label of each row."""
        found = BayesianGaussianMixture.fit_predict(
            self, X, y
        )  # the mixin's would call `fit`, which calls this
        self.labels_, order = by_size(np.asarray(found))
        self.n_clusters_ = len(order)
        return self.labels_
