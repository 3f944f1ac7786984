"""K-means, K-medians and trimmed K-means as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from ilk.engines.base import Rows
from ilk.errors import UsageError
from ilk.estimators.base import Callback, real_number, training_rows, warn_of, whole_number
from ilk.estimators.centroid import CentroidEstimator
from ilk.estimators.facts import in_memory, need
from ilk.estimators.habits import threads_of
from ilk.estimators.texts import documented
from ilk.families.base import Family
from ilk.fitting.constrained import fit_means
from ilk.fitting.constraints import Known
from ilk.fitting.fit import Fit
from ilk.fitting.restarts import Recipe, fit_exact, solves_line
from ilk.methods import K_MEANS, K_MEDIANS, TRIMMED_K_MEANS
from ilk.random import seed_of


@documented
class KMeans(CentroidEstimator):
    """K-means: groups whose rows lie near their mean.

    Minimises the sum over rows of `weight * |x - centre|^2` by Lloyd's steps from several starts that advance
    together. A table of one column is solved to the proven optimum. Missing values are NaN: distances are taken
    over the observed columns and scaled up. A sparse matrix is taken as it is.

    Parameters
    ----------
    {n_clusters} {init/centres} {n_init/centres} {max_iter} {tol/cost} {scale}
    exact : bool, default=False
        Prove the optimum: for any table of one column, or of at most 16 rows. Refused for others.
    {random_state} {device} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {cluster_centers_} {labels_} {inertia_} {n_iter_} {converged_} {fit_} {known_labels_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    KMedians : Absolute distances, less moved by outliers.
    TrimmedKMeans : Leaves out the rows that fit worst.
    DPMeans : Finds the number of groups from the cost of a group.
    cluster : Chooses the number of groups and describes them.

    References
    ----------
    Lloyd (1982). Least squares quantization in PCM. IEEE Transactions on Information Theory 28, 129-137.

    Arthur and Vassilvitskii (2007). k-means++: the advantages of careful seeding. SODA, 1027-1035.

    Wagstaff, Cardie, Rogers and Schroedl (2001). Constrained K-means clustering with background knowledge. ICML,
    577-584.

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
    _takes_sparse = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        scale: str | None = None,
        exact: bool = False,
        random_state: Any = None,
        device: str = "auto",
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.exact = exact
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
        """Find the groups of the rows of X, with what is known of rows and pairs of rows kept.

        What cannot be kept is refused, with the rows in conflict. `predict` knows nothing of it: a row goes to its
        nearest centre.

        Parameters
        ----------
        {X/numbers} {y} {sample_weight} {known} {must_link} {cannot_link}

        Returns
        -------
        Self
            The fitted estimator.
        """
        facts = Known(known, must_link, cannot_link)
        if facts.nothing:
            super().fit(X, y, sample_weight)
        else:
            self._fit_with(facts, X, sample_weight)
        self.known_labels_ = facts.of_groups(self.labels_, len(self.cluster_centers_))
        return self

    def _fit_with(self, facts: Known, X: Any, sample_weight: Any) -> None:
        need(self, exact=False)
        k, recipe = whole_number("n_clusters", self.n_clusters), self._options()
        rows = training_rows(self, X, sample_weight, scale=self.scale, threads=threads_of(self), k=k)
        kept, recipe = facts.of(rows.n_rows, k), replace(recipe, init=self.init)
        found = fit_means(in_memory(rows), recipe, k, seed_of(self.random_state), kept)
        self._finish(rows, recipe.family, found)
        warn_of(self, found)

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


@documented
class KMedians(CentroidEstimator):
    """K-medians: groups whose rows lie near their column-wise median, in absolute distance.

    Minimises the sum over rows of `weight * |x - centre|_1`. Outliers move it less than K-means. The median of an
    even number of rows is the lower one. Missing values are NaN: distances are taken over the observed columns and
    scaled up.

    Parameters
    ----------
    {n_clusters} {init/centres} {n_init/centres} {max_iter} {tol/cost} {scale}
    {random_state} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {cluster_centers_} {labels_} {inertia_} {n_iter_} {converged_} {fit_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    KMeans : Squared distances, and means as centres.
    TrimmedKMeans : Leaves out the rows that fit worst.
    LaplaceMixture : The soft form, with a scale for each column.

    References
    ----------
    Bradley, Mangasarian and Street (1997). Clustering via concave minimization. NIPS 9, 368-374.

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
        n_init: int | str = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        scale: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose


@documented
class TrimmedKMeans(CentroidEstimator):
    """K-means that leaves out the share `trim` of the rows that fit worst, in every step.

    The rows left out still get the label of their nearest centre; `outliers_` marks them. Missing values are NaN:
    distances are taken over the observed columns and scaled up. A sparse matrix is taken as it is.

    Parameters
    ----------
    {n_clusters} {trim} {init/centres} {n_init/centres} {max_iter} {tol/cost} {scale}
    {random_state} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {cluster_centers_} {labels_} {outliers_} {inertia_} {n_iter_} {converged_} {fit_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    KMeans : Without trimming.
    GaussianMixture : Has `trim` and `noise` for rows that belong to no component.
    StudentMixture : Components with heavy tails.

    References
    ----------
    Cuesta-Albertos, Gordaliza and Matrán (1997). Trimmed k-means: an attempt to robustify quantizers. Annals of
    Statistics 25, 553-576.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.array([[0.0], [1], [2], [50], [51], [52], [900]])
    >>> model = ilk.TrimmedKMeans(2, trim=1 / 7, random_state=0).fit(X)
    >>> model.cluster_centers_.ravel().tolist(), model.outliers_.tolist()
    ([51.0, 1.0], [False, False, False, False, False, False, True])
    """

    _recipe = TRIMMED_K_MEANS
    _power_of_cost = 2
    _takes_sparse = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        trim: float = 0.05,
        init: Any = "k-log-k",
        n_init: int | str = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        scale: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
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
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def _options(self) -> Recipe:
        return replace(super()._options(), trim=real_number("trim", self.trim, 0.0, 1.0))

    def _finish(self, rows: Rows, family: Family[Any], found: Fit) -> None:
        super()._finish(rows, family, found)
        beyond = (
            np.zeros(rows.n_rows, dtype=bool) if found.row_cost is None else found.row_cost > found.cut.limit
        )
        self.outliers_ = beyond
