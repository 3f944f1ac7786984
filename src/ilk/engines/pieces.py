"""A table larger than memory, given to an estimator: packed as frames on clusters are, and walked as in a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.engines.packed import Pack, PackLayout
from ilk.engines.stream import StreamRows
from ilk.table.block import Array, Encoding
from ilk.table.out_of_core.memory_limit import memory_bytes
from ilk.table.out_of_core.pack import RowCells, pack
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table
from ilk.threads import in_order, thread_count


@dataclass(frozen=True)
class _ByPacker:
    """What a packer makes of the rows; it sets none aside."""

    columns: tuple[str, ...]
    packer: Callable[[Any], Pack]

    def cells(self, part: Table) -> RowCells:
        pack = self.packer(part.arrow)
        used = np.zeros(pack.n_rows, dtype=bool)
        return RowCells(pack.raw, pack.codes, pack.weight, used, used)


class PieceFrame:
    """A table in pieces as a frame. What is told of its rows is an array."""

    def __init__(self, table: PieceTable) -> None:
        self.table, self.source = table, table.source
        self.schema = pa.schema([(name, table.arrow_type(name)) for name in table.names])

    def rows(
        self,
        names: Sequence[str],
        packer: Callable[[Any], Pack],
        layout: PackLayout,
        threads: int | None = None,
    ) -> StreamRows:
        n_threads = thread_count(threads)
        packed = pack(self.table, _ByPacker(tuple(names), packer), memory_bytes(None), n_threads)
        untouched = Encoding(1.0, np.zeros(layout.n_columns))
        return StreamRows(
            packed.raw,
            untouched,
            weight=packed.weight,
            codes=packed.codes,
            complete=False,
            threads=n_threads,
        )

    def told(self, names: Sequence[str], tell: Callable[[Any], Array], threads: int | None) -> Array:
        """What `tell` makes of Arrow tables of these columns, for all rows in order."""

        def tell_piece(piece: int) -> list[Array]:
            return [tell(part.arrow) for part in self.table.parts_of(piece, names) if part.n_rows]

        pieces = in_order(tell_piece, range(self.table.n_pieces), thread_count(threads))
        return np.concatenate([part for parts in pieces for part in parts])
