"""Factors that load on most columns of a wide table, set aside: groups in few columns are sought in what is left.

A batch, a dose or an overall size moves hundreds of columns at once, and in those the rows of a group lie far apart.
Factors are the strong axes of the standardised numbers that many columns make; an axis of few columns may be groups:

    s_i^2 > 1.1 (sqrt n + sqrt D)^2   beyond what independent columns show (Marchenko and Pastur 1967)
    1 / sum_d V_id^4 > D/6            so many columns make the axis

With loadings L, noise variances P and f ~ Normal(0, I), a row is z = L f + rest. The factors cost nats as the clusters
do, so that J of both models compares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ilk.assorted.scales import PLAIN
from ilk.assorted.transform import TransformPlan
from ilk.assorted.width import MANY_COLUMNS
from ilk.table.block import Array, Block

MOST_FACTORS = 10
BEYOND_CHANCE = 1.1  # of the largest square that independent columns show
SPREAD_OVER = 6.0  # of D columns more than D/6 make the axis of a factor
LEAST_NOISE = 0.01  # of the variance of a column: one that factors determine would weigh without bound
FILL_ROUNDS = 5  # in which missing cells are filled by the factors found


@dataclass(frozen=True)
class DenseFactors:
    """Takes factors out of some columns of numbers; means and deviations in encoded units, `loading` (columns, factors)
    and `noise` of the standardised columns."""

    source: tuple[int, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    loading: tuple[tuple[float, ...], ...] = ()
    noise: tuple[float, ...] = ()

    def __call__(self, block: Block) -> Block:
        """The block without what its factors explain; missing cells stay so."""
        source = np.array(self.source)
        factors, _ = self.scores(self.standardised(block))
        explained = np.zeros((block.n_rows, len(source)))
        for score, load in zip(factors.T, self._loading.T, strict=True):
            explained += score[:, None] * load
        raw = block.raw.astype(np.float64)
        raw[:, source] -= explained * np.array(self.deviation) / block.encoding.unit[source]
        return replace(block, raw=raw, memo=None)

    @property
    def n_factors(self) -> int:
        return len(self.loading[0])

    @property
    def free_parameters(self) -> int:
        """Loadings, but for a rotation."""
        return self.n_factors * len(self.source) - self.n_factors * (self.n_factors - 1) // 2

    @cached_property
    def _loading(self) -> Array:
        return np.array(self.loading)

    def standardised(self, block: Block) -> Array:
        """The columns with mean 0 and deviation 1 over the training table, NaN where missing."""
        source = np.array(self.source)
        x = block.encoding.columns(source).apply(block.raw[:, source].astype(np.float64))
        return np.asarray((x - np.array(self.mean)) / np.array(self.deviation))

    def scores(self, z: Array) -> tuple[Array, Array]:
        """Of each row the likeliest factors given its observed cells (rows, factors), and how precisely those tell them
        (rows or 1, factors, factors):

        precision = I + sum_d l_d l_d'/p_d,  f = precision^-1 sum_d l_d z_d/p_d
        """
        known = ~np.isnan(z)
        pull = self._loading / np.array(self.noise)[:, None]
        products = self._loading[:, :, None] * pull[:, None, :]
        if known.all():
            precision = products.sum(axis=0)[None]
        else:
            precision = np.einsum("nd,dij->nij", known.astype(np.float64), products)
        precision = precision + np.eye(self.n_factors)
        # Without BLAS, which sums equal rows in another order at another place.
        towards = np.einsum("nd,di->ni", np.where(known, z, 0.0), pull)
        return np.linalg.solve(precision, towards[:, :, None])[:, :, 0], precision

    def cost(self, block: Block) -> float:
        """Nats by which rows are less likely than what is left of them, given their factors.

        sum_i [f'f + log det precision + tr precision^-1 - r]/2 + sum_d n_d/2 log(1 + l'precision^-1 l/s2_d)

        The first is the divergence of what a row tells of its factors from what is known without it, the second what
        the variance s2 about the likeliest factors lacks of that about the true ones; together with J of the rest a
        bound on -log p, which is exact where the loadings are the likeliest.
        """
        z, weight = self.standardised(block), block.weights
        factors, precision = self.scores(z)
        rest = z - factors @ self._loading.T
        known = weight[:, None] * ~np.isnan(z)
        observed = np.maximum(known.sum(axis=0), 1e-9)
        mean = (known * np.where(known > 0, rest, 0.0)).sum(axis=0) / observed
        left = (known * np.square(np.where(known > 0, rest - mean, 0.0))).sum(axis=0) / observed
        inverse = np.linalg.inv(precision)
        unsure = np.einsum("di,nij,dj->nd", self._loading, inverse, self._loading)
        unsure = (known * unsure).sum(axis=0) / observed
        rows = np.square(factors).sum(axis=1) + np.linalg.slogdet(precision)[1]
        rows = rows + np.trace(inverse, axis1=1, axis2=2) - self.n_factors
        hidden = observed * np.log1p(unsure / np.maximum(left, 1e-12))
        return float((weight * rows).sum() + hidden.sum()) / 2


def find_factors(block: Block, plan: TransformPlan) -> DenseFactors | None:
    """The dense factors of the numbers of a table; None where it has none, or few columns. Numbers of which one value
    is modelled apart keep it."""
    numbers = [number for number in plan.numbers if number.atom is None]
    if len(numbers) < MANY_COLUMNS:
        return None
    blank = DenseFactors(
        source=tuple(number.source for number in numbers),
        mean=tuple(number.centre[PLAIN] for number in numbers),
        deviation=tuple(number.spread[PLAIN] for number in numbers),
    )
    z, weight = blank.standardised(block), block.weights
    lost = np.isnan(z)
    filled, found = np.where(lost, 0.0, z), None
    for _ in range(FILL_ROUNDS if lost.any() else 1):
        loading = _dense_axes(filled, weight)
        if not loading.shape[1]:
            return None
        noise = np.maximum(1.0 - np.square(loading).sum(axis=1), LEAST_NOISE)
        found = replace(blank, loading=as_tuples(loading), noise=tuple(noise.tolist()))
        factors, _ = found.scores(z)
        filled = np.where(lost, factors @ loading.T, z)
    return found


def as_tuples(matrix: Array) -> tuple[tuple[float, ...], ...]:
    """A matrix as plain data that compares."""
    return tuple(tuple(row) for row in matrix.tolist())


def _dense_axes(z: Array, weight: Array) -> Array:
    """Loadings of the strong axes that many columns make (columns, axes)."""
    heavy, n = z * np.sqrt(weight)[:, None], float(weight.sum())
    few_rows = len(heavy) < heavy.shape[1]
    products = heavy @ heavy.T if few_rows else heavy.T @ heavy
    size, d = len(products), heavy.shape[1]
    from scipy.linalg import eigh  # takes a while to import, and few tables are wide

    squares, axes = eigh(products, subset_by_index=(max(0, size - MOST_FACTORS), size - 1))
    strong = squares > BEYOND_CHANCE * (np.sqrt(n) + np.sqrt(d)) ** 2
    squares, axes = squares[strong], axes[:, strong]
    if few_rows:
        axes = heavy.T @ axes / np.sqrt(squares)
    dense = 1.0 / np.maximum((axes**4).sum(axis=0), 1e-300) > d / SPREAD_OVER
    return np.asarray((axes * np.sqrt(squares / n))[:, dense])
