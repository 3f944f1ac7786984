"""Passes of mixtures of products over a table on a device, in float64: numbers with missing cells, categories of any
number of levels. Latent classes, mixed tables and the assorted model differ only in what they put into the tables.

Every warp adds fixed rows in a fixed order and partials are added in order: the same card gives the same bits again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import cast

import numpy as np

from ilk.kernels.gpu.latent_classes import DeviceClasses
from ilk.kernels.gpu.launch import Array, DeviceArray
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.plans import reduction
from ilk.kernels.gpu.product_plans import ProductPlan
from ilk.kernels.gpu.table import CellEncoding, DeviceTable
from ilk.kernels.gpu.workspace import Workspace
from ilk.kernels.plain_product import ProductSums

BLOCKS = 8  # of memberships on a multiprocessor
PACKED_ROWS = 1 << 22  # whose codes travel at a time


@dataclass(frozen=True)
class Products:
    """Components as `product_scores` takes them."""

    log_mixing: Array
    mean: Array
    precision: Array
    log_norm: Array
    log_level: Array
    counts: Array | None = None  # which numbers are


def packed_codes(table: DeviceTable, codes: Array, plan: ProductPlan) -> DeviceArray:
    """The codes (rows, columns) on the device, a column after the other."""
    n, columns = codes.shape
    found = table.device.empty((columns, n), plan.code_type)
    kernel, start = table.build(plan.build("pack_codes")), table.device.array(plan.start, np.int64)
    for first in range(0, n, PACKED_ROWS):
        part = table.device.array(codes[first : first + PACKED_ROWS], np.int32)
        kernel(table.grid, 256, part, part.shape[0], first, n, start, found)
    table.device.synchronize()
    return found


class DeviceProduct(Workspace):
    """All that passes over one table with K components share; where its cells are not `still`, other parts of a larger
    table take turns in their place."""

    def __init__(
        self,
        table: DeviceTable,
        encoding: CellEncoding,
        plan: ProductPlan,
        codes: DeviceArray | None,
        still: bool = True,
    ) -> None:
        super().__init__(table.device)
        if not plan.fits:
            raise Unavailable(f"no kernel is made for a mixture of products of {plan.k} components")
        self.table, self.encoding, self.plan, self.codes = table, encoding, plan, codes
        self.n, self.grid = table.n_rows, table.device.multiprocessors
        self._looked, self._fast = not still, cast("DeviceClasses | None", None)

    def step(
        self,
        given: Products,
        *,
        hard: bool,
        weight: DeviceArray | None,
        rules: tuple[float, float] = (inf, 1.0),
    ) -> tuple[ProductSums, float, float]:
        """The sums, the cost of all rows and the entropy of their memberships."""
        plain = not hard and weight is None and rules[0] == inf
        if plain and (fast := self._classes()) is not None:
            found = fast.step(given.log_mixing, given.log_level)
            if found is not None:
                return found
        self._components(given)
        totals = self._totals()
        out = self.memory("memberships", (min(self.plan.chunk, self.n), self.plan.pitch), "f8")
        for first in range(0, self.n, self.plan.chunk):
            last = min(first + self.plan.chunk, self.n)
            self._memberships(first, last, hard, weight, rules, (out, None, None, None))
            self._gather(first, last)
        cost, entropy = totals.fetch().sum(axis=0)
        return self._sums(), float(cost), float(entropy)

    def _classes(self) -> DeviceClasses | None:
        """The pass in whole numbers, where it is made for this table."""
        if not self._looked:
            self._looked, shape = True, (self.table, self.codes, self.plan.levels, self.plan.k)
            self._fast = DeviceClasses(*shape) if DeviceClasses.suits(*shape) else None  # type: ignore[arg-type]
        return self._fast

    def labels(self, given: Products, *, hard: bool) -> tuple[Array, Array, Array]:
        """Component of highest score, that score, and the cost of each row."""
        label, top, cost = np.empty(self.n, dtype=np.int32), np.empty(self.n), np.empty(self.n)
        self._components(given)
        self._totals()
        for first in range(0, self.n, self.plan.chunk):
            last = min(first + self.plan.chunk, self.n)
            kinds = ("label", "i4"), ("top", "f8"), ("cost", "f8")
            told = [self.memory(name, last - first, kind) for name, kind in kinds]
            self._memberships(first, last, hard, None, (inf, 1.0), (None, *told))
            told[0].fetch(label[first:last])
            told[1].fetch(top[first:last])
            told[2].fetch(cost[first:last])
        return label, top, cost

    def _totals(self) -> DeviceArray:
        return self.memory("totals", (self.grid * BLOCKS * 8, 2), "f8").zero()

    def _components(self, given: Products) -> None:
        """The tables where the kernels read them: [slot][component], those beyond K impossible."""
        k, pitch = self.plan.k, self.plan.pitch
        logs = np.full(pitch, -inf)
        logs[:k] = given.log_mixing
        numbers = np.zeros((self.plan.columns, 3, pitch))
        half = given.precision / 2
        if given.counts is not None:
            half[:, given.counts] = given.precision[:, given.counts]
            self.given("counted", given.counts.astype(np.uint8))
        for place, values in enumerate((given.mean, half, given.log_norm)):
            numbers[:, place, :k] = values.T
        levels = np.zeros((int(self.plan.start[-1]), pitch))
        levels[:, :k] = given.log_level.T
        for name, values in (
            ("logs", logs),
            ("numbers", numbers),
            ("levels", levels),
            ("start", self.plan.start),
        ):
            self.given(name, values)

    def _rows(self, first: int, last: int) -> tuple[DeviceArray | int | None, ...]:
        """Numbers, how they are encoded, codes and how far their columns are apart, of some rows; which are counts."""
        codes, at = self.codes, None
        if codes is not None:
            place = codes.address + first * codes.dtype.itemsize
            at = DeviceArray(codes.device, codes.shape, codes.dtype, address=place, owner=codes)
        return (
            self.table.raw.rows(first, last),
            self.table.encoding_array(self.encoding),
            at,
            self.n,
            last - first,
            self._memory.get("counted"),
        )

    def _memberships(
        self,
        first: int,
        last: int,
        hard: bool,
        weight: DeviceArray | None,
        rules: tuple[float, float],
        out: tuple[DeviceArray | None, ...],
    ) -> None:
        heft = None if weight is None else weight.rows(first, last)
        tables = (self._memory[name] for name in ("logs", "numbers", "levels", "start"))
        rest = int(hard), self.given("rules", np.array(rules)), *out, self._memory["totals"]
        kernel = self.table.build(self.plan.build("product_memberships"))
        kernel(self.grid * BLOCKS, 256, *self._rows(first, last), heft, *tables, *rest)

    def _gather(self, first: int, last: int) -> None:
        plan, build, cuts = self.plan, self.plan.sums(), self.plan.cuts
        at_once = len(cuts) * plan.parts
        ranges = max(1, self.grid // at_once)
        partial = self.memory("partial", (ranges, (plan.slots + 1) * plan.pitch), "f8")
        memory = self._memory["memberships"], self._memory["numbers"], self._memory["start"]
        given = (
            *self._rows(first, last),
            *memory,
            self.given("cuts", cuts),
            len(cuts),
            int(first > 0),
            partial,
        )
        self.table.build(build)(ranges * at_once, build.threads, *given)

    def _sums(self) -> ProductSums:
        plan, partial = self.plan, self._memory["partial"]
        out = self.memory("out", partial.shape[1], "f8")
        self.table.build(reduction(whole=False))(
            -(-out.size // 32), 1024, partial, partial.shape[0], out.size, out.size, out
        )
        found = out.fetch().reshape(plan.slots + 1, plan.pitch)[:, : plan.k]
        levels = int(plan.start[-1])
        observed, first, second = found[levels:-1].reshape(plan.columns, 3, plan.k).transpose(1, 2, 0)
        return ProductSums(*map(np.ascontiguousarray, (found[-1], observed, first, second, found[:levels].T)))
