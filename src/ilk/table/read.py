"""Reading: any frame, array or file becomes one `Table`, with a ledger of what was read and what was not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.errors import Caution, DataError, UsageError, shown
from ilk.table.block import Array
from ilk.table.cells import ColumnCells, HeldCells
from ilk.table.columns import Column, from_objects, plain_arrow, plain_or_list, unsupported, usable_names
from ilk.table.ledger import Ledger
from ilk.table.sparse import is_sparse_input, whole_table
from ilk.threads import database_config


@dataclass(frozen=True, eq=False)
class Table:
    """The user's table: an Arrow table, or a number array kept as it is, with what is known of its reading.

    `problems` holds the refusals of single columns; they are raised only when the column is wanted.
    """

    source: str
    names: tuple[str, ...]
    ledger: Ledger
    columns: tuple[Column, ...] | None = None
    _: KW_ONLY
    array: Array | None = None
    warnings: tuple[Caution, ...] = ()
    problems: Mapping[str, DataError] = field(default_factory=dict)
    native: Any = None
    decimal: str = ""  # the decimal mark that the file speaks for, where a column leaves it open

    @property
    def n_rows(self) -> int:
        return self.ledger.used

    @property
    def n_columns(self) -> int:
        return len(self.names)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def column(self, name: str) -> Column:
        """One column as Arrow; NaN is a missing cell."""
        j = self._places[name]
        if self.columns is not None:
            return self.columns[j]
        assert self.array is not None
        return pa.array(np.ascontiguousarray(self.array[:, j]), from_pandas=True)

    def cells(self, name: str) -> ColumnCells:
        """One column as the rules for kinds see it."""
        return HeldCells(self.column(name))

    @cached_property
    def arrow(self) -> Any:
        """The whole table as a `pyarrow.Table` (a copy when the user gave a NumPy array)."""
        return pa.Table.from_arrays([self.column(name) for name in self.names], names=list(self.names))

    def give_back(self, columns: Mapping[str, Any]) -> Any:
        """A frame of the caller's kind with these columns: pandas keeps its index, an array gets Arrow.

        >>> read(np.zeros((2, 1))).give_back({"group": [0, 1]}).num_rows
        2
        """
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        if self.native is None:
            return pa.table(arrays)
        import narwhals as nw

        frame = nw.from_native(self.native[[]] if _is_pandas(self.native) else self.native, eager_only=True)
        made = nw.from_dict(arrays, backend=frame.implementation).to_native()
        if _is_pandas(self.native):
            made.index = self.native.index
        return made


def read(
    data: Any,
    *,
    sep: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    missing: Sequence[str] | None = None,
    max_rejects: int = 0,
    sql: str | None = None,
    sheet: str | None = None,
    table: str | None = None,
    as_text: Sequence[str] = (),
) -> Table:
    """A `Table` from a frame, an array, a path or "-" (standard input); the options serve files, `sheet` workbooks and
    `table` databases.

    >>> read([[1.0, 2.0], [3.0, 4.0]]).names
    ('x0', 'x1')
    """
    given: dict[str, Any] = {
        "sep": sep,
        "header": header,
        "encoding": encoding,
        "missing": missing,
        "sheet": sheet,
        "table": table,
    }
    if isinstance(data, (str, os.PathLike)):
        from ilk.table.files import read_path, text_options

        options = text_options(**given, decimal=decimal, max_rejects=max_rejects, as_text=as_text, sql=sql)
        return read_path(os.fspath(data), options)
    if any(value is not None for value in given.values()) or decimal != ".":
        raise UsageError("bad-option", f"{', '.join(given)} and decimal are for files only")
    made = _read_object(data)
    return made if sql is None else query({"data": made}, sql, made.source)


def query(tables: Mapping[str, Table], sql: str, source: str) -> Table:
    """The table that a DuckDB query gives; it sees nothing but these tables.

    >>> query({"data": read([[1.0], [3.0]])}, "select x0 from data where x0 > 2", "list").n_rows
    1
    """
    import duckdb

    con = duckdb.connect(config=database_config())
    try:
        for name, table in tables.items():
            con.register(name, table.arrow)
        con.execute("set enable_external_access = false; set lock_configuration = true")
        result = con.sql(sql)
        if result is None:
            raise UsageError("bad-sql", "the query gives no table", do="Write one select statement over data")
        made = from_arrow(result.to_arrow_table(), source)
    except duckdb.Error as error:
        raise _bad_query(str(error)) from None
    finally:
        con.close()
    told = (caution for table in tables.values() for caution in table.warnings)
    return replace(made, warnings=(*told, *made.warnings))


def _bad_query(why: str) -> UsageError:
    """The refusal of a query."""
    text = shown(why.splitlines()[0], 200)
    return UsageError(
        "bad-sql",
        f"the query was refused: {text}",
        do="The table is called data, those of a database or workbook by their names; no files can be read",
    )


def _is_pandas(data: Any) -> bool:
    import narwhals.dependencies as known

    return bool(known.is_pandas_dataframe(data))


def _read_object(data: Any) -> Table:
    """In memory: arrays and lists, then Arrow, then the frame libraries."""
    if isinstance(data, Table):
        return data
    if isinstance(data, np.ndarray):
        return from_array(data)
    if is_sparse_input(data):
        return from_array(whole_table(data))
    if isinstance(data, (list, tuple)):
        return _from_rows(data)
    if isinstance(data, Mapping):
        return _from_cells({name: plain_or_list(values) for name, values in data.items()}, "dict")
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return from_arrow(
            pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data, "Arrow table"
        )
    if isinstance(data, pa.RecordBatchReader):
        return from_arrow(data.read_all(), "Arrow reader")
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return _from_arrow_column(data)
    return _read_frame(data)


def _read_frame(data: Any) -> Table:
    import narwhals as nw
    import narwhals.dependencies as known

    if known.is_pandas_dataframe(data):
        return _from_pandas(data)
    if known.is_pandas_series(data) or known.is_polars_series(data):
        raise UsageError("bad-shape", "a single series is not a table", do="Give a frame: series.to_frame()")
    if known.is_polars_lazyframe(data):
        data = data.collect()
    if known.is_polars_dataframe(data) or known.is_modin_dataframe(data) or known.is_cudf_dataframe(data):
        arrow = nw.from_native(data, eager_only=True).to_arrow()
        return replace(from_arrow(arrow, "DataFrame"), native=data)
    if hasattr(data, "to_arrow_table") and hasattr(data, "columns"):  # a DuckDB relation
        return from_arrow(data.to_arrow_table(), "DuckDB relation")
    if hasattr(data, "__arrow_c_stream__"):
        return from_arrow(pa.RecordBatchReader.from_stream(data).read_all(), type(data).__name__)
    if hasattr(data, "__cuda_array_interface__") or getattr(data, "is_cuda", False):
        raise UsageError("device-array", "the array is on a GPU", do="Copy it to the host memory first")
    if hasattr(data, "__array__") and getattr(data, "ndim", 0) >= 1:
        try:
            return from_array(np.asarray(data))
        except (TypeError, RuntimeError) as error:
            raise UsageError("bad-data", f"no array could be made: {shown(str(error), 120)}") from None
    raise UsageError(
        "bad-data",
        f"{type(data).__name__} is not a table",
        do="Give a frame (pandas, Polars, Arrow, DuckDB), a 2-D array, a path, or - for standard input",
    )


def from_array(array: Array) -> Table:
    """A table over a NumPy array; a 2-D array of floats is kept as it is, never copied.

    >>> x = np.zeros((3, 2))
    >>> from_array(x).array is x
    True
    """
    if array.dtype.names is not None and array.ndim == 1:
        return _from_cells({name: array[name] for name in array.dtype.names}, "array")
    if array.ndim != 2:
        raise UsageError(
            "bad-shape",
            f"the array has {array.ndim} dimensions, not 2",
            do="Reshape your data: one column is array.reshape(-1, 1), one row array.reshape(1, -1)",
        )
    if isinstance(array, np.ma.MaskedArray):
        array = np.where(np.ma.getmaskarray(array), np.nan, array.data.astype(np.float64))
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    ledger = Ledger(array.shape[0], array.shape[0])
    if array.dtype.kind == "c":
        raise DataError(
            "unsupported-type",
            "Complex data not supported: the array holds complex numbers",
            do="Give the real and the imaginary part as columns of their own",
        )
    array, cautions = _native_numbers(array)
    if array.dtype.kind in "fiu":
        return Table("array", names, ledger, array=array, warnings=cautions)
    return _from_cells({name: array[:, j] for j, name in enumerate(names)}, "array")


def _native_numbers(array: Array) -> tuple[Array, tuple[Caution, ...]]:
    """Floats of another width or byte order as the nearest native float; the usual ones untouched."""
    if array.dtype == np.float16:
        return array.astype(np.float32), ()
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        text = "long double numbers were rounded to float64"
        return array.astype(np.float64), (Caution("precision-lost", text),)
    if array.dtype.kind in "fiu" and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("=")), ()
    return array, ()


def _from_rows(rows: Sequence[Any]) -> Table:
    """Lists of lists, or of dictionaries, cell by cell, so that numbers beside text stay numbers."""
    if len(rows) and all(isinstance(row, Mapping) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return _from_cells({name: [row.get(name) for row in rows] for name in names}, "list")
    if len(rows) and not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        where = next(i for i, row in enumerate(rows) if not isinstance(row, (list, tuple, np.ndarray)))
        raise UsageError(
            "bad-shape", f"row {where} is not a list", do="Give one list per row: [[1, 2], [3, 4]]"
        )
    width = len(rows[0]) if len(rows) else 0
    for i, row in enumerate(rows):
        if len(row) != width:
            raise DataError(
                "ragged-rows",
                f"row {i} has {len(row)} cells where row 0 has {width}",
                do="Give every row the same number of cells, None where one is missing",
            )
    return _from_cells({f"x{j}": [row[j] for row in rows] for j in range(width)}, "list", len(rows))


def _from_cells(cells: Mapping[Any, Any], source: str, n_rows: int | None = None) -> Table:
    """A table from columns that are lists of Python cells or NumPy arrays."""
    names, cautions = usable_names(cells)
    columns: list[Column] = []
    problems: dict[str, DataError] = {}
    for name, values in zip(names, cells.values(), strict=True):
        column, problem = _from_values(values, name)
        columns.append(column)
        if problem is not None:
            problems[name] = problem
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise DataError("ragged-rows", f"columns have different lengths: {sorted(lengths)[:5]}")
    count = lengths.pop() if lengths else (n_rows or 0)
    return Table(
        source, names, Ledger(count, count), tuple(columns), warnings=tuple(cautions), problems=problems
    )


def _from_values(values: Any, name: str) -> tuple[Column, DataError | None]:
    if not isinstance(values, np.ndarray):
        return from_objects(values, name)
    if values.ndim != 1 or values.dtype.kind in "cV":
        what = "complex numbers" if values.dtype.kind == "c" else "nested cells"
        return pa.nulls(len(values)), unsupported(name, what)
    if values.dtype.kind == "O":
        return from_objects(values.tolist(), name)
    if values.dtype.kind in "US":
        return pa.array(values.astype(str).tolist(), type=pa.large_string()), None
    plain = np.ascontiguousarray(_native_numbers(values)[0])
    return pa.array(plain, from_pandas=True), None


def from_arrow(arrow: Any, source: str) -> Table:
    """A table over a `pyarrow.Table`; extension types are read as what they store.

    >>> from_arrow(pa.table({"a": [1, None]}), "Arrow table").n_rows
    2
    """
    names, cautions = usable_names(arrow.column_names)
    columns, problems = [], {}
    for name, column in zip(names, arrow.columns, strict=True):
        plain = plain_arrow(column)
        kind = plain.type.value_type if pa.types.is_dictionary(plain.type) else plain.type
        stored_otherwise = isinstance(
            kind, pa.BaseExtensionType
        )  # of a category; all others are plain by now
        if stored_otherwise or pa.types.is_nested(kind) or "binary" in str(kind):
            problems[name] = unsupported(name, f"cells of type {shown(str(kind))}")
        columns.append(plain)
    n_rows = arrow.num_rows
    return Table(
        source, names, Ledger(n_rows, n_rows), tuple(columns), warnings=tuple(cautions), problems=problems
    )


def _from_arrow_column(column: Column) -> Table:
    if pa.types.is_struct(column.type):
        batch = pa.Table.from_struct_array(column)
        return from_arrow(batch, "Arrow array")
    raise UsageError("bad-shape", "a single Arrow array is not a table", do="Give a pyarrow.Table")


def _from_pandas(frame: Any) -> Table:
    """Column by column, so that one odd column does not spoil the frame; `give_back` keeps the index."""
    names, cautions = usable_names(list(frame.columns))
    columns: list[Column] = []
    problems: dict[str, DataError] = {}
    for j, name in enumerate(names):
        series = frame.iloc[:, j]
        column, problem = _from_series(series, name)
        columns.append(column)
        if problem is not None:
            problems[name] = problem
    n_rows = int(frame.shape[0])
    return Table(
        "DataFrame",
        names,
        Ledger(n_rows, n_rows),
        tuple(columns),
        warnings=tuple(cautions),
        problems=problems,
        native=frame,
    )


def _from_series(series: Any, name: str) -> tuple[Column, DataError | None]:
    kind = str(series.dtype)
    if kind == "object":
        return from_objects(series.tolist(), name)
    if getattr(series.dtype, "kind", "") == "c":
        return pa.nulls(len(series)), unsupported(name, "complex numbers")
    if kind.startswith("Sparse"):
        series = series.sparse.to_dense()
    if kind == "float128":
        series = series.astype("float64")
    if kind == "category" and str(series.cat.categories.dtype).startswith(("interval", "period")):
        series = series.cat.rename_categories(str)  # as `pandas.cut` makes them
    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        # What Arrow lacks (categories of several kinds, types of other packages): by its values.
        return from_objects(series.astype(object).tolist(), name)
    table = from_arrow(pa.table({name: column}), "")
    return table.columns[0] if table.columns else column, table.problems.get(name)


def display_name(path: str) -> str:
    """What a path is called in messages: its last part, made safe for a terminal."""
    return shown(Path(path).name or path, 80)
