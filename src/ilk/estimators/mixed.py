"""Mixtures over tables of mixed columns, latent class analysis among them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ilk import kernels
from ilk.engines.base import Rows
from ilk.errors import DataError
from ilk.estimators.base import Callback, one_of, real_number, warn_of, whole_number
from ilk.estimators.components import MixtureEstimator
from ilk.estimators.constants import full_matrices
from ilk.estimators.frames import Reply
from ilk.estimators.habits import callback_of, threads_of
from ilk.estimators.tables import Format, given_groups, table_rows, told
from ilk.estimators.texts import documented
from ilk.families.base import Trim
from ilk.families.prior import Prior
from ilk.families.product import Product, ProductMixture
from ilk.fitting.fit import Fit
from ilk.fitting.mixture import fit_mixture
from ilk.fitting.product import TableCounts, make_product, partitioner_for
from ilk.fitting.restarts import from_given
from ilk.measures.criteria import log_certainty
from ilk.random import seed_of, stream
from ilk.table.block import Array, Block
from ilk.table.encode import level_value
from ilk.table.weights import in_unit


@documented
class MixedMixture(MixtureEstimator):
    """A mixture over numbers, categories and counts together, fitted by EM.

    Within a component the numbers are Gaussian with any of the fourteen covariance structures, every category has
    its own shares, every count is Poisson, and these three kinds are independent. With categories alone this is
    latent class analysis. Missing values drop out of the likelihood: nothing is imputed. An ordered category is
    taken as a category. Of a sparse matrix, taken as it is, columns of 0 and 1 are categories and other counts are
    counts; `smoothing=1` suits it.

    Parameters
    ----------
    {n_components}
    structure : str, default="VVI"
        Covariance structure of the numbers: VVI has independent columns; any of EII VII EEI VEI EVI VVI EEE VEE EVE
        VVE EEV VEV EVV VVV. The letters are volume, shape and orientation, each E (equal for all components), V
        (free) or I.
    smoothing : float, default=0.0
        Strength of the prior on the shares of categories and the rates of counts, in pseudo-rows that have those of the
        table; 0 is plain maximum likelihood.
    {prior} {init/mixed} {n_init/partitions} {membership} {trim} {types}
    {tol/likelihood} {max_iter} {scale} {random_state} {device} {threads} {n_jobs} {callback} {verbose}

    Attributes
    ----------
    {weights_}
    means_ : array of shape (n_components, number of measured columns)
        Mean of each measured column in each component, in table order and the units given.
    covariances_ : array of shape (n_components, number of measured columns, number of measured columns)
        Covariance matrix of the measured columns in each component.
    shares_ : dict
        For each categorical column its categories, each with its share in the components.
    rates_ : dict
        For each count column the mean counts of the components.
    {labels_} {loglik_} {n_parameters_} {n_iter_} {converged_} {status_} {outliers_} {fit_} {schema_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    AssortedMixture : Finds the number of clusters and the columns that matter to each.
    likelihood_ratio_test : Whether one more component is better, or only more.
    GaussianMixture : Numbers alone.

    References
    ----------
    Hunt and Jorgensen (2011). Clustering mixed data. WIREs Data Mining and Knowledge Discovery 1, 352-361.

    Examples
    --------
    >>> import ilk, pandas as pd
    >>> table = pd.DataFrame({"size": [1.1, 0.9, 1.3, None, 5.2, 4.8, 5.1, 5.3], "kind": list("aaabbbbb")})
    >>> ilk.MixedMixture(2, smoothing=1, random_state=0).fit(table).labels_
    array([1, 1, 1, 0, 0, 0, 0, 0], dtype=int32)
    """

    _takes_sparse = True  # 0 and 1 and counts; scikit-learn's tag would mean any number

    def __init__(
        self,
        n_components: int = 1,
        *,
        structure: str = "VVI",
        smoothing: float = 0.0,
        prior: Any = None,
        init: Any = "auto",
        n_init: int | str | None = None,
        membership: str = "soft",
        trim: float = 0.0,
        types: Any = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        scale: str | None = None,
        random_state: Any = None,
        device: str = "auto",
        threads: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.structure = structure
        self.smoothing = smoothing
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.membership = membership
        self.trim = trim
        self.types = types
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the rows of X.

        Parameters
        ----------
        {X/table} {y} {sample_weight}

        Returns
        -------
        Self
            The fitted estimator.
        """
        k = whole_number("n_components", self.n_components)
        one_of("membership", self.membership, ("soft", "hard"))
        options = {"types": self.types, "scale": self.scale, "threads": threads_of(self)}
        options["device"] = self.device
        rows, form = table_rows(self, X, sample_weight, k=k, **options)
        if rows.n_rows < 2:
            raise DataError("one-row", "n_samples=1: one row has no spread", do="Give at least 2 rows")
        found = self._fit_rows(rows, form, k)
        warn_of(self, found)
        return self

    def _fit_rows(self, rows: Rows, form: Format, k: int) -> Fit:
        plan = self._plan()
        family, counts = self._family_for(rows, form, k)
        init = None
        if not isinstance(self.init, str):
            init = [from_given(rows, family, given_groups(self.init, rows.n_rows, k), k)]
        found = fit_mixture(
            rows,
            family,
            k,
            seed_of(self.random_state),
            plan,
            init=init,
            callback=callback_of(self),
            partitions=partitioner_for(rows, form.level_start),
        )
        self._form, self._table_counts = form, counts
        self._show(rows, family, found)
        return found

    def _family_for(self, rows: Rows, form: Format, k: int) -> tuple[Product, TableCounts]:
        measured = rows.encoding.columns(~form.is_count)
        n_measured = len(measured.centre)

        def prior(mean: Array, covariance: Array, weight: float) -> Prior | None:
            if isinstance(self.prior, Prior):
                return self.prior.encoded(measured, np.ones(n_measured, dtype=bool))
            return self._default_prior(mean, covariance, weight, k)

        return make_product(
            rows,
            form.level_start,
            form.is_count,
            structure=self._make_structure(max(n_measured, 1)),
            membership=self.membership,
            smoothing=real_number("smoothing", self.smoothing, 0.0, np.inf),
            prior=prior,
        )

    # --- what a user reads

    def _show(self, rows: Rows, family: Product, found: Fit) -> None:
        """Everything in the user's units."""
        form, counts, params = self._form, self._table_counts, found.params
        measured = ~form.is_count
        encoding = rows.encoding.columns(measured)
        self._family, self._params, self.schema_ = family, params, form.schema
        self.fit_ = found.in_unit(encoding.weight_unit)
        self.weights_ = params.mixing
        self.means_ = encoding.undo(params.mean)
        everywhere = np.ones(len(encoding.centre), dtype=bool)
        self.covariances_ = full_matrices(params.covariance.matrices(), 1 / encoding.unit, everywhere)
        self.shares_ = shares_of(form, params)
        names = [c.name for c in form.schema.numeric if c.kind == "count"]
        self.rates_ = dict(zip(names, params.rate.T, strict=True))
        self.labels_ = found.labels
        self._log_unit = np.where(measured, rows.encoding.log_unit, 0.0)
        kept = 1.0 - self.trim
        self._loglik = -found.cost + kept * float(counts.cells @ self._log_unit)
        self.loglik_ = in_unit(self._loglik, encoding.weight_unit)
        self.n_parameters_ = family.free_parameters(params)
        self.n_iter_, self.converged_, self.status_ = found.n_passes, found.converged, found.status
        self._n_rows = counts.row_weight * kept
        self._sharpness = rows.reduce(_visit_sharpness, (family, params, found.cut))
        self._log_certainty = self._sharpness.log_certainty
        beyond = np.zeros(rows.n_rows, dtype=bool)
        self.outliers_ = beyond if found.row_cost is None else found.row_cost > found.cut.limit

    def _scan(self, X: Any, visit: Any, reply: Reply) -> Any:
        check_is_fitted(self)
        answer = (visit, (self._family, self._params, self._log_unit))
        return told(self, X, self._form, answer, reply, threads_of(self))

    def relative_entropy(self) -> float:
        """Return how sure the rows of `fit` are: 1 - entropy of the memberships / (rows log K).

        Returns
        -------
        float
            1 where every row is sure of its component, and for a single component; 0 where none is.
        """
        check_is_fitted(self)
        k = len(self.weights_)
        return 1.0 if k == 1 else 1.0 - self._sharpness.entropy / (self._n_rows * log(k))

    def average_posterior_table(self) -> Array:
        """Return the mean probability of each component over the rows of `fit` of each group.

        Returns
        -------
        array of shape (n_components, n_components)
            A row for each group, a column for each component. The diagonal is that of latent class analysis: near 1
            where groups are told apart. NaN for a group without rows.
        """
        check_is_fitted(self)
        total, size = self._sharpness.posterior, self._sharpness.size[:, None]
        return np.divide(total, size, out=np.full_like(total, np.nan), where=size > 0)

    def sample(self, n_samples: int = 1) -> tuple[Any, Array]:
        """Draw rows from the mixture, as a table of the kind that was fitted.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        rows : frame or array
            The rows, in the units given.
        components : int array of shape (n_samples,)
            The component of each.
        """
        check_is_fitted(self)
        n_samples = whole_number("n_samples", n_samples)
        raw, codes, label = self._draw(n_samples, stream(seed_of(self.random_state), "sample mixture"))
        return self._form.frame(raw, codes), label

    def _draw(self, n_samples: int, draws: np.random.Generator) -> tuple[Array, Array | None, Array]:
        """Numbers in the user's units, codes, and components."""
        form, weights = self._form, self.weights_ / self.weights_.sum()
        label = draws.choice(len(weights), n_samples, p=weights).astype(np.int32)
        numbers, counts, codes = self._family.draw(self._params, label, draws)
        raw = np.empty((n_samples, len(form.is_count)))
        raw[:, ~form.is_count] = form.encoding.columns(~form.is_count).undo(numbers)
        raw[:, form.is_count] = counts
        return raw, codes if form.schema.coded else None, label


def shares_of(form: Format, params: ProductMixture) -> dict[str, dict[Any, Array]]:
    """By column and category, the share in each component."""
    shares: dict[str, dict[Any, Array]] = {}
    for column, begin in zip(form.schema.coded, form.level_start, strict=False):
        levels = [level_value(level, column.type) for level in column.levels or ()]
        shares[column.name] = {level: params.share[:, begin + i] for i, level in enumerate(levels)}
    return shares


@dataclass(frozen=True)
class _Certainty:
    """How well the components are told apart, summed over rows by weight."""

    log_certainty: float
    entropy: float
    posterior: Array  # (K, K) memberships of the rows of each group
    size: Array  # (K,) weight of these rows

    def __add__(self, other: _Certainty) -> _Certainty:
        return _Certainty(
            self.log_certainty + other.log_certainty,
            self.entropy + other.entropy,
            self.posterior + other.posterior,
            self.size + other.size,
        )


def _visit_sharpness(state: tuple[Product, ProductMixture, Trim], block: Block) -> _Certainty:
    family, params, cut = state
    scores = family.scores(params, block)
    membership, cost = kernels.memberships(scores, False)
    if family.hard:
        cost = kernels.memberships(scores, True)[1]
    weight = block.weights * cut.kept(cost)
    surprise = np.log(np.where(membership > 0, membership, 1.0))
    own = np.eye(membership.shape[1])[scores.argmax(axis=1)] * weight[:, None]
    return _Certainty(
        log_certainty(membership, weight),
        -float(weight @ (membership * surprise).sum(axis=1)),
        own.T @ membership,
        own.sum(axis=0),
    )
