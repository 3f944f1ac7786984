"""The prior of a number's spreads, fitted to the clusters (empirical Bayes).

The pseudo-row of a spread has the variance of the whole table, which is no guide where the table is many times as wide
as its groups: a tenth of such a row doubles the variance of sixty. An anchor is the deviation of the pseudo-row in that
of the table. At given variances the prior `log(s2 / a2) + a2 / s2` summed over groups is least where `a2` is their
harmonic mean; an anchor is a power of two, and costs half a log N. It is nothing but the unit of the column, so that
updates, kernels and J are the same, and whether it pays is seen from J.
"""

from __future__ import annotations

import numpy as np

from ilk.assorted.clusters import Clusters
from ilk.assorted.sharing import firsts

LARGEST = 0.5  # what is nearer to the table is left as it is


def fitted_anchors(params: Clusters, anchors: tuple[float, ...], n_numbers: int) -> tuple[float, ...]:
    """The anchors that suit the clusters; `anchors` are the units of their variances, none where all are 1."""
    first = firsts(params.group)[:, :n_numbers]
    n_groups = first.sum(axis=0)
    precision = np.where(first, params.precision, 0.0).sum(axis=0)
    unit = np.array(anchors or (1.0,) * n_numbers)
    fitted = 2.0 ** np.round(np.log2(np.sqrt(n_groups / precision) * unit))
    fitted = np.where((n_groups > 1) & (fitted <= LARGEST), fitted, 1.0)
    return tuple(fitted.tolist()) if (fitted < 1).any() else ()
