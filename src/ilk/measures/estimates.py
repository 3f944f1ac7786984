"""Figures with how uncertain they are: standard errors and percentile intervals of bootstrap resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Figures with their standard errors and intervals, arrays of one shape.

    Attributes
    ----------
    value : array
        The figures of the fit.
    standard_error : array
        Their standard deviation over bootstrap resamples.
    lower : array
        Lower end of the percentile interval.
    upper : array
        Upper end of the percentile interval.

    See Also
    --------
    standard_errors : Makes them.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> draws = np.random.default_rng(0)
    >>> X = np.vstack([draws.normal(0, 1, (60, 1)), draws.normal(9, 1, (40, 1))])
    >>> model = ilk.GaussianMixture(2, random_state=0).fit(X)
    >>> ilk.standard_errors(model, X, n_resamples=50, random_state=0)["weights"].standard_error.shape
    (2,)
    """

    value: Array
    standard_error: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, value: Array, drawn: Sequence[Array], level: float) -> Estimate:
        """Return the estimate from the figures of resamples.

        Parameters
        ----------
        value : array
            The figures of the fit.
        drawn : sequence of arrays
            The same of each resample, two at least.
        level : float
            Share of the resamples within the interval.

        Returns
        -------
        Estimate
            The figures with their uncertainty.
        """
        several = np.stack([np.asarray(one, dtype=np.float64) for one in drawn])
        low, high = np.nanquantile(several, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return cls(np.asarray(value, dtype=np.float64), np.nanstd(several, axis=0, ddof=1), low, high)
