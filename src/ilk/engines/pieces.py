"""A table larger than memory, given to an estimator: packed on disk like a frame on a cluster, and read from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.engines.packed import Pack, PackLayout
from ilk.engines.stream import StreamRows
from ilk.table.block import Array, Encoding
from ilk.table.piecewise import PieceTable
from ilk.table.spool import DiskArray
from ilk.threads import in_order, thread_count


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
        first_rows, n_threads = self.table.pieces.first_rows, thread_count(threads)
        n_rows = first_rows[-1]
        raw = DiskArray(n_rows, layout.n_columns, layout.dtype)
        weight = DiskArray(n_rows, None, np.float64) if layout.weighted else None
        codes = DiskArray(n_rows, layout.n_codes, np.int32) if layout.n_codes else None

        def keep(piece: int) -> None:
            first = first_rows[piece]
            for part in self.table.parts_of(piece, names):
                pack = packer(part.arrow)
                for file, array in ((raw, pack.raw), (weight, pack.weight), (codes, pack.codes)):
                    if file is not None and array is not None:
                        file.write(first, array)
                first += part.n_rows

        for _ in in_order(keep, range(self.table.n_pieces), n_threads):
            pass
        untouched = Encoding(1.0, np.zeros(layout.n_columns))
        return StreamRows(raw, untouched, weight=weight, codes=codes, complete=False, threads=n_threads)

    def told(self, names: Sequence[str], tell: Callable[[Any], Array], threads: int | None) -> Array:
        """What `tell` makes of Arrow tables of these columns, for all rows in order."""

        def tell_piece(piece: int) -> list[Array]:
            return [tell(part.arrow) for part in self.table.parts_of(piece, names) if part.n_rows]

        pieces = in_order(tell_piece, range(self.table.n_pieces), thread_count(threads))
        return np.concatenate([part for parts in pieces for part in parts])
