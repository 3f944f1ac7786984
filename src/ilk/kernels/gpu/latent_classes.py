"""Passes of latent classes in whole numbers: log-probabilities in units of 2^-20 bits, memberships in units of 2^-22.

Their sums are the same in any order. The cost is corrected for what the units leave out of the log-probabilities, which
the counts tell to first order. Passes that gain little are left to float64, so that a fit ends where the CPU's does.
"""

from __future__ import annotations

import numpy as np

from ilk.kernels.gpu.class_plans import CHUNK, COMPONENTS, MOST_BITS, UNIT, ClassPlan
from ilk.kernels.gpu.launch import Array, DeviceArray
from ilk.kernels.gpu.plans import reduction, up
from ilk.kernels.gpu.table import DeviceTable
from ilk.kernels.gpu.workspace import Workspace
from ilk.kernels.plain_product import ProductSums, product_step

LEAST_ROWS = 1 << 20
LEAST_GAIN = 1e-6  # of the cost: below, the rounding of memberships would be seen
MISSING = 255  # among the bytes of codes
NO_NUMBERS = 1.0, np.zeros(0), None


class DeviceClasses(Workspace):
    """All that passes over the codes (columns, n) of one table with up to 16 components share."""

    def __init__(self, table: DeviceTable, codes: DeviceArray, levels: tuple[int, ...], k: int) -> None:
        super().__init__(table.device)
        self.table, self.codes, self.n = table, codes, table.n_rows
        self.start = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
        self.plan = ClassPlan(levels, k)
        self.blank_rows = self._place()

    @staticmethod
    def suits(table: DeviceTable, codes: DeviceArray | None, levels: tuple[int, ...], k: int) -> bool:
        """Whether these are codes of categories alone, few enough of each, and many rows."""
        alone = codes is not None and codes.dtype == np.uint8 and table.n_columns == 0
        plan = ClassPlan(levels, k)
        return alone and table.n_rows >= LEAST_ROWS and plan.fits and plan.shared <= table.device.shared_limit

    def _place(self) -> int:
        """The codes as the kernel reads them; how many rows have none."""
        stride = up(self.n, 128)
        found = self.memory("found", 2, np.int32).zero()
        placed = self.memory("codes", (len(self.plan.levels), stride), np.uint8)
        given = self.codes, self.n, stride, self.given("base", self.plan.base), placed, found
        self.table.build(self.plan.build("class_codes"))(self.table.grid, 256, *given)
        blank, missing = found.fetch()
        self.plan = ClassPlan(self.plan.levels, self.plan.k, bool(missing))
        return int(blank)

    def step(self, log_mixing: Array, log_level: Array) -> tuple[ProductSums, float, float] | None:
        """Sums, cost and entropy as `product_step` tells them; None where this is a case for float64."""
        span = self._span(log_mixing, log_level)
        if self.blank_rows or not 2 * span + 64 < MOST_BITS:
            return None
        weight, counts, cost = self._pass(log_mixing, log_level, span)
        tail = self.n % 32
        if tail:
            sums, more, _ = self._tail(tail, log_mixing, log_level)
            weight, counts, cost = weight + sums.weight, counts + sums.counts, cost + more
        if self._gain(weight, counts, log_mixing, log_level) < LEAST_GAIN * abs(cost):
            return None
        entropy = -float((counts * log_level).sum() + weight @ log_mixing) - cost
        none = np.empty((self.plan.k, 0))
        return ProductSums(weight, none, none, none, counts), cost, entropy

    def _span(self, log_mixing: Array, log_level: Array) -> float:
        """Bits that a score may have at most."""
        columns = np.maximum.reduceat(np.abs(log_level).max(axis=0), self.start[:-1])
        return float(np.abs(log_mixing).max() + columns.sum()) / float(np.log(2))

    def _pass(self, log_mixing: Array, log_level: Array, span: float) -> tuple[Array, Array, float]:
        plan, k, rows = self.plan, self.plan.k, self.n // 32 * 32
        mixing = np.full(
            COMPONENTS, -(span + 60) * 2**20
        )  # of those beyond K: no membership is left of 2^-60
        mixing[:k] = np.rint(log_mixing * UNIT)
        table = np.zeros((COMPONENTS, log_level.shape[1]), dtype=np.int64)
        table[:k] = np.rint(log_level * UNIT)
        chunks, width = -(-rows // CHUNK), plan.tiles * 128 + 1
        partial = self.memory("partial", (chunks, width), np.int64)
        codes, build = self._memory["codes"], plan.build("latent_classes")
        given = self.given("digits", plan.digits(table)), self.given("mixing", mixing.astype(np.int32))
        rest = self.given("bins", plan.bins), self.given("limits", plan.limits)
        turn = self.memory("turn", 1, np.int32).zero()
        grid = self.device.multiprocessors
        self.table.build(build)(
            grid, build.threads, codes, codes.shape[1], rows, *given, *rest, turn, partial
        )
        out = self.memory("out", width, np.int64)
        self.table.build(reduction(whole=True))(-(-width // 32), 1024, partial, chunks, width, width, out)
        found = out.fetch().astype(np.float64)
        weight, counts = plan.counts(found[:-1].reshape(-1, COMPONENTS))
        cost = -found[-1] / UNIT
        cost -= float(
            (counts * (log_level - table[:k] / UNIT)).sum() + weight @ (log_mixing - mixing[:k] / UNIT)
        )
        return weight, counts, float(cost)

    def _tail(self, rows: int, log_mixing: Array, log_level: Array) -> tuple[ProductSums, float, float]:
        """The last rows, too few for a warp, on the CPU."""
        ends = [self.codes.rows(c, c + 1) for c in range(self.codes.shape[0])]
        size = self.n - rows
        cells = [
            DeviceArray(self.device, (rows,), np.uint8, address=end.address + size, owner=end).fetch()
            for end in ends
        ]
        codes = np.stack(cells, axis=1).astype(np.int32)
        codes[codes == MISSING] = -1
        none = np.empty((self.plan.k, 0))
        parts = log_mixing, none, none, none, log_level, self.start
        return product_step(np.empty((rows, 0)), *NO_NUMBERS, codes, None, *parts)

    def _gain(self, weight: Array, counts: Array, log_mixing: Array, log_level: Array) -> float:
        """What the parameters that these sums give would gain at least: they are the best for these memberships."""
        total = np.repeat(np.add.reduceat(counts, self.start[:-1], axis=1), np.diff(self.start), axis=1)
        there = counts > 0
        best = np.log(counts, where=there, out=np.zeros_like(counts))
        best -= np.log(total, where=total > 0, out=np.zeros_like(total))
        own = weight > 0
        shares = np.log(weight, where=own, out=np.zeros_like(weight)) - np.log(weight.sum())
        gained = float((counts * (best - log_level))[there].sum())
        return gained + float((weight * (shares - log_mixing))[own].sum())
