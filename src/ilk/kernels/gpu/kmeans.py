"""Passes of K-means over a table on a device: labels as the CPU gives them, sums as integers of any order.

Screen (f16 or float), settle (split f16), decide (float64): each takes up the rows that the one before leaves open by a
bound on its own rounding. Sums are exact, in whole numbers: no grid and no order changes their bits, and once rounded
they are those of the CPU.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ilk.kernels.gpu import layouts, plans
from ilk.kernels.gpu.launch import Array, DeviceArray, Kernel
from ilk.kernels.gpu.layouts import Scaled
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.table import CellEncoding, DeviceTable, added_pairs
from ilk.kernels.gpu.workspace import Workspace
from ilk.kernels.pairs import round_pairs

LEAST_SHARE = 2.0**-24  # of the squares: a cost below it is summed row by row
ANY_UNITS = 256.0  # of sums of any numbers, in a number lifted to 64
REST_SHARE = 64  # one cell in so many may have a rest; of tables with more, sums are made as of any numbers
REST_ROOM = 1 << 16  # cells with a rest, by which their list grows
MOST_HALF = 16384.0  # raw numbers up to which f16 holds -2 c


class DeviceKMeans(Workspace):
    """All that passes over one table with K centres share: plan, memory on the device, kernels."""

    def __init__(self, table: DeviceTable, encoding: CellEncoding, k: int) -> None:
        super().__init__(table.device)
        if not plans.LEAST_ROWS <= table.n_rows <= plans.MOST_ROWS:
            raise Unavailable(f"{table.n_rows} rows are not what the kernels of K-means are made for")
        plan = self._plan(table, encoding, k)
        if plan is None:
            raise Unavailable(f"no kernel is made for K-means of {table.n_columns} columns and {k} centres")
        self.table, self.encoding, self.plan, self.k = table, encoding, plan, k
        self.n = table.n_rows
        self.grid = self.device.multiprocessors
        self.split_all = False  # `fused`: too many rows for the first list, so all are split at once
        self.room = max(1024, self.n // plans.LIST_SHARE)  # of the list of rows left open
        self._listed: tuple[Any, DeviceArray | None] | None = None  # cells with rests

    @staticmethod
    def _plan(table: DeviceTable, encoding: CellEncoding, k: int) -> plans.KMeansPlan | None:
        if not table.device.hopper:
            return plans.plan_elsewhere(table.n_columns, k, table.device.shared_limit)
        plain = table.dtype == "float16" and encoding.factor is None
        half = plain and max(map(abs, table.ends())) < MOST_HALF
        return plans.kmeans_plan(table.n_columns, k, half)

    # --- one pass

    def labels(self, centres: Array) -> DeviceArray:
        """The nearest centre of each row (int32), centres (K, d) in encoded units."""
        while True:
            self._assign(centres, labels=True)
            if self._settled():
                return self._memory["labels"]

    def step(
        self, centres: Array, weight: DeviceArray | None = None, heaviest: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """Sums (K, d, 2), weights (K,) and cost (2,) as `plain.nearest_step` tells them."""
        short = weight is None and self.table.dtype != "float64"
        found = self._plain_sums(centres) if short else None
        sums, weights = self._any_sums(centres, weight, heaviest) if found is None else found
        squares = self.table.squares(self.encoding, weight)
        cost = layouts.cost_from_sums(squares, sums, weights, centres)
        if not cost[0] > LEAST_SHARE * squares[0]:
            by_row = self.row_costs(centres).fetch()
            cost = np.array([by_row.sum() if weight is None else by_row @ weight.fetch(), 0.0])
        return sums, round_pairs(weights), cost

    def trimmed_step(
        self, centres: Array, weight: DeviceArray | None, heaviest: float, rules: tuple[float, float]
    ) -> tuple[Array, Array, Array]:
        """The same over rows that cost less than a limit, and a share of those that cost just that."""
        labels = self.labels(centres)
        costs, grid = self.row_costs(centres, labels), self.table.grid
        kept, partial = self.memory("kept", self.n, "f8"), self.memory("kept_costs", (grid, 2), "f8")
        given = costs, self.n, weight, self.given("rules", np.array(rules)), kept, partial
        self.table.plain("kept", factor=self.encoding.factor is not None)(grid, 256, *given)
        sums, weights = self._any_sums(centres, kept, heaviest, labels)
        return sums, round_pairs(weights), added_pairs(partial.fetch())

    def row_costs(self, centres: Array, labels: DeviceArray | None = None) -> DeviceArray:
        """Squared distance of each row to its centre, in float64 and in the CPU's order."""
        labels = self.labels(centres) if labels is None else labels
        cost = self.memory("cost", self.n, np.float64)
        kernel = self.table.plain("row_cost", factor=self.encoding.factor is not None)
        given = (
            self.table.raw,
            self.n,
            self.table.encoding_array(self.encoding),
            self.given("centres", centres),
            labels,
        )
        kernel(-(-self.n // 256), 256, *given, cost)
        return cost

    # --- sums

    def _plain_sums(self, centres: Array) -> tuple[Array, Array] | None:
        """Of cells that have few digits below those that are added with the labels; None where they have more."""
        k, wide, d = self.k, self.plan.wide, self.table.n_columns
        cells = k * wide
        out = self.memory("out", 2 * cells + k, np.int64)  # sums, counts, rests
        added, rests = out.rows(0, cells + k), out.rows(cells + k, out.size)
        reduce = self.table.build(plans.reduction(whole=True))
        while True:
            listed = self._rests()
            if listed is None:
                return None
            x, blocks = self._assign(centres, labels=listed.size > 0 or not self.plan.sums_at_once)
            if self.plan.sums_at_once:
                _add_columns(reduce, self._memory["partial"], blocks, added.size, added)
            else:
                self._second_read(x, added, reduce)
            self._add_rests(listed, rests.zero())
            sums, count, below = np.split(out.fetch(), (cells, cells + k))
            if self._settled(int(count.max())):
                break
        pairs = layouts.encoded_sums(sums.reshape(k, wide), below.reshape(k, wide), self._units)
        return np.ascontiguousarray(pairs[:, :d]), layouts.as_pairs(count, 1.0)

    @cached_property
    def _units(self) -> layouts.SumUnits:
        """Of the cells that kernels add up."""
        largest, digits = self.table.largest_by_column(self.encoding), self.plan.digits
        if self.plan.half:
            shift = self.encoding.centre.astype(np.float32) / self.encoding.power
            return layouts.sum_units(
                Scaled(shift.astype(np.float32), self.encoding.power, 1.0), largest, digits
            )
        return layouts.sum_units(self._cells(float(largest.max()))[1], largest, digits)

    def _rests(self) -> DeviceArray | None:
        """The cells with digits below those that the kernels add (row, column, rest), found once for a table; None
        where they are too many."""
        key = self.plan.digits, self.table.part
        if self._listed is None or self._listed[0] != key:
            self._listed = key, self._found_rests()
        return self._listed[1]

    def _found_rests(self) -> DeviceArray | None:
        x, _ = self._cells(self.table.largest(self.encoding))
        find = self.table.build(plans.rests("find_rests", self.plan.wide, self.plan.half, self.plan.digits))
        units, found = self.given("units", self._units.given), self.memory("n_rests", 1, np.int64)
        given = x, self.n * self.plan.wide, units
        find(self.table.grid, 256, *given, found.zero(), None)
        count = int(found.fetch()[0])
        if count * REST_SHARE > self.n * self.plan.wide:
            return None
        # Parts of a larger table take turns: memory given back waits for all copies that are under way.
        room = self.memory("rests", (plans.up(max(count, 1), REST_ROOM), 3), np.int32)
        listed = room.rows(0, count)
        if count:
            find(self.table.grid, 256, *given, found.zero(), listed)
        return listed

    def _add_rests(self, listed: DeviceArray, rests: DeviceArray) -> None:
        """Of the rows by their labels."""
        if listed.size:
            add = self.table.build(plans.rests("add_rests", self.plan.wide, self.plan.half, self.plan.digits))
            count = listed.shape[0]
            add(min(self.table.grid, -(-count // 256)), 256, listed, count, self._memory["labels"], rests)

    def _second_read(self, x: DeviceArray, out: DeviceArray, reduce: Kernel) -> None:
        """Sums of `large`, by labels, for as many centres at a time as fit; `out` is sums then counts."""
        build = plans.sums(self.plan.wide, self.k, self.plan.half, self.plan.room, self.plan.careful)
        some, slices = int(build.macros["K"]), self.plan.wide // 16
        ranges = max(1, self.grid // slices)
        sums = self.memory("sums", (ranges, some * self.plan.wide), np.int64)
        counts = self.memory("counts", (ranges, some), np.int64)
        units = self.given("units", self._units.given)
        for first in range(0, self.k, some):
            here = min(some, self.k - first)
            given = x, self.n, self._memory["labels"], units, sums, counts
            self.table.build(build)(ranges * slices, build.threads, *given, self._ran_over, first)
            cells = out.rows(first * self.plan.wide, (first + here) * self.plan.wide)
            _add_columns(reduce, sums, ranges, some * self.plan.wide, cells)
            at = self.k * self.plan.wide + first
            _add_columns(reduce, counts, ranges, some, out.rows(at, at + here))

    def _any_sums(
        self,
        centres: Array,
        weight: DeviceArray | None,
        heaviest: float,
        labels: DeviceArray | None = None,
    ) -> tuple[Array, Array]:
        k, d, factor = self.k, self.table.n_columns, self.encoding.factor is not None
        labels = self.labels(centres) if labels is None else labels
        options: Any = {"factor": factor, "weighted": weight is not None, "room": self.plan.room}
        build = plans.sums_any(d, k, self.table.dtype, **options)
        some, slices = int(build.macros["K"]), -(-d // 16)
        ranges = max(1, self.grid // slices)
        lift = layouts.lift_of(self.table.largest(self.encoding) * heaviest) * ANY_UNITS
        weight_lift = layouts.lift_of(heaviest) * ANY_UNITS if weight is not None else 1.0
        units = self.given("any_units", np.array([lift, weight_lift]))
        reduce, n_parts = self.table.build(plans.reduction(whole=True)), plans.ANY_PARTS
        parts = self.memory("any_sums", (ranges, n_parts * some * d), np.int64)
        weights = self.memory("any_counts", (ranges, n_parts * some), np.int64)
        cuts = np.cumsum([n_parts * some * d, n_parts * some, some * d])  # of sums, counts, and rests of both
        out = self.memory("any_out", int(cuts[-1]) + some, np.int64)
        sums, counts = np.zeros((k, d, 2)), np.zeros((k, 2))
        for first in range(0, k, some):
            here = slice(first, min(first + some, k))
            rests = out.rows(int(cuts[1]), out.size).zero()
            given = self.table.raw, self.n, self.table.encoding_array(self.encoding), labels, weight, units
            self.table.build(build)(ranges * slices, build.threads, *given, parts, weights, rests, first)
            _add_columns(reduce, parts, ranges, parts.shape[1], out.rows(0, int(cuts[0])))
            _add_columns(reduce, weights, ranges, weights.shape[1], out.rows(int(cuts[0]), int(cuts[1])))
            cells, heft, rest, heft_rest = np.split(out.fetch(), cuts)
            own = layouts.from_parts(cells.reshape(n_parts, some, d), rest.reshape(some, d), lift)
            heft = heft.reshape(n_parts, some)
            sums[here], counts[here] = (
                each[: here.stop - first] for each in (own, layouts.from_parts(heft, heft_rest, weight_lift))
            )
        return sums, counts

    # --- labels

    def _cells(self, largest: float) -> tuple[DeviceArray, Scaled]:
        """What the kernels read, and how they make numbers of it."""
        if self.plan.half:
            lift = layouts.lift_of(max(map(abs, self.table.ends())))
            return self.table.raw, Scaled(np.zeros(self.plan.wide, np.float32), lift, lift)
        return self.table.floats(self.encoding, self.plan.wide, largest)

    def _assign(self, centres: Array, *, labels: bool) -> tuple[DeviceArray, int]:
        """Launch what gives rows to centres; the floats it reads, and how many blocks of partials it writes."""
        x, scaled = self._cells(max(self.table.largest(self.encoding), float(np.abs(centres).max())))
        if self.plan.half:
            points = (centres + self.encoding.centre) / self.encoding.power
        else:
            points = np.zeros((self.k, self.plan.wide))
            points[:, : self.table.n_columns] = centres
        if self.plan.sums_at_once:
            self.given("units", self._units.given)
        if labels:
            self.memory("labels", self.n, np.int32)
        self.memory("open", self.room, np.int32)
        # Rows left open, rows on the lists, whether sums ran over.
        self.memory("status", 2 + self.grid, np.int32).zero()
        launch = {"tiny": self._plain, "few": self._plain, "fused": self._fused}.get(
            self.plan.kind, self._large
        )
        blocks = launch(x, scaled, points, labels)
        self._decide(x, centres, labels, blocks)
        return x, blocks + self.grid

    def _open(self) -> tuple[DeviceArray, int, DeviceArray]:
        """The list of rows left open, its room, and how many there are."""
        return self._memory["open"], self._memory["open"].size, self._memory["status"]

    @property
    def _ran_over(self) -> DeviceArray:
        return self._memory["status"].rows(1 + self.grid, 2 + self.grid)

    def _settled(self, summed: int = 0) -> bool:
        """Whether all lists had room, and all sums, of at most `summed` rows of a centre; else the pass is to be made
        again, with more of it or all rows split at once."""
        status = self._memory["status"].fetch()
        digits = self.plan.digits
        too_many = (summed << (digits.high_bits + digits.low_bits)) >= 1 << 63
        if summed and self.plan.may_run_over and (status[-1] or too_many):
            self.plan = replace(self.plan, careful=True)
            del self._units
            return False
        if (
            self.plan.kind == "fused"
            and not self.split_all
            and int(status[1:-1].max()) > self._memory["list"].shape[1]
        ):
            self.split_all = True
            return False
        if int(status[0]) > self.room:  # ties everywhere
            self.room = self.n
            return False
        return True

    def _plain(self, x: DeviceArray, scaled: Scaled, points: Array, labels: bool) -> int:
        """`tiny` and `few`: blocks of rows, plain float."""
        unit = scaled.scale / scaled.lift
        build = self.plan.screen(labels)
        blocks = -(-self.n // plans.FLUSH_ROWS)
        own = points / unit  # in units of x, about the shift
        table = self.given("table", layouts.plain_table(own, self.plan))
        shift = self.given("shift", scaled.shift)
        partial = self.memory("partial", (blocks + self.grid, self.k * self.plan.wide + self.k), np.int64)
        kernel = self.table.build(build)
        largest = float(np.square(own).sum(axis=1).max())
        rest = self._memory["units"], partial, self._memory.get("labels") if labels else None
        ends = layouts.tolerance(self.plan.wide), largest, *self._open()
        if self.plan.kind == "tiny":
            kernel(blocks, build.threads, x, self.n, table, shift, *rest, *ends)
        else:
            kernel.set_constant("centres", table)
            kernel.set_constant("offsets", shift)
            kernel(self.grid, build.threads, x, self.n, *rest, *ends, self._ran_over)
        return blocks

    def _fused(self, x: DeviceArray, scaled: Scaled, points: Array, labels: bool) -> int:
        """Screen and settle, or split all rows at once."""
        squares = self.table.squares(self.encoding, None)
        constant = float(squares[0]) / self.n * scaled.lift**2
        screen, settle = self.plan.screen(labels, 3 if self.split_all else 1), self.plan.settle(labels)
        assert settle is not None
        cut = plans.stretches(self.n, self.grid, screen, settle)
        blocks = (cut.first + (0 if self.split_all else cut.second)) * self.grid
        partial = self.memory("partial", (blocks + self.grid, self.k * self.plan.wide + self.k), np.int64)
        listed = self.memory("list", (self.grid, 1 if self.split_all else cut.room), np.int32)
        found, shift = self._memory["status"].rows(1, 1 + self.grid), self.given("shift", scaled.shift)
        ends = *self._open(), self._ran_over
        written = self._memory.get("labels") if labels else None

        def launch(build: plans.Build, terms: int, where: DeviceArray, n_stretches: int) -> None:
            image, limits = layouts.fused_image(points * scaled.lift, terms, constant)
            given = (
                self.given(f"image{terms}", image),
                shift,
                self.given(f"limits{terms}", limits),
                float(scaled.scale),
                self._memory["units"],
            )
            rest = where, written, listed, listed.shape[1], found, n_stretches
            self.table.build(build)(self.grid, build.threads, x, self.n, *given, *rest, *ends)

        launch(screen, 3 if self.split_all else 1, partial, cut.first)
        if not self.split_all:
            launch(settle, 3, partial.rows(cut.first * self.grid, blocks), cut.second)
        return blocks

    def _large(self, x: DeviceArray, scaled: Scaled, points: Array, labels: bool) -> int:
        """`large` and `mma`: screen and settle; labels alone."""
        listed, found = self.memory("list", self.n, np.int32), self._memory["status"].rows(1, 2)
        scale = 1.0 if self.plan.half else scaled.scale
        lift = 1.0 if self.plan.half else scaled.lift
        shift, settle = self.given("shift", scaled.shift), self.plan.settle(labels)
        assert settle is not None
        for build, terms in ((self.plan.screen(labels), 1), (settle, 3)):
            chunk = int(build.macros["NC"])
            image, norms, limits = layouts.large_image(points * lift, terms, self.plan.half, chunk)
            given = (
                self.given(f"image{terms}", image),
                self.given(f"norms{terms}", norms),
                shift,
                float(scale),
            )
            rest = self.given(f"limits{terms}", limits), self._memory["labels"], listed, found
            self.table.build(build)(self.grid, build.threads, x, self.n, *given, *rest, *self._open())
        return 0

    def _decide(self, x: DeviceArray, centres: Array, labels: bool, blocks: int) -> None:
        """The rows left open, by differences."""
        factor = self.encoding.factor is not None
        build = plans.exact(self.plan, self.table.dtype, factor=factor, labels=labels)
        after = self._memory["partial"].rows(blocks, blocks + self.grid) if self.plan.sums_at_once else None
        given = self.table.raw, self.table.encoding_array(self.encoding), self.given("turned", centres.T)
        listed, room, count = self._open()
        written = self._memory.get("labels") if labels else None
        summed = x, self._memory.get("units"), after
        self.table.build(build)(self.grid, build.threads, *given, listed, count, room, written, *summed)


def _add_columns(reduce: Kernel, partial: DeviceArray, blocks: int, pitch: int, out: DeviceArray) -> None:
    """The first columns of `partial` (blocks, pitch), added up."""
    reduce(-(-out.size // 32), 1024, partial, blocks, pitch, out.size, out)
