"""Beyond the grid of structures and K: on from the best cell for as long as another component lowers the BIC.

First a look ahead: many small parts are put together two by two, each partition with the BIC that its rows have under
one covariance for all (a bound from above, without a fit). Many clear groups show there at once, also where nine
components are no better than one. Then every component whose halves pay is cut in two, and every two that are
cheaper as one are joined: all of them together, else half of them, at last the best alone; again until nothing pays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ilk.families.covariance import Structure, n_covariance_parameters
from ilk.fitting.loop import OK, PASS_LIMIT, Stop
from ilk.fitting.recall import recall
from ilk.fitting.split_merge import FEWEST_ROWS, SPLIT_PASSES, two_means
from ilk.measures.criteria import bic
from ilk.selection.fine_parts import FineParts
from ilk.selection.grid_cell import GridCell
from ilk.selection.rounding import recording_step
from ilk.table.block import Array

if TYPE_CHECKING:
    from ilk.selection.mixtures import Grid

ROWS_PER_PART, MOST_PARTS = 4, 1000  # of the look ahead
LEADING = tuple(Structure(name) for name in ("EII", "VII", "EEI", "VVI", "EEE", "VVV"))
TRIAL_PASSES = 30  # after which only what comes near the best goes on
N_ALONE = 3  # moves that are tried one by one where several at once do not pay
N_MORE = 4  # structures beside the leading ones that are tried at the end, best first
EVEN_STEP = 12.0  # the variance of values spread over a step of one is a twelfth

T = TypeVar("T")
Move = tuple[float, T]  # by how much half the BIC would fall, and what is moved


@dataclass
class Growth:
    """The cells of a grid beyond its last K."""

    grid: Grid
    last: int
    most: int
    stop: Stop

    def run(self) -> None:
        """Cells with more components, as long as one of them is the best."""
        if self.most <= self.last:
            return
        self.leap()
        while self.best.fits and self.best.k >= self.last and not self.stop.deadline.over:
            moved = self.split() or (self.best.k > self.last and (self.join() or self.exchange()))
            if not moved and not self.any_split():
                return

    @property
    def best(self) -> GridCell:
        return min(self.grid.cells.values(), key=self.grid.bic)

    @property
    def structures(self) -> tuple[Structure, ...]:
        """The leading ones of those that are searched."""
        columns = self.grid.rows.n_columns
        leading = {structure.for_columns(columns) for structure in LEADING}
        return tuple(s for s in self.grid.structures if s in leading) or self.grid.structures

    @cached_property
    def numbers(self) -> Array:
        return np.where(np.isnan(self.grid.block.numbers), 0.0, self.grid.block.numbers).astype(np.float64)

    @cached_property
    def least_variance(self) -> Array:
        """What the rounding of a column leaves: a component cannot be thinner."""
        return np.array([recording_step(column) ** 2 / EVEN_STEP for column in self.numbers.T])

    # --- the look ahead

    def leap(self) -> None:
        """The leading structures from the partition of many small parts that promises most, if it is below the best."""
        grid = self.grid
        n_parts = min(self.most, grid.rows.n_rows // ROWS_PER_PART, MOST_PARTS)
        if not grid.block.complete or n_parts <= self.last:
            return
        promised, label = recall(
            "parts", grid.rows, (n_parts, self.last, grid.seed), lambda: self._parts(n_parts)
        )
        if promised < grid.bic(self.best):
            self._fit(self.structures, [label])

    def _parts(self, n_parts: int) -> tuple[float, Array]:
        """The partition of small parts that promises most, and what it promises."""
        fine = FineParts.of(self.numbers, self.grid.block.weights, self.grid.partitioner.fine(n_parts))
        return fine.best_partition(self._hard_bic, self.last + 1)

    def _hard_bic(self, size: Array, scatter: Array) -> float:
        """The lowest BIC of EII, EEI and EEE with hard labels, from the sizes of groups and their common scatter."""
        k, total, columns = len(size), float(size.sum()), len(scatter)
        within = scatter / total + np.diag(self.least_variance)
        spread = np.diag(within)
        if not (spread > 0).all():
            return math.inf
        logs = {
            "EII": columns * math.log(spread.mean()),
            "EEI": float(np.log(spread).sum()),
            "EEE": float(np.linalg.slogdet(within)[1]),
        }
        shares = float(size @ np.log(size / total)) + self.grid.log_unit
        found = []
        for name, log_volume in logs.items():
            loglik = shares - total / 2 * (columns * (math.log(2 * math.pi) + 1) + log_volume)
            found.append(bic(loglik, _parameters(Structure(name), k, columns), self.grid.moments.row_weight))
        return min(value if math.isfinite(value) else math.inf for value in found)

    # --- moves

    def split(self) -> bool:
        """Components cut in two, the best half of those that pay first of all."""
        cell = self.best
        halves = recall("halves", self.grid.rows, (cell.family, cell.best.params), lambda: self._halves(cell))
        halves = sorted(halves, key=lambda half: -half[0])
        room = self.most - cell.k
        label = cell.family.assign(cell.best.params, self.grid.block)[0]

        def cut(chosen: Sequence[Move[Array]]) -> Array:
            made = label.copy()
            for number, (_, rows) in enumerate(chosen):
                made[rows] = cell.k + number
            return made

        return self._moved(cell, halves[:room], cut)

    def join(self) -> bool:
        """Pairs of components made one, each component in one pair only."""
        cell = self.best
        label = cell.family.assign(cell.best.params, self.grid.block)[0]
        pairs = self._pairs(cell, label)

        def joined(chosen: Sequence[Move[tuple[int, int]]]) -> Array:
            made = label.copy()
            for _, (one, other) in chosen:
                made[made == other] = one
            return np.unique(made, return_inverse=True)[1]

        return self._moved(cell, pairs, joined)

    def _moved(
        self, cell: GridCell, moves: Sequence[Move[T]], partition: Callable[[Sequence[Move[T]]], Array]
    ) -> bool:
        """All moves that pay at once, then half of them and so on; at last the first few alone."""
        n_moves = sum(gain > 0 for gain, _ in moves)
        while n_moves > 1:
            if self._fit([cell.structure], [partition(moves[:n_moves])]):
                return True
            n_moves //= 2
        return any(self._fit([cell.structure], [partition([move])]) for move in moves[:N_ALONE])

    def any_split(self) -> bool:
        """Every component in two, one at a time: for a few passes, and where the best cut then gains nothing for more,
        since another may lead by then. Where that gains nothing either the search has settled: what halves promise is
        a guess."""
        cell, grid = self.best, self.grid
        if cell.k >= self.most:
            return False
        before, labels = grid.bic(cell), grid.split_labels(cell)
        for n_passes in (SPLIT_PASSES, TRIAL_PASSES) if labels else ():
            trial = grid.blank(cell.structure, cell.k + 1)
            grid.run_from([trial], labels, replace(self.stop, max_passes=n_passes))
            if trial.runs:
                grid.run_on([trial], self.stop)
                self._keep(trial)
            if grid.bic(self.best) < before:
                return True
        return False

    def exchange(self) -> bool:
        """The other structures from the memberships of the best cell, and that one from the tree."""
        cell, grid = self.best, self.grid
        label = cell.family.assign(cell.best.params, grid.block)[0]
        others = [s for s in grid.structures if s != cell.structure]
        lead = [s for s in others if s in self.structures or (s, cell.k) not in grid.cells]
        fresh = [s for s in lead if (s, cell.k) not in grid.cells][: len(self.structures) + N_MORE]
        return bool(fresh) and self._fit(fresh, [label])

    def _fit(self, structures: Sequence[Structure], labels: Sequence[Array]) -> bool:
        """Cells from partitions; whether one of them is the best cell now."""
        grid, before = self.grid, self.grid.bic(self.best)
        for label in labels:
            k = int(label.max()) + 1
            cells = [grid.blank(s, k) for s in structures]
            grid.run_from(cells, [label], replace(self.stop, max_passes=TRIAL_PASSES))
            near = before + 2 * self._price(cells[0])
            going = [c for c in cells if c.runs and c.best.reason == PASS_LIMIT and grid.bic(c) < near]
            grid.run_on(going, self.stop)
            for cell in cells:
                self._keep(cell)
        return grid.bic(self.best) < before

    def _keep(self, cell: GridCell) -> None:
        """Note a cell, or its runs where there is one already."""
        known = self.grid.cells.get((cell.structure, cell.k))
        if not cell.runs or (cell.best.status == OK and not self._thick(cell)):
            return
        if known is None:
            self.grid.cells[cell.structure, cell.k] = cell
        else:
            known.runs += cell.runs

    def _thick(self, cell: GridCell) -> bool:
        """Whether no component is thinner than the steps in which its columns were recorded."""
        if cell.k <= self.last or not self.least_variance.any():
            return True
        variances = np.einsum("kii->ki", cell.best.params.covariance.matrices())
        return bool((variances >= self.least_variance).all())

    # --- what moves promise

    def _halves(self, cell: GridCell) -> list[Move[Array]]:
        """Of each component the rows of one half, and by how much BIC / 2 would fall."""
        params, block = cell.best.params, self.grid.block
        label = cell.family.assign(params, block)[0]
        price = self._price(cell)
        found = []
        order = np.argsort(label, kind="stable")
        ends = np.searchsorted(label[order], np.arange(cell.k + 1))
        for component in range(cell.k):
            rows = order[ends[component] : ends[component + 1]]
            weight = block.weights[rows]
            if weight.sum() < FEWEST_ROWS or len(rows) < FEWEST_ROWS:
                continue
            away, whiten = self.numbers[rows] - params.mean[component], params.whiten[component]
            scaled = away @ whiten.T if whiten.ndim == 2 else away * whiten
            half = two_means(scaled, weight)
            if half.any() and not half.all():
                gain = _gain(cell.structure, scaled, weight, half)
                found.append((gain - price, rows[half]))
        return found

    def _pairs(self, cell: GridCell, label: Array) -> list[Move[tuple[int, int]]]:
        """Pairs that share no component, with how much BIC / 2 would fall, the best first."""
        weight, k = self.grid.block.weights, cell.k
        size = np.bincount(label, weight, k)
        sums = np.stack([np.bincount(label, weight * c, k) for c in self.numbers.T], axis=1)
        centre = sums / np.maximum(size, 1e-300)[:, None]
        whiten = cell.best.params.whiten
        price, found = self._price(cell), []
        for one in range(k - 1):
            rest = np.arange(one + 1, k)
            away = centre[rest] - centre[one]
            scaled = [
                np.einsum("kij,kj->ki", w, away) if w.ndim == 3 else away * w
                for w in (whiten[rest], np.broadcast_to(whiten[one], whiten[rest].shape))
            ]
            apart = np.minimum(*(np.square(part).sum(axis=1) for part in scaled))
            both = size[one] + size[rest]
            loss = size[one] * size[rest] / np.maximum(both, 1e-300) * apart / 2
            loss -= both * _entropy(size[one] / np.maximum(both, 1e-300))
            found += [
                (price - float(cost), (one, int(other))) for cost, other in zip(loss, rest, strict=True)
            ]
        found.sort(key=lambda pair: -pair[0])
        used: set[int] = set()
        apart_only = []
        for gain, pair in found[: 8 * k]:
            if not used & set(pair):
                used.update(pair)
                apart_only.append((gain, pair))
        return apart_only

    def _price(self, cell: GridCell) -> float:
        """Half of what the parameters of one component more cost."""
        columns = self.numbers.shape[1]
        more = [_parameters(cell.structure, k, columns) for k in (cell.k, cell.k + 1)]
        return (more[1] - more[0]) / 2 * math.log(self.grid.moments.row_weight)


def _parameters(structure: Structure, k: int, columns: int) -> int:
    return k - 1 + k * columns + n_covariance_parameters(structure, k, columns)


def _entropy(share: Array) -> Array:
    """Of two shares, in nats."""
    other = 1 - share
    logs = [np.where(part > 0, part * np.log(np.where(part > 0, part, 1.0)), 0.0) for part in (share, other)]
    return -(logs[0] + logs[1])


def _gain(structure: Structure, scaled: Array, weight: Array, half: Array) -> float:
    """By how much the log-likelihood of the whitened rows of a component rises when its halves are components, each
    with a spread of its own where the structure has such."""
    total, gain = float(weight.sum()), 0.0
    for rows, sign in ((np.ones(len(half), dtype=bool), 1), (half, -1), (~half, -1)):
        part, heft = scaled[rows], weight[rows]
        size = float(heft.sum())
        away = part - np.average(part, axis=0, weights=heft)
        if structure.volume == "V":
            gain += sign * size / 2 * _log_volume(structure, away, heft)
        else:
            gain += sign * float(heft @ np.square(away).sum(axis=1)) / 2
        gain -= sign * size * math.log(size / total)
    return gain


def _log_volume(structure: Structure, away: Array, weight: Array) -> float:
    """Log determinant of the covariance that a structure allows, of rows about their mean."""
    columns, floor = away.shape[1], 1e-3  # of whitened rows
    within = (away * weight[:, None]).T @ away / weight.sum() + floor * np.eye(columns)
    if structure.orientation != "I":
        return float(np.linalg.slogdet(within)[1])
    spread = np.diag(within)
    return columns * math.log(spread.mean()) if structure.shape == "I" else float(np.log(spread).sum())
