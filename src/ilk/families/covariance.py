"""The fourteen covariance structures: their M-steps from sums, and when they are singular.

Three letters say what the components share: volume, shape, orientation; E equal, V free, I round or along the
columns. Celeux and Govaert (1995); Banfield and Raftery (1993) for the letters.

Six structures (EII VII EVE VVE EEV VEV) depend on the units of single columns: give them columns in one unit
or standardised ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ilk.errors import UsageError, shown
from ilk.families.orientation import common_axes, eigen_descending, proportional
from ilk.families.orientation import profile as profile  # part of this page's face: other families use it
from ilk.kernels.constants import SINGULAR
from ilk.table.block import Array

_NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
_FREE_OF_COLUMN_UNITS = frozenset({"E", "V", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVV", "VVV"})
ALIASES = {"full": "VVV", "tied": "EEE", "diag": "VVI", "spherical": "VII", "round": "EII"}


# --- what a structure is ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Structure:
    """What the covariances of K components share; `E` and `V` are the two structures of one column.

    >>> Structure.parse("tied"), Structure.parse("VEV").for_columns(1)
    (Structure(name='EEE'), Structure(name='V'))
    """

    name: str

    @classmethod
    def parse(cls, text: str) -> Structure:
        """The structure of a three-letter name, of E or V, or of an alias."""
        name = ALIASES.get(text.lower(), text.upper())
        if name not in (*_NAMES, "E", "V"):
            raise UsageError(
                "unknown-structure",
                f"no covariance structure is called {shown(text)!r}",
                do=f"Choose one of {' '.join(_NAMES)}, E, V, {', '.join(ALIASES)}",
            )
        return cls(name)

    @property
    def volume(self) -> str:
        return self.name[0]

    @property
    def shape(self) -> str:
        return self.name[1:2] or "I"

    @property
    def orientation(self) -> str:
        return self.name[2:3] or "I"

    @property
    def invariances(self) -> frozenset[str]:
        """Which changes of the table the fit goes along with: of "column scale" and "rotation"."""
        along_columns = self.orientation == "I" and self.shape != "I"
        rotation = () if along_columns else ("rotation",)
        return frozenset((*rotation, *(("column scale",) if self.name in _FREE_OF_COLUMN_UNITS else ())))

    @property
    def sums(self) -> str:
        """Which scatters the M-step needs: one "pooled", K "diagonal" or K "full" ones."""
        if self.volume == "E" and self.shape in "EI" and self.orientation in ("I", self.shape):
            return "pooled"
        return "diagonal" if self.orientation == "I" else "full"

    def applies_to(self, n_columns: int) -> bool:
        """Whether the structure exists for that many columns: E and V are for one."""
        return n_columns == 1 or len(self.name) == 3

    def for_columns(self, n_columns: int) -> Structure:
        """The structure itself, or E or V when there is one column."""
        return Structure(self.volume) if n_columns == 1 else self


STRUCTURES = tuple(Structure(name) for name in _NAMES)


def n_covariance_parameters(structure: Structure, n_components: int, n_columns: int) -> int:
    """Free parameters of the covariances: volume + shape + orientation.

    >>> n_covariance_parameters(Structure("VVV"), 3, 4)
    30
    """
    copies = {"I": 0, "E": 1, "V": n_components}
    structure = structure.for_columns(n_columns)
    angles = n_columns * (n_columns - 1) // 2
    return (
        copies[structure.volume]
        + copies[structure.shape] * (n_columns - 1)
        + copies[structure.orientation] * angles
    )


@dataclass(frozen=True)
class Covariance:
    """covariance_k = axes_k diag(exp(log_variance_k)) axes_k', plain arrays."""

    log_variance: Array  # (K, d)
    axes: Array | None = None  # None: the columns; (d, d): common; (K, d, d): own

    @property
    def log_volume(self) -> Array:
        """Log of |covariance_k|^(1/d): also where the next alternation over volumes starts."""
        return np.asarray(self.log_variance.mean(axis=1))

    def own_axes(self) -> Array:
        """Axes of every component (K, d, d)."""
        n_components, d = self.log_variance.shape
        return np.broadcast_to(np.eye(d) if self.axes is None else self.axes, (n_components, d, d))

    def matrices(self) -> Array:
        """The covariance matrices (K, d, d)."""
        half = self.own_axes() * np.exp(self.log_variance / 2)[:, None, :]
        return np.asarray(half @ half.swapaxes(1, 2))

    def factors(self) -> Array:
        """factor_k = axes_k diag(exp(-log_variance_k / 2)): |x factor_k|^2 is the Mahalanobis distance."""
        return np.asarray(self.own_axes() * np.exp(-self.log_variance / 2)[:, None, :])

    def log_determinants(self) -> Array:
        """log|covariance_k| (K,)."""
        return np.asarray(self.log_variance.sum(axis=1))

    def select(self, which: Array | Sequence[int]) -> Covariance:
        """Only the components `which`, in that order."""
        which = np.asarray(which)
        axes = self.axes
        if axes is not None and axes.ndim == 3:
            axes = axes[which]
        return Covariance(self.log_variance[which], axes)

    def scatter_along(self, scatter: Array) -> Array:
        """Scatter along the axes (K, d), from diagonals (K, d) or matrices (K, d, d)."""
        if scatter.ndim == 2 and self.axes is None:
            return scatter
        axes = self.own_axes()
        full = scatter if scatter.ndim == 3 else scatter[:, :, None] * np.eye(scatter.shape[1])
        return np.asarray((axes * (full @ axes)).sum(axis=1))


def scatter_cost(count: Array, scatter: Array, covariance: Covariance) -> float:
    """What every M-step lowers: sum_k [ count_k log|covariance_k| + trace(scatter_k covariance_k^-1) ].

    `count` is (K,), or (K, d) with missing cells along columns; `scatter` is (K, d) diagonals or (K, d, d).
    """
    cells = count[:, None] if count.ndim == 1 else count
    along = covariance.scatter_along(scatter)
    return float((cells * covariance.log_variance + along * np.exp(-covariance.log_variance)).sum())


# --- when it is singular ----------------------------------------------------------------------------------


def singular_components(covariance: Covariance, column_variances: Array) -> Array:
    """Numbers of the components whose covariance is singular, whatever the units of the table.

    Singular: a log-variance that is not finite, or the smallest squared singular value of
    diag(column_variances)^(-1/2) axes_k diag(exp(log_variance_k / 2)) below 1e-10.
    """
    finite = np.asarray(np.isfinite(covariance.log_variance).all(axis=1))
    usable = np.isfinite(column_variances) & (column_variances > 0)
    if not usable.all():
        return np.arange(len(finite))
    spread = np.exp(np.where(finite[:, None], covariance.log_variance, 0.0) / 2)
    if covariance.axes is None:
        least = (spread**2 / column_variances).min(axis=1)
    else:
        half = covariance.own_axes() * spread[:, None, :] / np.sqrt(column_variances)[:, None]
        least = np.linalg.svd(half, compute_uv=False)[:, -1] ** 2
    return np.flatnonzero(~finite | ~(least >= SINGULAR))


def starved_components(structure: Structure, scatter: Array) -> Array:
    """Numbers of the components whose scatter is too poor for the structure; tested before axes are sought.

    Equal shapes need scatter along every axis of the pooled components, free volumes some in each component,
    free shapes some along every axis of each component. What concerns all of them names all.
    """
    everyone = np.arange(len(scatter))
    finite = np.isfinite(scatter).all(axis=tuple(range(1, scatter.ndim)))
    if not finite.all():
        return np.flatnonzero(~finite)
    along = _scatter_rank(structure, scatter)
    total = np.diagonal(scatter, axis1=1, axis2=2) if scatter.ndim == 3 else scatter
    some = total.sum(axis=1) > 0
    if structure.shape == "V":
        return np.flatnonzero(~along.all(axis=1))
    if (structure.shape == "E" and not along.any(axis=0).all()) or not some.any():
        return everyone
    return np.flatnonzero(~some) if structure.volume == "V" else everyone[:0]


def _scatter_rank(structure: Structure, scatter: Array) -> Array:
    """Whether there is scatter along each axis (K or 1, d); eigenvectors come largest first."""
    if scatter.ndim == 2:
        return scatter > 0
    if structure.orientation == "E" and structure.shape == "E":
        scatter = scatter.sum(axis=0, keepdims=True)
    if "column scale" in structure.invariances:
        unit = np.sqrt(np.diagonal(scatter.sum(axis=0)))
        unit = np.where(unit > 0, unit, 1.0)
        scatter = scatter / np.outer(unit, unit)
    values, _ = eigen_descending(scatter)
    d = scatter.shape[-1]
    return np.asarray(values > d * np.finfo(np.float64).eps * values[:, :1])  # the usual numeric rank


# --- the M-step -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CovarianceUpdate:
    """The covariances, "ok" or "singular", and which components are."""

    covariance: Covariance
    status: str
    components: Array


def update_covariance(
    structure: Structure,
    count: Array,
    scatter: Array,
    previous: Covariance | None = None,
    column_variances: Array | None = None,
) -> CovarianceUpdate:
    """Covariances of one structure from the counts and scatters of the components; the cost never rises.

    `count` (K,), or (K, d) with missing cells along columns. `scatter`: for orientation I the diagonals
    (K, d), else (K, d, d); EII, EEI, E and EEE also take the pooled (d,), (d, d). `previous` (of the same
    structure) is where the iterative structures go on; `column_variances` of the table are the units of the
    singularity test (by default the variances within components). When singular before any axes could be
    found, the previous covariances come back.
    """
    count, scatter = np.asarray(count, dtype=np.float64), np.asarray(scatter, dtype=np.float64)
    structure = structure.for_columns(scatter.shape[-1])
    if structure.orientation == "I" and scatter.ndim == 3:
        scatter = np.diagonal(scatter, axis1=1, axis2=2)
    if scatter.ndim == (1 if structure.orientation == "I" else 2):
        scatter = spread_pooled(scatter, len(count))
    if column_variances is None:
        column_variances = _variances_within(count, scatter)
    starved = starved_components(structure, scatter)
    if starved.size:
        shown_instead = previous or _blank(len(count), column_variances, starved)
        return CovarianceUpdate(shown_instead, "singular", starved)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        covariance = _solve(structure, count, scatter, previous)
    poor = singular_components(covariance, column_variances)
    return CovarianceUpdate(covariance, "singular" if poor.size else "ok", poor)


def _solve(structure: Structure, count: Array, scatter: Array, previous: Covariance | None) -> Covariance:
    """The four ways to axes; `profile` does the rest."""
    volume, shape = structure.volume, structure.shape
    log_volume = None if previous is None else previous.log_volume
    match structure.orientation + shape:
        case "II" | "IE" | "IV":
            return Covariance(profile(volume, shape, count, scatter, log_volume))
        case "VE" | "VV":
            along, axes = eigen_descending(scatter)
        case "EE" if volume == "E":
            along, axes = eigen_descending(scatter.sum(axis=0, keepdims=True))
            log_variance = profile("E", "E", count.sum(keepdims=True), along)
            return Covariance(np.repeat(log_variance, len(count), axis=0), axes[0])
        case "EE":
            log_volume, common = proportional(count, scatter, log_volume)
            along, axes = eigen_descending(common)
            log_variance = log_volume[:, None] + np.log(along)
            found = Covariance(np.where(np.isnan(log_variance), -np.inf, log_variance), axes)
            return _not_worse(count, scatter, found, previous)
        case _:
            return _solve_common_axes(structure, count, scatter, previous)
    return Covariance(profile(volume, shape, count, along, log_volume), axes)


def _not_worse(count: Array, scatter: Array, found: Covariance, previous: Covariance | None) -> Covariance:
    """What was found, or what there was before where rounding has made it worse."""
    if previous is None or previous.axes is None or previous.axes.ndim != 2:
        return found
    worse = scatter_cost(count, scatter, previous) < scatter_cost(count, scatter, found)
    return previous if worse else found


def _solve_common_axes(
    structure: Structure, count: Array, scatter: Array, previous: Covariance | None
) -> Covariance:
    """EVE, VVE: the new axes, or the old ones where rounding has made the new ones worse."""
    before = None if previous is None else previous.axes
    fits = []
    for axes in (common_axes(structure.volume, count, scatter, before), before):
        if axes is not None and axes.ndim == 2:
            along = Covariance(np.zeros(scatter.shape[:2]), axes).scatter_along(scatter)
            fits.append(Covariance(profile(structure.volume, "V", count, along), axes))
    costs = [scatter_cost(count, scatter, fit) for fit in fits]
    return fits[int(np.argmin(costs))]


def spread_pooled(pooled: Array, n_components: int) -> Array:
    """The pooled scatter as that of the first component of K; only the sum over components is used."""
    scatter = np.zeros((n_components, *pooled.shape))
    scatter[0] = pooled
    return scatter


def _variances_within(count: Array, scatter: Array) -> Array:
    """Variance of each column within the components."""
    total = (np.diagonal(scatter, axis1=1, axis2=2) if scatter.ndim == 3 else scatter).sum(axis=0)
    return np.asarray(total / np.maximum(count.sum(axis=0), np.finfo(np.float64).tiny))


def _blank(n_components: int, column_variances: Array, starved: Array) -> Covariance:
    """Covariances to show when there is nothing yet: the table's own, -inf where components are starved."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.nan_to_num(np.log(column_variances), nan=-np.inf)
    log_variance = np.tile(logs, (n_components, 1))
    log_variance[starved] = -np.inf
    return Covariance(log_variance)
