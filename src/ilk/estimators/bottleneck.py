"""The information bottleneck as a scikit-learn estimator, for tables of counts and for tables of any columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ilk.errors import DataError, UsageError, warn
from ilk.estimators.base import one_of, real_number, refuse_sparse, whole_number
from ilk.estimators.habits import n_starts_of
from ilk.estimators.tables import Format, held_rows, new_rows
from ilk.estimators.texts import documented
from ilk.paradigms.bottleneck import Joint, cells_as_levels, knots_of, mean_counts, squeeze
from ilk.paradigms.order import by_size
from ilk.random import seed_of
from ilk.table.block import Array, Block

CELLS = ("table", "counts")
N_STARTS = 10


@documented
class InformationBottleneck(ClusterMixin, BaseEstimator):
    """Groups of rows that keep what the rows say about the columns: I(T;X) - beta I(T;Y) is least.

    With cells="counts" the table is a joint distribution: words in documents, purchases of goods. With
    cells="table" every value is one count: for its category; for the two nearest of five quantiles of its column,
    by nearness, where it is a number; for nothing where it is missing. A row then weighs what its values weigh.

    Parameters
    ----------
    max_clusters : int, default=8
        Largest number of groups; fewer are found where they keep as much, or where beta is small.
    beta : None or float, default=None
        What a nat of I(T;Y) is worth. Small values give one group, large ones groups that forget nothing. None is
        the mean number of counts in a row: the soft form then is EM for a mixture of multinomials.
    deterministic : bool, default=False
        H(T) in place of I(T;X): every row belongs to one group, and needless groups vanish.
    cells : "table" or "counts", default="table"
        Whether X is a table of any columns, or holds counts.
    {types}
    n_init : int or "auto", default=10
        Number of starts, of which the best is kept; "auto" is 10.
    {max_iter}
    tol : float, default=1e-09
        A run ends when a pass lowers the functional by less than this share of it.
    {random_state}

    Attributes
    ----------
    {labels_} {n_clusters_}
    memberships_ : array of shape (n_rows, n_clusters)
        Probability p(t | x) of each group for each row.
    weights_ : array of shape (n_clusters,)
        Share p(t) of each group.
    level_shares_ : array of shape (n_clusters, number of levels)
        Shares p(y | t) of the columns of counts, or of the levels of all columns.
    beta_ : float
        The beta that was used.
    functional_ : float
        I(T;X) - beta I(T;Y), or H(T) - beta I(T;Y); in nats, as are its parts.
    compression_ : float
        I(T;X), or H(T).
    relevance_ : float
        I(T;Y), what the groups keep.
    information_ : float
        I(X;Y), the most that can be kept.
    trace_ : tuple of float
        The functional after each pass; it never rises.
    {n_iter_} {converged_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    MixedMixture : Latent classes by maximum likelihood.
    SpectralClustering : Groups of any shape, by distances.

    References
    ----------
    Tishby, Pereira and Bialek (1999). The information bottleneck method. Allerton Conference, 368-377.

    Strouse and Schwab (2017). The deterministic information bottleneck. Neural Computation 29, 1611-1630.

    Examples
    --------
    >>> import ilk
    >>> model = ilk.InformationBottleneck(2, cells="counts", deterministic=True, random_state=0)
    >>> model.fit([[9.0, 1, 0], [8, 2, 0], [0, 1, 9], [1, 0, 7]]).labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    def __init__(
        self,
        max_clusters: int = 8,
        *,
        beta: float | None = None,
        deterministic: bool = False,
        cells: str = "table",
        types: Any = None,
        n_init: int | str = N_STARTS,
        max_iter: int = 500,
        tol: float = 1e-9,
        random_state: Any = None,
    ) -> None:
        self.max_clusters = max_clusters
        self.beta = beta
        self.deterministic = deterministic
        self.cells = cells
        self.types = types
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the groups of the rows of X.

        Parameters
        ----------
        X : array, frame, mapping or path
            A table with columns of any type; with cells="counts" numbers of 0 or more.
        {y}

        Returns
        -------
        Self
            The fitted estimator.
        """
        one_of("cells", self.cells, CELLS)
        k = whole_number("max_clusters", self.max_clusters)
        counts = self._training_counts(X)
        if len(counts) < k:
            raise UsageError(
                "fewer-rows-than-groups",
                f"n_samples={len(counts)} rows are fewer than the {k} groups asked for",
                do="Ask for fewer groups",
            )
        joint = Joint.of_counts(counts)
        self.beta_ = mean_counts(counts) if self.beta is None else real_number("beta", self.beta, 0.0, np.inf)
        found = squeeze(
            joint,
            k,
            self.beta_,
            seed_of(self.random_state),
            deterministic=bool(self.deterministic),
            n_starts=n_starts_of(self.n_init, N_STARTS),
            tolerance=real_number("tol", self.tol, 0.0, np.inf),
            max_passes=whole_number("max_iter", self.max_iter),
        )
        self.labels_, order = by_size(found.membership.argmax(axis=1))
        rest = np.setdiff1d(np.arange(len(found.groups.share)), order)  # likeliest for no row
        order = np.concatenate([order, rest])
        self._groups = found.groups.select(order)
        self.n_clusters_ = len(order)
        self.memberships_ = found.membership[:, order]
        self.weights_, self.level_shares_ = self._groups.share, self._groups.given
        self.functional_, self.trace_ = found.functional, found.trace
        self.compression_, self.relevance_ = found.compression, found.relevance
        self.information_ = joint.information
        self.n_iter_, self.converged_ = len(found.trace), found.converged
        if not found.converged:
            warn(
                "not-converged",
                f"InformationBottleneck did not converge within {self.n_iter_} passes.",
                depth=3,
            )
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability p(t | x) of each group for each row, by its own counts.

        Parameters
        ----------
        X : array, frame, mapping or path
            A table with the columns of `fit`.

        Returns
        -------
        array of shape (n_rows, n_clusters)
            Probabilities.
        """
        check_is_fitted(self)
        counts = self._new_counts(X)
        return self._groups.memberships(Joint.of_counts(counts).given if counts.any() else counts)

    def predict(self, X: Any) -> Array:
        """Return the likeliest group of each row.

        Parameters
        ----------
        X : array, frame, mapping or path
            A table with the columns of `fit`.

        Returns
        -------
        int array of shape (n_rows,)
            Group of each row.
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.int32)

    def _training_counts(self, X: Any) -> Array:
        if self.cells == "counts":
            refuse_sparse(self, X)
            return checked_counts(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        rows, self._form = held_rows(self, X, types=self.types)
        block = rows.take(np.arange(rows.n_rows))
        self._knots = knots_of(block.numbers.astype(np.float64))
        return checked_counts(_levels(block, self._form, self._knots))

    def _new_counts(self, X: Any) -> Array:
        if self.cells == "counts":
            refuse_sparse(self, X)
            counts = validate_data(self, X, dtype=np.float64, reset=False)
            return checked_counts(counts) if len(counts) else counts
        rows = new_rows(self, X, self._form)
        return _levels(rows.take(np.arange(rows.n_rows)), self._form, self._knots)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.cells == "table"
        tags.input_tags.positive_only = self.cells == "counts"
        return tags


def _levels(block: Block, form: Format, knots: tuple[Array, ...]) -> Array:
    return cells_as_levels(block.numbers.astype(np.float64), block.codes, knots, form.level_start)


def checked_counts(counts: Array) -> Array:
    if (counts < 0).any():
        raise DataError(
            "not-counts",
            "Negative values in data: a table of counts has none",
            do='Use cells="table" for measured columns',
        )
    if not counts.sum() > 0:
        raise DataError("no-counts", "all counts are zero", do="Give at least one count above zero")
    return counts
