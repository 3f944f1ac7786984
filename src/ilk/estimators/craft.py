"""CRAFT as printed, as a scikit-learn estimator: groups of mixed rows, each with columns of its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk.engines.memory import MemoryRows
from ilk.errors import UsageError
from ilk.estimators.base import one_of, real_number, warn_of, whole_number
from ilk.estimators.frames import LABEL
from ilk.estimators.habits import threads_of
from ilk.estimators.tables import held_rows, told
from ilk.estimators.texts import documented
from ilk.families.craft import APPROXIMATE, EXACT, Choice, Paper, default_locality
from ilk.fitting.craft import background_shares, fit_paper, fit_wished
from ilk.fitting.loop import Stop
from ilk.random import seed_of
from ilk.table.block import Array, Block


@documented
class CRAFT(ClusterMixin, BaseEstimator):
    """CRAFT as printed (Garg, Rudin, Jaakkola, AISTATS 2016): the paper's variant, for comparison.

    Groups of rows with numbers and categories, in which every group chooses a share of the columns. The walk
    depends on the order of the rows and on chance, and its objective can rise: it ends when nothing changes, or at
    the limit. Numbers are standardised first. Missing values count nowhere. Own shares and variances get one
    pseudo-row of the table, since as printed a new group is infinitely far from every row with another category.

    Parameters
    ----------
    open_cost : None or float, default=None
        Cost of each group (the paper's lambda), in nats. None derives it from `target_clusters`.
    target_clusters : int, default=8
        Number of groups to aim at, used where `open_cost` is None: by farthest-first from the table's own means and
        shares, and from there upwards while more groups are found. Fewer may be found.
    share : float, default=0.5
        Share of the columns that a group chooses (the paper's m), between 0 and 1.
    locality : None or float, default=None
        The paper's rho, between 0 (all groups choose alike) and share * (1 - share) (each for itself), both excluded.
        None: max(0.01, share * (1 - share) - 0.01).
    selection : "exact" or "approximate", default="exact"
        "exact": each group chooses `share` of the numbers, those of least variance, and `share` of the categories,
        those that save most compared with the table. "approximate": all numbers with a variance below
        `most_variance` and all categories that save more than `least_gain` of what the table's shares cost.
    least_gain : float, default=0.1
        With selection="approximate", the share of the table's cost that a category must save.
    most_variance : float, default=0.5
        With selection="approximate", the variance below which a number is chosen.
    {types} {max_iter} {random_state} {threads} {n_jobs}

    Attributes
    ----------
    chosen_ : bool array of shape (n_clusters, number of columns used)
        The columns of each group; their names are in `columns_`.
    columns_ : list of str
        Names of the columns used, numbers first.
    {labels_} {n_clusters_} {open_cost_}
    objective_ : float
        The printed objective in the last pass; `fit_.trace` has it for every pass.
    {n_iter_} {converged_} {fit_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    AssortedMixture : What ilk recommends for such tables.
    DPMeans : Numbers alone, without choice of columns.

    References
    ----------
    Garg, Rudin and Jaakkola (2016). CRAFT: cluster-specific assorted feature selection. AISTATS, 305-313.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> draws = np.random.default_rng(0)
    >>> X = draws.normal(size=(60, 4)) + np.repeat([[0, 0, 0, 0], [9, 9, 0, 0]], 30, axis=0)
    >>> model = ilk.CRAFT(target_clusters=2, share=0.5, random_state=0).fit(X)
    >>> model.chosen_.sum(axis=1).tolist() == [2] * model.n_clusters_
    True
    """

    def __init__(
        self,
        open_cost: float | None = None,
        *,
        target_clusters: int = 8,
        share: float = 0.5,
        locality: float | None = None,
        selection: str = EXACT,
        least_gain: float = 0.1,
        most_variance: float = 0.5,
        types: Any = None,
        max_iter: int = 100,
        random_state: Any = None,
        threads: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.open_cost = open_cost
        self.target_clusters = target_clusters
        self.share = share
        self.locality = locality
        self.selection = selection
        self.least_gain = least_gain
        self.most_variance = most_variance
        self.types = types
        self.max_iter = max_iter
        self.random_state = random_state
        self.threads = threads
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of the rows of X; a table that is not in memory is brought into it.

        Parameters
        ----------
        {X/table} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        choice, stop = self._choice(), Stop(max_passes=whole_number("max_iter", self.max_iter, least=0))
        one_of("selection", self.selection, (EXACT, APPROXIMATE))
        rows, self._format = held_rows(
            self, X, sample_weight, types=self.types, scale="standard", threads=threads_of(self)
        )
        self._family = family = self._make_family(rows, choice)
        seed = seed_of(self.random_state)
        if self.open_cost is None:
            wish = whole_number("target_clusters", self.target_clusters)
            found, self.open_cost_ = fit_wished(rows, family, wish, seed, stop)
        else:
            self.open_cost_ = real_number("open_cost", self.open_cost, 0.0, np.inf)
            found = fit_paper(rows, family, self.open_cost_, seed, stop)
        self.fit_ = found.in_unit(rows.encoding.weight_unit)
        self._params = found.params
        self.labels_ = found.labels
        self.n_clusters_ = len(found.size)
        self.chosen_ = found.params.chosen
        schema = self._format.schema
        self.columns_ = [column.name for column in (*schema.numeric, *schema.coded)]
        self.objective_ = self.fit_.trace[-1].cost if found.trace else np.inf
        self.n_iter_, self.converged_ = found.n_passes, found.converged
        warn_of(self, found)
        return self

    def _choice(self) -> Choice:
        share = real_number("share", self.share, 0.0, 1.0)
        if share == 0:
            raise UsageError("bad-share", "share=0", do="Give a share between 0 and 1")
        if self.locality is None:
            return Choice(share, default_locality(share))
        limit = share * (1 - share)
        locality = real_number("locality", self.locality, 0.0, limit)
        if locality == 0:
            raise UsageError("bad-locality", "locality=0", do=f"Give a number between 0 and {limit:g}")
        return Choice(share, locality)

    def _make_family(self, rows: MemoryRows, choice: Choice) -> Paper:
        weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
        level_start = self._format.level_start
        return Paper(
            choice=choice,
            background=background_shares(rows.codes, weight, level_start),
            level_start=level_start,
            n_numbers=rows.n_columns,
            budget=self.selection,
            least_gain=real_number("least_gain", self.least_gain, 0.0, 1.0),
            most_variance=real_number("most_variance", self.most_variance, 0.0, np.inf),
        )

    def predict(self, X: Any) -> Any:
        """Return the group in which each row costs least, the lowest number among equals.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        int array of shape (n_rows,) or frame
            Group of each row. A Spark or Dask frame comes back with a column `label`.
        """
        check_is_fitted(self)
        answer = (_visit_label, (self._family, self._params))
        return told(self, X, self._format, answer, LABEL, threads_of(self))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False
        return tags


def _visit_label(state: Any, block: Block) -> Array:
    family, params = state
    found: Array = family.assign(params, block)[0]
    return found
