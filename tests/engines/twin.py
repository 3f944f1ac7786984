"""Rows that lie on a device as far as fitting can tell: its kernels are the twins in NumPy. No GPU is needed."""

from __future__ import annotations

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.table.block import Block


class TwinCells:
    """Raw cells elsewhere; which kernels were asked for is kept."""

    ndim = 2

    def __init__(self, host, asked):
        self.host, self.asked, self.shape, self.dtype = host, asked, host.shape, host.dtype

    def __array__(self, *_, **__):
        raise AssertionError("cells on a device are read by kernels alone")

    def __getitem__(self, which):
        return self.host[which]

    def run(self, name, on_cpu, *given, **named):
        self.asked.append(name)
        return on_cpu(self.host, *given, **named)


class TwinRows(MemoryRows):
    """Rows in memory that say that they lie on a device too."""

    in_parts = False

    def __init__(self, rows):
        given = {name: getattr(rows, name) for name in ("weight", "codes", "complete", "threads")}
        super().__init__(rows.raw, rows.encoding, **given)
        self.asked, self.told = [], []

    @property
    def resident(self):
        cells = TwinCells(self.raw, self.asked)
        return Block(
            cells, self.encoding, weight=self.weight, codes=self.codes, complete=self.complete, part_rows=4096
        )

    @property
    def whole(self):
        return self.resident if self.complete else None

    @property
    def parted(self):
        gaps = np.isnan(self.raw).any(axis=1)
        complete, others = self._part(~gaps, True), self._part(gaps, False)
        there = TwinRows(complete)
        there.asked = self.asked
        return there.whole, others

    def _part(self, which, complete):
        weight = None if self.weight is None else self.weight[which]
        return MemoryRows(
            self.raw[which], self.encoding, weight=weight, complete=complete, threads=self.threads
        )

    def beside(self, made):
        there = TwinRows(made)
        there.asked = self.asked
        return there

    def tell(self, why, *_):
        self.told.append(why)


class TwinParts(TwinRows):
    """The same of a table larger than the device, which passes through it in three parts; readings are counted."""

    in_parts, readings = True, 0

    def part_blocks(self, *, surveyed):
        self.readings += 1
        for part in np.array_split(np.arange(self.n_rows), 3):
            here = slice(part[0], part[-1] + 1)
            weight, codes = (None if cells is None else cells[here] for cells in (self.weight, self.codes))
            cells = TwinCells(self.raw[here], self.asked)
            given = {"first_row": here.start, "weight": weight, "codes": codes, "complete": self.complete}
            yield Block(cells, self.encoding, part_rows=4096, **given)
