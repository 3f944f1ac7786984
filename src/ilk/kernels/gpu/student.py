"""Passes of Student mixtures over a table on a device: distances and scatters of Gaussian ones, tails of their own."""

from __future__ import annotations

from math import inf

import numpy as np

from ilk.kernels.gpu.launch import Array, DeviceArray
from ilk.kernels.gpu.mixture import DeviceMixture, fetch_each
from ilk.kernels.gpu.mixture_plans import MOST_STUDENTS
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.plans import reduction
from ilk.kernels.gpu.table import CellEncoding, DeviceTable

BLOCKS = 4  # on a multiprocessor

Told = tuple[DeviceArray | None, ...]
UNTOLD: Told = (None, None, None)


class DeviceStudent(DeviceMixture):
    """All that passes over one table with K Student components share; components are `mean`, `whiten`, and a table of
    constants and degrees of freedom."""

    def __init__(self, table: DeviceTable, encoding: CellEncoding, k: int, diagonal: bool) -> None:
        super().__init__(table, encoding, k, diagonal)
        if k > MOST_STUDENTS:
            raise Unavailable(f"no kernel is made for {k} Student components")
        self.hard, self.rules = False, (inf, 1.0)
        self.weight: DeviceArray | None = None

    def under(self, hard: bool, weight: DeviceArray | None, rules: tuple[float, float]) -> DeviceStudent:
        """The same, for memberships of this kind."""
        self.hard, self.weight, self.rules = hard, weight, rules
        return self

    def tails(self, mean: Array, whiten: Array, tables: Array) -> tuple[Array, Array, float]:
        """Sums of the memberships (K,) and of their tails (K, nodes), and the cost; `tables` as the kernel reads it."""
        nodes = len(tables) - 2
        self._begin(mean, whiten, tables, nodes)
        for first, last in self._chunks():
            self._tailed(first, last, nodes)
        found, cost = self._told(nodes)
        return found[0], found[1:].T, cost

    def pulls(self, mean: Array, whiten: Array, tables: Array) -> tuple[Array, Array, Array, Array, float]:
        """Sums of the memberships and of these times pull (K,), shift and scatter about the means, and the cost."""
        self._begin(mean, whiten, tables, 0)
        for first, last in self._chunks():
            self._tailed(first, last, 0)
            self._gather(first, last)
        found, cost = self._told(0)
        return found[0], *self._sums(mean), cost

    def placed(self, mean: Array, whiten: Array, tables: Array) -> tuple[Array, Array, Array]:
        """Component of highest score, that score, and the cost of each row."""
        label, top, cost = np.empty(self.n, dtype=np.int32), np.empty(self.n), np.empty(self.n)
        self._begin(mean, whiten, np.vstack([tables, tables[1:]]), 0)
        for first, last in self._chunks():
            told = self._room_for_labels(last - first)
            self._tailed(first, last, 0, told)
            fetch_each(told, (label[first:last], top[first:last], cost[first:last]))
        return label, top, cost

    def _begin(self, mean: Array, whiten: Array, tables: Array, nodes: int) -> None:
        """Parameters where the kernels read them, and sums that begin with 0."""
        self._components(mean, whiten, np.zeros(self.k))
        lanes = int(self.plan.student(nodes).macros["LANES"])
        wide = np.ones((len(tables), -(-self.k // lanes) * lanes))
        wide[:, : self.k] = tables
        self.given("tables", wide)
        self.memory(f"tails{nodes}", (self.grid * BLOCKS * 8, self.k * (1 + nodes) + 1), "f8").zero()

    def _tailed(self, first: int, last: int, nodes: int, told: Told = UNTOLD) -> None:
        """Distances of a chunk of rows, and what becomes of them."""
        self._scores(first, last, fused=False)
        heft = None if self.weight is None else self.weight.rows(first, last)
        given = self._memory["memberships"], last - first, heft, int(self.hard)
        rest = self.given("rules", np.array(self.rules)), self._memory["tables"]
        kernel = self.table.build(self.plan.student(nodes))
        kernel(self.grid * BLOCKS, 256, *given, *rest, *told, self._memory[f"tails{nodes}"])

    def _told(self, nodes: int) -> tuple[Array, float]:
        """(1 + nodes, K) sums, and the cost."""
        partial = self._memory[f"tails{nodes}"]
        out = self.memory(f"out{nodes}", partial.shape[1], "f8")
        given = partial, partial.shape[0], out.size, out.size, out
        self.table.build(reduction(whole=False))(-(-out.size // 32), 1024, *given)
        found = out.fetch()
        return found[:-1].reshape(1 + nodes, self.k), float(found[-1])
