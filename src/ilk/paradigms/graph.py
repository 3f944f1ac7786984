"""Clusterings of a similarity matrix that scikit-learn has: spectral clustering and affinity propagation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from sklearn.cluster import AffinityPropagation, SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import kneighbors_graph

from ilk.paradigms.distance import spanning_tree
from ilk.table.block import Array

STATES = 2**32  # seeds that scikit-learn takes
FLOOR = 1e-3  # eigenvalues of a Laplacian below this are all near 0: the graph nearly falls in parts there


@dataclass(frozen=True, eq=False)
class Exemplars:
    """`labels` of the rows, `rows` that stand for the clusters, and whether the messages settled."""

    labels: Array
    rows: Array
    converged: bool
    n_passes: int


def affinity(matrix: Array, n_neighbors: int) -> csr_array:
    """The neighbour graph as scikit-learn makes it: 1 where two rows are among each other's nearest, 1/2 where only
    one is of the other; a row is its own neighbour. Where it falls in parts, for which eigenvectors are arbitrary, the
    edges of the minimum spanning tree between them are added, 1/2 each."""
    n_neighbors = min(n_neighbors, len(matrix))
    near = kneighbors_graph(matrix, n_neighbors, metric="precomputed", include_self=True)
    edges = csr_array((near + near.T) / 2)
    n_parts, part = connected_components(edges, directed=False)
    if n_parts == 1:
        return edges
    first, second = spanning_tree(matrix)
    between = part[first] != part[second]
    first, second = first[between], second[between]
    links = csr_array((np.full(len(first), 0.5), (first, second)), shape=edges.shape)
    return csr_array(edges + links + links.T)


def spectral(matrix: Array, n_clusters: int, n_neighbors: int, seed: int) -> Array:
    """Labels by scikit-learn's `SpectralClustering` on the graph of nearest neighbours."""
    if n_clusters == 1:
        return np.zeros(len(matrix), dtype=np.int32)
    if n_clusters >= len(matrix):  # each row is a group: as many eigenvectors as rows cannot be asked for
        return np.arange(len(matrix), dtype=np.int32)
    model = SpectralClustering(n_clusters, affinity="precomputed", random_state=seed % STATES)
    return np.asarray(model.fit(affinity(matrix, n_neighbors)).labels_, dtype=np.int32)


def eigengaps(matrix: Array, most: int, n_neighbors: int) -> Array:
    """(eigenvalue K + 1) / (eigenvalue K) of the normalised Laplacian, both raised by `FLOOR`, for K = 1 .. most.

    K groups that hang together only loosely have K eigenvalues near 0 (von Luxburg 2007, Statistics and Computing 17).
    The ratio says so whatever the size of the groups; the difference grows with the eigenvalues. Two rows show no leap.
    """
    if len(matrix) < 3:
        return np.ones(1)
    edges = affinity(matrix, n_neighbors)
    edges.setdiag(0)
    wanted = min(most + 1, len(matrix) - 1)
    scale = diags_array(1 / np.sqrt(edges.sum(axis=1)))
    normed = csc_array(eye_array(len(matrix)) - scale @ edges @ scale)
    start = np.ones(len(matrix))
    values = np.sort(eigsh(normed, wanted, sigma=-FLOOR, v0=start, return_eigenvectors=False))
    raised = np.maximum(values, 0.0) + FLOOR
    return np.asarray(raised[1:] / raised[:-1])


def affinity_propagation(
    matrix: Array, seed: int, *, damping: float = 0.5, preference: float | None = None, max_passes: int = 200
) -> Exemplars:
    """Exemplars by scikit-learn's `AffinityPropagation`; the similarity is minus the squared distance."""
    model = AffinityPropagation(
        damping=damping,
        preference=preference,
        max_iter=max_passes,
        affinity="precomputed",
        random_state=seed % STATES,
    )
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        model.fit(-(matrix**2))
    settled = not any(issubclass(warning.category, ConvergenceWarning) for warning in made)
    labels = np.asarray(model.labels_, dtype=np.int32)
    rows = np.asarray(model.cluster_centers_indices_, dtype=np.intp)
    if not len(rows):  # nothing was found: all rows in one, told as not settled
        labels, rows, settled = np.zeros_like(labels), np.array([matrix.sum(axis=1).argmin()]), False
    return Exemplars(labels, rows, settled, int(model.n_iter_))
