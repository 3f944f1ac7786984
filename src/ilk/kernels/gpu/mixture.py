"""Passes of Gaussian mixtures over a table on a device, in float64: scores, memberships, sums about the current means.

Rows go through in chunks, so that memberships of all rows are never in memory. Each warp adds fixed rows in a fixed
order and partials are added in order, so that the same card gives the same bits again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ilk.kernels.gpu.launch import Array, DeviceArray
from ilk.kernels.gpu.moments import MOST_TERMS, MomentPlan
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.plans import LEAST_ROWS, reduction
from ilk.kernels.gpu.table import CellEncoding, DeviceTable
from ilk.kernels.gpu.wide_mixture_plans import mixture_launch
from ilk.kernels.gpu.workspace import Workspace

CENTRED_FROM = 1e6  # (mean / deviation)^2, above which moments about the table's centre lose too many digits
COST_WARPS = 64  # of a multiprocessor, that add up costs
GIVEN_COMPONENTS = 512  # beyond, memberships from labels take more memory than they are worth


class DeviceMixture(Workspace):
    """All that passes over one table with K components of full or diagonal covariances share."""

    def __init__(self, table: DeviceTable, encoding: CellEncoding, k: int, diagonal: bool) -> None:
        super().__init__(table.device)
        plan = mixture_launch(table.n_columns, k, diagonal, table.dtype, table.device.shared_limit)
        if not plan.fits:
            raise Unavailable(
                f"no kernel is made for a mixture of {table.n_columns} columns and {k} components"
            )
        if table.n_rows < LEAST_ROWS:
            raise Unavailable(f"a table of fewer than {LEAST_ROWS} rows gains nothing")
        self.table, self.encoding, self.plan, self.k = table, encoding, plan, k
        self.n, self.d, self.grid = table.n_rows, table.n_columns, table.device.multiprocessors
        self.moments = MomentPlan(table.n_columns, k, table.dtype, table.device.shared_limit)

    @property
    def x(self) -> DeviceArray:
        """Encoded numbers, their columns padded to eights."""
        return self.table.own_numbers(self.encoding, self.plan.wide)

    # --- one pass

    def step(
        self,
        mean: Array,
        whiten: Array,
        log_weight: Array,
        *,
        hard: bool = False,
        weight: DeviceArray | None = None,
        rules: tuple[float, float] = (inf, 1.0),
    ) -> tuple[Array, Array, Array, float]:
        """Count (K,), shift (K, d), scatter (K, d, d) or (K, d), and the cost of all rows."""
        plain = not hard and weight is None and rules[0] == inf
        if plain and self.plan.at_once and float(np.square(mean * whiten).max()) < CENTRED_FROM:
            return self._all_at_once(mean, whiten, log_weight)
        if plain and not self.plan.diagonal and self.moments.fits:
            found = self._by_moments(mean, whiten, log_weight)
            if found is not None:
                return found
        self._components(mean, whiten, log_weight)
        for first, last in self._chunks():
            self._memberships(first, last, plain, hard, weight, rules)
            self._gather(first, last)
        return *self._sums(mean), float(self._memory["costs"].fetch().sum())

    def labels(
        self, mean: Array, whiten: Array, log_weight: Array, *, hard: bool
    ) -> tuple[Array, Array, Array]:
        """Component of highest score, that score, and the cost of each row."""
        label, top, cost = np.empty(self.n, dtype=np.int32), np.empty(self.n), np.empty(self.n)
        self._components(mean, whiten, log_weight)
        for first, last in self._chunks():
            told = self._room_for_labels(last - first)
            self._memberships(first, last, False, hard, None, (inf, 1.0), told)
            fetch_each(told, (label[first:last], top[first:last], cost[first:last]))
        return label, top, cost

    def _room_for_labels(self, rows: int) -> tuple[DeviceArray, ...]:
        kinds = ("label", np.int32), ("top", "f8"), ("cost", "f8")
        return tuple(self.memory(name, rows, kind) for name, kind in kinds)

    def gather(
        self, mean: Array, label: Array | None, weight: DeviceArray | None
    ) -> tuple[Array, Array, Array]:
        """Sums under labels, all rows in the only component where there are none."""
        if self.k > GIVEN_COMPONENTS:
            raise Unavailable(
                f"sums under labels of more than {GIVEN_COMPONENTS} components have no kernel for the GPU"
            )
        self._means(mean)
        kernel = self.table.build(self.plan.memberships("gmm_given"))
        for first, last in self._chunks():
            own = None if label is None else self.given("given", label[first:last].astype(np.int32))
            heft = None if weight is None else weight.rows(first, last)
            kernel(self.grid * 8, 256, own, heft, last - first, self._memory["memberships"])
            self._gather(first, last)
        return self._sums(mean)

    def _chunks(self) -> list[tuple[int, int]]:
        size = self.plan.chunk(self.n)
        self.memory("memberships", (size, self.plan.pitch), "f8")
        self.memory("costs", (-(-self.n // size), self.grid * COST_WARPS), "f8").zero()
        return [(first, min(first + size, self.n)) for first in range(0, self.n, size)]

    # --- scores and memberships

    def _components(self, mean: Array, whiten: Array, log_weight: Array) -> None:
        """Parameters where the kernels read them."""
        plan, own = self.plan, np.zeros((self.plan.pitch, self.plan.wide))
        if plan.diagonal:
            own[: self.k, : self.d] = whiten
            matrices = own[:, :, None] * np.eye(plan.wide)
            offset = -own * _padded(mean, own.shape)
        else:
            matrices = np.zeros((plan.pitch, plan.wide, plan.wide))
            matrices[: self.k, : self.d, : self.d] = whiten
            offset = -np.einsum("kij,kj->ki", matrices, _padded(mean, own.shape))
        logs = np.full(plan.pitch, -inf)
        logs[: self.k] = log_weight
        self.given("whiten", fragments(matrices, plan.diagonal))
        self.given("offset", offset)
        self.given("log_weight", logs)
        self._means(mean)

    def _means(self, mean: Array) -> None:
        self.given("mean", _padded(mean, (self.plan.pitch, self.plan.wide)))

    def _memberships(
        self,
        first: int,
        last: int,
        plain: bool,
        hard: bool,
        weight: DeviceArray | None,
        rules: tuple[float, float],
        told: tuple[DeviceArray | None, ...] = (None, None, None),
    ) -> None:
        """Memberships of a chunk of rows, and what these cost."""
        plan, out, fused = self.plan, self._memory["memberships"], plain and self.plan.fused
        cost = self._scores(first, last, fused=fused)
        if not fused:
            heft = None if weight is None else weight.rows(first, last)
            given = out, last - first, heft, int(hard), self.given("rules", np.array(rules))
            self.table.build(plan.memberships())(self.grid * 8, 256, *given, *told, cost)

    def _scores(self, first: int, last: int, *, fused: bool) -> DeviceArray:
        """Scores of a chunk of rows, or all that becomes of them at once; where its cost goes."""
        plan, out = self.plan, self._memory["memberships"]
        build, x = plan.scores(fused=fused), self.x.rows(first, last)
        kernel, group = self.table.build(build), plan.score_group
        number = first // self.plan.chunk(self.n)
        cost = self._memory["costs"].rows(number, number + 1)
        for at in range(0, plan.pitch, group):
            parts = (self._memory[name].rows(at, at + group) for name in ("whiten", "offset", "log_weight"))
            kernel(self.grid, build.threads, x, last - first, *parts, out, at, cost)
        return cost

    # --- sums

    def _gather(self, first: int, last: int) -> None:
        plan = self.plan
        build, tasks = plan.sums(), plan.sum_tasks
        ranges = max(1, self.grid * plan.sum_blocks // tasks)
        partial = self.memory("partial", (ranges, plan.pitch * plan.width), "f8")
        given = (
            self.x.rows(first, last),
            self._memory["memberships"],
            last - first,
            self._memory["mean"],
            partial,
        )
        self.table.build(build)(tasks * ranges, build.threads, *given, int(first > 0))

    def _sums(self, mean: Array) -> tuple[Array, Array, Array]:
        plan, partial = self.plan, self._memory["partial"]
        out = self.memory("out", partial.shape[1], "f8")
        reduce = self.table.build(reduction(whole=False))
        reduce(-(-out.size // 32), 1024, partial, partial.shape[0], out.size, out.size, out)
        found = out.fetch().reshape(plan.pitch, plan.width)[: self.k]
        count, d = found[:, -1].copy(), self.d
        shift = found[:, -1 - plan.wide : -1][:, :d] - count[:, None] * mean
        scatter = plan.matrices(found[:, : -1 - plan.wide])[:, :d, :d]
        scatter = np.einsum("kii->ki", scatter) if plan.diagonal else scatter
        return count, shift, np.ascontiguousarray(scatter)

    def _all_at_once(
        self, mean: Array, whiten: Array, log_weight: Array
    ) -> tuple[Array, Array, Array, float]:
        """Diagonal covariances: products with [x, x^2]."""
        plan, k, d = self.plan, self.k, self.d
        build, comps, wide = plan.whole(), 8 * plan.component_tiles, plan.wide
        precision = np.square(whiten)
        coefficients = np.zeros((2 * wide, comps))
        coefficients[:d, :k], coefficients[wide : wide + d, :k] = (mean * precision).T, -precision.T / 2
        constant = np.full(comps, -inf)
        constant[:k] = log_weight - (precision * mean * mean).sum(axis=1) / 2
        steps = coefficients.reshape(2 * plan.blocks, 2, 4, plan.component_tiles, 8).transpose(0, 3, 4, 2, 1)
        width = 2 * wide * comps + comps + 1
        partial = self.memory("partial_diag", (self.grid * 8, width), "f8")
        given = self.given("coefficients", steps), self.given("constant", constant), partial
        self.table.build(build)(self.grid, build.threads, self.x, self.n, *given)
        out = self.memory("out_diag", width, "f8")
        reduce = self.table.build(reduction(whole=False))
        reduce(-(-width // 32), 1024, partial, self.grid * 8, width, width, out)
        found = out.fetch()
        sums = found[: 2 * wide * comps].reshape(2, wide, comps)[:, :d, :k].transpose(0, 2, 1)
        count = found[2 * wide * comps : -1][:k].copy()
        shift = sums[0] - count[:, None] * mean
        scatter = sums[1] - mean * (2 * sums[0] - count[:, None] * mean)
        return count, shift, np.maximum(scatter, 0.0), float(found[-1])

    def _by_moments(
        self, mean: Array, whiten: Array, log_weight: Array
    ) -> tuple[Array, Array, Array, float] | None:
        """Few columns, many components: products with the moments of a row; None where these would lose digits."""
        plan = self.moments
        table, constant = plan.coefficients(mean, whiten, log_weight)
        if not plan.terms(table, constant, self.table.largest(self.encoding)) < MOST_TERMS:
            return None
        build, partial = plan.build(), self.memory("partial_moments", (self.grid, plan.width), "f8")
        given = self.given("coefficients", plan.fragments(table)), self.given("constant", constant), partial
        self.table.build(build)(self.grid, build.threads, self.x, self.n, *given)
        out = self.memory("out_moments", plan.width, "f8")
        reduce = self.table.build(reduction(whole=False))
        reduce(-(-plan.width // 32), 1024, partial, self.grid, plan.width, plan.width, out)
        found = out.fetch()
        sums = plan.sums(found[:-4].reshape(plan.moments, plan.pitch), mean)
        return *sums, float(found[-4:].sum())


def fetch_each(told: Sequence[DeviceArray], out: Sequence[Array]) -> None:
    """What a device tells, to where it belongs on the host."""
    for found, place in zip(told, out, strict=True):
        found.fetch(place)


def _padded(values: Array, shape: tuple[int, ...]) -> Array:
    found = np.zeros(shape)
    found[tuple(slice(size) for size in values.shape)] = values
    return found


def fragments(matrices: Array, diagonal: bool) -> Array:
    """(K, D, D) lower triangular as `gmm_scores` reads them: (K, blocks, 32 lanes, 2)."""
    k, d, _ = matrices.shape
    blocks = d // 8
    cut = matrices.reshape(k, blocks, 8, blocks, 2, 4).transpose(0, 1, 3, 2, 5, 4)  # k, b, t, g, q, half
    chosen = [(b, t) for b in range(blocks) for t in range(b + 1) if not diagonal or t == b]
    return np.ascontiguousarray(np.stack([cut[:, b, t] for b, t in chosen], axis=1).reshape(k, -1, 32, 2))
