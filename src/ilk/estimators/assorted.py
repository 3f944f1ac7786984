"""The assorted mixture as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ilk.assorted.columns import assort
from ilk.assorted.describe import Trait, traits
from ilk.assorted.fit import AssortedFit, SearchOptions, cost_from, fit_assorted
from ilk.assorted.problem import BLOCKS, CELLS, ModelOptions
from ilk.assorted.sparse import has_sparse_codes
from ilk.engines.base import Rows
from ilk.errors import DataError, Option, UsageError
from ilk.estimators.base import Callback, one_of, real_number, warn_of, whole_number
from ilk.estimators.frames import LABEL, LOG_DENSITY, Reply, probabilities
from ilk.estimators.habits import callback_of, n_starts_of, threads_of
from ilk.estimators.reader import Reader, places, visit_label, visit_log_density, visit_membership
from ilk.estimators.tables import Format, table_rows, told
from ilk.estimators.texts import documented
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import Stop
from ilk.random import seed_of
from ilk.table.block import is_sparse
from ilk.table.weights import in_unit

N_STARTS = 12


@documented
class AssortedMixture(DensityMixin, ClusterMixin, BaseEstimator):
    """Clusters of a table with numbers, categories and missing values: how many, which rows, and by which columns.

    In every column most clusters share one background distribution; a cluster has its own only where that lowers
    the objective J: minus the log-likelihood, plus what the parameters and the choice of columns cost. Numbers are
    Gaussian on a scale chosen by J, categories have free shares, a missing value says nothing. J never rises, and
    with n_components="auto" the number of clusters is the one of least J that splits, merges and births reach. A
    sparse matrix of 0 and 1 is taken as it is, with selection="bic" and sharing="background".

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of clusters; "auto" finds it.
    membership : "soft", "hard" or "annealed", default="soft"
        Whether a row belongs to clusters by probability or to one; "annealed" cools a soft fit down to a hard one.
    selection : "bic", "share", "global" or "none", default="bic"
        Which columns a cluster chooses, to have its own distribution there. "bic": those where that lowers J.
        "share": of these at most the share `share`, those where it gains most. "global": a column matters to all
        clusters or to none. "none": every cluster has every column for itself.
    share : float, default=0.5
        With selection="share", the largest share of the columns that a cluster chooses.
    sharing : "background" or "groups", default="background"
        Clusters that do not choose a column share one background there, or fall in several groups.
    variance : "own" or "shared", default="own"
        Whether the clusters of a number have their own variances.
    numbers : "auto", "cells", "EEE" or "VVV", default="auto"
        "cells": numbers are independent within a cluster, each chosen on its own. "EEE" and "VVV": one Gaussian
        block of correlated numbers, with a covariance common to all clusters or one for each. "auto" takes cells or
        EEE, by J.
    missing : "ignore" or "level", default="ignore"
        "level" makes a missing value of a category a category of its own.
    transforms : bool, default=True
        Whether numbers may be put on a logarithmic scale where J falls.
    criterion : "bic" or "icl", default="bic"
        What chooses the number of clusters: J, or J plus the entropy of the memberships.
    open_cost : float, default=0.0
        Additional cost of each cluster (a penalty), in nats.
    max_components : None or int, default=None
        Largest number of clusters where it is found; None sets no limit.
    n_init : int or "auto", default=12
        Number of starts where the number of clusters is given, of which the best is kept; "auto" is 12.
    {types}
    tol : float, default=1e-07
        A fit ends when a pass lowers J by less than this share of it.
    {max_iter}
    budget : None or float, default=None
        Seconds for all of it, reading included; then the best found so far is taken. None sets no limit.
    {random_state} {device} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {labels_} {n_components_} {weights_}
    chosen_ : bool array of shape (n_components, n_features)
        Columns in which the cluster has its own distribution.
    relevance_ : array of shape (n_components, n_features)
        What a column tells of the cluster, in nats per row; 0 where it is not chosen.
    numbers_ : str
        The model of the numbers that was taken: "cells", "EEE" or "VVV". Of a block, `chosen_` and `relevance_` say
        what each number would tell on its own.
    objective_ : float
        J, lower is better.
    trace_ : list of float
        J after each pass of the fit that won.
    bic_ : float
        Twice J.
    icl_ : float
        Twice J plus the entropy of the memberships.
    k_table_ : list of dict
        Both criteria for every number of clusters visited, on the rows searched.
    treatment_ : dict
        What was made of each column, in words.
    {loglik_} {n_parameters_} {n_iter_} {converged_} {fit_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    cluster : Fits this model, merges and describes its clusters.
    MixedMixture : Every column matters to every component.
    CRAFT : The printed method with choice of columns.

    References
    ----------
    Garg, Rudin and Jaakkola (2016). CRAFT: cluster-specific assorted feature selection. AISTATS, 305-313.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> draws = np.random.default_rng(0)
    >>> which = np.repeat([0, 1], 100)
    >>> X = np.column_stack([draws.normal(5 * which, 1), draws.normal(size=200)])
    >>> model = ilk.AssortedMixture(random_state=0).fit(X)
    >>> model.n_components_, model.chosen_.any(axis=0).tolist()
    (2, [True, False])
    """

    _takes_sparse = True  # 0 and 1; scikit-learn's tag would mean any number

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        membership: str = "soft",
        selection: str = "bic",
        share: float = 0.5,
        sharing: str = "background",
        variance: str = "own",
        numbers: str = "auto",
        missing: str = "ignore",
        transforms: bool = True,
        criterion: str = "bic",
        open_cost: float = 0.0,
        max_components: int | None = None,
        n_init: int | str = N_STARTS,
        types: Any = None,
        tol: float = 1e-7,
        max_iter: int = 300,
        budget: float | None = None,
        random_state: Any = None,
        device: str = "auto",
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.membership = membership
        self.selection = selection
        self.share = share
        self.sharing = sharing
        self.variance = variance
        self.numbers = numbers
        self.missing = missing
        self.transforms = transforms
        self.criterion = criterion
        self.open_cost = open_cost
        self.max_components = max_components
        self.n_init = n_init
        self.types = types
        self.tol = tol
        self.max_iter = max_iter
        self.budget = budget
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of the rows of X, and the columns that matter to each.

        Parameters
        ----------
        {X/table} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        options, quest = self._options(), self._quest()
        given = {"types": self.types, "threads": threads_of(self), "device": self.device}
        rows, form = table_rows(self, X, sample_weight, k=quest.k or 1, **given)
        if has_sparse_codes(rows) or is_sparse(rows.take(np.arange(0)).raw):
            self._check_sparse(rows)
        names = [c.name for c in form.schema.numeric]
        levels = [(c.name, c.levels or ()) for c in form.schema.coded]
        plan = assort(rows, names, levels, missing=self.missing)
        if self.selection == "share":
            options = replace(options, budget=max(1, round(self.share * len(plan.names))))
        seed = seed_of(self.random_state)
        found = fit_assorted(rows, plan, options, quest, seed, callback=callback_of(self))
        self._finish(found, form)
        warn_of(self, found.fit)
        return self

    # --- options

    def _check_sparse(self, rows: Rows) -> None:
        """Refuse what a sparse matrix cannot be asked."""
        if rows.n_columns:
            raise DataError(
                "sparse-counts",
                f"{rows.n_columns} columns of the sparse matrix are counts, and AssortedMixture takes 0 and 1",
                do="Give X > 0, or use MixedMixture for counts",
            )
        for option in (Option("selection", self.selection), Option("sharing", self.sharing)):
            if option.value not in ("bic", "background"):
                raise UsageError(
                    "sparse-option",
                    f"{option} is not for a sparse matrix",
                    do="Leave it out",
                    options=[option],
                )

    def _options(self) -> ModelOptions:
        one_of("selection", self.selection, ("bic", "share", "global", "none"))
        one_of("sharing", self.sharing, ("background", "groups"))
        real_number("share", self.share, 0.0, np.nextafter(1.0, 2.0))
        one_of("membership", self.membership, ("soft", "hard", "annealed"))
        one_of("variance", self.variance, ("own", "shared"))
        one_of("missing", self.missing, ("ignore", "level"))
        one_of("numbers", self.numbers, ("auto", CELLS, *BLOCKS))
        return ModelOptions(
            sharing=self.selection if self.selection in ("global", "none") else self.sharing,
            membership=self.membership,
            variance=self.variance,
            open_cost=real_number("open_cost", self.open_cost, 0.0, inf),
            numbers=self.numbers,
        )

    def _quest(self) -> SearchOptions:
        one_of("criterion", self.criterion, ("bic", "icl"))
        auto = isinstance(self.n_components, str) and self.n_components == "auto"
        seconds = None if self.budget is None else real_number("budget", self.budget, 0.0, inf)
        tol, max_iter = real_number("tol", self.tol, 0.0, inf), whole_number("max_iter", self.max_iter)
        stop = Stop(tol, max_iter, Deadline.after(seconds))
        return SearchOptions(
            None if auto else whole_number("n_components", self.n_components),
            criterion=self.criterion,
            most=None if self.max_components is None else whole_number("max_components", self.max_components),
            n_starts=n_starts_of(self.n_init, N_STARTS),
            rescale=bool(self.transforms),
            stop=stop,
        )

    # --- what a user reads

    def _finish(self, found: AssortedFit, form: Format) -> None:
        unit = form.encoding.weight_unit
        self._found, self._format, self.fit_ = found, form, found.fit.in_unit(unit)
        plan, scales, params = found.scene.plan, found.scene.scales, found.params
        self.labels_ = found.fit.labels
        self.n_components_ = len(params)
        self.weights_ = params.mixing
        self._place = places(plan, form)
        n_features = len(form.schema.columns)
        self.chosen_ = np.zeros((len(params), n_features), dtype=bool)
        self.relevance_ = np.zeros((len(params), n_features))
        for d, place in enumerate(self._place):  # a number split at one value has two parts
            self.chosen_[:, place] |= found.chosen[:, d]
            self.relevance_[:, place] += found.relevance[:, d]
        self.objective_ = found.cost
        self.trace_ = [record.cost for record in found.fit.trace]
        self.bic_, self.icl_ = 2 * found.cost, 2 * (found.cost + found.entropy)
        self.k_table_ = [
            {"n_components": c.k, "bic": 2 * c.cost, "icl": 2 * c.icl, "numbers": c.numbers}
            for c in found.candidates
        ]
        self.treatment_ = plan.in_words(scales, together=found.scene.options.numbers != CELLS)
        self.numbers_ = found.scene.options.numbers
        jacobian = [number.log_jacobian[s] for number, s in zip(plan.numbers, scales, strict=True)]
        self.loglik_ = in_unit(-found.fit.cost + float(sum(jacobian)), unit)
        self.n_parameters_ = found.family.free_parameters(params)
        self.n_iter_ = found.fit.n_passes
        self.converged_ = found.fit.converged

    def traits(self) -> list[Trait]:
        """Return what every cluster is like in every column, the most telling first.

        Returns
        -------
        list of Trait
            One for each cluster and column.
        """
        check_is_fitted(self)
        return traits(self._found, self._format.encoding)

    def objective_from(self, labels: Any) -> float:
        """Return J of the fit that starts from a partition of the rows of `fit`, such as known classes.

        Where it is above `objective_`, the model explains the table better by its own clusters than by anything
        near that partition; where it is below, the search has missed it.

        Parameters
        ----------
        labels : array of shape (n_rows,)
            Name of the part of each row.

        Returns
        -------
        float
            J, lower is better.
        """
        check_is_fitted(self)
        names, label = np.unique(np.asarray(labels), return_inverse=True)
        if label.shape != self.labels_.shape:
            raise DataError(
                "bad-labels",
                f"{len(label)} labels were given for {len(self.labels_)} rows",
                do="Give one label per row",
            )
        if not self._found.scene.has_table:
            raise UsageError(
                "rows-left-behind", "the model was pickled without the rows of its fit", do="Fit it again"
            )
        return cost_from(self._found, label.astype(np.int32), len(names))

    def _told(self, X: Any, visit: Any, reply: Reply) -> Any:
        check_is_fitted(self)
        return told(self, X, self._format, (visit, Reader.of(self._found)), reply, threads_of(self))

    def predict(self, X: Any) -> Any:
        """Return the likeliest cluster of each row, the lowest number among equals.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        int array of shape (n_rows,) or frame
            Cluster of each row. A Spark or Dask frame comes back with a column `label`.
        """
        return self._told(X, visit_label, LABEL)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each cluster for each row.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        array of shape (n_rows, n_components) or frame
            Probabilities. A Spark or Dask frame comes back with columns `probability_0`, `probability_1` and so on.
        """
        check_is_fitted(self)
        return self._told(X, visit_membership, probabilities(self.n_components_))

    def score_samples(self, X: Any) -> Any:
        """Return the log density of the observed values of each row, in the units given.

        Parameters
        ----------
        {X/table}

        Returns
        -------
        array of shape (n_rows,) or frame
            Log densities. A Spark or Dask frame comes back with a column `log_density`.
        """
        return self._told(X, visit_log_density, LOG_DENSITY)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows.

        Parameters
        ----------
        {X/table} {y}

        Returns
        -------
        float
            The mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
