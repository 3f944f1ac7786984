"""Partitions of the rows of a wide table, from the columns that seem to know of groups.

In all columns at once the distances between rows are noise. Two scores tell which columns may matter: *dependence*,
since columns that differ between groups correlate over the table, and *modes*, since one column alone may part the
rows. K-means in the best of them, with columns chosen anew for the groups found, gives starts of several kinds; no
single kind is near the best optimum in every table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from ilk.assorted.embedding import EmbeddedRows
from ilk.assorted.sparse import SparsePoints
from ilk.fitting.mixture import distinct
from ilk.fitting.start import distinct_rows, draw_rows
from ilk.table.block import Array, Block, Encoding

SCREENED_ROWS = 1000  # of larger tables a sample is screened
SIZES = (5, 10, 20)  # columns that K-means is given, besides sqrt(D) and D/8
N_NEIGHBOURS, NEIGHBOURS = 3, 8  # columns whose neighbours are tried, and how many of these
MODE_SIZES = (1, 5)
LINKED_COLUMNS = 500  # the correlations of so many, at most, are looked at one by one
LINKS = (3.0, 3.5, 4.0)  # standard errors from which a correlation counts
LINKED_SIZE = 10
N_TRIES, N_PASSES = 3, 25  # of K-means
REFINE_ROUNDS, REFINE_PASSES = 8, 10
AXIS_ROUNDS = 6  # of subspace iteration; a whole decomposition costs more than all else
LEAST_SIDE = 0.05  # share of the rows on either side of a cut between modes
FEWEST = 2.0  # rows of a cluster


@dataclass(frozen=True, eq=False)
class Partitions:
    """Labels of the rows of a table, several times; of a sample `rows` are the numbers and `weight` says how often each
    was drawn."""

    labels: list[Array]
    rows: Array | None = None
    weight: Array | None = None


def screened(points: EmbeddedRows, k: int, draws: Generator, n_neighbours: int = N_NEIGHBOURS) -> Partitions:
    """Partitions of rows in K parts; the same for equal rows and for a row of their weight, in any order."""
    if isinstance(points, SparsePoints):
        return Partitions(
            [label for label in distinct(points.along(k, draws)) if _filled(label, points.weight, k)]
        )
    encoding = Encoding(1.0, np.zeros(points.points.shape[1]))
    block, where = distinct_rows(Block(points.points, encoding, weight=points.weight))
    rows, weight, few = block.raw, block.weights, len(block.raw) > SCREENED_ROWS
    if few:
        times = _drawn(weight, draws)
        kept = np.flatnonzero(times)
        rows, weight = rows[kept], times[kept]
    screen = Screen(_standardised(rows, weight), weight, points.column, points.n_columns)
    labels = screen.partitions(k, draws, n_neighbours)
    if not few:
        return Partitions([label[where] for label in labels])
    first = np.full(block.n_rows, -1)
    first[where[::-1]] = np.arange(len(where))[::-1]
    return Partitions(labels, first[kept], weight)


def _filled(label: Array, weight: Array | None, k: int) -> bool:
    """Whether every part holds rows enough."""
    return bool(np.bincount(label, weight, k).min() >= FEWEST)


@dataclass(frozen=True, eq=False)
class Screen:
    """Different rows as points with mean 0 and deviation 1 in every axis (rows, axes), and how much each counts; equal
    rows and a row of some weight are the same to it, in any order."""

    points: Array
    weight: Array
    column: Array
    n_columns: int

    @cached_property
    def total(self) -> float:
        return float(self.weight.sum())

    @cached_property
    def n_axes(self) -> Array:
        """Of each column."""
        return np.bincount(self.column, minlength=self.n_columns)

    # --- what columns seem to know

    @cached_property
    def dependence(self) -> Array:
        """How far each column's squared correlations with all others exceed what independent columns show, in standard
        deviations of that sum; never through a matrix of all columns where the rows are fewer."""
        heavy, n = self.points * np.sqrt(self.weight)[:, None], self.total
        if len(heavy) <= heavy.shape[1]:
            squares = np.einsum("ij,ij->j", heavy, (heavy @ heavy.T) @ heavy) / n**2
        else:
            squares = np.square(heavy.T @ heavy / n).sum(axis=1)
        others = heavy.shape[1] - self.n_axes[self.column]
        spread = np.sqrt(2.0 * np.maximum(others, 1)) / n
        away = (squares - self._own_squares(heavy) / n**2 - others / max(n - 1, 1.0)) / spread
        live = np.square(heavy).sum(axis=0) > 0
        return self._by_column(np.where(live, away, 0.0))

    def _own_squares(self, heavy: Array) -> Array:
        """Of each axis the squared products with the axes of its own column."""
        own = np.empty(heavy.shape[1])
        for size in np.unique(self.n_axes):
            axes = np.flatnonzero(self.n_axes[self.column] == size).reshape(-1, size)
            here = heavy[:, axes]
            own[axes] = np.square(np.einsum("ncs,nct->cst", here, here)).sum(axis=2)
        return own

    @cached_property
    def modes(self) -> Array:
        """Of each number the nats that the best cut of its sorted values gains, with own variances; -inf elsewhere.

        - min over cuts [(a + 1)/2 log s2_a + (b + 1)/2 log s2_b + n H(a/n)], one pooled row in each variance
        """
        gain = np.full(self.n_columns, -np.inf)
        axes = np.flatnonzero(self.n_axes[self.column] == 1)
        if not len(axes):
            return gain
        order = np.argsort(self.points[:, axes], axis=0, kind="stable")
        x, w, n = np.take_along_axis(self.points[:, axes], order, axis=0), self.weight[order], self.total
        below, first, second = (np.cumsum(w * x**power, axis=0) for power in range(3))
        a, s, ss = below[:-1], first[:-1], second[:-1]
        b, t, tt = n - a, first[-1] - s, second[-1] - ss
        most = max(3.0, LEAST_SIDE * n)
        inside = (a >= most) & (b >= most) & (x[1:] > x[:-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = (a + 1) / 2 * np.log((np.maximum(ss - s**2 / a, 0) + 1) / (a + 1))
            cost += (b + 1) / 2 * np.log((np.maximum(tt - t**2 / b, 0) + 1) / (b + 1))
            cost -= a * np.log(a / n) + b * np.log(b / n)
        gain[self.column[axes]] = -np.where(inside, cost, np.inf).min(axis=0, initial=np.inf)
        return gain

    def _by_column(self, by_axis: Array) -> Array:
        """The mean over the axes of each column."""
        return np.bincount(self.column, by_axis, self.n_columns) / np.maximum(self.n_axes, 1)

    def _axes(self, columns: Array) -> Array:
        chosen = np.zeros(self.n_columns, dtype=bool)
        chosen[columns] = True
        return np.flatnonzero(chosen[self.column])

    # --- partitions

    def partitions(self, k: int, draws: Generator, n_neighbours: int = N_NEIGHBOURS) -> list[Array]:
        """Different partitions of the rows in K parts of two rows or more."""
        found = distinct([*self._kinds(k, draws, n_neighbours)])
        return [label for label in found if _filled(label, self.weight, k)]

    def _kinds(self, k: int, draws: Generator, n_neighbours: int) -> Iterator[Array]:
        d, z = self.n_columns, self.dependence
        sizes = sorted({min(d, size) for size in (*SIZES, max(SIZES[-1], math.isqrt(d)), d // 8 + 1)})
        order = np.argsort(-z, kind="stable")
        for size in sizes:
            yield self._refined(self._k_means(self._axes(order[:size]), k, draws), k, size)
        by_axes = lloyd(self._leading(max(1, k - 1), draws), self.weight, k, draws)
        for size in sizes[1:4]:
            yield self._refined(by_axes, k, size)
        by_modes = np.argsort(-self.modes, kind="stable")
        for size in MODE_SIZES if np.isfinite(self.modes).any() else ():
            label = self._k_means(self._axes(by_modes[:size]), k, draws)
            yield label if size == 1 else self._refined(label, k, size)
        chance = np.square(np.maximum(z, 0.0)) + 1e-9
        for _ in range(n_neighbours):
            drawn = int(draws.choice(d, p=chance / chance.sum()))
            label = self._k_means(self._axes(self._near(drawn)), k, draws)
            yield self._refined(label, k, NEIGHBOURS)
        for points in self._linked(max(1, k - 1)):
            yield self._refined(lloyd(points, self.weight, k, draws), k, LINKED_SIZE)

    def _near(self, column: int) -> Array:
        """The columns most correlated with one, itself among them."""
        own = self.points[:, self.column == column] * self.weight[:, None]
        strength = self._by_column(np.abs(own.T @ self.points).max(axis=0))
        return np.argsort(-strength, kind="stable")[:NEIGHBOURS]

    def _k_means(self, axes: Array, k: int, draws: Generator) -> Array:
        return lloyd(self.points[:, axes], self.weight, k, draws)

    def _refined(self, label: Array, k: int, size: int) -> Array:
        """K-means on from a partition in the columns that part its groups best, chosen anew each round."""
        size = min(size, self.n_columns)
        for _ in range(REFINE_ROUNDS):
            best = np.argsort(-self._by_column(self._between(label, k)), kind="stable")[:size]
            points = self.points[:, self._axes(best)]
            moved, _ = _passes(points, self.weight, label, k, REFINE_PASSES)
            if (moved == label).all():
                break
            label = moved
        return label

    def _between(self, label: Array, k: int) -> Array:
        """Share of the variance of each axis that lies between the groups."""
        mean, size = _means(self.points, self.weight, label, k)
        return np.asarray((mean**2 * size[:, None]).sum(axis=0) / self.total)

    def _linked(self, n: int) -> Iterator[Array]:
        """The rows on the leading axes of the correlations that are beyond chance, the others taken for 0: of few rows
        the errors of all the small ones together hide columns that belong together (Bickel and Levina 2008)."""
        from scipy.linalg import eigh  # takes a while to import, and few tables are wide

        axes = self._axes(np.argsort(-self.dependence, kind="stable")[:LINKED_COLUMNS])
        points, column = self.points[:, axes], self.column[axes]
        products = (points * self.weight[:, None]).T @ points / self.total
        products[column[:, None] == column] = 0.0
        first = max(0, len(axes) - n)
        for link in LINKS:
            strong = np.where(np.abs(products) > link / np.sqrt(self.total), products, 0.0)
            yield points @ eigh(strong, subset_by_index=(first, len(axes) - 1))[1]

    def _leading(self, n: int, draws: Generator) -> Array:
        """The rows on the leading axes of all columns, each scaled by the root of its dependence."""
        scaled = self.points * np.sqrt(np.maximum(self.dependence, 0.0))[self.column]
        heavy = scaled * np.sqrt(self.weight)[:, None]
        basis = draws.standard_normal((len(heavy), min(n + 4, len(heavy))))
        for _ in range(AXIS_ROUNDS):
            basis, _ = np.linalg.qr(heavy @ (heavy.T @ basis))
        _, _, axes = np.linalg.svd(basis.T @ heavy, full_matrices=False)
        return np.asarray(scaled @ axes[:n].T)


def lloyd(points: Array, weight: Array, k: int, draws: Generator) -> Array:
    """The labels of the best of a few runs of K-means from k-means++ starts."""
    runs = []
    for _ in range(N_TRIES):
        label = np.argmin(_distances(points, points[_spread_rows(points, weight, k, draws)]), axis=1)
        runs.append(_passes(points, weight, label, k, N_PASSES))
    return min(runs, key=lambda run: run[1])[0]


def _passes(points: Array, weight: Array, label: Array, k: int, most: int) -> tuple[Array, float]:
    """Passes of K-means from labels until none changes, and the cost, but for what all rows have in common."""
    cost = np.inf
    for _ in range(most):
        mean, size = _means(points, weight, label, k)
        distance = np.where(size > 0, _distances(points, mean), np.inf)
        moved = distance.argmin(axis=1)
        cost = float(weight @ distance.min(axis=1))
        if (moved == label).all():
            break
        label = moved
    return label, cost


def _means(points: Array, weight: Array, label: Array, k: int) -> tuple[Array, Array]:
    member = np.zeros((len(points), k))
    member[np.arange(len(points)), label] = weight
    size = member.sum(axis=0)
    return member.T @ points / np.where(size > 0, size, 1.0)[:, None], size


def _distances(points: Array, centres: Array) -> Array:
    """Squared distances, but for the squares of the rows, which part nothing."""
    return np.asarray(np.square(centres).sum(axis=1) - 2 * points @ centres.T)


def _spread_rows(points: Array, weight: Array, k: int, draws: Generator) -> list[int]:
    """Rows drawn by k-means++."""
    squares = np.square(points).sum(axis=1)
    chosen = [int(draw_rows(weight, 1, draws)[0])]
    nearest = np.full(len(points), np.inf)
    for _ in range(k - 1):
        nearest = np.minimum(nearest, squares + _distances(points, points[chosen[-1:]])[:, 0])
        chosen.append(int(draw_rows(np.maximum(nearest, 0.0) * weight, 1, draws)[0]))
    return chosen


def _drawn(weight: Array, draws: Generator) -> Array:
    """How often each row is drawn, by its weight, in even steps through the rows."""
    reached = np.cumsum(weight)
    steps = (np.arange(SCREENED_ROWS) + draws.random()) * reached[-1] / SCREENED_ROWS
    rows = np.minimum(np.searchsorted(reached, steps, side="right"), len(weight) - 1)
    return np.bincount(rows, minlength=len(weight)).astype(np.float64)


def _standardised(points: Array, weight: Array) -> Array:
    away = points - np.average(points, axis=0, weights=weight)
    deviation = np.sqrt(np.average(np.square(away), axis=0, weights=weight))
    return np.asarray(away / np.where(deviation > 1e-12, deviation, np.inf))
