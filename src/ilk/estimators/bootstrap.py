"""The bootstrap likelihood-ratio test: are K components better than K - 1, or only more?

Twice the difference of the log-likelihoods has no known distribution at K - 1 (a share lies on its boundary), so the
mixture of K - 1 components is drawn from and both are fitted again (McLachlan 1987; Nylund and others 2007).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.estimators.base import whole_number
from ilk.estimators.habits import threads_of
from ilk.estimators.mixed import MixedMixture
from ilk.estimators.tables import Format, new_rows
from ilk.estimators.texts import documented
from ilk.random import seed_of, stream
from ilk.table.block import Array
from ilk.table.condition import encoding_of, survey


@dataclass(frozen=True)
class LikelihoodRatioTest:
    """What `likelihood_ratio_test` found.

    Attributes
    ----------
    n_components : int
        K: the test is of K - 1 against K components.
    statistic : float
        2 (log-likelihood of K - log-likelihood of K - 1).
    drawn : array of shape (n_draws,)
        The same of tables drawn from the fit of K - 1 components.
    p_value : float
        Share of them, the table itself among them, that reaches `statistic`. A small one speaks for K components.

    See Also
    --------
    likelihood_ratio_test : Makes it.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.random.default_rng(0).normal(size=(60, 1))
    >>> found = ilk.likelihood_ratio_test(X, 2, n_draws=9, random_state=0)
    >>> found.n_components, len(found.drawn)
    (2, 9)
    """

    n_components: int
    statistic: float
    drawn: Array
    p_value: float


@documented
def likelihood_ratio_test(
    X: Any, n_components: int, *, n_draws: int = 99, random_state: Any = None, **options: Any
) -> LikelihoodRatioTest:
    """Test K - 1 against K components of a `MixedMixture`, by a parametric bootstrap.

    Drawn tables have as many rows as X, and missing values where X has them.

    Parameters
    ----------
    {X/table}
    n_components : int
        K, at least 2.
    n_draws : int, default=99
        Number of tables drawn from the fit of K - 1 components.
    {random_state}
    **options : dict
        Other parameters of `MixedMixture`.

    Returns
    -------
    LikelihoodRatioTest
        The statistic, those of the drawn tables, and the p-value.

    See Also
    --------
    MixedMixture : The model that is tested.
    select : Structures and numbers of components compared by BIC.

    References
    ----------
    McLachlan (1987). On bootstrapping the likelihood ratio test statistic for the number of components in a normal
    mixture. Applied Statistics 36, 318-324.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) + 6.0 * (np.arange(60) < 20)[:, None]
    >>> ilk.likelihood_ratio_test(X, 2, n_draws=19, random_state=0).p_value
    0.05
    """
    k = whole_number("n_components", n_components, least=2)
    n_draws, seed = whole_number("n_draws", n_draws), seed_of(random_state)
    fewer = MixedMixture(k - 1, random_state=seed, **options).fit(X)
    more = MixedMixture(k, random_state=seed, **options).fit(X)
    rows = new_rows(fewer, X, fewer._form, threads=threads_of(fewer))
    statistic = 2 * (more.loglik_ - fewer.loglik_)
    drawn = np.empty(n_draws)
    for number in range(n_draws):
        raw, codes, _ = fewer._draw(rows.n_rows, stream(seed, "bootstrap", number))
        table = _with_blanks_of(rows, raw, codes)
        form = replace(fewer._form, encoding=table.encoding)
        small, large = (
            _loglik(MixedMixture(n, random_state=seed, **options), table, form, n) for n in (k - 1, k)
        )
        drawn[number] = 2 * (large - small)
    reached = 1 + int((drawn >= statistic).sum())
    return LikelihoodRatioTest(k, float(statistic), drawn, reached / (n_draws + 1))


def _loglik(model: MixedMixture, rows: MemoryRows, form: Format, k: int) -> float:
    model._fit_rows(rows, form, k)
    return float(model.loglik_)


def _with_blanks_of(rows: MemoryRows, raw: Array, codes: Array | None) -> MemoryRows:
    """Drawn cells, blank where the table has blanks, conditioned anew."""
    raw = np.where(np.isnan(rows.raw), np.nan, raw)
    if codes is not None and rows.codes is not None:
        codes = np.where(rows.codes < 0, np.int32(-1), codes)
    facts = survey(raw)
    return MemoryRows(
        raw, encoding_of(raw, facts), codes=codes, complete=facts.complete, threads=rows.threads
    )
