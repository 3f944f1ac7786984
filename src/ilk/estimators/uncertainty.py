"""Standard errors of the parameters of a mixture, by refitting it to bootstrap resamples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ilk.engines.memory import MemoryRows
from ilk.errors import NoModelError, UsageError
from ilk.estimators.base import checked_array, given_weight, one_of, real_number, whole_number
from ilk.estimators.constants import full_matrices
from ilk.estimators.habits import threads_of
from ilk.estimators.mixed import MixedMixture, shares_of
from ilk.estimators.mixture import GaussianMixture
from ilk.estimators.tables import new_rows
from ilk.estimators.texts import documented
from ilk.fitting.resamples import KINDS, refitted
from ilk.measures.estimates import Estimate
from ilk.random import seed_of
from ilk.table.block import Array
from ilk.table.condition import survey

FEWEST = 2  # resamples that have a deviation
Figures = dict[str, Array]


@dataclass(frozen=True, eq=False)
class StandardErrors(Mapping[str, Estimate]):
    """Parameters of a mixture by name, each an `Estimate`.

    Attributes
    ----------
    estimates : dict
        Names and estimates: "weights", "means", "covariances" of a `GaussianMixture`; of a `MixedMixture` also "rates",
        and "shares of COLUMN" of shape (n_components, number of categories).
    kind : str
        How rows were resampled.
    level : float
        Share of the resamples within the intervals.
    n_resamples : int
        Resamples that the figures rest on.
    n_lost : int
        Resamples that were left out because a component was lost in them.

    See Also
    --------
    standard_errors : Makes it.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> draws = np.random.default_rng(0)
    >>> X = np.vstack([draws.normal(0, 1, (60, 1)), draws.normal(9, 1, (40, 1))])
    >>> model = ilk.GaussianMixture(2, random_state=0).fit(X)
    >>> sorted(ilk.standard_errors(model, X, n_resamples=50, random_state=0))
    ['covariances', 'means', 'weights']
    """

    estimates: dict[str, Estimate]
    kind: str
    level: float
    n_resamples: int
    n_lost: int

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)


@documented
def standard_errors(
    model: Any,
    X: Any,
    *,
    n_resamples: int = 200,
    kind: str = "nonparametric",
    level: float = 0.95,
    sample_weight: Any = None,
    random_state: Any = None,
) -> StandardErrors:
    """Return standard errors and percentile intervals of the parameters of a fitted mixture.

    The mixture is fitted again to each bootstrap resample, from its own parameters, so that components correspond; a
    resample in which a component is lost is left out and counted.

    Parameters
    ----------
    model : GaussianMixture or MixedMixture
        A fitted mixture.
    {X/table}
    n_resamples : int, default=200
        Number of resamples.
    kind : "nonparametric" or "weighted-likelihood", default="nonparametric"
        Rows drawn with replacement, or weighted by a flat Dirichlet draw, which loses no row and no component of few
        rows.
    level : float, default=0.95
        Share of the resamples within the intervals.
    {sample_weight}
    {random_state}

    Returns
    -------
    StandardErrors
        Parameters by name, each with its value, standard error and interval.

    See Also
    --------
    GaussianMixture : Mixtures of numbers.
    MixedMixture : Mixtures of mixed columns, latent class analysis among them.
    Result : Has `standard_errors` of the profiles of its groups.

    References
    ----------
    O'Hagan, Murphy, Scrucca and Gormley (2019). Investigation of parameter uncertainty in clustering using a Gaussian
    mixture model via jackknife, bootstrap and weighted likelihood bootstrap. Computational Statistics 34, 1779-1813.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> draws = np.random.default_rng(0)
    >>> X = np.vstack([draws.normal(0, 1, (60, 1)), draws.normal(9, 1, (40, 1))])
    >>> model = ilk.GaussianMixture(2, random_state=0).fit(X)
    >>> ilk.standard_errors(model, X, n_resamples=200, random_state=0)["means"].standard_error.round(2).ravel().tolist()
    [0.12, 0.17]
    """
    n_resamples = whole_number("n_resamples", n_resamples, least=FEWEST)
    one_of("kind", kind, KINDS)
    level = real_number("level", level, 0.0, 1.0)
    rows, figures = _told_by(model, X, sample_weight)
    found = [
        *refitted(rows, model._family, model._params, kind, n_resamples, seed_of(random_state), model.trim)
    ]
    drawn = [figures(one[0]) for one in found if one is not None]
    if len(drawn) < FEWEST:
        raise NoModelError(
            "no-valid-model",
            f"a component is lost in {n_resamples - len(drawn)} of {n_resamples} resamples",
            do='Use fewer components, or kind="weighted-likelihood"',
        )
    value = figures(model._params)
    estimates = {name: Estimate.of(value[name], [one[name] for one in drawn], level) for name in value}
    return StandardErrors(estimates, kind, level, len(drawn), n_resamples - len(drawn))


def _told_by(model: Any, X: Any, sample_weight: Any) -> tuple[MemoryRows, Any]:
    """The rows as the model sees them, and what its parameters are in the user's units."""
    if isinstance(model, GaussianMixture):
        check_is_fitted(model)
        raw = checked_array(model, X, reset=False)
        facts = survey(raw)
        raw = raw if model._varies.all() else raw[:, model._varies]
        weight = given_weight(sample_weight, len(raw))[0]
        rows = MemoryRows(
            raw, model._encoding, weight=weight, complete=facts.complete, threads=threads_of(model)
        )
        return rows, lambda params: _of_numbers(model, params)
    if isinstance(model, MixedMixture):
        check_is_fitted(model)
        held = new_rows(model, X, model._form, threads=threads_of(model))
        weight = given_weight(sample_weight, held.n_rows)[0]
        rows = MemoryRows(
            held.raw,
            held.encoding,
            weight=weight,
            codes=held.codes,
            complete=held.complete,
            threads=held.threads,
        )
        return rows, lambda params: _of_mixed(model, params)
    raise UsageError(
        "bad-model",
        f"{type(model).__name__} has no standard errors",
        do="Give a GaussianMixture or a MixedMixture that was fitted",
    )


def _of_numbers(model: GaussianMixture, params: Any) -> Figures:
    encoding, varies = model._encoding, model._varies
    means = model.means_.copy()
    means[:, varies] = encoding.undo(params.mean)
    spread = full_matrices(params.covariance.matrices(), 1 / encoding.unit, varies)
    return {"weights": params.mixing, "means": means, "covariances": spread}


def _of_mixed(model: MixedMixture, params: Any) -> Figures:
    form = model._form
    encoding = form.encoding.columns(~form.is_count)
    everywhere = np.ones(len(encoding.centre), dtype=bool)
    made = {
        "weights": params.mixing,
        "means": encoding.undo(params.mean),
        "covariances": full_matrices(params.covariance.matrices(), 1 / encoding.unit, everywhere),
        "rates": params.rate,
    }
    for name, levels in shares_of(form, params).items():
        made[f"shares of {name}"] = np.stack([*levels.values()], axis=1)
    return {name: figures for name, figures in made.items() if figures.size}
