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
    """`statistic` = 2 (loglik of K - loglik of K - 1), the same of tables drawn at K - 1, and the share of them,
    the table itself among them, that reaches it."""

    n_components: int
    statistic: float
    drawn: Array
    p_value: float


@documented
def likelihood_ratio_test(
    X: Any, n_components: int, *, n_draws: int = 99, random_state: Any = None, **options: Any
) -> LikelihoodRatioTest:
    """Test `n_components` - 1 against `n_components` of a `MixedMixture` with these options.

    Drawn tables have the rows of X, and blanks where X has them. A small `p_value` speaks for K components.

    Parameters
    ----------
    X : table, as in `MixedMixture`
    n_components : int
        K, at least 2.
    n_draws : int
        Tables drawn from the fit of K - 1 components.
    random_state : as in `KMeans`
    **options
        Of `MixedMixture`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) + 6.0 * (np.arange(60) < 20)[:, None]
    >>> likelihood_ratio_test(X, 2, n_draws=19, random_state=0).p_value
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
