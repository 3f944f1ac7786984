"""The conjugate prior of Gaussian components, as sums added to those of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.errors import UsageError
from ilk.families.covariance import Covariance, Structure
from ilk.families.orientation import eigen_descending
from ilk.table.block import Array, Encoding

ROUNDING = 1e-9  # of a correlation


def definite(covariance: Array) -> Array:
    """A covariance as it is; one that was taken pair by pair, of columns with missing cells, without the directions in
    which it would be negative."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    unit = np.where(deviation > 0, deviation, 1.0)
    values, axes = np.linalg.eigh(covariance / unit[:, None] / unit)
    if not (values < -ROUNDING).any():
        return covariance
    kept = (axes * np.maximum(values, 0.0)) @ axes.T
    left = np.diagonal(kept)
    again = unit * np.sqrt(
        np.divide(1.0, left, out=np.zeros_like(left), where=left > 0)
    )  # the variances are known
    return np.asarray(kept * again[:, None] * again)


@dataclass(frozen=True)
class PriorTerms:
    """Each covariance_k gets |covariance_k|^(-power/2) exp(-trace(scatter covariance_k^-1)/2)."""

    power: float
    scatter: Array  # (d, d); diagonal for orientation I


@dataclass(frozen=True)
class PseudoSums:
    """Sums with the prior added: the M-step for them is the M-step of the posterior."""

    count: Array
    mean: Array
    scatter: Array


@dataclass(frozen=True)
class Prior:
    """Conjugate prior on the means and covariances of a mixture of Gaussians.

    mean_k | covariance_k ~ N(location, covariance_k / shrinkage), and covariances have an inverse-Wishart prior
    with `dof` and `scale`; for diagonal and round structures its counterpart. Everything is in the units of the
    table.

    Parameters
    ----------
    location : array of shape (n_features,)
        Expected mean.
    scale : array of shape (n_features, n_features)
        Expected scatter of a covariance.
    dof : float
        Degrees of freedom: how much the prior counts.
    shrinkage : float, default=0.01
        How much the mean of a component is drawn to `location`, in rows.

    See Also
    --------
    GaussianMixture : Takes it as `prior`.

    References
    ----------
    Fraley and Raftery (2007). Bayesian regularization for normal mixture estimation and model-based clustering.
    Journal of Classification 24, 155-181.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> prior = ilk.Prior.from_table(X.mean(axis=0), np.cov(X.T), n_components=2)
    >>> ilk.GaussianMixture(2, prior=prior, random_state=0).fit(X).converged_
    True
    """

    location: Array  # (d,)
    scale: Array  # (d, d)
    dof: float
    shrinkage: float = 0.01

    @classmethod
    def from_table(cls, column_means: Array, covariance: Array, n_components: int) -> Prior:
        """Return the default prior of a table: dof = d + 2, scale = covariance / K^(2/d).

        Parameters
        ----------
        column_means : array of shape (n_features,)
            Means of the columns.
        covariance : array of shape (n_features, n_features) or (n_features,)
            Covariance of the table, with divisor rows - 1, or variances alone.
        n_components : int
            K.

        Returns
        -------
        Prior
            The prior that mclust takes.
        """
        d = len(column_means)
        full = np.diag(covariance) if np.ndim(covariance) == 1 else definite(np.asarray(covariance))
        return cls(np.asarray(column_means), full / n_components ** (2 / d), d + 2.0)

    def encoded(self, encoding: Encoding, varies: Array) -> Prior:
        """Return the prior of the columns that vary, in the units of an encoding.

        Parameters
        ----------
        encoding : Encoding
            How the columns that vary are conditioned.
        varies : bool array of shape (n_features,)
            Which columns vary.

        Returns
        -------
        Prior
            The prior that numeric code sees.
        """
        location, scale = (
            np.asarray(self.location, dtype=np.float64),
            np.asarray(self.scale, dtype=np.float64),
        )
        d = len(varies)
        if (
            location.shape != (d,)
            or scale.shape != (d, d)
            or not np.isfinite([*location, *scale.ravel()]).all()
        ):
            raise UsageError(
                "bad-prior",
                f"the prior has a location of shape {location.shape} and a scale of shape {scale.shape}",
                do=f"Give finite arrays of shapes ({d},) and ({d}, {d}), one entry for each column",
            )
        unit = encoding.unit
        kept = scale[np.ix_(varies, varies)] * unit[:, None] * unit
        return Prior(encoding.apply(location[varies]), kept, self.dof, self.shrinkage)

    def terms(self, structure: Structure, n_components: int) -> PriorTerms:
        """Return what each component's covariance gets; one covariance common to all gets one prior, in K parts.

        Parameters
        ----------
        structure : Structure
            Covariance structure.
        n_components : int
            K.

        Returns
        -------
        PriorTerms
            Power and scatter.
        """
        d = len(self.location)
        structure = structure.for_columns(d)
        mean_scale = np.trace(self.scale) / d * np.eye(d)
        part = 1 / n_components if structure.sums == "pooled" else 1.0
        if structure.orientation != "I":
            return PriorTerms(part * (self.dof + d + 1), part * self.scale)
        if structure.shape != "I":
            return PriorTerms(part * (self.dof + 2), part * mean_scale)
        return PriorTerms(part * (self.dof + 2) / d, part * mean_scale / d)

    def apply(self, structure: Structure, count: Array, mean: Array, scatter: Array) -> PseudoSums:
        """Return the sums of the rows with the prior added.

        With::

            share    = count / (count + shrinkage),  away = mean - location
            count*   = count + 1 + power             (the 1 is the mean's prior; 0 without shrinkage)
            scatter* = scatter + shrinkage share away away' + the prior's scatter
            mean*    = location + share away

        Parameters
        ----------
        structure : Structure
            Covariance structure.
        count : array
            Weights of the components, in every form that `update_covariance` takes.
        mean : array of shape (n_components, n_features)
            Means of the components.
        scatter : array
            Scatter of the components, likewise.

        Returns
        -------
        PseudoSums
            The sums whose M-step is that of the posterior.
        """
        n_components, d = mean.shape
        terms = self.terms(structure, n_components)
        cells = count[:, None] if count.ndim == 1 else count
        away = np.where(cells > 0, mean - self.location, 0.0)
        share = cells / np.where(cells > 0, cells + self.shrinkage, 1.0)
        diagonal = structure.for_columns(d).orientation == "I" and scatter.ndim < 3
        if diagonal:
            added = self.shrinkage * share * away**2 + np.diag(terms.scatter)
        else:
            added = self.shrinkage * share[..., None] * away[:, :, None] * away[:, None, :] + terms.scatter
        if scatter.ndim < added.ndim:
            added = added.sum(axis=0)
        counted = count + float(self.shrinkage > 0) + terms.power
        return PseudoSums(counted, self.location + share * away, scatter + added)

    def log_density(self, structure: Structure, covariance: Covariance, mean: Array) -> float:
        """Return what the log-posterior adds to the log-likelihood, up to a constant.

        It is::

            -1/2 sum_k [ (power + 1) log|covariance_k| + trace(scatter_k covariance_k^-1) ]
            scatter_k = the prior's scatter + shrinkage away_k away_k',  away = mean - location

        Parameters
        ----------
        structure : Structure
            Covariance structure.
        covariance : Covariance
            Covariances of the components.
        mean : array of shape (n_components, n_features)
            Means of the components.

        Returns
        -------
        float
            The log density.
        """
        terms, factors = self.terms(structure, len(mean)), covariance.factors()
        values, vectors = eigen_descending(terms.scatter)
        # Sums of squares of a root: products with the scatter itself cancel when columns are near collinear.
        trace = np.square((vectors * np.sqrt(values)).T @ factors).sum(axis=(1, 2))
        distance = np.square(np.einsum("kj,kji->ki", mean - self.location, factors)).sum(axis=1)
        power = terms.power + float(self.shrinkage > 0)
        each = power * covariance.log_determinants() + trace + self.shrinkage * distance
        return -0.5 * float(each.sum())
