"""Mixtures with heavy tails, for tables with outliers, as scikit-learn estimators: Student and Laplace."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.devices import AUTO_STUDENT_CELLS
from ilk.estimators.base import Callback, one_of, real_number
from ilk.estimators.components import NumericMixture
from ilk.estimators.constants import full_matrices
from ilk.estimators.texts import documented
from ilk.families.gaussian import Mixture
from ilk.families.laplace import LAPLACE_STRUCTURES, Laplace
from ilk.families.laplace import LaplaceParams as LaplaceParams
from ilk.families.student import Student, degrees
from ilk.fitting.table_moments import TableMoments
from ilk.table.block import Array


@documented
class StudentMixture(NumericMixture):
    """A mixture of Student (t) components with any of the fourteen structures, fitted by EM.

    A row far from a component counts (dof + d) / (dof + distance) in its mean and scale, so single outliers move
    nothing. Degrees of freedom are found between 0.5 and 200; at 200 a component is called Gaussian (`gaussian_`).
    Missing values are NaN and enter by the likelihood of the observed ones.

    Parameters
    ----------
    {n_components} {structure}
    dof : "own", "shared" or float, default="own"
        Degrees of freedom: one for each component, one for all, or this number.
    {init/partitions} {n_init/partitions} {membership} {prior} {noise} {trim} {min_weight}
    {tol/likelihood} {max_iter} {scale} {random_state} {device} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {weights_} {means_}
    dof_ : array of shape (n_components,)
        Degrees of freedom of each component.
    gaussian_ : bool array of shape (n_components,)
        Components whose estimated degrees of freedom are at the limit.
    scales_ : array of shape (n_components, n_features, n_features)
        Scale matrix of each component, in the units given.
    covariances_ : array of shape (n_components, n_features, n_features)
        `scales_ dof / (dof - 2)`, infinite where dof is 2 or less.
    {labels_/noise} {loglik_} {n_parameters_} {n_iter_} {converged_} {status_} {outliers_} {fit_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    GaussianMixture : For tables without outliers.
    LaplaceMixture : Independent columns, with medians as centres.

    References
    ----------
    Peel and McLachlan (2000). Robust mixture modelling using the t distribution. Statistics and Computing 10, 339-348.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> generator = np.random.default_rng(0)
    >>> X = np.vstack([generator.normal(0, 1, (60, 2)), generator.normal(8, 1, (40, 2)), [[900.0, -900.0]]])
    >>> model = ilk.StudentMixture(2, structure="EEE", random_state=0).fit(X)
    >>> model.weights_.round(1)
    array([0.6, 0.4])
    """

    _pays_from = staticmethod(lambda k: AUTO_STUDENT_CELLS)

    def __init__(
        self,
        n_components: int = 1,
        *,
        structure: str = "VVV",
        dof: Any = "own",
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
        self.dof = dof
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
        self.threads, self.n_jobs = threads, n_jobs
        self.callback, self.verbose = callback, verbose

    def _make_family(self, rows: Rows, moments: TableMoments, k: int) -> Student:
        one_of("membership", self.membership, ("soft", "hard"))
        if isinstance(self.dof, str):
            one_of("dof", self.dof, ("own", "shared"))
            dof: str | float = self.dof
        else:
            dof = real_number("dof", self.dof, np.finfo(np.float64).tiny, np.inf)
        return Student(
            self._make_structure(rows.n_columns),
            moments.variance,
            self.membership,
            prior=self._make_prior(rows, moments, k),
            noise=self._make_noise(rows, moments),
            dof=dof,
        )

    def _show_spread(self, params: Mixture, unit: Array, varies: Array) -> None:
        self.dof_ = degrees(params)
        self.gaussian_ = self._family.gaussian_components(params)
        self.scales_ = full_matrices(params.covariance.matrices(), unit, varies)
        wide = np.divide(self.dof_, self.dof_ - 2, out=np.full_like(self.dof_, np.inf), where=self.dof_ > 2)
        apart = self.scales_ != 0
        with np.errstate(over="ignore"):  # of numbers about 1e154 no double holds a variance
            self.covariances_ = np.multiply(
                self.scales_, wide[:, None, None], where=apart, out=np.zeros_like(self.scales_)
            )


@documented
class LaplaceMixture(NumericMixture):
    """A mixture of components with independent double-exponential columns, fitted by EM.

    `density_k = prod_j exp(-|x_j - mean_kj| / scale_kj) / (2 scale_kj)`: means are weighted medians, and a row
    counts by its distance, not by its square. A missing value (NaN) drops out.

    Parameters
    ----------
    {n_components}
    structure : str, default="VVI"
        What the scales share: one of EII VII EEI VEI EVI VVI. The letters are volume and shape, each E (equal for all
        components), V (free) or I (the same for all columns).
    {init/partitions} {n_init/partitions} {membership} {noise} {trim} {min_weight}
    {tol/likelihood} {max_iter} {scale} {random_state} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {weights_} {means_}
    scales_ : array of shape (n_components, n_features)
        Scale of each column in each component: its mean absolute deviation.
    covariances_ : array of shape (n_components, n_features, n_features)
        Diagonal, `2 scales_^2`.
    {labels_/noise} {loglik_} {n_parameters_} {n_iter_} {converged_} {status_} {outliers_} {fit_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    KMedians : The hard form, with one scale for all.
    StudentMixture : Heavy tails and correlated columns.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> generator = np.random.default_rng(0)
    >>> X = np.vstack([generator.laplace(0, 1, (60, 2)), generator.laplace(20, 1, (40, 2))])
    >>> ilk.LaplaceMixture(2, random_state=0).fit(X).weights_.round(2)
    array([0.6, 0.4])
    """

    _structures = LAPLACE_STRUCTURES

    def __init__(
        self,
        n_components: int = 1,
        *,
        structure: str = "VVI",
        init: Any = "auto",
        n_init: int | str | None = None,
        membership: str = "soft",
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

    def _make_family(self, rows: Rows, moments: TableMoments, k: int) -> Laplace:
        one_of("membership", self.membership, ("soft", "hard"))
        structure = self._make_structure(rows.n_columns)
        noise = self._make_noise(rows, moments)
        return Laplace(structure, moments.variance, self.membership, noise=noise)

    def _show_spread(self, params: LaplaceParams, unit: Array, varies: Array) -> None:
        self.scales_ = np.zeros((len(params.mean), len(varies)))
        self.scales_[:, varies] = np.exp(params.log_scale) * unit
        each = np.arange(len(varies))
        self.covariances_ = np.zeros((*self.scales_.shape, len(varies)))
        with np.errstate(over="ignore", under="ignore"):
            self.covariances_[:, each, each] = 2 * np.square(self.scales_)
