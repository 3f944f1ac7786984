"""Gower's dissimilarity of rows with numbers and categories, blanks left out, as R's `daisy` computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

HUGE = 2.0**1022


def gower(numbers: Any, codes: Any = None, *, asymmetric: Any = ()) -> Array:
    """Return Gower's dissimilarities of all pairs of rows: the mean over the columns that both rows have.

    A column counts::

        number      |x_i - x_j| / range of the column (0 where the column is constant)
        category    0 where the categories agree, 1 where they do not

    Give an ordered category as a number, its rank.

    Parameters
    ----------
    numbers : array of shape (n_rows, number of numeric columns)
        Numbers, NaN where missing.
    codes : None or int array of shape (n_rows, number of categorical columns), default=None
        Numbers of categories, -1 where missing.
    asymmetric : sequence of int, default=()
        Places of code columns in which two rows of category 0 have nothing in common and leave the column out.

    Returns
    -------
    array of shape (n_rows, n_rows)
        Dissimilarities in [0, 1]; NaN for two rows without a common column.

    References
    ----------
    Gower (1971). A general coefficient of similarity and some of its properties. Biometrics 27, 857-871.

    Examples
    --------
    >>> gower([[1.0], [3.0], [2.0]], [[0], [1], [0]]).tolist()
    [[0.0, 1.0, 0.25], [1.0, 0.0, 0.75], [0.25, 0.75, 0.0]]
    """
    values = np.asarray(numbers, dtype=np.float64)
    n_rows = len(values)
    total, common = np.zeros((n_rows, n_rows)), np.zeros((n_rows, n_rows))
    for column in values.T:
        seen = ~np.isnan(column)
        known = np.where(seen, column, 0.0)
        if np.abs(known).max(initial=0.0) > HUGE:  # their difference may be beyond all doubles
            known = known / 2
        width = float(np.ptp(known[seen])) if seen.any() else 0.0
        both = np.outer(seen, seen)
        if width > 0:
            total += both * (np.abs(known[:, None] - known) / width)
        common += both
    levels = np.empty((n_rows, 0), dtype=np.int32) if codes is None else np.asarray(codes)
    for place, code in enumerate(levels.T):
        both = np.outer(code >= 0, code >= 0)
        if place in asymmetric:
            both &= ~np.outer(code == 0, code == 0)
        total += both & (code[:, None] != code)
        common += both
    made = np.divide(total, common, out=np.full_like(total, np.nan), where=common > 0)
    np.fill_diagonal(made, 0.0)
    return made
