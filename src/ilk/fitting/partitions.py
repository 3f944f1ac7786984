"""Where a mixture begins: partitions of a sample of rows, from which the first update takes its sums.

No single start is near the best optimum often enough, so the default is a mix: the
likelihood tree, K-means on standardised columns, and K-log-K on standardised and on whitened ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import ceil, log2

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.errors import UsageError
from ilk.families.base import KEEP_ALL
from ilk.families.centroid import Means
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.exact import solve_line
from ilk.fitting.fit import fit
from ilk.fitting.loop import OK, Stop
from ilk.fitting.restarts import from_centres, from_labels
from ilk.fitting.start import STARTS, distinct_rows, k_log_k, start_centres, ward
from ilk.fitting.tree import Tree, drawn_rows, grow_tree, tree_axes, tree_rows
from ilk.random import stream
from ilk.table.block import Array, Block, Encoding

K_MEANS_RUNS = 10
FINE_PASSES = 5
LEAST_TREE_ROWS = 200  # where the columns allow fewer, Ward's tree takes its place
AXES_PER_DOUBLING = 2  # of K, in a random projection
PRINCIPAL_SHARE = 0.9  # of the variance that the leading subspace keeps

AUTO = ("tree", "k-means", "k-log-k", "k-log-k whitened", "k-log-k")
AUTO_LINE = ("quantile", "k-means", "k-log-k", "k-log-k", "k-log-k")  # one column


class Partitioner:
    """Partitions of one sample into any K; what does not depend on K is made once.

    Starts see the distinct rows and their weights, so that weights are repeats, to the bit; a row of weight 0 has
    no say, and any label.
    """

    def __init__(self, sample: Block, seed: int) -> None:
        self.seed = seed
        self.sample, self._where = distinct_rows(sample)

    def labels(self, name: str, k: int, number: int) -> Array:
        """Partition `number` of the start `name`: a label 0 .. K-1 per row of the sample."""
        if k == 1:
            return np.zeros(len(self._where), dtype=np.int32)
        return self._distinct_labels(name, k, number)[self._where]

    def _distinct_labels(self, name: str, k: int, number: int) -> Array:
        if name in PARTITIONS:
            return PARTITIONS[name](self, k, number)
        if name in STARTS:
            return self._nearest(
                self.standardised, start_centres(name, self.standardised, k, self.seed, number)
            )
        known = ", ".join(["auto", *PARTITIONS, *(n for n in STARTS if n not in PARTITIONS)])
        raise UsageError("bad-start", f"init={name!r} is not a start", do=f"Choose one of {known}")

    @cached_property
    def _filled(self) -> Array:
        """Encoded numbers, missing cells at the mean of their column; for starts only."""
        numbers = self.sample.numbers.astype(np.float64)
        observed = ~np.isnan(numbers)
        weight = observed * self.sample.weights[:, None]
        count = weight.sum(axis=0)
        total = np.where(observed, numbers, 0.0) * weight
        return np.where(observed, numbers, total.sum(axis=0) / np.where(count > 0, count, 1.0))

    @property
    def mix(self) -> tuple[str, ...]:
        """The starts that "auto" stands for."""
        return AUTO_LINE if self.sample.n_columns == 1 else AUTO

    def standardise(self) -> Array:
        """The encoded numbers with mean 0 and variance 1 per column."""
        weight = self.sample.weights
        centred = self._filled - np.average(self._filled, axis=0, weights=weight)
        deviation = np.sqrt(np.average(centred**2, axis=0, weights=weight))
        return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))

    @cached_property
    def standard(self) -> Array:
        """Where distances are taken: the standardised numbers."""
        return self.standardise()

    @cached_property
    def standardised(self) -> Block:
        return self._block(self.standard, self.sample.weight)

    @cached_property
    def whitened(self) -> Block:
        scores, deviation = self._axes
        return self._block(
            (scores / np.where(deviation > 0, deviation, 1.0))[:, deviation > deviation[0] * 1e-8],
            self.sample.weight,
        )

    @cached_property
    def principal(self) -> Block:
        scores, deviation = self._axes
        reached = np.cumsum(deviation**2) / (np.sum(deviation**2) or 1.0)
        n_axes = 1 + int(np.searchsorted(reached, PRINCIPAL_SHARE))
        return self._block(scores[:, :n_axes], self.sample.weight)

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        """Scores along the principal axes of the standardised rows, and their deviations, largest first."""
        numbers = self.standardised.raw
        weight = self.sample.weights / self.sample.weights.sum()
        variance, axes = np.linalg.eigh((numbers * weight[:, None]).T @ numbers)
        return numbers @ axes[:, ::-1], np.sqrt(np.maximum(variance[::-1], 0.0))

    @cached_property
    def tree(self) -> tuple[Tree, Array]:
        """The tree of all rows, or of a sample of them, and to which row of it each row is nearest."""
        block = self.standardised
        rows, weight, where = block.raw, block.weights, np.arange(block.n_rows)
        if block.n_rows > (most := tree_rows(block.n_columns)):
            chosen, weight = drawn_rows(weight, most, stream(self.seed, "tree"))
            rows = block.raw[chosen]
            where = self._nearest(block, rows)
        return grow_tree(tree_axes(rows, weight), weight), where

    def _block(self, numbers: Array, weight: Array | None = None) -> Block:
        identity = Encoding(1.0, np.zeros(numbers.shape[1]))
        return Block(np.ascontiguousarray(numbers), identity, weight=weight)

    def _nearest(self, block: Block, centres: Array) -> Array:
        means = Means()
        return means.assign(means.start(centres), block)[0]

    def by_tree(self, k: int, number: int) -> Array:
        if tree_rows(self.sample.n_columns) < LEAST_TREE_ROWS:
            return self._nearest(self.standardised, ward(self.standardised, k, stream(self.seed, "ward")))
        tree, where = self.tree
        return tree.cut(min(k, tree.n_rows))[where].astype(np.int32)

    def by_k_means(self, k: int, number: int) -> Array:
        block = self.standardised
        if block.n_columns == 1:
            weight = block.weights
            return self._nearest(block, solve_line(block.raw[:, 0], weight, k)[:, None])
        rows = MemoryRows(block.raw, block.encoding, weight=block.weight, threads=1)
        # From the rows as they stand: in the order of their cells, which is that of any units.
        drawn = [start_centres("k-means++", block, k, self.seed + number, i) for i in range(K_MEANS_RUNS)]
        return fit(rows, Means(), [from_centres(rows, Means(), centres) for centres in drawn]).labels

    def fine(self, k: int) -> Array:
        """Many small parts by one short run of K-means: what larger groups are put together from."""
        block = self.standardised
        rows = MemoryRows(block.raw, block.encoding, weight=block.weight, threads=1)
        centres = start_centres("k-means++", block, k, self.seed, 0)
        found = fit(rows, Means(), [from_centres(rows, Means(), centres)], stop=Stop(max_passes=FINE_PASSES))
        return np.asarray(found.labels[self._where])

    def by_k_log_k(self, k: int, number: int) -> Array:
        return self._log(self.standardised, k, number)

    def by_k_log_k_whitened(self, k: int, number: int) -> Array:
        return self._log(self.whitened, k, number)

    def by_two_step(self, k: int, number: int) -> Array:
        """K-log-K and one EM step more of round Gaussians (Dasgupta and Schulman 2007, JMLR 8); K-log-K alone
        where one of them has no spread."""
        block, label = self.standardised, self.by_k_log_k(k, number)
        rows = MemoryRows(block.raw, block.encoding, weight=block.weight, threads=1)
        family = Gaussian(Structure("VII"), np.ones(block.n_columns))
        first = from_labels(rows, family, label, k)
        if first.status != OK:
            return label
        after = family.update(first, family.step(first, block, KEEP_ALL).sums)
        return family.assign(after, block)[0] if after.status == OK else label

    def by_principal(self, k: int, number: int) -> Array:
        return self._log(self.principal, k, number)

    def by_projection(self, k: int, number: int) -> Array:
        """K-log-K in a random subspace of order log K columns, where clouds look rounder (Dasgupta 1999)."""
        rows = self.standardised.raw
        n_axes = min(rows.shape[1], AXES_PER_DOUBLING * ceil(log2(k)))
        draws = stream(self.seed, "projection", k, number)
        axes = np.linalg.qr(draws.standard_normal((rows.shape[1], n_axes)))[0]
        return self._log(self._block(rows @ axes, self.sample.weight), k, number)

    def _log(self, block: Block, k: int, number: int) -> Array:
        centres = k_log_k(block, k, stream(self.seed, "k-log-k", block.n_columns, number))
        return self._nearest(block, centres)

    def by_quantile(self, k: int, number: int) -> Array:
        """Groups of equal weight along the first principal axis, the only column where there is one."""
        order = np.argsort(self.principal.raw[:, 0], kind="stable")
        weight = self.sample.weights[order]
        before = np.cumsum(weight) - weight
        label = np.empty(len(order), dtype=np.int32)
        label[order] = (before + weight / 2) * (k / weight.sum())
        return label


PARTITIONS: dict[str, Callable[[Partitioner, int, int], Array]] = {
    "tree": Partitioner.by_tree,
    "k-means": Partitioner.by_k_means,
    "k-log-k": Partitioner.by_k_log_k,
    "k-log-k whitened": Partitioner.by_k_log_k_whitened,
    "two-step": Partitioner.by_two_step,
    "principal": Partitioner.by_principal,
    "projection": Partitioner.by_projection,
    "quantile": Partitioner.by_quantile,
}


def start_names(init: str, mix: Sequence[str], n_init: int | None) -> Sequence[str]:
    """The starts that an `init` stands for; `n_init` repeats a named start, or lengthens the automatic `mix`."""
    if init != "auto":
        return (init,) * (n_init or (1 if init in ("tree", "ward", "quantile") else 3))
    if n_init is None:
        return mix
    return (*mix, *("k-log-k",) * (n_init - len(mix)))[:n_init]
