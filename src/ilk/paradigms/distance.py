"""How far apart rows are: Euclidean where all cells are numbers, Gower's dissimilarity where they are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from ilk.errors import DataError, ResourceError
from ilk.measures.gower import gower
from ilk.table.block import Array, Block

EUCLIDEAN, GOWER, PRECOMPUTED = "euclidean", "gower", "precomputed"
MOST_ROWS = 12_000  # all pairs of so many rows take 1.1 GB


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of all pairs of rows (rows, rows), what they are, and how many of their units a user's unit has."""

    matrix: Array
    kind: str
    unit: float = 1.0
    n_unknown: int = 0  # pairs of rows without a column in common, put at the mean of the others


def distances(block: Block, ordered: Array, kind: str = "auto") -> Distances:
    """Of the rows of a block; `ordered` marks the code columns whose levels have an order.

    "auto" is Euclidean distance in the encoded columns where every cell is a number, else Gower's dissimilarity. Two
    rows without a column in common, NA in R's `daisy`, are taken for as far apart as rows are on average.
    """
    check_size(block.n_rows)
    n_coded = 0 if block.codes is None else block.codes.shape[1]
    if kind == "auto":
        kind = EUCLIDEAN if block.complete and not n_coded else GOWER
    if kind == EUCLIDEAN:
        if not block.complete or n_coded:
            raise DataError(
                "not-numbers",
                "Euclidean distance needs numbers without missing values, and the table has others",
                do='Use metric="gower"',
            )
        points = np.asarray(block.numbers, dtype=np.float64)
        unit = block.encoding.power if block.encoding.factor is None else 1.0
        return Distances(cdist(points, points), EUCLIDEAN, unit)
    numbers, codes = np.asarray(block.raw, dtype=np.float64), block.codes
    if codes is not None and ordered.any():
        levels = np.where(codes[:, ordered] < 0, np.nan, codes[:, ordered])
        numbers, codes = np.hstack([numbers, levels]), codes[:, ~ordered]
    matrix = gower(numbers, codes)
    unknown = np.isnan(matrix)
    if unknown.any():
        known = ~unknown & ~np.eye(len(matrix), dtype=bool)
        matrix[unknown] = matrix[known].mean() if known.any() else 1.0
    return Distances(matrix, GOWER, n_unknown=int(unknown.sum()) // 2)


def given_distances(matrix: Array) -> Distances:
    """A matrix of dissimilarities as the user gave it, checked."""
    check_size(len(matrix))
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            "not-distances", f"a matrix of distances is square, and this one has shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise DataError(
            "not-distances", "distances are negative, missing or infinite", do="Give numbers from 0"
        )
    if not np.allclose(matrix, matrix.T) or np.diag(matrix).any():
        raise DataError(
            "not-distances", "the matrix of distances is not symmetric with zeros on its diagonal"
        )
    return Distances(np.asarray((matrix + matrix.T) / 2, dtype=np.float64), PRECOMPUTED)


def by_distances(matrix: Array) -> Array:
    """Row numbers in the order of the sorted distances of each row, which it has wherever it stands; rows that have the
    same ones stay as they are."""
    keys = [row.tobytes() for row in np.sort(matrix, axis=1)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def check_size(n_rows: int) -> None:
    if n_rows > MOST_ROWS:
        raise ResourceError(
            "too-many-rows",
            f"this method compares all pairs of rows: {n_rows} rows are more than its limit of {MOST_ROWS}",
            do="Give a sample of the rows, or use k-means, k-medians or a mixture method",
        )


def neighbour_graph(matrix: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Edges (from, to) between rows of which each is among the `n_neighbors` nearest of the other, and those of the
    minimum spanning tree, so that the graph hangs together; from < to, each edge once."""
    n_rows = len(matrix)
    apart = matrix.copy()
    np.fill_diagonal(apart, np.inf)
    n_neighbors = min(n_neighbors, n_rows - 1)
    near = (
        np.argpartition(apart, n_neighbors - 1, axis=1)[:, :n_neighbors]
        if n_rows > 1
        else np.empty((1, 0), int)
    )
    chosen = np.zeros((n_rows, n_rows), dtype=bool)
    np.put_along_axis(chosen, near, True, axis=1)
    edge = chosen & chosen.T
    edge[spanning_tree(matrix)] = True
    edge |= edge.T
    first, second = np.nonzero(np.triu(edge, 1))
    return first, second


def spanning_tree(matrix: Array) -> tuple[Array, Array]:
    """The edges (from, to) of the minimum spanning tree."""
    tiny = np.finfo(np.float64).tiny  # a zero would be no edge for SciPy
    tree = minimum_spanning_tree(np.triu(np.maximum(matrix, tiny), 1)).tocoo()
    return tree.row, tree.col
