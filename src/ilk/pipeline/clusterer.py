"""What `cluster` does, as a scikit-learn estimator: it stands above the analysis, as the command line does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk.analysis.asked import k_of
from ilk.analysis.cautions import STOPPED
from ilk.analysis.checkpoint import Checkpoint
from ilk.analysis.job import Job
from ilk.analysis.progress import reporting
from ilk.analysis.result import Result
from ilk.analysis.run import run
from ilk.errors import DataError
from ilk.estimators.base import checked_array
from ilk.estimators.tables import is_table
from ilk.estimators.texts import documented
from ilk.random import seed_of
from ilk.table.block import Array
from ilk.table.read import Table, from_array, read
from ilk.threads import threads_or_jobs


@documented
class Clusterer(TransformerMixin, ClusterMixin, BaseEstimator):
    """Groups of a table of any columns, their number and model chosen as `cluster` does, for pipelines and searches.

    Where there are no clear groups, all labels are 0 and `n_clusters_` is 1; `result_.segments` has the segments.

    Parameters
    ----------
    n_clusters : "auto", int, range or str, default="auto"
        Number of groups; "auto" or a range (also "2..6") has it chosen, as the argument `k` of `cluster`.
    method : str, default="auto"
        Name of a method, as `cluster` takes it; "auto" chooses among mixtures.
    weights_are : None, "counts" or "sampling", default=None
        What weights mean: numbers of repeated rows, or how many a row of a sample stands for; None sees by their size.
    {types}
    ignore : str or sequence of str, default=()
        Columns to leave out.
    columns : None, str or sequence of str, default=None
        The only columns to use; None uses all that can be used.
    column_weights : None or mapping, default=None
        How much columns count, such as {"income": 2}: a weight of 2 is the column twice, one of 0 leaves it out. Any
        number for methods of distances, whole numbers for the assorted model, which "auto" then is.
    transforms : None or mapping, default=None
        What methods see of columns of numbers, such as {"income": "log", "visits": "rank"}: the logarithm, the rank
        among the rows of the fit, or with "none" the value, also where the assorted model would choose a scale. Groups
        are described in the units given.
    scale : None or "standard", default="standard"
        "standard" divides each column by its standard deviation; None keeps the units given.
    merge : "separation" or "none", default="separation"
        "separation" merges components without a density dip between them into one group; "none" takes every
        component as a group.
    min_size : None or int, default=None
        Smallest number of rows of a group.
    max_size : None or int, default=None
        Largest number of rows of a group of the fit.
    match_to : None, Result, Model or path, default=None
        An earlier result whose letters and names go to the groups that correspond.
    known : None, str or array of shape (n_rows,), default=None
        Labels of the rows whose group is known, -1 or missing for the others, or the name of their column. Rows of a
        label stay together, apart from those of other labels. By a Gaussian mixture or K-means, on numbers in memory;
        components are not merged, and stability is not tested.
    must_link : None or pairs of row numbers, default=None
        Rows that belong to the same group, counted from 0, such as [(0, 5), (5, 9)].
    cannot_link : None or pairs of row numbers, default=None
        Rows that belong to different groups; by K-means.
    budget : None or float, default=None
        Seconds for all of it, reading included, kept within a second or a tenth; what there was no time for is said
        (`time-limit`, "not tested"). Reading, and the methods that are no search, cannot be cut short.
    checkpoint : None or path, default=None
        A file in which a fit of more than half a minute keeps what it has done: the same fit goes on there after it was
        killed, with the same result. As the argument of `cluster`.
    {random_state} {device} {threads} {n_jobs}
    callback : None or callable, default=None
        Called with a `Progress` after each candidate.
    progress : None, bool or callable, default=None
        Whether to show how far the run is: a bar in a notebook and on a terminal, elsewhere a line a stage on stderr;
        None shows it in a notebook. A function is called as `callback` is.
    verbose : int, default=0
        1 prints a line for each candidate and stage to stderr.

    Attributes
    ----------
    labels_ : int array of shape (n_rows,)
        Group of each row, the largest group first; -1 for a row without a value in the columns used.
    {n_clusters_}
    verdict_ : Verdict
        How far to trust the groups.
    result_ : Result
        All that `cluster` returns.
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    cluster : The same as a function.
    AssortedMixture : The model for tables of mixed columns alone.

    Examples
    --------
    >>> import ilk
    >>> model = ilk.Clusterer(2).fit({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]})
    >>> model.labels_.tolist(), model.predict({"size": [7.5]}).tolist()
    ([0, 0, 0, 0, 1, 1, 1, 1], [1])
    """

    def __init__(
        self,
        n_clusters: Any = "auto",
        *,
        method: str = "auto",
        weights_are: str | None = None,
        types: Any = None,
        ignore: str | Sequence[str] = (),
        columns: str | Sequence[str] | None = None,
        column_weights: Mapping[str, float] | None = None,
        transforms: Mapping[str, str] | None = None,
        scale: str | None = "standard",
        merge: str = "separation",
        min_size: int | None = None,
        max_size: int | None = None,
        match_to: Any = None,
        known: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
        budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = 0,
        device: str = "auto",
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Any = None,
        progress: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.weights_are = weights_are
        self.types = types
        self.ignore = ignore
        self.columns = columns
        self.column_weights = column_weights
        self.transforms = transforms
        self.scale = scale
        self.merge = merge
        self.min_size = min_size
        self.max_size = max_size
        self.match_to = match_to
        self.known = known
        self.must_link = must_link
        self.cannot_link = cannot_link
        self.budget = budget
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.progress = progress
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of the rows of X.

        Parameters
        ----------
        {X/table} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        table = self._table(X)
        with reporting(self.progress, self.callback, self.verbose) as told:
            job = replace(self._job(table, sample_weight), callback=told)
            result = run(job)
        if result.interrupted:
            STOPPED.warn()
        elif job.checkpoint is not None:
            job.checkpoint.done()
        self.result_ = result
        self.labels_, self.n_clusters_, self.verdict_ = result.labels, result.k, result.verdict
        return self

    def _job(self, table: Table, weight: Any) -> Job:
        earlier = self.match_to.model if isinstance(self.match_to, Result) else self.match_to
        return Job(
            table,
            k=k_of(self.n_clusters),
            method=self.method,
            weight=weight,
            weights_are=self.weights_are,
            types=self.types,
            ignore=self.ignore,
            columns=self.columns,
            column_weights=self.column_weights,
            transforms=self.transforms,
            scale=self.scale,
            merge=self.merge,
            min_size=self.min_size,
            max_size=self.max_size,
            match_to=earlier,
            known=self.known,
            must_link=self.must_link,
            cannot_link=self.cannot_link,
            budget=self.budget,
            checkpoint=None if self.checkpoint is None else Checkpoint(self.checkpoint),
            seed=seed_of(self.random_state),
            threads=threads_or_jobs(self.threads, self.n_jobs),
            device=self.device,
        )

    def _table(self, X: Any) -> Table:
        """The rows of a fit; of an array of numbers the columns are known by their place, of a table by their names."""
        self._by_position = not is_table(X)
        if self._by_position:
            table = from_array(checked_array(self, X, reset=True))
        else:
            table = read(X)
            self.n_features_in_ = table.n_columns
            self.feature_names_in_ = np.array(table.names, dtype=object)
        if table.n_rows == 1:
            raise DataError("one-row", "n_samples=1: one row has no groups", do="Give at least 2 rows")
        return table

    def _new(self, X: Any) -> Table:
        check_is_fitted(self)
        return from_array(checked_array(self, X, reset=False)) if self._by_position else read(X)

    def predict(self, X: Any) -> Array:
        """Return the group of each row.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        int array of shape (n_rows,)
            Number of the group; -1 for a row without a value in the columns used.
        """
        table = self._new(X)
        group: Array = self.result_.model.place(table).group
        return np.minimum(group, 0) if self.result_.segments is not None else group

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each group for each row; methods without probabilities give 0 and 1.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        array of shape (n_rows, number of groups)
            Probabilities; NaN for a row without a value in the columns used.
        """
        table = self._new(X)
        shares = self.result_.model.memberships(table)
        return shares.sum(axis=1, keepdims=True) if self.result_.segments is not None else shares

    def transform(self, X: Any) -> Array:
        """Return the memberships of each row: the same as `predict_proba`.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        array of shape (n_rows, number of groups)
            Memberships, a column for each group.
        """
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` gives.

        Parameters
        ----------
        input_features : None or array, default=None
            Not used; scikit-learn passes it.

        Returns
        -------
        array of str
            `group_A`, `group_B` and so on.
        """
        check_is_fitted(self)
        letters = self.result_.model.letters if self.result_.segments is None else ("A",)
        return np.array([f"group_{mark}" for mark in letters], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
