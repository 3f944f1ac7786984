"""Tables of all kinds of columns, for hypothesis, and the same in pieces."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from ilk.table.out_of_core.pieces import KeptPieces, ParquetPieces
from ilk.table.out_of_core.table import PieceTable

COLUMNS: dict[str, Any] = {
    "float": (st.none() | st.floats(-1e6, 1e6).map(lambda x: round(x, 2)), pa.float64()),
    "single": (st.none() | st.floats(-1e3, 1e3, width=32), pa.float32()),
    "whole": (st.none() | st.integers(-5, 5), pa.int64()),
    "id": (st.integers(0, 10**6), pa.int32()),
    "two": (st.none() | st.sampled_from([0, 1]), pa.int8()),
    "sentinel": (st.sampled_from([-999, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), pa.int16()),
    "text": (st.none() | st.sampled_from(["a", "b", "c", "B", "unknown"]), pa.string()),
    "digits": (st.sampled_from(["1", "2", "10"]), pa.large_string()),
    "date": (st.sampled_from(["2020-01-01", "2021-02-03"]), pa.string()),
    "flag": (st.none() | st.booleans(), pa.bool_()),
    "constant": (st.just(7.5), pa.float64()),
    "nothing": (st.none(), pa.null()),
}


@st.composite
def arrow_tables(draw: st.DrawFn, columns: dict[str, Any] = COLUMNS, most: int = 60) -> pa.Table:
    """A table of some of the columns; one always varies, so that there is something to cluster."""
    n_rows = draw(st.integers(3, most))
    names = draw(st.lists(st.sampled_from(sorted(columns)), unique=True, min_size=1))
    made = {"float": [float(i % 7) for i in range(n_rows)]}
    for name in names:
        cells, _ = columns[name]
        made[name] = draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    return pa.table({name: pa.array(cells, columns[name][1]) for name, cells in made.items()})


def in_pieces(table: pa.Table, path: Any, rows: int) -> PieceTable:
    """As a Parquet file with row groups of so many rows, some of them empty."""
    with pq.ParquetWriter(path, table.schema) as writer:
        for first in range(0, table.num_rows, rows):
            writer.write_table(table.slice(first, rows), row_group_size=max(1, rows))
            if first == rows:
                writer.write_table(table.slice(0, 0))
    return PieceTable(ParquetPieces(str(path)))


def as_stream(table: pa.Table, rows: int) -> PieceTable:
    """As a stream of batches of so many rows, after an empty one."""
    batches = table.to_batches(max_chunksize=rows)
    return PieceTable(KeptPieces([batches[0].slice(0, 0), *batches], table.schema, "stream"))
