"""Trimming: the cost above which rows are left out, found exactly in a few passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import Family, Trim
from ilk.fitting.on_device import on_device
from ilk.table.block import Array, Block
from ilk.table.quantiles import QuantileSearch


@dataclass(frozen=True)
class _TrimState:
    families: Sequence[Family[Any]]
    params: Sequence[Any]
    searches: Sequence[QuantileSearch]


def find_cuts(rows: Rows, families: Sequence[Family[Any]], params: Sequence[Any], keep: float) -> list[Trim]:
    """Per start, the cut that keeps exactly the share `keep` of the weight: the cheapest rows. Costs that a device
    tells are kept for all digits, and are those that its steps compare with the cut; so are those of rows in memory
    under one start, where weights do not make sums depend on blocks."""
    there = on_device(rows, families[0])
    if there is not None:
        pairs = zip(families, params, strict=True)
        return [cut_of(family.assign(own, there)[1], there.weights, keep) for family, own in pairs]
    if isinstance(rows, MemoryRows) and not rows.weighted and len(params) == 1:
        costs = np.concatenate([*rows.scan(_visit_costs, (families[0], params[0]))])
        return [cut_of(costs, np.ones(rows.n_rows), keep)]
    searches = [QuantileSearch.begin(keep, (1,))] * len(params)
    while not searches[0].done:
        counts = rows.reduce(_visit, _TrimState(families, params, searches))
        searches = [search.narrow(count) for search, count in zip(searches, counts, strict=True)]
    return [Trim(float(search.value[0]), float(search.share_at[0])) for search in searches]


def cut_of(cost: Array, weight: Array, keep: float) -> Trim:
    """The cut from the costs of all rows.

    >>> cut_of(np.array([3.0, 1.0, 2.0, 10.0]), np.ones(4), 0.5)
    Trim(limit=2.0, share=1.0)
    """
    search = QuantileSearch.begin(keep, (1,))
    while not search.done:
        search = search.narrow(search.count(cost, np.zeros(len(cost), dtype=np.intp), weight))
        fits = search.shares_digits(cost)
        cost, weight = cost[fits], weight[fits]
    return Trim(float(search.value[0]), float(search.share_at[0]))


def _visit_costs(state: tuple[Family[Any], Any], block: Block) -> Array:
    family, params = state
    return family.assign(params, block)[1]


def _visit(state: _TrimState, block: Block) -> Array:
    weight = block.weights
    everyone = np.zeros(block.n_rows, dtype=np.intp)
    counts = []
    for family, params, search in zip(state.families, state.params, state.searches, strict=True):
        counts.append(search.count(family.assign(params, block)[1], everyone, weight))
    return np.stack(counts)
