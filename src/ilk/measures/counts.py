"""How many rows each cluster shares with each class, counted in exact whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.errors import DataError, ResourceError, UsageError
from ilk.measures.labels import MISSING, Labels, codes_of, complete_codes, same_length
from ilk.measures.texts import documented

Array = NDArray[Any]

MATRIX_CELLS = 10**8  # A matrix form above this (0.8 GB) is refused; the totals need the filled cells only.


@dataclass(frozen=True, kw_only=True)
class Contingency:
    """How many rows each cluster shares with each class: the filled cells only, in exact whole numbers.

    Attributes
    ----------
    cluster : int array
        Cluster of each filled cell.
    klass : int array
        Class of each filled cell.
    count : int array
        Rows in each filled cell.
    cluster_names : list
        Names of the clusters.
    class_names : list
        Names of the classes.
    n_left_out : int
        Rows without a class.
    cluster_sizes : int array
        Rows of each cluster.
    class_sizes : int array
        Rows of each class.
    n_rows : int
        Rows in all.
    table : int array of shape (n_clusters, n_classes)
        The counts as a matrix.

    See Also
    --------
    contingency : Makes it.

    Examples
    --------
    >>> contingency([0, 0, 1, 1], ["x", "y", "y", "y"]).table.tolist()
    [[1, 1], [0, 2]]
    """

    cluster: Array
    klass: Array
    count: Array
    cluster_names: list[Any]
    class_names: list[Any]
    n_left_out: int = 0

    @cached_property
    def cluster_sizes(self) -> Array:
        """Rows of each cluster."""
        return sums_of(self.cluster, self.count, len(self.cluster_names))

    @cached_property
    def class_sizes(self) -> Array:
        """Rows of each class."""
        return sums_of(self.klass, self.count, len(self.class_names))

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return int(self.count.sum())

    @property
    def table(self) -> Array:
        """The counts as a matrix (clusters, classes)."""
        return self.spread(self.count)

    def spread(self, values: Array) -> Array:
        """Return a matrix (clusters, classes) of values given for the filled cells, 0 elsewhere.

        Parameters
        ----------
        values : array
            A value for each filled cell.

        Returns
        -------
        array of shape (n_clusters, n_classes)
            The matrix.
        """
        shape = len(self.cluster_names), len(self.class_names)
        if shape[0] * shape[1] > MATRIX_CELLS:
            raise ResourceError(
                "table-too-large",
                f"a matrix of {shape[0]} groups and {shape[1]} classes is too large",
                do="Use the totals, which need the filled cells only",
            )
        matrix = np.zeros(shape, dtype=values.dtype)
        matrix[self.cluster, self.klass] = values
        return matrix


@documented
def contingency(labels: Labels | Contingency, truth: Labels | None = None) -> Contingency:
    """Return the counts of rows by cluster and class.

    Parameters
    ----------
    {labels/truth} {truth}

    Returns
    -------
    Contingency
        The counts, which every measure takes in place of labels and truth.

    Examples
    --------
    >>> found = contingency([0, 0, 1, 1], ["x", "y", "y", None])
    >>> found.table.tolist(), found.n_left_out
    ([[1, 1], [0, 1]], 1)
    """
    if isinstance(labels, Contingency):
        return labels
    if truth is None:
        return _from_table(labels)
    clusters, cluster_names = complete_codes(labels)
    classes, class_names = codes_of(truth, "truth")
    same_length(len(clusters), len(classes), "labels", "truth")
    known = classes != MISSING
    if not known.any():
        raise DataError("truth-missing", "no row has a true class", do="Give at least one row its class")
    key = clusters[known] * len(class_names) + classes[known]
    cells, counts = _cells_and_counts(key, len(cluster_names) * len(class_names))
    cluster, klass = np.divmod(cells, len(class_names))
    kept, cluster = np.unique(cluster, return_inverse=True)
    names = [cluster_names[code] for code in kept]
    return Contingency(
        cluster=cluster,
        klass=klass,
        count=counts.astype(np.int64),
        cluster_names=names,
        class_names=class_names,
        n_left_out=int((~known).sum()),
    )


def _cells_and_counts(key: Array, n_cells: int) -> tuple[Array, Array]:
    """Which cells are filled and by how many rows; counted in a full table where that is the smaller one."""
    if n_cells > key.size + 1000:
        return np.unique(key, return_counts=True)
    counts = np.bincount(key)
    cells = np.flatnonzero(counts)
    return cells, counts[cells]


def _from_table(table: Any) -> Contingency:
    counts = np.asarray(table)
    if counts.ndim != 2:
        raise UsageError(
            "no-truth",
            "there is no truth to compare with",
            do="Give the labels and the truth, or a table of counts (groups, classes)",
        )
    exact = [int(c) if _is_whole(c) else -1 for c in counts.ravel().tolist()]
    if not exact or min(exact) < 0 or not 0 < sum(exact) < 2**63:
        raise DataError(
            "bad-counts",
            "a table of counts holds whole numbers from 0, one above 0 at least",
            do="Count the rows of each group and class",
        )
    cells: Array = np.array(exact, dtype=np.int64).reshape(counts.shape)
    cluster, klass = np.nonzero(cells)
    count = cells[cluster, klass]
    cluster_names, cluster = np.unique(cluster, return_inverse=True)
    class_names, klass = np.unique(klass, return_inverse=True)
    return Contingency(
        cluster=cluster,
        klass=klass,
        count=count,
        cluster_names=cluster_names.tolist(),
        class_names=class_names.tolist(),
    )


def _is_whole(number: Any) -> bool:
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())


def sums_of(groups: Array, values: Array, n_groups: int) -> Array:
    total = np.zeros(n_groups, dtype=values.dtype)
    np.add.at(total, groups, values)
    return total
