"""Gaussian mixtures as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from ilk.engines.base import Rows
from ilk.estimators.base import Callback, one_of
from ilk.estimators.components import NumericMixture, full_matrices
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.table_moments import TableMoments
from ilk.table.block import Array


class GaussianMixture(NumericMixture):
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
        "auto" (a mix of starts), "tree", "k-means", "k-log-k", "two-step", "principal", "projection", "quantile",
        any start of `KMeans`, an array of means (n_components, n_features), or one label per row.
    n_init : None or int
        How many starts; None for the default of `init`.
    membership : "soft" or "hard"
        "hard" is classification EM: each row belongs to its likeliest component. One that is left with too few
        rows begins again at the rows that fit worst; where that is in vain it is dropped, with a warning
        (`component-vanished`), and `status_` is "component_vanished".
    prior : None or "default" or Prior
        A conjugate prior on means and covariances, "default" with mclust's settings.
    noise : bool or "uniform" or "gaussian"
        One more component for rows that belong to none: uniform over the box of the table (True), or a broad
        Gaussian. Such rows have the label -1.
    trim : float
        Share of the rows, those of lowest density, left out of every step; `outliers_` marks them.
    min_weight : float
        A component to which fewer rows than this (sum of weights) belong at the end is taken away, the smallest
        first, and the others run on without it: its rows go to the likeliest of the remaining components.
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

    def _make_family(self, rows: Rows, moments: TableMoments, k: int) -> Gaussian:
        one_of("membership", self.membership, ("soft", "hard"))
        return Gaussian(
            self._make_structure(rows.n_columns),
            moments.variance,
            self.membership,
            prior=self._make_prior(moments, k),
            noise=self._make_noise(rows, moments),
        )

    def _show_spread(self, params: Mixture, unit: Array, varies: Array) -> None:
        self.covariances_ = full_matrices(params.covariance.matrices(), unit, varies)
