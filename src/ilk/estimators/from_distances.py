"""What estimators of distances share: from what the user gave to distances, from distances to labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from ilk.errors import UsageError, warn
from ilk.estimators.base import one_of, refuse_sparse, whole_number
from ilk.estimators.tables import held_rows
from ilk.estimators.texts import documented
from ilk.fitting.start import in_cell_order
from ilk.paradigms.distance import (
    EUCLIDEAN,
    GOWER,
    PRECOMPUTED,
    Distances,
    by_distances,
    distances,
    given_distances,
)
from ilk.paradigms.order import by_size
from ilk.table.block import Array

METRICS = ("auto", EUCLIDEAN, GOWER, PRECOMPUTED)


@documented
class DistanceEstimator(ClusterMixin, BaseEstimator, ABC):
    """From what the user gave to distances, from distances to labels in canonical order."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the groups of the rows of X.

        Parameters
        ----------
        {X/distances} {y}

        Returns
        -------
        Self
            The fitted estimator.
        """
        apart, order = self._distances(X)
        found, old_labels = by_size(self._cluster(apart, order))
        self.labels_ = np.empty_like(found)
        self.labels_[order] = found
        self.n_clusters_ = len(old_labels)
        return self

    @abstractmethod
    def _cluster(self, apart: Distances, order: Array) -> Array:
        """A label per row, the labels in any order; `order` has the user's number of each row."""

    def _distances(self, X: Any) -> tuple[Distances, Array]:
        """Distances of the rows in an order that they have by themselves, and the user's numbers of the rows."""
        one_of("metric", self.metric, METRICS)
        if self.metric == PRECOMPUTED:
            refuse_sparse(self, X)
            apart = given_distances(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
            order = self._order(lambda: by_distances(apart.matrix), len(apart.matrix))
            apart = replace(apart, matrix=apart.matrix[np.ix_(order, order)])
        else:
            rows, form = held_rows(self, X, types=self.types, scale=self.scale)
            ordered = np.array([c.kind == "ordinal" for c in form.schema.coded], dtype=bool)
            block = rows.take(np.arange(rows.n_rows))
            order = self._order(lambda: in_cell_order(block), rows.n_rows)
            apart = distances(rows.take(order), ordered, self.metric)
            if apart.n_unknown:
                text = f"{apart.n_unknown} pairs of rows have no column in common"
                warn("nothing-in-common", f"{text} and are put at the mean dissimilarity.", depth=4)
        self.metric_ = apart.kind
        return apart, order

    def _order(self, by_content: Callable[[], Array], n_rows: int) -> Array:
        """What is drawn for a row depends on what it says, not on where it stands."""
        return by_content()

    def _wanted(self, n_rows: int) -> int | None:
        """The number of clusters asked for, None where it is to be found."""
        if isinstance(self.n_clusters, str):
            one_of("n_clusters", self.n_clusters, ("auto",))
            return None
        wanted = whole_number("n_clusters", self.n_clusters)
        if wanted > n_rows:
            raise UsageError(
                "fewer-rows-than-groups",
                f"n_samples={n_rows} rows are fewer than the {wanted} groups asked for",
                do="Ask for fewer groups",
            )
        return wanted

    def _missed(self, wanted: int | None, found: int) -> None:
        if wanted is not None and found != wanted:
            text = f"{type(self).__name__} was asked for {wanted} groups and found {found}"
            warn(
                "fewer-groups" if found < wanted else "more-groups",
                f"{text}; the data have no such cut.",
                depth=4,
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.metric != EUCLIDEAN and self.metric != PRECOMPUTED
        tags.input_tags.pairwise = self.metric == PRECOMPUTED
        return tags
