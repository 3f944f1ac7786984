"""Groups of any shape by density: HDBSCAN of scikit-learn, on distances that are given.

Campello, Moulavi and Sander (2013). Density-based clustering based on hierarchical density estimates. PAKDD.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import HDBSCAN

from ilk.table.block import Array


def hdbscan(matrix: Array, least_rows: int) -> Array:
    """Labels of the rows, -1 in sparse places; one group of all rows where no part is denser than the rest.

    >>> line = np.array([0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3])
    >>> hdbscan(np.abs(line[:, None] - line), 3).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    least = min(least_rows, len(matrix))
    if least < 2:
        return np.zeros(len(matrix), dtype=np.int64)
    found = HDBSCAN(min_cluster_size=least, metric="precomputed", copy=True).fit(np.asarray(matrix))
    labels = np.asarray(found.labels_, dtype=np.int64)
    return labels if (labels >= 0).any() else np.zeros_like(labels)
