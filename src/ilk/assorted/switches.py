"""Which columns the clusters differ in: what it costs to say so, and the grouping that is best with that cost.

A column is *relevant* where not all clusters share one distribution. Two codes say which are, and how each of them is
shared; the cheaper one counts, so that few relevant columns among many cost about q log(D/q) and half of a handful
never more than a coin per cluster and column (the bit that names the code is the same for all K, and left out):

    coins(K, D)     = (K - 1) D log 2
    sparse(K, D, q) = log(D + 1) + log C(D, q) + q log(2^K - K - 1)

2^K - K - 1 counts the ways to share a relevant column: a background of 2 .. K - 1 clusters, or all alone.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from ilk.assorted.sharing import CellSums, ColumnCosts, background_choices
from ilk.table.block import Array

LOG_2 = float(np.log(2.0))


def coins(k: int, n_columns: int) -> float:
    """Nats of a fair coin per cluster, but for one, and column."""
    return (k - 1) * n_columns * LOG_2


def sparse(k: int, n_columns: int, n_relevant: int) -> float:
    """Nats to name the relevant columns and how each is shared."""
    return float(sparse_costs(k, n_columns)[n_relevant])


def switch_cost(k: int, n_columns: int, n_relevant: int) -> float:
    """The cheaper of the two codes; nothing for one cluster."""
    return 0.0 if k == 1 else min(coins(k, n_columns), sparse(k, n_columns, n_relevant))


def relevance_price(group: Array) -> float:
    """What one relevant column more adds to the cost of the switches of a grouping (clusters, columns)."""
    k, d = group.shape
    n_before = min(int(relevant(group).sum()), d - 1)
    return switch_cost(k, d, n_before + 1) - switch_cost(k, d, n_before) if d else 0.0


@lru_cache(maxsize=256)
def sparse_costs(k: int, n_columns: int) -> Array:
    """`sparse` for every number of relevant columns (columns + 1,)."""
    d, q = n_columns, np.arange(n_columns + 1.0)
    which = gammaln(d + 1) - gammaln(q + 1) - gammaln(d - q + 1)
    costs = np.asarray(np.log(d + 1.0) + which + q * np.log(2.0**k - k - 1))
    costs.setflags(write=False)
    return costs


def relevant(group: Array) -> Array:
    """Mask (columns,) of those with more than one group; groups are named by their first member."""
    return np.asarray((group != 0).any(axis=0))


def regroup_background(cells: CellSums, columns: ColumnCosts, previous: Array | None) -> Array:
    """The grouping of least cost, that of the switches included; exact where every background is tried.

    The switches see a column as relevant or not. So it is enough to know each column's cost with one group and its
    least with more: with coins every column that gains is relevant, with the other code the q that gain most.
    """
    k = len(cells)
    if k == 1:
        return np.zeros((1, columns.n_columns), dtype=np.intp)
    choice = background_choices(cells, columns, previous)
    gain = choice.one - choice.many
    order = np.argsort(-gain, kind="stable")
    reached = np.concatenate([[0.0], np.cumsum(gain[order])]) - sparse_costs(k, columns.n_columns)
    by_coins, q = gain > 0, int(np.argmax(reached))
    if reached[q] > gain[by_coins].sum() - coins(k, columns.n_columns):
        chosen = np.zeros(columns.n_columns, dtype=bool)
        chosen[order[:q]] = True
    else:
        chosen = by_coins
    return np.where(chosen, choice.group, 0)
