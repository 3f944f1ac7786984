"""Compressed rows (CSR): what was given, checked, and its encoding, without ever making it an array.

A cell that is not stored is 0. The encoding is that of the same table as an array, so that starts draw the same rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ilk.errors import DataError, UsageError, names_shown, rows_shown
from ilk.table.block import BLOCK_ROWS, Array, Encoding
from ilk.table.condition import (
    Spread,
    Survey,
    centre_about,
    check_scale,
    power_for,
)
from ilk.table.middle import SAMPLE_ROWS, content_rows, number_keys, quantiles

ROBUST = (0.16, 0.5, 0.84)
SPARSE_ESTIMATORS = ("KMeans", "TrimmedKMeans", "MixedMixture", "AssortedMixture")
"""Those that take a sparse matrix without making it an array."""
MOST_CELLS = 1 << 24
"""Up to here a sparse matrix is read as any other table (128 MiB of numbers)."""


def is_sparse_input(data: Any) -> bool:
    """Whether the user gave a SciPy sparse matrix or array, of any format."""
    return hasattr(data, "tocsr") and hasattr(data, "nnz")


def whole_table(data: Any) -> Array:
    """A sparse matrix as an array, for what looks at whole columns; a large one is refused."""
    n_cells = data.shape[0] * data.shape[-1]
    if n_cells > MOST_CELLS:
        raise UsageError(
            "sparse-input",
            f"a sparse matrix of {data.shape[0]:,} x {data.shape[-1]:,} is too large to be read as a table "
            f"(about {8 * n_cells / 1e6:,.0f} MB)",
            do=f"Fit one of {', '.join(SPARSE_ESTIMATORS)}, which take it as it is, or give fewer rows or columns",
        )
    return np.asarray(compressed(data).toarray())


def compressed(data: Any) -> Any:
    """The user's matrix as CSR: float64 (float32 stays), entries of one cell added up, no stored zeros, in order.

    What was given is not changed.
    """
    from scipy.sparse import csr_array

    if len(data.shape) != 2:
        raise DataError(
            "bad-shape", f"the sparse array has {len(data.shape)} dimensions", do="Give rows and columns"
        )
    if data.dtype.kind not in "biuf":
        raise DataError(
            "bad-data", f"the sparse matrix holds {data.dtype} and not numbers", do="Give numbers, or 0 and 1"
        )
    kind = np.float32 if data.dtype == np.float32 else np.float64
    made = csr_array(data, dtype=kind, copy=True)
    made.sum_duplicates()
    made.eliminate_zeros()
    _refuse_not_finite(made)
    return made


def _refuse_not_finite(cells: Any) -> None:
    bad = ~np.isfinite(cells.data)
    if not bad.any():
        return
    row, column = _places(cells, bad)
    gaps = int(np.isnan(cells.data).sum())
    what = f"{gaps} stored cells are NaN" if gaps else f"{int(bad.sum())} stored cells are infinite"
    raise DataError(
        "sparse-missing" if gaps else "infinite",
        f"{what}, and a sparse matrix has no missing cells: one that is not stored is 0",
        where=f"{rows_shown(row.tolist())}; columns {names_shown(column.tolist())}",
        do="Store numbers only, or give the table as an array, in which NaN is a missing cell",
    )


def _places(cells: Any, which: Array) -> tuple[Array, Array]:
    """Rows and columns that hold the stored cells `which`."""
    row = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
    return np.unique(row[which]), np.unique(cells.indices[which])


def refuse_cells(cells: Any, which: Array, code: str, what: str, do: str) -> None:
    """Refuse a table in which any of the stored cells `which` is wrong."""
    if which.any():
        row, column = _places(cells, which)
        where = f"{rows_shown(row.tolist())}; columns {names_shown(column.tolist())}"
        raise DataError(code, f"{int(which.sum())} cells {what}", where=where, do=do)


def survey(cells: Any, weight: Array | None = None) -> Survey:
    """Range and mean of each column over the rows that count, of which there are some."""
    if weight is not None:
        cells, weight = cells[weight > 0], weight[weight > 0]
    n_rows, n_columns = cells.shape
    counted = np.ones(n_rows) if weight is None else weight
    stored = np.bincount(cells.indices, minlength=n_columns)
    low, high = np.zeros((2, n_columns))
    by_column = cells.tocsc()
    filled = np.flatnonzero(stored)
    if len(filled):
        least = np.minimum.reduceat(by_column.data, by_column.indptr[filled])
        most = np.maximum.reduceat(by_column.data, by_column.indptr[filled])
        full = stored[filled] == n_rows  # not one cell of the column is 0
        low[filled] = np.where(full, least, np.minimum(least, 0.0))
        high[filled] = np.where(full, most, np.maximum(most, 0.0))
    total = float(counted.sum())
    return Survey(
        low=low,
        high=high,
        mean=_means(cells, counted, total),
        missing=np.zeros(n_columns, dtype=np.int64),
        total_weight=np.full(n_columns, total),
        dtype=np.dtype(cells.dtype),
    )


def _means(cells: Any, counted: Array, total: float) -> Array:
    """Weighted means; by shares of the weight where the sum runs over."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (counted @ cells.astype(np.float64)) / total
    return np.asarray(mean if np.isfinite(mean).all() else (counted / total) @ cells.astype(np.float64))


def encoding_of(
    cells: Any, facts: Survey, *, scale: str | None = None, weight: Array | None = None
) -> Encoding:
    """That of the same table as an array (`table.condition.encoding_of`)."""
    check_scale(scale)
    power = power_for(facts)
    rows = np.arange(cells.shape[0])
    if len(rows) > SAMPLE_ROWS:
        rows = content_rows(number_keys(cells, power))
    centre = centre_about(facts, power, _middle(cells, power, weight, rows))
    encoding = Encoding(power, centre)
    if scale is None:
        return encoding
    return Encoding(power, centre, _factor(cells, facts, encoding, weight))


def _middle(cells: Any, power: float, weight: Array | None, rows: Array) -> tuple[Array, Array]:
    """Median and robust spread of some rows: 0 for a column that is 0 in all but a sixth of them."""
    heft = np.ones(len(rows)) if weight is None else weight[rows].astype(np.float64)
    sample = cells[rows].tocsc()
    middle, spread = np.zeros(cells.shape[1]), np.zeros(cells.shape[1])
    present = np.bincount(
        np.repeat(np.arange(cells.shape[1]), np.diff(sample.indptr)),
        weights=heft[sample.indices],
        minlength=cells.shape[1],
    )
    for j in np.flatnonzero(present >= (1 - ROBUST[2]) * heft.sum() * (1 - 1e-9)):
        values = np.zeros(len(rows))
        mine = slice(sample.indptr[j], sample.indptr[j + 1])
        values[sample.indices[mine]] = sample.data[mine].astype(np.float64) * power
        keep = heft > 0
        if keep.any():
            low, middle[j], high = quantiles(values[keep], None if weight is None else heft[keep], ROBUST)
            spread[j] = max(middle[j] - low, high - middle[j])
    return middle, spread


def _factor(cells: Any, facts: Survey, encoding: Encoding, weight: Array | None) -> Array:
    """One over the standard deviation: sums over the stored cells, and what all others add."""
    spread = Spread.about(facts, encoding)
    counted = np.ones(cells.shape[0]) if weight is None else weight
    nothing = ((0.0 - encoding.centre) - spread.mean) * spread.unit
    sums = np.zeros((2, cells.shape[1]))
    stored = np.zeros(cells.shape[1])
    for start in range(0, cells.shape[0], BLOCK_ROWS):
        part = cells[start : start + BLOCK_ROWS]
        column, heft = part.indices, np.repeat(counted[start : start + BLOCK_ROWS], np.diff(part.indptr))
        values = part.data.astype(np.float64) * encoding.power - encoding.centre[column]
        values = (values - spread.mean[column]) * spread.unit[column]
        for number, terms in enumerate((values * heft, values * values * heft)):
            sums[number] += np.bincount(column, weights=terms, minlength=cells.shape[1])
        stored += np.bincount(column, weights=heft, minlength=cells.shape[1])
    rest = facts.total_weight - stored
    return spread.factor(facts, sums + np.stack([rest * nothing, rest * nothing * nothing]))
