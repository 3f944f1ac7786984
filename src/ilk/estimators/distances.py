"""Clusterings of distances as scikit-learn estimators: spectral, typical cuts, affinity propagation, hierarchical.

They take arrays, tables of mixed columns, or a matrix of distances; mixed columns and blanks go in through Gower's
dissimilarity. They give groups to the rows they are fitted on, and have no rule for others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ilk.errors import warn
from ilk.estimators.base import one_of, real_number, whole_number
from ilk.estimators.from_distances import DistanceEstimator
from ilk.estimators.texts import documented
from ilk.paradigms.distance import Distances
from ilk.paradigms.graph import affinity_propagation, eigengaps, spectral
from ilk.paradigms.linkage import LINKAGES, cut_at, cuts, longest_lived, tree_of
from ilk.paradigms.order import by_size
from ilk.paradigms.typical_cuts import chosen, typical_cuts
from ilk.random import seed_of
from ilk.table.block import Array

K_MOST = 20  # of n_clusters="auto"
SMALL_SHARE = 0.02  # of the rows, below which a typical cut does not count by default


@documented
class SpectralClustering(DistanceEstimator):
    """Spectral clustering of the neighbour graph: scikit-learn's, for arrays and for tables of mixed columns.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of groups. "auto" takes the number, up to 20, after which the eigenvalues of the Laplacian leap most;
        it may be 1.
    {n_neighbors} {metric} {types} {scale} {random_state}

    Attributes
    ----------
    {labels_} {n_clusters_} {metric_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    TypicalCuts : Also on the neighbour graph; finds the number of groups.
    HierarchicalClustering : A tree of merges.

    References
    ----------
    Ng, Jordan and Weiss (2001). On spectral clustering: analysis and an algorithm. NIPS 14, 849-856.

    von Luxburg (2007). A tutorial on spectral clustering. Statistics and Computing 17, 395-416.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> ilk.SpectralClustering(2, n_neighbors=6, random_state=0).fit(np.vstack([ring, 4 * ring])).labels_[[0, 59, 60]]
    array([1, 1, 0], dtype=int32)
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        n_neighbors: int = 10,
        metric: str = "auto",
        types: Any = None,
        scale: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.types = types
        self.scale = scale
        self.random_state = random_state

    def _cluster(self, apart: Distances, order: Array) -> Array:
        near = whole_number("n_neighbors", self.n_neighbors, least=2)
        wanted = self._wanted(len(apart.matrix))
        if wanted is None:
            wanted = int(eigengaps(apart.matrix, K_MOST, near).argmax()) + 1
        return spectral(apart.matrix, wanted, near, seed_of(self.random_state))


@documented
class TypicalCuts(DistanceEstimator):
    """Typical cuts: rows that random partitions of the neighbour graph keep together more often than not.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of groups; where the data have no such cut the nearest is taken, with a warning. "auto" takes the
        number that survives the widest range of temperatures, which may be 1.
    n_neighbors : int, default=10
        Two rows are neighbours where each is among so many nearest of the other.
    min_size : None or int, default=None
        Smallest number of rows of a group; smaller sets of rows join their strongest neighbours. None is 2 % of the
        rows, and at least 2.
    {metric} {types} {scale} {random_state}

    Attributes
    ----------
    {labels_} {n_clusters_} {metric_}
    temperature_ : float
        Temperature of the partitions whose typical cut was taken.
    counts_ : list of (float, int)
        Each temperature, and its number of groups.
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    SpectralClustering : Also on the neighbour graph.

    References
    ----------
    Blatt, Wiseman and Domany (1996). Superparamagnetic clustering of data. Physical Review Letters 76, 3251-3254.

    Gdalyahu, Weinshall and Werman (2001). Self-organization in vision: stochastic clustering for image segmentation,
    perceptual grouping, and image database organization. IEEE PAMI 23, 1053-1074.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> ilk.TypicalCuts(n_neighbors=4, random_state=0).fit(np.vstack([ring, 4 * ring])).n_clusters_
    2
    """

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        n_neighbors: int = 10,
        min_size: int | None = None,
        metric: str = "auto",
        types: Any = None,
        scale: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.min_size = min_size
        self.metric = metric
        self.types = types
        self.scale = scale
        self.random_state = random_state

    def _cluster(self, apart: Distances, order: Array) -> Array:
        n_rows = len(apart.matrix)
        near, wanted = whole_number("n_neighbors", self.n_neighbors), self._wanted(n_rows)
        least = small_cut(n_rows) if self.min_size is None else whole_number("min_size", self.min_size)
        ladder = typical_cuts(apart.matrix, near, least, seed_of(self.random_state))
        cut = chosen(ladder, wanted)
        self._missed(wanted, cut.n_clusters)
        self.temperature_ = cut.temperature
        self.counts_ = [(step.temperature, step.n_clusters) for step in ladder]
        return cut.labels


def small_cut(n_rows: int) -> int:
    """Rows from which a typical cut counts by default."""
    return max(2, round(SMALL_SHARE * n_rows))


@documented
class AffinityPropagation(DistanceEstimator):
    """Affinity propagation: scikit-learn's, for arrays and for tables of mixed columns.

    Rows send messages until some of them, the exemplars, stand for all; the number of groups is found. The
    similarity of two rows is minus their squared distance.

    Parameters
    ----------
    damping : float, default=0.5
        Share of the old message that is kept in each pass; at least 0.5 and below 1.
    preference : None or float, default=None
        How much a row wants to be an exemplar, in squared units of the distance; None is the median similarity.
    {max_iter} {metric} {types} {scale} {random_state}

    Attributes
    ----------
    {labels_} {n_clusters_}
    cluster_centers_indices_ : int array of shape (n_clusters,)
        The row that stands for each group.
    {metric_} {n_iter_} {converged_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    HierarchicalClustering : A tree of merges.
    KMedians : Centres that outliers move little.

    References
    ----------
    Frey and Dueck (2007). Clustering by passing messages between data points. Science 315, 972-976.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> ilk.AffinityPropagation(random_state=0).fit([[1.0], [1.2], [1.1], [8.0], [8.1]]).cluster_centers_indices_
    array([2, 3])
    """

    def __init__(
        self,
        *,
        damping: float = 0.5,
        preference: float | None = None,
        max_iter: int = 200,
        metric: str = "auto",
        types: Any = None,
        scale: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.damping = damping
        self.preference = preference
        self.max_iter = max_iter
        self.metric = metric
        self.types = types
        self.scale = scale
        self.random_state = random_state

    def _cluster(self, apart: Distances, order: Array) -> Array:
        preference = self.preference
        if preference is not None:
            preference = real_number("preference", preference, -np.inf, np.inf) * apart.unit**2
        found = affinity_propagation(
            apart.matrix,
            seed_of(self.random_state),
            damping=real_number("damping", self.damping, 0.5, 1.0),
            preference=preference,
            max_passes=whole_number("max_iter", self.max_iter),
        )
        self.converged_, self.n_iter_ = found.converged, found.n_passes
        if not found.converged:
            warn("not-converged", "AffinityPropagation did not converge; raise max_iter or damping.", depth=4)
        self.cluster_centers_indices_ = order[found.rows[by_size(found.labels)[1]]]
        return found.labels


@documented
class HierarchicalClustering(DistanceEstimator):
    """Hierarchical clustering by SciPy, with every linkage, and a cut in which small clusters do not count.

    Single linkage finds groups of any shape, and takes every outlier for a group of its own: with `min_size` the
    tree is cut until there are `n_clusters` groups of so many rows, and the rows of smaller ones have the label -1.

    Parameters
    ----------
    n_clusters : int or "auto", default=2
        Number of groups. "auto" takes the number, up to 20, that survives the widest range of heights.
    linkage : str, default="average"
        One of "average", "single", "complete", "weighted", "ward", "centroid" and "median". Ward, centroid and
        median are for Euclidean distances.
    min_size : int, default=1
        Smallest number of rows of a group; the rows of smaller ones have the label -1.
    {metric} {types} {scale}

    Attributes
    ----------
    {labels_} {n_clusters_} {metric_}
    tree_ : array of shape (n_rows - 1, 4)
        The merges, as `scipy.cluster.hierarchy.linkage` gives them.
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    SpectralClustering : Groups of any shape.
    AffinityPropagation : Groups around exemplars.

    References
    ----------
    Murtagh and Contreras (2012). Algorithms for hierarchical clustering: an overview. WIREs Data Mining and Knowledge
    Discovery 2, 86-97.

    Examples
    --------
    >>> import ilk
    >>> model = ilk.HierarchicalClustering(2, linkage="single", min_size=2)
    >>> model.fit([[1.0], [1.5], [2.0], [9.0], [9.5], [99.0]]).labels_
    array([ 0,  0,  0,  1,  1, -1], dtype=int32)
    """

    def __init__(
        self,
        n_clusters: int | str = 2,
        *,
        linkage: str = "average",
        min_size: int = 1,
        metric: str = "auto",
        types: Any = None,
        scale: str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.min_size = min_size
        self.metric = metric
        self.types = types
        self.scale = scale

    def _order(self, by_content: Callable[[], Array], n_rows: int) -> Array:
        """Nothing is drawn, and the tree names rows by their numbers."""
        return np.arange(n_rows)

    def _cluster(self, apart: Distances, order: Array) -> Array:
        one_of("linkage", self.linkage, LINKAGES)
        least, wanted = whole_number("min_size", self.min_size), self._wanted(len(apart.matrix))
        self.tree_ = tree_of(apart, self.linkage)
        cut = (
            longest_lived(cuts(self.tree_, K_MOST, least))
            if wanted is None
            else cut_at(self.tree_, wanted, least)
        )
        self._missed(wanted, cut.n_clusters)
        return cut.labels
