"""When a table is wide: so many columns, for its rows or at all, that most of them may know nothing of groups."""

from __future__ import annotations

MANY_COLUMNS = 40
ROWS_PER_COLUMN = 5.0


def is_crowded(n_rows: float, n_columns: int) -> bool:
    """Fewer than five rows for each column: covariances cannot be told, and any two halves lie apart somewhere."""
    return n_columns * ROWS_PER_COLUMN > n_rows


def is_wide(n_rows: float, n_columns: int) -> bool:
    """Whether columns are screened before rows are parted."""
    return n_columns >= MANY_COLUMNS or is_crowded(n_rows, n_columns)
