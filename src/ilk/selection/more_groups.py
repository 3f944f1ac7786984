"""K-means and its variants beyond the K that are tried one by one, for as long as more groups lower the BIC.

Many small parts are put together two by two, and the partition of the lowest BIC is a start. Then every group whose
halves pay is cut in two (Pelleg and Moore 2000), and neighbours that are cheaper as one are joined.

BIC is that of round groups of one size, and a single skewed cloud is none of them: there it falls on for hundreds of
groups, which all lie side by side. So more groups are tried only where those at hand lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ilk.engines.base import Rows
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import Fit, fit
from ilk.fitting.partitions import Partitioner
from ilk.fitting.recall import recall
from ilk.fitting.restarts import Recipe, fit_exact, from_labels, solves_line
from ilk.fitting.split_merge import FEWEST_ROWS, two_means
from ilk.measures.criteria import bic, spherical_loglik, spherical_parameters
from ilk.selection.candidates import Candidate
from ilk.selection.fine_parts import FineParts, ward_merges
from ilk.selection.growing import EVEN_STEP, MOST_PARTS, N_ALONE, ROWS_PER_PART
from ilk.selection.merging import merge_pieces
from ilk.selection.rounding import recording_step
from ilk.selection.valley import NumberGround
from ilk.table.block import Array, Block

MOST_LOOKED = 30  # groups that are looked at for dips
HALF = 0.5  # the part of them that has one where groups lie apart
Half = tuple[float, Array]  # by how much a cut pays, and the rows of the new group


class Candidates(Protocol):
    """The table of candidates, which fits of more groups are added to."""

    rows: Rows
    seed: int
    deadline: Deadline

    def keep(self, recipe: Recipe, k: int, found: Fit) -> Candidate: ...

    def best_of(self, recipe: Recipe) -> tuple[Candidate, Fit] | None: ...


@dataclass
class MoreGroups:
    """The candidates of one recipe above `last` groups."""

    table: Candidates
    recipe: Recipe
    last: int
    most: int
    tiled: bool = False  # whether it ended at groups that lie side by side

    def run(self) -> None:
        """More groups as long as they are the best candidate."""
        rows = self.table.rows
        if self.most <= self.last or not rows.complete or self.table.best_of(self.recipe) is None:
            return
        self.leap()
        while self.best.k >= self.last and not self.table.deadline.over:
            if not self.apart(np.asarray(self._found[1].labels)):
                self.tiled = True
                return
            moved = (
                self.beside() if self._exact else self.split() or (self.best.k > self.last and self.join())
            )
            if not moved:
                return

    @property
    def _exact(self) -> bool:
        return self.recipe.name == "k-means" and solves_line(self.table.rows, self.recipe)

    @property
    def _found(self) -> tuple[Candidate, Fit]:
        found = self.table.best_of(self.recipe)
        assert found is not None
        return found

    @property
    def best(self) -> Candidate:
        return self._found[0]

    @cached_property
    def block(self) -> Block:
        return self.table.rows.take(np.arange(self.table.rows.n_rows))

    @cached_property
    def numbers(self) -> Array:
        return np.asarray(self.block.numbers, dtype=np.float64)

    @cached_property
    def least_variance(self) -> float:
        """What the rounding of the columns leaves: groups cannot be narrower."""
        return float(np.mean([recording_step(column) ** 2 for column in self.numbers.T])) / EVEN_STEP

    def leap(self) -> None:
        """The partition of the lowest BIC that small parts make, and the fit from there if that is promising."""
        n_parts = min(self.most, self.table.rows.n_rows // ROWS_PER_PART, MOST_PARTS)
        if n_parts <= self.last:
            return
        by = n_parts, self.last, self.recipe.family, self.table.seed
        few, many, label = recall("parts", self.table.rows, by, lambda: self._parts(n_parts))
        if many <= few and (self.apart(label) or self.several(label)):
            self._fit(label)

    def _parts(self, n_parts: int) -> tuple[float, float, Array]:
        """The lowest BIC that small parts make with any number of groups, and with more than the last."""
        fine = Partitioner(self.block, self.table.seed).fine(n_parts)
        parts = FineParts.of(self.numbers, self.block.weights, fine)
        few, _ = parts.best_partition(self._spherical, 1, rounds=1)
        return few, *parts.best_partition(self._spherical, self.last + 1, rounds=1)

    def apart(self, label: Array) -> bool:
        """Whether half of the groups or more have a density dip towards the nearest other one; of many the larger are
        looked at."""
        ground = NumberGround.of(self.block, label, seed=self.table.seed)
        size = np.bincount(label[label >= 0], minlength=int(label.max()) + 1)
        there = np.flatnonzero(size)
        if len(there) < 2:
            return True
        away = ground.distances([(int(group),) for group in there])
        np.fill_diagonal(away, np.inf)
        looked = np.argsort(-size[there], kind="stable")[:MOST_LOOKED]
        valleys = [ground.project((int(there[i]),), (int(there[away[i].argmin()]),)).valley for i in looked]
        return bool(np.mean(np.array(valleys) >= ground.thresholds.merge) >= HALF)

    def several(self, label: Array) -> bool:
        """Whether dips part the groups into more than one set: tiles of clouds that are not round."""
        ground = NumberGround.of(self.block, label, seed=self.table.seed)
        merge = merge_pieces(
            ground, int(label.max()) + 1, threshold=ground.thresholds.merge, whole_path=False
        )
        return len(merge.groups) > 1

    def _spherical(self, size: Array, scatter: Array) -> float:
        """BIC of hard labels in the units of the rows."""
        columns, total = len(scatter), float(size.sum())
        within = float(np.trace(scatter)) + self.least_variance * total * columns
        if within <= 0:
            return math.inf
        return bic(spherical_loglik(within, size, columns), spherical_parameters(len(size), columns), total)

    def split(self) -> bool:
        """All groups cut in two whose halves pay, else half of them, at last the best few alone."""
        found, fitted = self._found
        label = np.asarray(fitted.labels)
        halves = self._halves(label, found.k)[: self.most - found.k]

        def cut(chosen: Sequence[Half]) -> Array:
            made = label.copy()
            for number, (_, rows) in enumerate(chosen):
                made[rows] = found.k + number
            return made

        return self._moved(halves, cut)

    def join(self) -> bool:
        """The nearest groups joined, as many as pay at once or the first few."""
        found, fitted = self._found
        label = np.asarray(fitted.labels)
        parts = FineParts.of(self.numbers, self.block.weights, np.where(label < 0, 0, label))
        merges = ward_merges(parts.size, parts.centre, max(found.k - N_ALONE, 2))
        return any(self._fit(_joined(label, merges[:n_merges])) for n_merges in range(1, len(merges) + 1))

    def beside(self) -> bool:
        """One group more or less, where the optimum of each K is found at once."""
        k, rows = self.best.k, self.table.rows
        before = self.best.bic
        for other in (k + 1, k - 1):
            if self.last < other <= self.most:
                self.table.keep(self.recipe, other, fit_exact(rows, self.recipe, other, self.table.seed))
                if self.best.bic != before:
                    return True
        return False

    def _moved(self, moves: Sequence[Half], partition: Callable[[Sequence[Half]], Array]) -> bool:
        n_moves = sum(gain > 0 for gain, _ in moves)
        while n_moves > 1:
            if self._fit(partition(moves[:n_moves])):
                return True
            n_moves //= 2
        return any(self._fit(partition([move])) for move in moves[:N_ALONE])

    def _fit(self, label: Array) -> bool:
        """The fit from a partition; whether it is the best candidate now."""
        rows, recipe, before = self.table.rows, self.recipe, self.best.bic
        k = int(label.max()) + 1
        if self._exact:
            found = fit_exact(rows, recipe, k, self.table.seed)
        else:
            start = from_labels(rows, recipe.family, label, k)
            found = fit(rows, recipe.family, [start], trim=recipe.trim, stop=recipe.stop)
        if found.cost <= self.least_variance * float(found.size.sum()) * rows.n_columns:
            return False
        self.table.keep(recipe, k, found)
        return self.best.bic != before

    def _halves(self, label: Array, k: int) -> list[Half]:
        """One half of each group, and by how much half the BIC would fall; the best first."""
        weight, columns = self.block.weights, self.numbers.shape[1]
        within = max(self._found[1].cost, 1e-300) / (float(weight.sum()) * columns)
        price = (columns + 1) / 2 * math.log(max(float(weight.sum()), 2.0))
        made = []
        for group in range(k):
            rows = np.flatnonzero(label == group)
            heft = weight[rows]
            if len(rows) < FEWEST_ROWS or heft.sum() < FEWEST_ROWS:
                continue
            points = self.numbers[rows]
            half = two_means(points, heft)
            if half.any() and not half.all():
                fall = _scatter(points, heft) - _scatter(points[half], heft[half])
                fall -= _scatter(points[~half], heft[~half])
                shares = np.array([heft[half].sum(), heft[~half].sum()])
                mixing = float(shares @ np.log(shares / shares.sum()))
                made.append((fall / (2 * within) + mixing - price, rows[half]))
        return sorted(made, key=lambda half: -half[0])


def _scatter(points: Array, weight: Array) -> float:
    return float(weight @ np.square(points - np.average(points, axis=0, weights=weight)).sum(axis=1))


def _joined(label: Array, merges: Sequence[tuple[int, int]]) -> Array:
    made = label.copy()
    for one, other in merges:
        made[made == other] = one
    return np.unique(made, return_inverse=True)[1]
