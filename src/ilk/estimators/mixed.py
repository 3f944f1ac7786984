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
from ilk.estimators.components import MixtureEstimator, full_matrices
from ilk.estimators.frames import Reply
from ilk.estimators.habits import callback_of, threads_of
from ilk.estimators.tables import Format, given_groups, table_rows, told
from ilk.families.base import Cut
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


class MixedMixture(MixtureEstimator):
    """A mixture over numbers, categories and counts together, fitted by EM.

    Within a component the numbers are Gaussian with any of the fourteen covariance structures, every category has
    its own shares of levels, every count is Poisson, and these three groups are independent. With categories alone
    this is latent class analysis. Missing cells drop out of the likelihood: nothing is imputed. An ordered category
    is taken as a category.

    Parameters
    ----------
    n_components : int
    structure : str
        Of the numbers: VVI (independent columns) by default, or any of EII VII EEI VEI EVI VVI EEE VEE EVE VVE EEV
        VEV EVV VVV.
    smoothing : float
        Strength of the prior on the shares of levels, in pseudo-rows that have the shares of the table; 0 is plain
        maximum likelihood.
    prior : None or "default" or Prior
        A conjugate prior on means and covariances, as in `GaussianMixture`.
    init : str or array
        "auto" (a mix of starts), "k-means", "k-log-k", "principal", "ward", any start of `KMeans`; one label per
        row, or memberships (n_rows, n_components).
    n_init : None or int
        How many starts; None for the default of `init`.
    membership : "soft" or "hard"
        "hard" is classification EM: each row belongs to its likeliest component.
    trim : float
        Share of the rows, those of lowest density, left out of every step; `outliers_` marks them.
    types : None or mapping or path
        Kinds of columns where the rules guess wrong: "numeric", "count", "categorical", "binary", "ordinal" or
        "ignore". Of a number array only the columns named here (x0, x1, ...) are anything but numeric.
    tol, max_iter, scale, random_state, threads, callback : as in `GaussianMixture`.

    Attributes
    ----------
    weights_ : array (K,)
    means_, covariances_ : arrays (K, d), (K, d, d) over the measured columns, in table order
    shares_ : dict
        Per categorical column its levels, each with its share in the components (K,).
    rates_ : dict
        Per count column the mean counts (K,).
    loglik_, n_parameters_, n_iter_, converged_, status_, labels_, fit_, schema_

    Examples
    --------
    >>> import ilk, pandas as pd
    >>> table = pd.DataFrame({"size": [1.1, 0.9, 1.3, None, 5.2, 4.8, 5.1, 5.3], "kind": list("aaabbbbb")})
    >>> ilk.MixedMixture(2, smoothing=1, random_state=0).fit(table).labels_
    array([1, 1, 1, 0, 0, 0, 0, 0], dtype=int32)
    """

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
        self.threads = threads
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the rows of X: a frame, also of Spark or Dask, a dictionary, a path or an array."""
        k = whole_number("n_components", self.n_components)
        one_of("membership", self.membership, ("soft", "hard"))
        options = {"types": self.types, "scale": self.scale, "threads": threads_of(self)}
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
            partitions=partitioner_for(form.level_start),
        )
        self._form, self._table_counts = form, counts
        self._show(rows, family, found)
        return found

    def _family_for(self, rows: Rows, form: Format, k: int) -> tuple[Product, TableCounts]:
        n_measured = int((~form.is_count).sum())
        return make_product(
            rows,
            form.level_start,
            form.is_count,
            structure=self._make_structure(max(n_measured, 1)),
            membership=self.membership,
            smoothing=real_number("smoothing", self.smoothing, 0.0, np.inf),
            prior=lambda mean, covariance, weight: self._prior_from(mean, covariance, weight, k),
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
        self.shares_ = _shares(form, params)
        names = [c.name for c in form.schema.numeric if c.kind == "count"]
        self.rates_ = dict(zip(names, params.rate.T, strict=True))
        self.labels_ = found.labels
        self._log_unit = np.where(measured, np.log(rows.encoding.unit), 0.0)
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
        """1 - entropy of the memberships / (rows log K) of the training rows: 1 where every row is sure, 0 for none.

        1 for a single component.
        """
        check_is_fitted(self)
        k = len(self.weights_)
        return 1.0 if k == 1 else 1.0 - self._sharpness.entropy / (self._n_rows * log(k))

    def average_posterior_table(self) -> Array:
        """Mean probability of each component (columns) over the training rows of each group (rows), (K, K).

        The diagonal of latent class analysis: near 1 where groups are told apart; NaN for a group without rows.
        """
        check_is_fitted(self)
        total, size = self._sharpness.posterior, self._sharpness.size[:, None]
        return np.divide(total, size, out=np.full_like(total, np.nan), where=size > 0)

    def sample(self, n_samples: int = 1) -> tuple[Any, Array]:
        """Rows drawn from the mixture, as a table of the kind that was fitted, and their components."""
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


def _shares(form: Format, params: ProductMixture) -> dict[str, dict[Any, Array]]:
    shares: dict[str, dict[Any, Array]] = {}
    for column, begin in zip(form.schema.coded, form.level_start, strict=False):
        levels = [level_value(level, column.type) for level in column.levels or ()]
        shares[column.name] = {level: params.share[:, begin + i] for i, level in enumerate(levels)}
    return shares


@dataclass(frozen=True)
class _Sharpness:
    """How well the components are told apart, summed over rows by weight."""

    log_certainty: float
    entropy: float
    posterior: Array  # (K, K) memberships of the rows of each group
    size: Array  # (K,) weight of these rows

    def __add__(self, other: _Sharpness) -> _Sharpness:
        return _Sharpness(
            self.log_certainty + other.log_certainty,
            self.entropy + other.entropy,
            self.posterior + other.posterior,
            self.size + other.size,
        )


def _visit_sharpness(state: tuple[Product, ProductMixture, Cut], block: Block) -> _Sharpness:
    family, params, cut = state
    scores = family.scores(params, block)
    membership, cost = kernels.memberships(scores, False)
    if family.hard:
        cost = kernels.memberships(scores, True)[1]
    weight = block.weights * cut.kept(cost)
    surprise = np.log(np.where(membership > 0, membership, 1.0))
    own = np.eye(membership.shape[1])[scores.argmax(axis=1)] * weight[:, None]
    return _Sharpness(
        log_certainty(membership, weight),
        -float(weight @ (membership * surprise).sum(axis=1)),
        own.T @ membership,
        own.sum(axis=0),
    )
